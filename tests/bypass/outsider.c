/* A program without the library (statically linked) that opens a managed file by its name and
 * performs one operation on it.
 *   outsider read|write|append|truncate|grow|empty|map|punch|stdout FILE
 * `stdout` writes to descriptor 1, whatever that is. It prints the bytes it read. If a call
 * fails, it prints the errno and exits with 1. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char junk[4096];

static int act(const char *what, const char *path)
{
    int flags = strcmp(what, "read") == 0 ? O_RDONLY : O_RDWR;
    flags |= strcmp(what, "append") == 0 ? O_APPEND : strcmp(what, "empty") == 0 ? O_TRUNC : 0;
    int fd = strcmp(what, "stdout") == 0 ? 1 : open(path, flags);
    if (fd < 0)
        return -1;
    switch (what[0]) {
    case 'r':
        return read(fd, junk, 24) == 24 && puts(junk) > 0 ? 0 : -1;
    case 't':
        return ftruncate(fd, 100);
    case 'g':
        return ftruncate(fd, 1 << 24);
    case 'e':
        return 0;
    case 'p':
        return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096);
    case 'm': {
        char *at = mmap(NULL, sizeof junk, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        return at == MAP_FAILED ? -1 : (memcpy(at, junk, sizeof junk), 0);
    }
    default:
        return write(fd, junk, sizeof junk) == sizeof junk ? 0 : -1;
    }
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    if (strcmp(argv[1], "read") != 0)
        memset(junk, 'x', sizeof junk);
    if (act(argv[1], argv[2]) == 0)
        return 0;
    fprintf(stderr, "%s\n", strerrorname_np(errno));
    return 1;
}
