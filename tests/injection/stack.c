/* How much of the caller's stack each interposed function touches on a plain file:
 *
 *   stack DIRECTORY      prints a line for each call: bytes of its first call in a process, of its
 *                        second, and its name
 *
 * The program paints the stack below the call before it and scans it after it. The difference
 * between runs with and without the library is the library's use. */
#define _GNU_SOURCE
#include "campaign.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { AREA = 192 * 1024, PAINT = 0xa5 };

static size_t touched;

/* Both have the same frame, so the area is the same memory. */
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
__attribute__((noinline)) static size_t area(int looks)
{
    volatile unsigned char bytes[AREA];
    size_t at = 0;
    if (looks) {
        while (at < AREA && bytes[at] == PAINT)
            at++;
        return AREA - at;
    }
    for (; at < AREA; at++)
        bytes[at] = PAINT;
    return 0;
}

void window_begin(void) { area(0); }

void window_end(void) { touched = area(1); }

unsigned char byte_before(size_t at) { return (unsigned char)('a' + at % 26); }
unsigned char byte_written(size_t at) { return (unsigned char)('A' + at % 26); }

static void make(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
    for (size_t at = 0; at < SIZE; at += 26)
        if (write(fd, "abcdefghijklmnopqrstuvwxyz", SIZE - at < 26 ? SIZE - at : 26) < 0)
            _exit(3);
    close(fd);
}

static size_t measure(const struct call *call, const char *path, const char *other)
{
    struct subject s = {path, other, -1};
    int status, maker = fork();
    if (maker == 0) {
        /* A child makes the files, so that the measured call can be its process's first one. */
        make(other);
        unlink(path);
        if (call->way != ABSENT)
            make(path);
        _exit(0);
    }
    waitpid(maker, &status, 0);
    if (call->way == OPENED)
        s.fd = open(path, O_RDWR);
    if (call->way == INHERITED)
        s.fd = opened_elsewhere(path);
    touched = 0;
    call->run(&s);
    return touched;
}

int main(int argc, char **argv)
{
    char path[4096], other[4096];
    if (argc != 2)
        return 2;
    snprintf(path, sizeof path, "%s/file", argv[1]);
    snprintf(other, sizeof other, "%s/other", argv[1]);
    for (size_t i = 0; i < call_count; i++) {
        fflush(stdout);
        int pid = fork(), status;
        if (pid == 0) {
            size_t first = measure(&calls[i], path, other);
            printf("%zu %zu %s\n", first, measure(&calls[i], path, other), calls[i].label);
            fflush(stdout);
            _exit(0);
        }
        if (waitpid(pid, &status, 0) != pid || status)
            printf("0 0 %s\n", calls[i].label);
    }
    return 0;
}
