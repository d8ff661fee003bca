/* dprintf with more arguments than fit in registers, of both kinds; compiled with _FORTIFY_SOURCE.
 *
 *   formatted FILE */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static int by_list(int fd, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int n = vdprintf(fd, format, arguments);
    va_end(arguments);
    return n;
}

int main(int argc, char **argv)
{
    int fd = open(argv[argc - 1], O_RDWR | O_CREAT | O_TRUNC, 0644);
    printf("%d\n",
        dprintf(fd, "%d %s %f %ld %d %d %d %d %g %g %g %g %g %g %g %g %g %s\n", 1, "two", 3.0, 4L, 5, 6, 7, 8, 9., 10., 11., 12.,
            13., 14., 15., 16., 17., "eighteen"));
    printf("%d\n", by_list(fd, "%s %d %.3f\n", "list", 42, 1.5));
    printf("%d\n", dprintf(fd, "plain\n"));
    fflush(stdout);
    dprintf(1, "to stdout %d\n", 7);
    return 0;
}
