/* A library that, when loaded, overwrites `mmap` with a jump to a function of its own, as UCX
 * does, in one of three forms: 0 is a near jump if that reaches, 1 and 2 go through a register. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *ours(void *address, size_t len, int protection, int flags, int fd, off_t offset)
{
    return (void *)syscall(SYS_mmap, address, len, protection, flags, fd, offset);
}

__attribute__((constructor)) static void patch(void)
{
    unsigned char *entry = dlsym(RTLD_DEFAULT, "mmap");
    unsigned char code[16];
    uint64_t target = (uint64_t)&ours;
    int64_t distance = (int64_t)(target - (uint64_t)entry - 5);
    size_t len;
    if (FORM == 0 && distance == (int32_t)distance) {
        len = 5;
        code[0] = 0xe9;
        memcpy(code + 1, &distance, 4);
    } else if (FORM < 2) {
        len = 12;
        memcpy(code, "\x48\xb8........\xff\xe0", len);
        memcpy(code + 2, &target, 8);
    } else {
        len = 13;
        memcpy(code, "\x49\xbb........\x41\xff\xe3", len);
        memcpy(code + 2, &target, 8);
    }
    void *page = (void *)((uint64_t)entry & ~4095ul);
    mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC);
    memcpy(entry, code, len);
    mprotect(page, 8192, PROT_READ | PROT_EXEC);
}
