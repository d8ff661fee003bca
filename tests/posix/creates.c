/* Opens files as the lines on standard input say, and prints the results:  creates < LINES
 *
 *   open PATH FLAGS     with the number of the flags; a short text is written
 *   at DIR PATH FLAGS   openat with a descriptor of DIR
 *   cd PATH             chdir
 *   link TARGET PATH    a symbolic link that replaces PATH; made without libc's functions, like by
 *                       another process */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void used(int fd, int line)
{
    char text[16];
    struct stat s;
    if (fd < 0) {
        printf("%d: %s\n", line, strerror(errno));
        return;
    }
    int regular = fstat(fd, &s) == 0 && S_ISREG(s.st_mode);
    printf("%d: size %ld mode %o links %ld flags %o at %ld\n", line, regular ? (long)s.st_size : -1, s.st_mode,
           regular ? (long)s.st_nlink : -1, fcntl(fd, F_GETFL) & ~O_NOFOLLOW, (long)lseek(fd, 0, SEEK_CUR));
    int len = snprintf(text, sizeof text, "%d.", line);
    if (regular && write(fd, text, len) < 0) printf("%d: write: %s\n", line, strerror(errno));
    if (close(fd)) printf("%d: close: %s\n", line, strerror(errno));
}

int main(void)
{
    char what[8], one[300], two[300];
    int flags;
    for (int line = 1; scanf("%7s %299s", what, one) == 2; line++)
        if (strcmp(what, "open") == 0 && scanf("%i", &flags) == 1) {
            used(open(one, flags, 0640), line);
        } else if (strcmp(what, "at") == 0 && scanf("%299s %i", two, &flags) == 2) {
            int dir = open(one, O_RDONLY | O_DIRECTORY);
            used(openat(dir, two, flags, 0640), line);
            close(dir);
        } else if (strcmp(what, "cd") == 0) {
            printf("%d: %s\n", line, chdir(one) ? strerror(errno) : "there");
        } else if (strcmp(what, "link") == 0 && scanf("%299s", two) == 1) {
            syscall(SYS_unlinkat, AT_FDCWD, two, 0);
            printf("%d: %s\n", line, syscall(SYS_symlinkat, one, AT_FDCWD, two) ? strerror(errno) : "linked");
        } else {
            return fprintf(stderr, "line %d?\n", line), 2;
        }
    return 0;
}
