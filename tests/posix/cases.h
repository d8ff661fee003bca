/* Shared code of the programs with cases: `PROGRAM CASE FILE` runs one, `PROGRAM list` lists
 * them. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *path;

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, strerror(errno));                               \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

static void pattern(unsigned char *buffer, size_t len, unsigned salt)
{
    for (size_t i = 0; i < len; i++)
        buffer[i] = (unsigned char)(i * 31 + i / 251 + salt);
}

static int fresh(void)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
    CHECK(fd >= 0);
    return fd;
}

/* Writes a pattern and reads it back. */
__attribute__((unused)) static void use(int fd, unsigned salt)
{
    static unsigned char out[300000], in[sizeof out];
    pattern(out, sizeof out, salt);
    CHECK(pwrite(fd, out, sizeof out, salt) == sizeof out);
    CHECK(pread(fd, in, sizeof in, salt) == sizeof in);
    CHECK(memcmp(in, out, sizeof in) == 0);
}

struct test {
    const char *name;
    void (*run)(void);
};

static int run_case(int argc, char **argv, const struct test *tests, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (argc == 2 && strcmp(argv[1], "list") == 0)
            puts(tests[i].name);
        if (argc == 3 && strcmp(argv[1], tests[i].name) == 0) {
            path = argv[2];
            tests[i].run();
            return 0;
        }
    }
    return argc == 2 ? 0 : 2;
}
