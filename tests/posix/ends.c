/* Ways in which a process ends, or stops using a file:
 *
 *   ends WAY FILE      writes four blocks to FILE, then ends in that way (after an exec it runs
 *                      again as `ends after`)
 *   ends ways          lists the ways
 *
 * All ways except "kill" must leave the written data, the size at the path, and statistics of
 * four requests. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCK = 4096, BLOCKS = 4 };

static const char *const ways[] = {"return", "exit", "_exit", "_Exit", "quick_exit", "close", "twice", "stream", "handler", "thread", "fork",
                                   "vfork", "idle child", "signal", "raise", "execve", "execv", "execvp", "execvpe", "fexecve", "execl", "execle",
                                   "execlp", "failed exec"};
static char buffer[BLOCK];
static int fd;

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void put(int fd, int from, int to)
{
    for (int i = from; i < to; i++)
        if (pwrite(fd, buffer, BLOCK, (off_t)i * BLOCK) != BLOCK)
            fail("pwrite");
}

static void put_last(void)
{
    put(fd, BLOCKS - 1, BLOCKS);
}

static void end_now(int signal)
{
    (void)signal;
    _exit(0);
}

static void *put_and_exit(void *unused)
{
    (void)unused;
    put(fd, 0, BLOCKS);
    exit(0);
}

static void wait_for(pid_t pid)
{
    int status;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        fail("child");
}

/* The process continues as another program. */
static void call_exec(const char *way, char *self)
{
    char *const argv[] = {self, "after", NULL}, *const none[] = {NULL};
    char *const after[] = {"sh", "-c", "exit 0", NULL};
    if (!strcmp(way, "execve")) execve(self, argv, none);
    if (!strcmp(way, "execv")) execv(self, argv);
    if (!strcmp(way, "execvp")) execvp("sh", after);
    if (!strcmp(way, "execvpe")) execvpe("sh", after, environ);
    if (!strcmp(way, "fexecve")) fexecve(open(self, O_RDONLY | O_CLOEXEC), argv, environ);
    if (!strcmp(way, "execl")) execl(self, self, "after", "3", "4", "5", "6", "7", "8", NULL);
    if (!strcmp(way, "execle")) execle(self, self, "after", "3", "4", "5", "6", "7", "8", NULL, none);
    if (!strcmp(way, "execlp")) execlp("sh", "sh", "-c", "test $# = 7", "0", "1", "2", "3", "4", "5", "6", "7", NULL);
    fail(way);
}

int main(int argc, char **argv)
{
    const char *way = argv[1];
    if (argc == 2 && !strcmp(way, "ways")) {
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
            puts(ways[i]);
        return 0;
    }
    if (argc == 2 || argc == 8)
        return argc == 8 ? strcmp(argv[7], "8") : 0;
    memset(buffer, 'x', BLOCK);
    if (!strcmp(way, "stream")) {
        FILE *stream = fopen(argv[2], "w");
        setvbuf(stream, NULL, _IOFBF, BLOCKS * BLOCK);
        for (int i = 0; i < BLOCKS - 1; i++)
            if (fwrite(buffer, 1, BLOCK, stream) != BLOCK || fflush(stream))
                fail("fwrite");
        /* The last block is written when libc flushes its streams. */
        return fwrite(buffer, 1, BLOCK, stream) != BLOCK;
    }
    fd = open(argv[2], O_RDWR | O_CREAT, 0644);
    if (fd < 0)
        fail("open");
    if (!strcmp(way, "thread")) {
        pthread_t thread;
        pthread_create(&thread, NULL, put_and_exit, NULL);
        pthread_exit(NULL);
    }
    if (!strcmp(way, "handler")) {
        /* Writes while other libraries are already shutting down. */
        put(fd, 0, BLOCKS - 1);
        return atexit(put_last);
    }
    if (!strcmp(way, "fork")) {
        put(fd, 0, 1);
        pid_t pid = fork();
        if (pid == 0) {
            put(fd, 1, BLOCKS);
            _exit(0);
        }
        wait_for(pid);
        return 0;
    }
    put(fd, 0, BLOCKS);
    if (!strcmp(way, "exit")) exit(0);
    if (!strcmp(way, "_exit")) _exit(0);
    if (!strcmp(way, "_Exit")) _Exit(0);
    if (!strcmp(way, "quick_exit")) quick_exit(0);
    if (!strcmp(way, "kill")) raise(SIGKILL);
    if (!strcmp(way, "close")) {
        int copy = dup(fd);
        close(fd);
        close(copy);
        _exit(0);
    }
    if (!strcmp(way, "twice")) {
        /* Two descriptions; the end of the process closes the second one. */
        int other = open(argv[2], O_RDONLY);
        close(fd);
        return other < 0;
    }
    if (!strcmp(way, "vfork")) {
        pid_t pid = vfork();
        if (pid == 0)
            execl("/bin/true", "true", NULL);
        wait_for(pid);
    }
    if (!strcmp(way, "idle child")) {
        pid_t pid = fork();
        if (pid == 0)
            exit(0);
        wait_for(pid);
    }
    if (!strcmp(way, "signal")) {
        signal(SIGALRM, end_now);
        alarm(1);
        for (;;)
            pause();
    }
    if (!strcmp(way, "raise")) {
        signal(SIGUSR1, end_now);
        raise(SIGUSR1);
    }
    if (!strcmp(way, "failed exec")) {
        execl("/no/such/program", "program", NULL);
        return 0;
    }
    if (!strncmp(way, "exec", 4) || !strcmp(way, "fexecve"))
        call_exec(way, argv[0]);
    return 0;
}
