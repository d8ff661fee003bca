/* What programs do at the edges of the calls: memory that is not there, numbers that are used again, threads that are cancelled,
 * limits, and bytes that the kernel moves.
 *
 *   edges CASE FILE
 *
 * As robust.c: on a plain file without the library and on a managed one with it, the output and the file must be the same. */
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

/* Two pages; the second one is not there. */
static char *before_a_hole(void)
{
    char *pages = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED && munmap(pages + 4096, 4096) == 0);
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

/* A system call that nothing can see. */
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

/* A number that was a plain file's, and that is the file's at `path` now. */
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
    /* Nothing is left behind that others would wait for. */
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
    alarm(60);
    memset(record, 'a' + (int)(long)argument % 26, sizeof record);
    int own = open(path, O_RDWR);
    struct stat s;
    if (own < 0 || fstat(own, &s) || pread(shared_fd, record, 1, 0) != 1) return 1;
    return pwrite(own, record, sizeof record, (long)argument * 100) == 100 && close(own) == 0 ? 0 : 1;
}

/* Ways to make a process that call no handlers. */
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

static const struct test tests[] = {
    {"bad_vectors", bad_vectors}, {"stale_numbers", stale_numbers}, {"cancel_in_calls", cancel_in_calls},
    {"processes_alone", processes_alone},
};

int main(int argc, char **argv)
{
    return run_case(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
