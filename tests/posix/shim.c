/* Another library between the program and libc. It counts the bytes that pass, and prints them
 * at the end to the file in SHIM_OUT. It is independent of the statistics of the library under
 * test. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

static long bytes[2], calls[2];

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t read(int fd, void *buffer, size_t len);
ssize_t write(int fd, const void *buffer, size_t len);
ssize_t pread64(int fd, void *buffer, size_t len, off_t offset);
ssize_t pwrite64(int fd, const void *buffer, size_t len, off_t offset);

static ssize_t count(int way, ssize_t result)
{
    calls[way]++;
    if (result > 0) bytes[way] += result;
    return result;
}

ssize_t read(int fd, void *buffer, size_t len) { return count(0, REAL(read)(fd, buffer, len)); }
ssize_t write(int fd, const void *buffer, size_t len) { return count(1, REAL(write)(fd, buffer, len)); }
ssize_t pread64(int fd, void *b, size_t n, off_t o) { return count(0, REAL(pread64)(fd, b, n, o)); }
ssize_t pwrite64(int fd, const void *b, size_t n, off_t o) { return count(1, REAL(pwrite64)(fd, b, n, o)); }

__attribute__((destructor)) static void report(void)
{
    FILE *out = getenv("SHIM_OUT") ? fopen(getenv("SHIM_OUT"), "w") : 0;
    if (out) {
        fprintf(out, "read %ld in %ld, written %ld in %ld\n", bytes[0], calls[0], bytes[1], calls[1]);
        fclose(out);
    }
}
