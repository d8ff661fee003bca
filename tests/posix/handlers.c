/* Signal handlers that use a file, whatever the signal interrupts: the program's malloc, or
 * calls on the same file.
 *
 *   handlers CASE FILE
 *
 * The program's own malloc wraps libc's. It counts the handlers that interrupt it, and the
 * allocations made while it must not be called. Each case prints its results. The output and the
 * bytes must be the same as on a plain file without the library. */
#include "cases.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

/* State of the calling thread: it is in malloc; it must not call malloc; number of times it did
 * so anyway. */
static _Thread_local volatile int in_malloc, forbidden;
static volatile int violations;
static const char *volatile doing = "";

static void enter(void)
{
    if (forbidden) {
        violations++;
        if (getenv("HANDLERS_ABORT")) abort();
    }
    in_malloc++;
}

void *malloc(size_t size)
{
    enter();
    void *block = __libc_malloc(size);
    in_malloc--;
    return block;
}

void *calloc(size_t count, size_t size)
{
    enter();
    void *block = __libc_calloc(count, size);
    in_malloc--;
    return block;
}

void *realloc(void *old, size_t size)
{
    enter();
    void *block = __libc_realloc(old, size);
    in_malloc--;
    return block;
}

int posix_memalign(void **block, size_t alignment, size_t size)
{
    enter();
    *block = __libc_memalign(alignment, size);
    in_malloc--;
    return *block ? 0 : ENOMEM;
}

void free(void *block)
{
    if (!block) return;
    enter();
    __libc_free(block);
    in_malloc--;
}

static uint64_t random_state = 88172645463325252u;
static unsigned random_below(unsigned limit)
{
    random_state ^= random_state << 13, random_state ^= random_state >> 7, random_state ^= random_state << 17;
    return (unsigned)(random_state % limit);
}

/* Many sizes, freed in another order. Splitting, joining and searching blocks takes long and
 * happens under malloc's lock. */
static void churn(void)
{
    static void *blocks[512];
    for (int i = 0; i < 64; i++) {
        unsigned at = random_below(512);
        free(blocks[at]);
        blocks[at] = malloc(random_below(40000) + 1);
        CHECK(blocks[at]);
    }
}

/* The uses of a file in a handler: only functions that POSIX permits there, and their positional
 * variants. */
static void expect(const char *what, int ok)
{
    if (ok) return;
    char line[200];
    int len = snprintf(line, sizeof line, "%s: errno %d\n", what, errno);
    write(2, line, (size_t)len);
    _exit(1);
}
#define EXPECT(condition) expect(#condition, condition)

#define HANDLED_BYTES 400000
static int handler_fd = -1;
/* File offset where this thread writes. */
static _Thread_local off_t base;

static void write_and_read(int fd, unsigned n)
{
    char out[3000], in[sizeof out];
    size_t len = 1 + n % sizeof out;
    off_t at = base + n * 4099u % (HANDLED_BYTES - sizeof out);
    memset(out, 'a' + (int)(n % 26), len);
    doing = "pwrite", EXPECT(pwrite(fd, out, len, at) == (ssize_t)len);
    doing = "pread", EXPECT(pread(fd, in, len, at) == (ssize_t)len && memcmp(in, out, len) == 0);
}

static void open_again(unsigned n)
{
    doing = "open";
    int fd = open(path, n % 2 ? O_RDWR : O_RDWR | O_CREAT, 0644);
    EXPECT(fd >= 0);
    write_and_read(fd, n);
    doing = "close", EXPECT(close(fd) == 0);
}

static void vectors(int fd, unsigned n)
{
    char one[100], two[200];
    struct iovec parts[] = {{one, sizeof one}, {two, sizeof two}};
    memset(one, 'A', sizeof one), memset(two, 'B', sizeof two);
    doing = "pwritev", EXPECT(pwritev(fd, parts, 2, n % 1000) == 300);
    doing = "preadv", EXPECT(preadv(fd, parts, 2, n % 1000) == 300);
}

static void duplicate(int fd, unsigned n)
{
    doing = "dup";
    int copy = n % 2 ? dup(fd) : dup2(fd, 200);
    EXPECT(copy >= 0);
    doing = "lseek", EXPECT(lseek(copy, 1000, SEEK_SET) == 1000 && lseek(copy, 0, SEEK_END) >= 0);
    char byte = 'd';
    EXPECT(lseek(copy, 1000, SEEK_SET) == 1000);
    doing = "write", EXPECT(write(copy, &byte, 1) == 1);
    doing = "read", EXPECT(read(copy, &byte, 1) == 1);
    doing = "close", EXPECT(close(copy) == 0);
}

static void attributes(int fd)
{
    struct stat s;
    doing = "stat", EXPECT(stat(path, &s) == 0 && fstat(fd, &s) == 0 && lstat(path, &s) == 0);
    doing = "access", EXPECT(access(path, R_OK) == 0);
    doing = "chmod", EXPECT(chmod(path, 0644) == 0 && fchmod(fd, 0644) == 0);
    doing = "fcntl", EXPECT(fcntl(fd, F_GETFL) >= 0);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 10};
    doing = "F_SETLK", EXPECT(fcntl(fd, F_SETLK, &lock) == 0);
    lock.l_type = F_UNLCK;
    EXPECT(fcntl(fd, F_SETLK, &lock) == 0);
    struct timespec times[] = {{1, 0}, {1, 0}};
    doing = "futimens", EXPECT(futimens(fd, times) == 0);
}

static void make_and_remove(unsigned n)
{
    char first[4096], second[4096];
    snprintf(first, sizeof first, "%s.first", path), snprintf(second, sizeof second, "%s.second", path);
    doing = "open O_CREAT";
    int fd = open(first, O_RDWR | O_CREAT | O_TRUNC, 0600);
    EXPECT(fd >= 0);
    write_and_read(fd, n);
    doing = "rename", EXPECT(rename(first, second) == 0);
    doing = "ftruncate", EXPECT(ftruncate(fd, 100) == 0);
    doing = "close", EXPECT(close(fd) == 0);
    doing = "open O_TRUNC";
    fd = open(second, O_WRONLY | O_TRUNC);
    EXPECT(fd >= 0 && close(fd) == 0);
    doing = "unlink", EXPECT(unlink(second) == 0);
}

/* A child that inherits malloc's lock from its parent. `fork` takes that lock itself. */
static void child(int fd, unsigned n)
{
    doing = "_Fork";
    pid_t pid = _Fork();
    EXPECT(pid >= 0);
    if (pid == 0) {
        write_and_read(fd, n);
        open_again(n);
        _exit(7);
    }
    int status;
    while (waitpid(pid, &status, 0) < 0)
        EXPECT(errno == EINTR);
    expect("the child's status", WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

/* Every use in turn; slow ones less often. */
static void use_file(int fd, unsigned n)
{
    write_and_read(fd, n);
    switch (n % 16) {
    case 1: open_again(n); break;
    case 3: duplicate(fd, n / 16); break;
    case 5: vectors(fd, n); break;
    case 7: attributes(fd); break;
    }
    if (n % 128 == 9) doing = "fsync", EXPECT(fsync(fd) == 0 && fdatasync(fd) == 0);
    if (n % 128 == 73) make_and_remove(n);
    if (n % 128 == 25) child(fd, n);
}

static volatile int wants_malloc, handled, wanted_handled;
static void handler(int signal)
{
    (void)signal;
    if ((wants_malloc && !in_malloc) || handled >= wanted_handled) return;
    int before = errno;
    forbidden++;
    use_file(handler_fd, (unsigned)handled);
    forbidden--;
    handled++;
    errno = before;
}

static timer_t timer;
static void take_signals(void (*run)(int), int wanted)
{
    handled = 0, wanted_handled = wanted;
    struct sigaction action = {.sa_handler = run, .sa_flags = SA_RESTART};
    CHECK(sigaction(SIGUSR1, &action, 0) == 0);
    struct sigevent to_this_thread = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
    to_this_thread._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    CHECK(timer_create(CLOCK_MONOTONIC, &to_this_thread, &timer) == 0);
    struct itimerspec often = {{0, 100000}, {0, 100000}};
    CHECK(timer_settime(timer, 0, &often, 0) == 0);
}

static void take_no_more(void) { CHECK(timer_delete(timer) == 0); }

static void *wait_for_ever(void *nothing)
{
    pause();
    return nothing;
}

/* With one thread libc takes no locks. An interruption then breaks the heap instead of
 * deadlocking. */
static void have_threads(void)
{
    pthread_t second;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    CHECK(pthread_create(&second, 0, wait_for_ever, 0) == 0);
    pthread_sigmask(SIG_SETMASK, &before, 0);
}

static int count(void)
{
    const char *given = getenv("HANDLERS_COUNT");
    return given ? atoi(given) : 1000;
}

static void end(int fd)
{
    static char zeros[HANDLED_BYTES];
    CHECK(ftruncate(fd, HANDLED_BYTES) == 0);
    CHECK(pwrite(fd, zeros, sizeof zeros, 0) == sizeof zeros); /* what the handlers wrote where is chance */
    if (violations) printf("%d allocations in handlers\n", violations);
    printf("done\n");
}

/* Handlers use a file that was opened before. */
static void in_malloc_open(void)
{
    have_threads();
    handler_fd = fresh(), wants_malloc = 1;
    use(handler_fd, 1);
    take_signals(handler, count());
    while (handled < wanted_handled)
        churn();
    take_no_more();
    end(handler_fd);
}

/* The file is first used in a handler. */
static void first_handler(int signal)
{
    if (!in_malloc || handled >= wanted_handled) return;
    if (handler_fd < 0) {
        forbidden++;
        handler_fd = open(path, O_RDWR | O_CREAT, 0644);
        EXPECT(handler_fd >= 0);
        forbidden--;
    }
    handler(signal);
}

static void in_malloc_first(void)
{
    have_threads();
    wants_malloc = 1;
    take_signals(first_handler, count() / 10);
    while (handled < wanted_handled)
        churn();
    take_no_more();
    end(handler_fd);
}

/* Handlers end the process, or replace its program. */
static volatile int ends_now, by_exec;
static void ending_handler(int signal)
{
    (void)signal;
    if (!in_malloc || !ends_now) return;
    forbidden++;
    write_and_read(handler_fd, 12345);
    char *arguments[] = {"sh", "-c", "exit 5", 0}, *environment[] = {0};
    if (by_exec && !violations) execve("/bin/sh", arguments, environment);
    _exit(violations ? 9 : 5);
}

static void in_malloc_exit(void)
{
    int fd = fresh();
    for (int i = 0; i < 4 + count() / 500; i++) {
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            have_threads();
            handler_fd = open(path, O_RDWR);
            CHECK(handler_fd >= 0);
            random_state += (unsigned)i, by_exec = i % 4 == 3;
            take_signals(ending_handler, 1);
            use(handler_fd, (unsigned)i);
            ends_now = 1;
            for (;;)
                churn();
        }
        int status;
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 5);
    }
    end(fd);
}

/* The process forks while handlers run. The children use the file, too, and have handlers of
 * their own. */
static void in_malloc_forks(void)
{
    have_threads();
    handler_fd = fresh(), wants_malloc = 1;
    use(handler_fd, 1);
    take_signals(handler, count());
    for (int forks = 0; handled < wanted_handled; forks++) {
        churn();
        if (forks % 64) continue;
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            write_and_read(handler_fd, (unsigned)forks);
            have_threads();
            take_signals(handler, 5);
            while (handled < wanted_handled)
                churn();
            take_no_more();
            open_again((unsigned)forks);
            _exit(violations ? 9 : 3);
        }
        int status;
        while (waitpid(pid, &status, 0) < 0)
            CHECK(errno == EINTR);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    }
    take_no_more();
    end(handler_fd);
}

/* Handlers interrupt calls on the same file. */
static void in_calls(void)
{
    handler_fd = fresh();
    take_signals(handler, count());
    for (unsigned i = 0; handled < wanted_handled; i++) {
        static char bytes[100000];
        CHECK(pwrite(handler_fd, bytes, sizeof bytes, HANDLED_BYTES) == sizeof bytes);
        CHECK(pread(handler_fd, bytes, sizeof bytes, HANDLED_BYTES) == sizeof bytes);
        int other = open(path, O_RDWR);
        struct stat s;
        CHECK(other >= 0 && fstat(other, &s) == 0 && stat(path, &s) == 0);
        CHECK(pwrite(other, bytes, 5000, HANDLED_BYTES + 7) == 5000);
        int copy = dup(other);
        CHECK(copy >= 0 && close(other) == 0 && close(copy) == 0);
        if (i % 64 == 0) CHECK(fsync(handler_fd) == 0);
        if (i % 64 == 32) CHECK(access(path, R_OK) == 0 && chmod(path, 0600) == 0);
    }
    take_no_more();
    end(handler_fd);
}

/* Several threads, each with handlers, share the file. */
static void *use_and_take(void *number)
{
    base = ((off_t)(uintptr_t)number + 2) * HANDLED_BYTES;
    for (unsigned i = 0; handled < wanted_handled; i++) {
        void *block = malloc(3000 + i % 5000);
        CHECK(block);
        write_and_read(handler_fd, i);
        free(block);
    }
    return 0;
}

static void signal_handler_of_thread(int signal)
{
    (void)signal;
    if (handled >= wanted_handled) return;
    int before = errno;
    char byte = 't', back;
    forbidden++;
    EXPECT(pwrite(handler_fd, &byte, 1, HANDLED_BYTES + 5) == 1);
    EXPECT(pread(handler_fd, &back, 1, HANDLED_BYTES + 5) == 1 && back == byte);
    forbidden--;
    __atomic_add_fetch(&handled, 1, __ATOMIC_SEQ_CST);
    errno = before;
}

static void among_threads(void)
{
    handler_fd = fresh();
    wanted_handled = count(), handled = 0;
    struct sigaction action = {.sa_handler = signal_handler_of_thread, .sa_flags = SA_RESTART};
    CHECK(sigaction(SIGALRM, &action, 0) == 0);
    struct itimerval often = {{0, 100}, {0, 100}};
    CHECK(setitimer(ITIMER_REAL, &often, 0) == 0);
    pthread_t all[4];
    for (uintptr_t i = 0; i < 4; i++)
        CHECK(pthread_create(&all[i], 0, use_and_take, (void *)i) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(all[i], 0) == 0);
    memset(&often, 0, sizeof often);
    CHECK(setitimer(ITIMER_REAL, &often, 0) == 0);
    end(handler_fd);
}

static const struct test tests[] = {
    {"in_malloc_open", in_malloc_open},
    {"in_malloc_first", in_malloc_first},
    {"in_malloc_exit", in_malloc_exit},
    {"in_malloc_forks", in_malloc_forks},
    {"in_calls", in_calls},
    {"among_threads", among_threads},
};

int main(int argc, char **argv) { return run_case(argc, argv, tests, sizeof tests / sizeof *tests); }
