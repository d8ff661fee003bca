/* Measures the system calls of a 4 KiB call on a managed file of one target, without the library.
 * Usage: floor FILE
 *
 * Answers the lines of calls.c for its first four kinds of calls. calls.py --floor runs it beside
 * the other processes: no library that makes these system calls can be faster. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef F_DUPFD_QUERY
#define F_DUPFD_QUERY (1024 + 3)
#endif

enum { SIZE = 1 << 22 };
enum { PREAD, PWRITE, READ, WRITE };

static char buffer[4096], path[4096];
/* What the program has open, its private duplicate, and the object with the data. */
static int anchor, twin, object;

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static void moved(long done)
{
    if (done != 4096) abort();
}

/* Reserves a range of the shared offset, and returns where it begins. */
static off_t reserved(void)
{
    return syscall(SYS_lseek, anchor, 4096L, SEEK_CUR) - 4096;
}

static void call(int kind, int i)
{
    off_t at = (off_t)((unsigned)i * 2654435761u % (SIZE / 4096)) * 4096;
    uint64_t all = ~(uint64_t)0, before;
    if ((kind == READ || kind == WRITE) && i % 1000 == 0) syscall(SYS_lseek, anchor, 0L, SEEK_SET);
    if (syscall(SYS_fcntl, anchor, F_DUPFD_QUERY, (long)twin) != 1) abort();
    if ((kind == PWRITE || kind == WRITE) && syscall(SYS_fcntl, anchor, F_GETFL, 0L) & O_APPEND) abort();
    switch (kind) {
    case PREAD: moved(syscall(SYS_pread64, object, buffer, 4096L, at)); break;
    case PWRITE: moved(syscall(SYS_pwrite64, object, buffer, 4096L, at)); break;
    case READ: moved(syscall(SYS_pread64, object, buffer, 4096L, reserved())); break;
    case WRITE:
        syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, &before, sizeof all);
        moved(syscall(SYS_pwrite64, object, buffer, 4096L, reserved()));
        syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof all);
        break;
    default: abort();
    }
}

static double timed(int kind, int count)
{
    double start = now_ns();
    for (int i = 0; i < count; i++)
        call(kind, i);
    return now_ns() - start;
}

int main(int argc, char **argv)
{
    int kind, count;
    if (argc < 2) return 1;
    snprintf(path, sizeof path, "%s", argv[1]);
    if (close(open(path, O_WRONLY | O_CREAT, 0644))) abort();
    anchor = open(path, O_RDONLY);
    snprintf(path, sizeof path, "%s.object", argv[1]);
    object = open(path, O_RDWR | O_CREAT, 0644);
    twin = fcntl(anchor, F_DUPFD_CLOEXEC, 100);
    for (int i = 0; i < SIZE / 4096; i++)
        moved(pwrite(object, buffer, 4096, (off_t)i * 4096));
    while (scanf("%d %d", &kind, &count) == 2) {
        /* Warms the caches, which another process has used meanwhile. */
        timed(kind, 2);
        printf("%.0f\n", timed(kind, count));
        fflush(stdout);
    }
    return 0;
}
