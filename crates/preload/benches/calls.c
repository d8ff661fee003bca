/* Measures the CPU time (user and system, all threads) of calls, ns. Usage: calls FILE
 *
 * Answers each line "KIND COUNT" on standard input with the time of COUNT such calls. calls.py
 * alternates between several such processes, so that disturbances affect them alike. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SIZE = 1 << 22 };

static const char *const kinds[] = {
    "pread 4K", "pwrite 4K", "read 4K", "write 4K", "lseek", "fstat", "stat, open", "stat, 1K", "open to read", "open to write",
    "O_CREAT", "O_CREAT, relative", "O_CREAT, O_TRUNC", "O_CREAT, new", "O_CREAT, new, relative", "open rw, is open", "open rw, 1K",
};
enum { PREAD, PWRITE, READ, WRITE, LSEEK, FSTAT, STAT, STAT_SMALL, TO_READ, TO_WRITE, CREAT, CREAT_RELATIVE, CREAT_TRUNC, CREAT_NEW,
       CREAT_NEW_RELATIVE, RW_OPEN, RW_SMALL, KINDS };

static char buffer[4096], path[4096], small[4200], emptied[4200], fresh[4300];
static const char *name;

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static void opened(const char *file, int flags)
{
    int fd = open(file, flags, 0644);
    if (fd < 0 || close(fd)) abort();
}

static const char *fresh_name(int kind, int i)
{
    snprintf(fresh, sizeof fresh, "%s.new%d", kind == CREAT_NEW ? path : name, i);
    return fresh;
}

static void call(int kind, int fd, int i)
{
    struct stat s;
    off_t at = (off_t)((unsigned)i * 2654435761u % (SIZE / 4096)) * 4096;
    switch (kind) {
    case PREAD: if (pread(fd, buffer, 4096, at) != 4096) abort(); break;
    case PWRITE: if (pwrite(fd, buffer, 4096, at) != 4096) abort(); break;
    case READ: if (i % 1000 == 0) lseek(fd, 0, SEEK_SET); if (read(fd, buffer, 4096) != 4096) abort(); break;
    case WRITE: if (i % 1000 == 0) lseek(fd, 0, SEEK_SET); if (write(fd, buffer, 4096) != 4096) abort(); break;
    case LSEEK: if (lseek(fd, at, SEEK_SET) != at) abort(); break;
    case FSTAT: if (fstat(fd, &s)) abort(); break;
    case STAT: if (stat(path, &s)) abort(); break;
    case STAT_SMALL: if (stat(small, &s)) abort(); break;
    case TO_READ: opened(path, O_RDONLY); break;
    case TO_WRITE: opened(path, O_WRONLY); break;
    case CREAT: opened(path, O_WRONLY | O_CREAT); break;
    case CREAT_RELATIVE: opened(name, O_WRONLY | O_CREAT); break;
    case CREAT_TRUNC: opened(emptied, O_WRONLY | O_CREAT | O_TRUNC); break;
    case CREAT_NEW:
    case CREAT_NEW_RELATIVE: opened(fresh_name(kind, i), O_WRONLY | O_CREAT | O_EXCL); break;
    case RW_OPEN: opened(path, O_RDWR); break;
    default: opened(small, O_RDWR);
    }
}

static double timed(int kind, int fd, int count)
{
    double start = now_ns();
    for (int i = 0; i < count; i++)
        call(kind, fd, i);
    double took = now_ns() - start;
    if (kind == CREAT_NEW || kind == CREAT_NEW_RELATIVE)
        for (int i = 0; i < count; i++)
            unlink(fresh_name(kind, i));
    return took;
}

int main(int argc, char **argv)
{
    int kind, count;
    if (argc < 2) {
        for (kind = 0; kind < KINDS; kind++)
            puts(kinds[kind]);
        return 0;
    }
    snprintf(path, sizeof path, "%s", argv[1]);
    snprintf(small, sizeof small, "%s.small", path);
    snprintf(emptied, sizeof emptied, "%s.emptied", path);
    name = strrchr(path, '/') + 1;
    int fd = open(path, O_RDWR | O_CREAT, 0644);
    for (int i = 0; i < SIZE / 4096; i++)
        if (pwrite(fd, buffer, 4096, (off_t)i * 4096) != 4096) abort();
    int other = open(small, O_RDWR | O_CREAT, 0644);
    if (write(other, buffer, 1000) != 1000) abort();
    close(other);
    *strrchr(path, '/') = 0;
    if (chdir(path)) abort();
    snprintf(path, sizeof path, "%s", argv[1]);
    while (scanf("%d %d", &kind, &count) == 2) {
        /* Warms the caches, which another process has used meanwhile. */
        timed(kind, fd, 2);
        printf("%.0f\n", timed(kind, fd, count));
        fflush(stdout);
    }
    return 0;
}
