/* What programs do at the edges of the calls: memory that is not there, numbers that are used again, threads that are cancelled,
 * limits, and bytes that the kernel moves.
 *
 *   edges CASE FILE
 *
 * As robust.c: on a plain file without the library and on a managed one with it, the output and the file must be the same. */
#include "cases.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

static void told(const char *what, long result)
{
    printf("%s %ld %s\n", what, result, result < 0 ? strerror(errno) : "");
    errno = 0;
}

/* Two pages; the second one is not there. */
static char *before_a_hole(void)
{
    char *pages = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED && munmap(pages + 4096, 4096) == 0);
    return pages + 4096;
}

static void bad_vectors(void)
{
    int fd = fresh();
    char *hole = before_a_hole();
    use(fd, 1);
    struct iovec *nowhere = (struct iovec *)16, *across = (struct iovec *)(hole - 24), *last = (struct iovec *)(hole - 16);
    told("readv", readv(fd, nowhere, 1));
    told("writev", writev(fd, nowhere, 3));
    told("preadv", preadv(fd, nowhere, 1024, 5));
    told("pwritev", pwritev(fd, nowhere, 2, 5));
    told("preadv2", preadv2(fd, nowhere, 2, 5, 0));
    told("pwritev2", pwritev2(fd, nowhere, 2, -1, 0));
    told("too many", pwritev(fd, nowhere, 1025, 5));
    told("none", pwritev(fd, nowhere, 0, 5));
    told("across", writev(fd, across, 2));
    told("second behind the end", readv(fd, last, 2));
    *last = (struct iovec){"good", 4};
    told("at the end", writev(fd, last, 1));
    *last = (struct iovec){hole, 100};
    told("to a hole", readv(fd, last, 1));
    told("from a hole", writev(fd, last, 1));
    char good[100];
    struct iovec mixed[2] = {{good, 100}, {hole, 100}};
    told("partly", preadv(fd, mixed, 2, 0));
    told("partly written", pwritev(fd, mixed, 2, 0));
    told("offset", lseek(fd, 0, SEEK_CUR));
}

static const struct test tests[] = {
    {"bad_vectors", bad_vectors},
};

int main(int argc, char **argv)
{
    return run_case(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
