/* How programs create processes, execute other programs, start and end while they use a file.
 *
 *   processes CASE FILE
 *
 * As in robust.c, the output and the file must be the same on a plain file without the library
 * and on a managed one with it. */
#include "cases.h"

#include <pthread.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>

extern char **environ;

static void fork_storm(void)
{
    int fd = fresh();
    char record[200];
    for (int i = 0; i < 40; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            memset(record, 'a' + i % 26, sizeof record);
            if (i % 4 == 0) {
                int own = open(path, O_WRONLY);
                _exit(pwrite(own, record, sizeof record, i * 200) == 200 ? 0 : 1);
            }
            if (i % 4 == 1) {
                char number[20];
                snprintf(number, sizeof number, "%d", i * 200);
                execlp("sh", "sh", "-c", "head -c 200 /dev/zero | tr '\\0' z | dd of=\"$0\" bs=1 seek=$1 conv=notrunc 2>/dev/null",
                    path, number, (char *)0);
                _exit(9);
            }
            _exit(pwrite(fd, record, sizeof record, i * 200) == 200 ? 0 : 1);
        }
    }
    int status, bad = 0;
    while (wait(&status) > 0)
        bad += status != 0;
    printf("%d failed, size %ld\n", bad, (long)lseek(fd, 0, SEEK_END));
}

static void inherit(void)
{
    int fd = fresh();
    CHECK(write(fd, "from the parent\n", 16) == 16);
    if (fork() == 0) {
        dup2(fd, 1);
        execlp("echo", "echo", "from echo", (char *)0);
        _exit(9);
    }
    wait(0);
    CHECK(write(fd, "again the parent\n", 17) == 17);
    if (fork() == 0) {
        dup2(fd, 7);
        execlp("sh", "sh", "-c", "echo from the shell >&7; printf '%s\\n' more >&7", (char *)0);
        _exit(9);
    }
    wait(0);
    lseek(fd, 5, SEEK_SET);
    if (fork() == 0) {
        dup2(fd, 0);
        execlp("head", "head", "-n", "2", (char *)0);
        _exit(9);
    }
    wait(0);
    printf("size %ld\n", (long)lseek(fd, 0, SEEK_END));
}

static void vforked(void)
{
    int fd = fresh(), pipes[2];
    use(fd, 1);
    CHECK(pipe(pipes) == 0 && ftruncate(fd, 0) == 0);
    for (int i = 0; i < 20; i++) {
        pid_t child = vfork();
        if (child == 0) {
            close(pipes[0]);
            dup2(fd, 1);
            for (int other = 3; other < 100; other++)
                close(other);
            execlp("echo", "echo", "line", (char *)0);
            _exit(9);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        CHECK(write(fd, "parent\n", 7) == 7);
    }
    printf("size %ld\n", (long)lseek(fd, 0, SEEK_END));
}

static void at_exit(void)
{
    printf("from atexit\n");
}

static void exit_flush(void)
{
    atexit(at_exit);
    CHECK(freopen(path, "w", stdout));
    printf("never flushed by hand");
}

static void spawn(void)
{
    close(fresh());
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    char *arguments[] = {"echo", "from a spawned child", 0};
    pid_t child;
    CHECK(posix_spawnp(&child, "echo", &actions, 0, arguments, environ) == 0);
    int status;
    waitpid(child, &status, 0);
    FILE *pipe = popen("cat; echo from popen", "w");
    fputs("to popen\n", pipe);
    printf("status %d, popen %d\n", status, pclose(pipe));
}

/* A child of a process whose other threads are in the middle of calls. None of their locks may
 * block it. */
static volatile int stop;
static void *busy(void *argument)
{
    long id = (long)argument;
    static _Thread_local unsigned char out[20000];
    int fd = open(path, O_RDWR);
    for (int i = 0; !stop; i++) {
        CHECK(pwrite(fd, out, sizeof out, 1000000 + id * 100000) == sizeof out);
        if (i % 3 == 0) {
            int other = open(path, O_RDWR | (i % 2 ? O_APPEND : 0));
            struct stat s;
            CHECK(fstat(other, &s) == 0 && close(other) == 0);
            free(malloc(i % 5000));
        }
    }
    return 0;
}

static void fork_among_threads(void)
{
    pthread_t all[4];
    int fd = fresh(), bad = 0;
    for (long i = 0; i < 4; i++)
        pthread_create(&all[i], 0, busy, (void *)i);
    for (int i = 0; i < 150; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            alarm(1800);
            char record[100];
            memset(record, 'a' + i % 26, sizeof record);
            int own = open(path, O_RDWR);
            struct stat s;
            if (own < 0 || fstat(own, &s) || pwrite(own, record, 100, i * 100) != 100 || pread(fd, record, 100, 0) < 0) _exit(1);
            if (i % 10 == 0) execlp("true", "true", (char *)0);
            _exit(0);
        }
        int status;
        waitpid(child, &status, 0);
        bad += status != 0;
    }
    stop = 1;
    for (int i = 0; i < 4; i++)
        pthread_join(all[i], 0);
    printf("%d failed\n", bad);
}

/* Used before main and after exit, if the variable asks for it. */
static FILE *late;
__attribute__((constructor)) static void early_call(void)
{
    const char *early = getenv("PROCESSES_EARLY");
    if (!early) return;
    int fd = open(early, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    CHECK(write(fd, "from the constructor\n", 21) == 21 && close(fd) == 0);
    late = fopen(early, "a");
    fputs("buffered in the constructor\n", late);
}

__attribute__((destructor)) static void late_call(void)
{
    const char *early = getenv("PROCESSES_EARLY");
    if (!early) return;
    fputs("buffered in the destructor\n", late);
    int fd = open(early, O_WRONLY | O_APPEND);
    CHECK(write(fd, "from the destructor\n", 20) == 20);
}

static void constructors(void)
{
    if (!getenv("PROCESSES_EARLY")) {
        setenv("PROCESSES_EARLY", path, 1);
        execl("/proc/self/exe", "processes", "constructors", path, (char *)0);
    }
    fputs("in main\n", late);
}

static const struct test tests[] = {
    {"fork_storm", fork_storm}, {"inherit", inherit}, {"vfork", vforked}, {"exit_flush", exit_flush}, {"spawn", spawn},
    {"fork_among_threads", fork_among_threads}, {"constructors", constructors},
};

int main(int argc, char **argv)
{
    return run_case(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
