/* Nanoseconds of CPU time per call, the median of many rounds:  calls FILE [LABEL [CALLS]]
 *
 * With CALLS, the least of many rounds of that many calls: for machines that are busy with other things.
 *
 * Each round times every kind of call once, so that disturbances hit all kinds alike. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 201, CALLS_MAX = 2000, SIZE = 1 << 22, KINDS = 13 };

/* In this order: pread, pwrite, read, write of 4 KiB, lseek, fstat, stat of a file of 4 MiB, of 1000 bytes, open and close
 * for reading, for writing, with O_CREAT, for both while the file is open already, and for both of a file that is not. */
static double times[KINDS][ROUNDS];
static char buffer[4096], small[4096];

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void call(int kind, int fd, const char *path, int i)
{
    struct stat s;
    off_t at = (off_t)((unsigned)i * 2654435761u % (SIZE / 4096)) * 4096;
    switch (kind) {
    case 0: if (pread(fd, buffer, 4096, at) != 4096) abort(); break;
    case 1: if (pwrite(fd, buffer, 4096, at) != 4096) abort(); break;
    case 2: if (i % 1000 == 0) lseek(fd, 0, SEEK_SET); if (read(fd, buffer, 4096) != 4096) abort(); break;
    case 3: if (i % 1000 == 0) lseek(fd, 0, SEEK_SET); if (write(fd, buffer, 4096) != 4096) abort(); break;
    case 4: if (lseek(fd, at, SEEK_SET) != at) abort(); break;
    case 5: if (fstat(fd, &s)) abort(); break;
    case 6: if (stat(path, &s)) abort(); break;
    case 7: if (stat(small, &s)) abort(); break;
    case 8: close(open(path, O_RDONLY)); break;
    case 9: close(open(path, O_WRONLY)); break;
    case 10: close(open(path, O_WRONLY | O_CREAT, 0644)); break;
    case 11: close(open(path, O_RDWR)); break;
    default: close(open(small, O_RDWR));
    }
}

int main(int argc, char **argv)
{
    const char *path = argv[1], *label = argc > 2 ? argv[2] : "";
    int calls = argc > 3 ? atoi(argv[3]) : CALLS_MAX;
    int fd = open(path, O_RDWR | O_CREAT, 0644);
    for (int i = 0; i < SIZE / 4096; i++)
        if (pwrite(fd, buffer, 4096, (off_t)i * 4096) != 4096) abort();
    snprintf(small, sizeof small, "%s.small", path);
    int other = open(small, O_RDWR | O_CREAT, 0644);
    if (write(other, buffer, 1000) != 1000) abort();
    close(other);
    for (int round = 0; round < ROUNDS; round++)
        for (int kind = 0; kind < KINDS; kind++) {
            int count = kind < 6 ? calls : calls / 10 + 1;
            double start = now_ns();
            for (int i = 0; i < count; i++)
                call(kind, fd, path, i);
            times[kind][round] = (now_ns() - start) / count;
        }
    printf("| %s |", label);
    for (int kind = 0; kind < KINDS; kind++) {
        qsort(times[kind], ROUNDS, sizeof(double), compare);
        printf(" %.0f |", times[kind][argc > 3 ? 0 : ROUNDS / 2]);
    }
    printf("\n");
    return 0;
}
