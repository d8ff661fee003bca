/* Programs at the edges of the calls: missing memory, reused descriptor numbers, cancelled
 * threads, limits, and bytes that the kernel moves.
 *
 *   edges CASE FILE
 *
 * As in robust.c, the output and the file must be the same on a plain file without the library
 * and on a managed one with it. */
#include "cases.h"

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

static void told(const char *what, long result)
{
    printf("%s %ld %s\n", what, result, result < 0 ? strerror(errno) : "");
    errno = 0;
}

/* Two pages; the second one cannot be accessed. It stays mapped, because the library might
 * otherwise map something there. */
static char *before_a_hole(void)
{
    char *pages = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED && mprotect(pages + 4096, 4096, PROT_NONE) == 0);
    return pages + 4096;
}

static void bad_vectors(void)
{
    int fd = fresh();
    char *hole = before_a_hole();
    use(fd, 1);
    struct iovec *nowhere = (struct iovec *)16, *across = (struct iovec *)(hole - 24), *last = (struct iovec *)(hole - 16);
    told("readv", readv(fd, nowhere, 1));
    told("writev", writev(fd, nowhere, 3));
    told("preadv", preadv(fd, nowhere, 1024, 5));
    told("pwritev", pwritev(fd, nowhere, 2, 5));
    told("preadv2", preadv2(fd, nowhere, 2, 5, 0));
    told("pwritev2", pwritev2(fd, nowhere, 2, -1, 0));
    told("too many", pwritev(fd, nowhere, 1025, 5));
    told("none", pwritev(fd, nowhere, 0, 5));
    told("across", writev(fd, across, 2));
    told("second behind the end", readv(fd, last, 2));
    *last = (struct iovec){"good", 4};
    told("at the end", writev(fd, last, 1));
    *last = (struct iovec){hole, 100};
    told("to a hole", readv(fd, last, 1));
    told("from a hole", writev(fd, last, 1));
    char good[100];
    struct iovec mixed[2] = {{good, 100}, {hole, 100}};
    told("partly", preadv(fd, mixed, 2, 0));
    told("partly written", pwritev(fd, mixed, 2, 0));
    told("offset", lseek(fd, 0, SEEK_CUR));
}

/* A system call that no library can intercept. */
static long unseen(long number, long a, long b, long c, long d)
{
#ifdef __x86_64__
    long result;
    register long r10 __asm__("r10") = d;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
    return result;
#else
    return syscall(number, a, b, c, d);
#endif
}

/* A number that was a plain file's and now belongs to the file at `path`. */
static void is_served(const char *what, int fd, int number)
{
    printf("%s: same number %d\n", what, fd == number);
    use(fd, (unsigned)strlen(what));
    struct stat s;
    CHECK(fstat(fd, &s) == 0);
    printf("size %ld\n", (long)s.st_size);
}

static int plain_number(void)
{
    char byte;
    int fd = open("/dev/zero", O_RDWR);
    CHECK(fd >= 0 && read(fd, &byte, 1) == 1);
    return fd;
}

static long openat2_by_number(void)
{
    unsigned long how[3] = {O_RDWR, 0, 0};
    return syscall(SYS_openat2, AT_FDCWD, path, how, sizeof how);
}

static void stale_numbers(void)
{
    close(fresh());
    int number = plain_number();
    CHECK(unseen(SYS_close, number, 0, 0, 0) == 0);
    int fd = openat2_by_number();
    is_served("openat2 by number", fd, number);
    CHECK(close(fd) == 0);

    number = plain_number();
    CHECK(syscall(SYS_close, number) == 0);
    fd = unseen(SYS_openat, AT_FDCWD, (long)path, O_RDWR, 0);
    is_served("closed by number", fd, number);
    CHECK(close(fd) == 0);

    number = open("/", O_RDONLY);
    struct stat s;
    CHECK(number >= 0 && fstat(number, &s) == 0);
    DIR *dir = fdopendir(number);
    CHECK(dir && closedir(dir) == 0);
    fd = unseen(SYS_openat, AT_FDCWD, (long)path, O_RDWR, 0);
    is_served("closedir", fd, number);

    int pair[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    char space[CMSG_SPACE(sizeof fd)] = {0}, byte = 'x';
    struct iovec vector = {&byte, 1};
    struct mmsghdr message = {.msg_hdr = {.msg_iov = &vector, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space}};
    struct cmsghdr *control = CMSG_FIRSTHDR(&message.msg_hdr);
    control->cmsg_level = SOL_SOCKET, control->cmsg_type = SCM_RIGHTS, control->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(control), &fd, sizeof fd);
    CHECK(sendmsg(pair[0], &message.msg_hdr, 0) == 1 && close(fd) == 0);
    number = plain_number();
    CHECK(unseen(SYS_close, number, 0, 0, 0) == 0);
    CHECK(recvmmsg(pair[1], &message, 1, 0, 0) == 1);
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message.msg_hdr)), sizeof fd);
    is_served("recvmmsg", fd, number);
}

static volatile int under_way;
static void *cancelled(void *argument)
{
    static _Thread_local char buffer[5000];
    struct iovec vector = {buffer, sizeof buffer};
    int fd = open(path, O_RDWR);
    for (;; under_way = 1)
        switch (*(char *)argument) {
        case 'r': pread(fd, buffer, sizeof buffer, 3000); break;
        case 'w': pwrite(fd, buffer, sizeof buffer, 3000); break;
        case 'v': writev(fd, &vector, 1), lseek(fd, 0, SEEK_SET); break;
        case 's': fsync(fd); break;
        case 'c': close(open(path, O_RDWR)); break;
        case 'o': close(fd), fd = open(path, O_WRONLY | O_TRUNC); break;
        }
    return 0;
}

static void cancel_in_calls(void)
{
    int fd = fresh();
    use(fd, 1);
    for (const char *call = "rwvsco"; *call; call++)
        for (int i = 0; i < 20; i++) {
            pthread_t thread;
            void *result;
            under_way = 0;
            CHECK(pthread_create(&thread, 0, cancelled, (void *)call) == 0);
            while (!under_way)
                sched_yield();
            CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
        }
    /* Nothing that other calls would wait for is left behind. */
    use(fd, 2);
    CHECK(ftruncate(fd, 1000) == 0);
    pid_t child = fork();
    if (child == 0) {
        use(fd, 3);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    puts("cancelled");
}

static char waited_for[] = "/tmp/edges.XXXXXX/fifo";
static volatile int waiter;
static void *waits(void *argument)
{
    int *flags = argument;
    waiter = (int)syscall(SYS_gettid);
    open(waited_for, *flags, 0644);
    return 0;
}

static int sleeps(int thread)
{
    char name[64], text[200] = {0};
    snprintf(name, sizeof name, "/proc/self/task/%d/stat", thread);
    int fd = open(name, O_RDONLY);
    CHECK(fd >= 0 && read(fd, text, sizeof text - 1) > 0 && close(fd) == 0);
    return strstr(text, ") S") != 0;
}

/* An open that waits for the other end of a FIFO, in a directory without a rule. */
static void cancel_waiting_open(void)
{
    char *slash = strrchr(waited_for, '/');
    *slash = 0;
    CHECK(mkdtemp(waited_for) != 0);
    *slash = '/';
    /* From here on the process has loaded the plan. */
    close(fresh());
    CHECK(close(open(waited_for, O_WRONLY | O_CREAT, 0644)) == 0 && unlink(waited_for) == 0 && mkfifo(waited_for, 0644) == 0);
    int kinds[] = {O_WRONLY, O_WRONLY | O_CREAT, O_WRONLY | O_CREAT | O_TRUNC, O_RDONLY | O_CREAT};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        pthread_t thread;
        void *result;
        waiter = 0;
        CHECK(pthread_create(&thread, 0, waits, &kinds[i]) == 0);
        while (!waiter || !sleeps(waiter))
            sched_yield();
        CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0);
        printf("%zu %s\n", i, result == PTHREAD_CANCELED ? "cancelled" : "went on");
    }
    /* The thread left nothing behind, so later opens work. */
    int fd = open(waited_for, O_RDWR | O_CREAT, 0644);
    CHECK(fd >= 0 && close(fd) == 0 && unlink(waited_for) == 0);
    *slash = 0;
    CHECK(rmdir(waited_for) == 0);
    use(fresh(), 2);
}

static volatile int stop;
static void *busy(void *argument)
{
    static _Thread_local unsigned char out[20000];
    int fd = open(path, O_RDWR | ((long)argument % 2 ? O_APPEND : 0));
    for (long i = 0; !stop; i++) {
        CHECK(pwrite(fd, out, sizeof out, 500000) == sizeof out);
        if (i % 3 == 0) CHECK(close(open(path, O_RDWR)) == 0);
        if (i % 100 == 0) CHECK(ftruncate(fd, 600000) == 0);
    }
    return 0;
}

static int shared_fd;
static int child_of(void *argument)
{
    char record[100];
    alarm(1800);
    memset(record, 'a' + (int)(long)argument % 26, sizeof record);
    int own = open(path, O_RDWR);
    struct stat s;
    if (own < 0 || fstat(own, &s) || pread(shared_fd, record, 1, 0) != 1) return 1;
    return pwrite(own, record, sizeof record, (long)argument * 100) == 100 && close(own) == 0 ? 0 : 1;
}

/* Ways to create a process that call no fork handlers. */
static pid_t (*alone)(void);
static pid_t make_process(long i)
{
    static char stack[1 << 16] __attribute__((aligned(16)));
    if (i % 3 == 0) return clone(child_of, stack + sizeof stack, SIGCHLD, (void *)i);
    pid_t child = i % 3 == 1 && alone ? alone() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) _exit(child_of((void *)i));
    return child;
}

static void processes_alone(void)
{
    pthread_t all[3];
    shared_fd = fresh();
    use(shared_fd, 1);
    alone = dlsym(RTLD_DEFAULT, "_Fork");
    for (long i = 0; i < 3; i++)
        pthread_create(&all[i], 0, busy, (void *)i);
    int bad = 0;
    for (long i = 0; i < 150; i++) {
        pid_t child = make_process(i);
        int status;
        CHECK(child > 0 && waitpid(child, &status, 0) == child);
        bad += status != 0;
    }
    stop = 1;
    for (int i = 0; i < 3; i++)
        pthread_join(all[i], 0);
    printf("%d failed\n", bad);
    CHECK(ftruncate(shared_fd, 30000) == 0);
}

/* Pages that are added to the file after it was mapped. */
static void mapping_grows(void)
{
    int fd = fresh();
    CHECK(ftruncate(fd, 5000) == 0);
    unsigned char *memory = mmap(0, 400000, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(memory != MAP_FAILED);
    memory[4999] = 1;
    CHECK(ftruncate(fd, 250000) == 0);
    for (int at = 100; at < 250000; at += 4096)
        memory[at]++;
    CHECK(pwrite(fd, "far", 3, 299000) == 3);
    for (int at = 200; at < 299000; at += 4096)
        memory[at]++;
    CHECK(posix_fallocate(fd, 340000, 100) == 0);
    for (int at = 300; at < 340000; at += 4096)
        memory[at]++;
    int end = open(path, O_WRONLY | O_APPEND);
    static char many[50000];
    CHECK(write(end, many, sizeof many) == sizeof many);
    for (int at = 400; at < 390000; at += 4096)
        memory[at]++;
    CHECK(munmap(memory, 400000) == 0);
    printf("size %ld\n", (long)lseek(fd, 0, SEEK_END));
}

static volatile int too_large;
static void exceeded(int signal) { too_large += signal == SIGXFSZ; }

static void limited_size(void)
{
    int fd = fresh();
    CHECK(write(fd, "some bytes", 10) == 10 && fsync(fd) == 0);
    signal(SIGXFSZ, exceeded);
    CHECK(setrlimit(RLIMIT_FSIZE, &(struct rlimit){200000, RLIM_INFINITY}) == 0);
    struct stat s;
#define LIMITED(call)                                                                                                  \
    told(#call, call);                                                                                                 \
    CHECK(fstat(fd, &s) == 0);                                                                                         \
    printf("size %ld, signals %d\n", (long)s.st_size, too_large);
    LIMITED(ftruncate(fd, 200001))
    LIMITED(ftruncate(fd, 200000))
    LIMITED(truncate(path, 300000))
    LIMITED(fallocate(fd, 0, 100000, 200000))
    LIMITED(fallocate(fd, 0, 100000, 100000))
    CHECK(setrlimit(RLIMIT_FSIZE, &(struct rlimit){1000000, RLIM_INFINITY}) == 0);
    LIMITED(ftruncate(fd, 900000))
    CHECK(setrlimit(RLIMIT_FSIZE, &(struct rlimit){200000, RLIM_INFINITY}) == 0);
    LIMITED(ftruncate(fd, 900000))
    LIMITED(ftruncate(fd, 300000))
    CHECK(setrlimit(RLIMIT_FSIZE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY}) == 0);
}

enum { BYTES = 200000 };
static unsigned char expected[BYTES], seen[BYTES];

static int with_bytes(void)
{
    char name[] = "/tmp/edges.XXXXXX";
    int fd = mkstemp(name);
    CHECK(fd >= 0 && unlink(name) == 0 && write(fd, expected, BYTES) == BYTES && lseek(fd, 0, SEEK_SET) == 0);
    return fd;
}

static void same_bytes(int fd, off_t from, size_t len, const char *what)
{
    CHECK(pread(fd, seen, len, from) == (ssize_t)len && memcmp(seen, expected + from, len) == 0);
    printf("%s: offset %ld\n", what, (long)lseek(fd, 0, SEEK_CUR));
}

static void *reader_of(void *argument)
{
    static unsigned char all[BYTES];
    int fd = *(int *)argument;
    size_t got = 0;
    for (ssize_t n; got < BYTES && (n = read(fd, all + got, BYTES - got)) > 0;)
        got += n;
    CHECK(got == BYTES && memcmp(all, expected, BYTES) == 0);
    return 0;
}

static void sent(void)
{
    pattern(expected, BYTES, 5);
    int plain = with_bytes(), fd = fresh(), target = with_bytes(), pipes[2], pair[2];
    /* From a plain file to the tested one. */
    told("to it", sendfile(fd, plain, 0, BYTES));
    same_bytes(fd, 0, BYTES, "it");
    told("the rest", sendfile(fd, plain, 0, BYTES));
    off_t at = 100000;
    CHECK(lseek(fd, 100000, SEEK_SET) == 100000);
    told("at an offset", sendfile(fd, plain, &at, 50000));
    same_bytes(fd, 100000, 50000, "it");
    printf("at %ld, plain %ld\n", (long)at, (long)lseek(plain, 0, SEEK_CUR));
    /* From the tested file to a plain one, past the end, and to itself. */
    at = 150000, lseek(target, 150000, SEEK_SET);
    told("from it", sendfile(target, fd, &at, BYTES));
    same_bytes(target, 0, BYTES, "target");
    told("behind", sendfile(target, fd, &at, 10));
    lseek(fd, 0, SEEK_SET), lseek(target, 0, SEEK_SET);
    told("with its offset", sendfile(target, fd, 0, 70001));
    same_bytes(fd, 0, BYTES, "it");
    /* To a socket whose reader starts late. */
    pthread_t reader;
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && pthread_create(&reader, 0, reader_of, &pair[1]) == 0);
    at = 0;
    for (ssize_t n; at < BYTES && (n = sendfile(pair[0], fd, &at, BYTES)) > 0;)
        ;
    CHECK(at == BYTES && pthread_join(reader, 0) == 0);
    /* Invalid calls. */
    int readable = open(path, O_RDONLY), appends = open(path, O_WRONLY | O_APPEND), writable = open(path, O_WRONLY);
    CHECK(pipe(pipes) == 0);
    at = -5;
    told("negative", sendfile(target, fd, &at, 10));
    told("no offset there", sendfile(target, fd, (off_t *)16, 10));
    told("not writable", sendfile(readable, plain, &(off_t){0}, 10));
    told("not readable", sendfile(target, writable, &(off_t){0}, 10));
    told("appends", sendfile(appends, plain, &(off_t){0}, 10));
    told("nothing", sendfile(fd, plain, &(off_t){0}, 0));
    told("no descriptor", sendfile(-1, fd, &(off_t){0}, 10));
    told("no source", sendfile(fd, -1, 0, 10));
    /* A full pipe accepts nothing. */
    CHECK(fcntl(pipes[1], F_SETFL, O_NONBLOCK) == 0);
    while (write(pipes[1], expected, 4096) > 0)
        ;
    at = 0;
    told("full", sendfile(pipes[1], fd, &at, 4096));
    printf("at %ld\n", (long)at);
}

static void spliced(void)
{
    pattern(expected, BYTES, 6);
    int plain = with_bytes(), fd = fresh(), pipes[2];
    CHECK(pipe(pipes) == 0);
    /* plain -> pipe -> tested -> pipe -> plain, as much as possible each time, in one thread. */
    for (ssize_t n, m; (n = splice(plain, 0, pipes[1], 0, BYTES, 0)) > 0;)
        for (; n > 0; n -= m)
            CHECK((m = splice(pipes[0], 0, fd, 0, n, SPLICE_F_MOVE)) > 0);
    same_bytes(fd, 0, BYTES, "it");
    CHECK(ftruncate(plain, 0) == 0);
    off_t from = 0, to = 0;
    for (ssize_t n, m; (n = splice(fd, &from, pipes[1], 0, 30001, 0)) > 0;)
        for (; n > 0; n -= m)
            CHECK((m = splice(pipes[0], 0, plain, &to, n, 0)) > 0);
    same_bytes(plain, 0, BYTES, "plain");
    printf("from %ld, to %ld, offset %ld\n", (long)from, (long)to, (long)lseek(fd, 0, SEEK_CUR));
    lseek(fd, 1000, SEEK_SET);
    told("with its offset", splice(fd, 0, pipes[1], 0, 500, 0));
    to = 5;
    told("at an offset", splice(pipes[0], 0, fd, &to, 1000, 0));
    printf("to %ld\n", (long)to);
    pwrite(fd, expected, BYTES, 0);
    same_bytes(fd, 0, BYTES, "it");
    /* Invalid calls, and pipes that would block. */
    int readable = open(path, O_RDONLY), appends = open(path, O_WRONLY | O_APPEND);
    told("empty", splice(pipes[0], 0, fd, 0, 100, SPLICE_F_NONBLOCK));
    told("no pipe", splice(fd, 0, plain, 0, 100, 0));
    told("itself", splice(fd, 0, fd, 0, 100, 0));
    told("offset of a pipe", splice(fd, 0, pipes[1], &(off_t){0}, 100, 0));
    told("nothing", splice(fd, 0, pipes[1], 0, 0, 0));
    CHECK(write(pipes[1], "some bytes", 10) == 10);
    told("not writable", splice(pipes[0], 0, readable, 0, 10, 0));
    told("appends", splice(pipes[0], 0, appends, 0, 10, 0));
    told("still there", splice(pipes[0], 0, fd, &(off_t){0}, 100, 0));
    CHECK(fcntl(pipes[1], F_SETFL, O_NONBLOCK) == 0);
    while (write(pipes[1], expected, 4096) > 0)
        ;
    told("full", splice(fd, &(off_t){0}, pipes[1], 0, 100, SPLICE_F_NONBLOCK));
    CHECK(close(pipes[0]) == 0);
    signal(SIGPIPE, SIG_IGN);
    told("broken", splice(fd, &(off_t){0}, pipes[1], 0, 100, 0));
    int again[2];
    CHECK(pipe(again) == 0 && close(again[1]) == 0);
    told("ended", splice(again[0], 0, fd, 0, 100, 0));
    /* A file can be sent on after it was read to its end. */
    told("end", splice(fd, &(off_t){BYTES}, again[1], 0, 100, 0));
}

/* A file next to the directory of the tested one, without a rule. */
static int beside(void)
{
    char name[4096];
    snprintf(name, sizeof name, "%.*s/../beside.XXXXXX", (int)(strrchr(path, '/') - path), path);
    int fd = mkstemp(name);
    CHECK(fd >= 0 && unlink(name) == 0);
    return fd;
}

/* copy_file_range as programs call it: until nothing is left. */
static long copied(int from, off_t *from_at, int to, off_t *to_at, size_t len)
{
    long all = 0;
    for (ssize_t n; len > 0 && (n = copy_file_range(from, from_at, to, to_at, len, 0)) != 0; len -= n, all += n)
        if (n < 0)
            return all ? all : n;
    return all;
}

/* The same by system call number, as in libraries that also run where libc has no such function. */
static long copied_by_number(int from, off_t *from_at, int to, off_t *to_at, size_t len)
{
    return syscall(SYS_copy_file_range, from, from_at, to, to_at, len, 0);
}

static void ranges_copied(void)
{
    pattern(expected, BYTES, 7);
    int fd = fresh(), plain = beside(), pipes[2], directory = open("/", O_RDONLY);
    CHECK(pwrite(plain, expected, BYTES, 0) == BYTES && pipe(pipes) == 0);
    /* plain -> tested -> plain, with the descriptors' offsets and with explicit ones. */
    told("to it", copied(plain, 0, fd, 0, 2 * BYTES));
    same_bytes(fd, 0, BYTES, "it");
    CHECK(ftruncate(plain, 0) == 0);
    off_t from = 0, to = 70001;
    told("from it", copied(fd, &from, plain, &to, BYTES));
    CHECK(pread(plain, seen, BYTES, 70001) == BYTES && memcmp(seen, expected, BYTES) == 0);
    printf("from %ld, to %ld, offset %ld\n", (long)from, (long)to, (long)lseek(fd, 0, SEEK_CUR));
    /* Within the file: from the front to beyond the end, and onto itself. */
    from = 5, to = 2 * BYTES + 3;
    told("behind the end", copied(fd, &from, fd, &to, BYTES - 5));
    told("bytes", lseek(fd, 0, SEEK_END));
    CHECK(pread(fd, seen, BYTES - 5, 2 * BYTES + 3) == BYTES - 5 && memcmp(seen, expected + 5, BYTES - 5) == 0);
    from = 0, to = 99;
    told("over itself", copy_file_range(fd, &from, fd, &to, 100, 0));
    told("side by side", copy_file_range(fd, &from, fd, &to, 99, 0));
    CHECK(pread(fd, seen, 99, 99) == 99 && memcmp(seen, expected, 99) == 0);
    from = 0, to = 1000;
    told("by number", copied_by_number(fd, &from, fd, &to, 500));
    told("by number, to a plain file", copied_by_number(fd, &(off_t){99}, plain, &(off_t){0}, 99));
    CHECK(pread(plain, seen, 99, 0) == 99 && memcmp(seen, expected, 99) == 0);
    from = 3 * BYTES;
    told("from behind the end", copy_file_range(fd, &from, plain, &to, 100, 0));
    told("nothing", copy_file_range(fd, &(off_t){0}, plain, &(off_t){0}, 0, 0));
    /* Invalid calls. */
    int readable = open(path, O_RDONLY), appends = open(path, O_WRONLY | O_APPEND), writable = open(path, O_WRONLY);
    told("flags", copy_file_range(fd, &(off_t){0}, plain, &(off_t){0}, 10, 1));
    told("not writable", copy_file_range(plain, &(off_t){0}, readable, &(off_t){0}, 10, 0));
    told("not readable", copy_file_range(writable, &(off_t){0}, plain, &(off_t){0}, 10, 0));
    told("appends", copy_file_range(plain, &(off_t){0}, appends, &(off_t){0}, 10, 0));
    told("to a pipe", copy_file_range(fd, &(off_t){0}, pipes[1], 0, 10, 0));
    told("from a directory", copy_file_range(directory, &(off_t){0}, fd, &(off_t){0}, 10, 0));
    told("negative", copy_file_range(fd, &(off_t){-5}, plain, &(off_t){0}, 3, 0));
    told("no such offset", copy_file_range(fd, &(off_t){9}, plain, &(off_t){0}, (size_t)-5, 0));
    told("no offset there", copy_file_range(fd, (off_t *)16, plain, &(off_t){0}, 10, 0));
    told("no descriptor", copy_file_range(fd, 0, -1, 0, 10, 0));
}

static const struct test tests[] = {
    {"bad_vectors", bad_vectors}, {"stale_numbers", stale_numbers}, {"cancel_in_calls", cancel_in_calls},
    {"processes_alone", processes_alone}, {"mapping_grows", mapping_grows}, {"limited_size", limited_size}, {"sent", sent},
    {"spliced", spliced}, {"ranges_copied", ranges_copied}, {"cancel_waiting_open", cancel_waiting_open},
};

int main(int argc, char **argv)
{
    return run_case(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
