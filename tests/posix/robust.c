/* Operations of programs on their descriptors, threads and signals while they use a file.
 *
 *   robust CASE FILE
 *
 * Each case prints its results. The output and the file must be the same on a plain file without
 * the library and on a managed one with it. */
#include "cases.h"
#include "../kernel.h"

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

static void close_loop(void)
{
    int fd = fresh();
    use(fd, 1);
    for (int other = 3; other < 20000; other++)
        if (other != fd) close(other);
    use(fd, 2);
    printf("closed %d\n", close(fd));
}

static void closefrom_all(void)
{
    int fd = fresh();
    use(fd, 1);
    closefrom(fd + 1);
    use(fd, 2);
    CHECK(close_range(fd + 1, ~0U, CLOSE_RANGE_CLOEXEC) == 0);
    CHECK(close_range(fd + 1, ~0U, 0) == 0);
    use(fd, 3);
    closefrom(3);
    printf("pwrite %zd %s\n", pwrite(fd, "x", 1, 0), strerror(errno));
    fd = open(path, O_RDWR);
    use(fd, 4);
}

static void dup2_everywhere(void)
{
    int fd = fresh(), null = open("/dev/null", O_RDWR), pipes[2];
    CHECK(pipe(pipes) == 0);
    use(fd, 1);
    for (int other = 10; other < 6000; other++)
        dup2(null, other), write(other, "junk", 4);
    use(fd, 2);
    for (int other = 10; other < 6000; other++)
        close(other);
    use(fd, 3);
}

static void looks_closed(void)
{
    int fd = fresh(), seen = 0;
    use(fd, 1);
    for (int other = 3; other < 66000; other++)
        seen += fcntl(other, F_GETFD) >= 0;
    printf("%d descriptors\n", seen);
}

static int handler_fd, plain_fd;
static volatile int handled;
static void handler(int signal)
{
    int before = errno;
    char byte = 'h';
    (void)signal;
    int null = open("/dev/null", O_WRONLY);
    if (null >= 0) write(null, &byte, 1), close(null);
    if (pread(plain_fd, &byte, 1, 0) == 1) handled++;
    if (handler_fd >= 0) pwrite(handler_fd, "h", 1, 500000);
    errno = before;
}

static void with_signals(int managed_in_handler)
{
    char name[] = "/tmp/robust.XXXXXX";
    plain_fd = mkstemp(name);
    unlink(name);
    write(plain_fd, "p", 1);
    int fd = fresh();
    handler_fd = managed_in_handler ? fd : -1;
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, 0);
    struct itimerval timer = {{0, 300}, {0, 300}};
    setitimer(ITIMER_REAL, &timer, 0);
    for (int i = 0; i < 200; i++) {
        use(fd, (unsigned)i);
        int other = open(path, O_RDONLY);
        char *memory = malloc(10000 + i);
        struct stat s;
        CHECK(other >= 0 && fstat(other, &s) == 0 && stat(path, &s) == 0);
        free(memory);
        CHECK(close(other) == 0);
    }
    memset(&timer, 0, sizeof timer);
    setitimer(ITIMER_REAL, &timer, 0);
    CHECK(handled > 0);
    CHECK(pwrite(fd, "h", 1, 500000) == 1);
    printf("size %ld\n", (long)lseek(fd, 0, SEEK_END));
}

static void signals(void) { with_signals(0); }
static void signals_inside(void) { with_signals(1); }

static void locks(void)
{
    int fd = fresh();
    use(fd, 1);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 10};
    CHECK(fcntl(fd, F_SETLK, &lock) == 0);
    struct stat s;
    char other[4096];
    snprintf(other, sizeof other, "%s.other", path);
    CHECK(stat(path, &s) == 0 && lstat(path, &s) == 0 && access(path, R_OK) == 0);
    int second = open(path, O_WRONLY);
    CHECK(second >= 0 && chmod(path, 0600) == 0 && truncate(path, 400000) == 0);
    CHECK(link(path, other) == 0 && unlink(other) == 0);
    use(fd, 2);
    CHECK(fsync(fd) == 0);
    FILE *stream = fopen(path, "r+");
    CHECK(stream);
    int pipes[2];
    CHECK(pipe(pipes) == 0);
    if (fork() == 0) {
        struct flock probe = lock;
        fcntl(fd, F_GETLK, &probe);
        printf("%s\n", probe.l_type == F_UNLCK ? "lock lost" : "lock kept");
        fflush(stdout);
        _exit(0);
    }
    wait(0);
}

static void pass_descriptor(void)
{
    int fd = fresh(), pair[2];
    CHECK(write(fd, "0123456789", 10) == 10);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    char space[CMSG_SPACE(sizeof fd)] = {0}, byte = 'x';
    struct iovec vector = {&byte, 1};
    struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    struct cmsghdr *control = CMSG_FIRSTHDR(&message);
    control->cmsg_level = SOL_SOCKET, control->cmsg_type = SCM_RIGHTS, control->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(control), &fd, sizeof fd);
    CHECK(sendmsg(pair[0], &message, 0) == 1);
    CHECK(close(fd) == 0);
    CHECK(recvmsg(pair[1], &message, 0) == 1);
    int received;
    memcpy(&received, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof received);
    CHECK(write(received, "abc", 3) == 3);
    printf("size %ld\n", (long)lseek(received, 0, SEEK_END));
}

static void standard_streams(void)
{
    fflush(stdout);
    int before = dup(1), fd = fresh();
    printf("written before dup2, flushed after it\n");
    dup2(fd, 1);
    printf("by printf %d\n", 42);
    puts("by puts");
    fflush(stdout);
    dup2(before, 1);
    printf("to the old one again\n");
    fflush(stdout);
    CHECK(freopen(path, "a", stdout) == stdout);
    printf("by freopen\n");
    CHECK(fclose(stdout) == 0);
    CHECK(dup2(open(path, O_RDONLY), 0) == 0);
    char line[100];
    while (fgets(line, sizeof line, stdin))
        fputs(line, stderr);
}

static ssize_t copy_by_hand(int from, int to)
{
    char buffer[10000];
    ssize_t n, all = 0;
    while ((n = read(from, buffer, sizeof buffer)) > 0)
        all += write(to, buffer, n);
    return n < 0 ? n : all;
}

static void copies(void)
{
    int fd = fresh();
    char name[] = "/tmp/robust.XXXXXX";
    int plain = mkstemp(name);
    unlink(name);
    use(plain, 3);
    lseek(plain, 0, SEEK_SET);
    ssize_t n = sendfile(fd, plain, 0, 1000);
    CHECK(n == 1000);
    CHECK(lseek(plain, n, SEEK_SET) == n && lseek(fd, n, SEEK_SET) == n);
    CHECK(copy_by_hand(plain, fd) > 0);
    lseek(fd, 0, SEEK_SET), lseek(plain, 0, SEEK_SET);
    n = copy_file_range(fd, 0, plain, 0, 5000, 0);
    CHECK(n == 5000 || errno == EXDEV);
    int pipes[2];
    CHECK(pipe(pipes) == 0);
    n = splice(fd, 0, pipes[1], 0, 100, 0);
    CHECK(n == 100);
}

static void *blocked(void *argument)
{
    char byte;
    read(*(int *)argument, &byte, 1);
    return 0;
}

static void cancellation(void)
{
    int pipes[2];
    pthread_t thread;
    void *result;
    use(fresh(), 1);
    CHECK(pipe(pipes) == 0 && pthread_create(&thread, 0, blocked, &pipes[0]) == 0);
    usleep(20000);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    printf("%s\n", result == PTHREAD_CANCELED ? "cancelled" : "went on");
}

static void large(void)
{
    int fd = fresh();
    off_t far = (5LL << 30) + 12345;
    CHECK(pwrite(fd, "far", 3, far) == 3);
    CHECK(lseek(fd, -3, SEEK_END) == far);
    char in[8] = {0};
    CHECK(read(fd, in, 8) == 3 && memcmp(in, "far", 3) == 0);
    CHECK(pread(fd, in, 8, far / 2) == 8 && memcmp(in, "\0\0\0\0\0\0\0", 8) == 0);
    struct stat s;
    CHECK(stat(path, &s) == 0);
    printf("size %ld, less than 1 MiB used: %d\n", (long)s.st_size, s.st_blocks < 2048);
    CHECK(ftruncate(fd, 1000) == 0 && fstat(fd, &s) == 0);
    printf("size %ld\n", (long)s.st_size);
}

static volatile int too_large;
static void exceeded(int signal) { too_large = signal; }

static void size_limit(void)
{
    int fd = fresh();
    struct rlimit limit = {200000, 200000};
    signal(SIGXFSZ, exceeded);
    setrlimit(RLIMIT_FSIZE, &limit);
    static char buffer[150000];
    printf("%zd ", write(fd, buffer, sizeof buffer));
    printf("%zd ", write(fd, buffer, sizeof buffer));
    ssize_t n = write(fd, buffer, sizeof buffer);
    printf("%zd %s, signal %d\n", n, n < 0 ? strerror(errno) : "", too_large == SIGXFSZ);
}

static void few_descriptors(void)
{
    struct rlimit limit = {64, 64};
    setrlimit(RLIMIT_NOFILE, &limit);
    int fd = fresh();
    use(fd, 1);
    int copy = open(path, O_RDONLY);
    printf("%d %d\n", fd, copy);
    CHECK(copy >= 0 && close(copy) == 0);
    int many = 0, last = -1, all[64];
    while (many < 64 && (last = open("/dev/null", O_RDONLY)) >= 0)
        all[many++] = last;
    CHECK(errno == EMFILE);
    while (many > 0)
        close(all[--many]);
    use(fd, 2);
}

static void reused_number(void)
{
    int fd = fresh();
    use(fd, 1);
    /* Closed by a call that the library does not see; the number then becomes another file's. */
    FILE *stream = fdopen(dup(fd), "r+");
    CHECK(stream);
    int number = fileno(stream);
    fclose(stream);
    int null = open("/dev/null", O_RDWR);
    CHECK(null == number && write(null, "lost", 4) == 4);
    CHECK(lseek(null, 0, SEEK_END) == 0);
    use(fd, 2);
}

/* Closed past the library, the number becomes another file's, and then the file's again. */
static void stolen_number(void)
{
    char byte, other[4096];
    snprintf(other, sizeof other, "%s.other", path);
    int plain = open("/dev/zero", O_RDONLY), fd = fresh(), second = open(other, O_RDWR | O_CREAT | O_TRUNC, 0644);
    CHECK(write(fd, "first", 5) == 5 && write(second, "second", 6) == 6);
    CHECK(pread(fd, &byte, 1, 0) == 1 && byte == 'f' && pread(second, &byte, 1, 0) == 1 && byte == 's');
    CHECK(call_kernel(SYS_dup3, second, fd, 0) == fd && pread(fd, &byte, 1, 0) == 1 && byte == 's');
    CHECK(pwrite(fd, "S", 1, 0) == 1 && lseek(fd, 0, SEEK_CUR) == 6 && read(fd, &byte, 1) == 0);
    CHECK(call_kernel(SYS_dup3, plain, fd, 0) == fd && pread(fd, &byte, 1, 0) == 1 && byte == 0);
    CHECK(close(fd) == 0 && close(second) == 0 && (fd = open(path, O_RDONLY)) >= 0);
    CHECK(read(fd, &byte, 1) == 1 && byte == 'f' && read(fd, &byte, 1) == 1 && byte == 'i');
    second = open(other, O_RDONLY);
    CHECK(read(second, &byte, 1) == 1 && byte == 'S' && unlink(other) == 0);
}

/* A handler leaves a read or write by siglongjmp, and the file goes on as before. Closing it ends
 * its lock. */
static sigjmp_buf back;
static void leaps(int signal) { (void)signal; siglongjmp(back, 1); }

static void left_by_a_handler(void)
{
    static unsigned char out[4096], in[4096];
    volatile int left = 0, done = 0;
    volatile off_t at = 0;
    int fd = fresh();
    for (int i = 0; i < 64; i++)
        CHECK(write(fd, out, sizeof out) == sizeof out);
    CHECK(flock(fd, LOCK_EX) == 0);
    signal(SIGALRM, leaps);
    while (done < 20000 || left < 20) {
        if (sigsetjmp(back, 1)) {
            left++;
            continue;
        }
        struct itimerval timer = {{0, 0}, {0, 300}};
        if (done++ % 64 == 0) setitimer(ITIMER_REAL, &timer, 0);
        at = done % 60;
        pattern(out, sizeof out, (unsigned)at);
        CHECK(pwrite(fd, out, sizeof out, at * 4096) == sizeof out);
        CHECK(pread(fd, in, sizeof in, at * 4096) == sizeof in && memcmp(in, out, sizeof in) == 0);
        CHECK(lseek(fd, at * 4096, SEEK_SET) == at * 4096 && read(fd, in, sizeof in) == sizeof in);
        CHECK(memcmp(in, out, sizeof in) == 0);
    }
    signal(SIGALRM, SIG_IGN);
    // How often the loop ran, and what a handler left in `out`, differ between runs.
    pattern(out, sizeof out, 60);
    for (int i = 0; i < 64; i++)
        CHECK(pwrite(fd, out, sizeof out, i * 4096L) == sizeof out);
    CHECK(lseek(fd, 0, SEEK_SET) == 0 && read(fd, in, sizeof in) == sizeof in && lseek(fd, 0, SEEK_CUR) == sizeof in);
    CHECK(close(fd) == 0 && (fd = open(path, O_RDWR)) >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0);
}

/* A handler leaves a write at the descriptor's offset by siglongjmp. Every range that was taken
 * from the offset was written, in each of many passes over the file. */
static void no_hole_by_a_handler(void)
{
    enum { RECORD = 4096, LAST = 200 };
    static unsigned char out[RECORD], in[RECORD];
    volatile int left = 0;
    volatile off_t checked = 0;
    int fd = fresh();
    signal(SIGALRM, leaps);
    while (left < 5000) {
        if (sigsetjmp(back, 1)) {
            left++;
            continue;
        }
        struct itimerval never = {{0, 0}, {0, 0}}, soon = {{0, 0}, {0, 1 + left % 40}};
        CHECK(setitimer(ITIMER_REAL, &never, 0) == 0);
        off_t end = lseek(fd, 0, SEEK_CUR);
        for (; checked < end; checked += RECORD)
            CHECK(pread(fd, in, RECORD, checked) == RECORD && memcmp(in, out, RECORD) == 0);
        if (end >= LAST * RECORD) {
            CHECK(lseek(fd, 0, SEEK_SET) == 0);
            memset(out, out[0] + 1, sizeof out);
            checked = 0;
        }
        CHECK(setitimer(ITIMER_REAL, &soon, 0) == 0);
        for (int i = 0; i < 10; i++)
            CHECK(write(fd, out, RECORD) == RECORD);
    }
    signal(SIGALRM, SIG_IGN);
    CHECK(ftruncate(fd, 0) == 0); /* how far it came is chance */
}

static void unlinked(void)
{
    int fd = fresh();
    use(fd, 1);
    CHECK(unlink(path) == 0 && access(path, F_OK) < 0);
    use(fd, 2);
    CHECK(ftruncate(fd, 5000) == 0 && lseek(fd, 0, SEEK_END) == 5000 && fsync(fd) == 0);
    int again = open(path, O_RDWR | O_CREAT | O_EXCL, 0644);
    CHECK(again >= 0 && write(again, "new", 3) == 3);
    struct stat s;
    CHECK(fstat(fd, &s) == 0);
    printf("old %ld links %ld, ", (long)s.st_size, (long)s.st_nlink);
    CHECK(stat(path, &s) == 0);
    printf("new %ld links %ld\n", (long)s.st_size, (long)s.st_nlink);
}

static void dynamic(void)
{
    int fd = fresh();
    for (int i = 0; i < 30; i++) {
        void *library = dlopen("libm.so.6", RTLD_NOW);
        CHECK(library && dlsym(library, "cos"));
        use(fd, (unsigned)i);
        dlclose(library);
    }
}

/* Neither memory nor descriptors leak. */
static void open_and_close(void)
{
    struct rusage before, after;
    int first = fresh(), last = -1;
    close(first);
    for (int i = 0; i < 3000; i++) {
        if (i == 1000) getrusage(RUSAGE_SELF, &before);
        last = open(path, O_RDWR);
        int copy = dup(last);
        CHECK(write(copy, "x", 1) == 1 && close(copy) == 0 && close(last) == 0);
        FILE *stream = fopen(path, "r");
        CHECK(stream && fgetc(stream) == 'x' && fclose(stream) == 0);
    }
    getrusage(RUSAGE_SELF, &after);
    printf("same number %d, less than 1 MiB more %d\n", last == first, after.ru_maxrss - before.ru_maxrss < 1024);
}

static const struct test tests[] = {
    {"close_loop", close_loop}, {"closefrom", closefrom_all}, {"dup2_everywhere", dup2_everywhere},
    {"looks_closed", looks_closed}, {"signals", signals}, {"signals_inside", signals_inside}, {"locks", locks},
    {"pass_descriptor", pass_descriptor}, {"standard_streams", standard_streams}, {"copies", copies},
    {"cancellation", cancellation}, {"large", large}, {"size_limit", size_limit}, {"few_descriptors", few_descriptors},
    {"reused_number", reused_number}, {"stolen_number", stolen_number}, {"left_by_a_handler", left_by_a_handler},
    {"no_hole_by_a_handler", no_hole_by_a_handler}, {"unlinked", unlinked}, {"dlopen", dynamic}, {"open_and_close", open_and_close},
};

int main(int argc, char **argv)
{
    return run_case(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
