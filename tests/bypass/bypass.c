/* Calls that bypass the library, on a descriptor that the program got from the library:
 *   bypass list
 *   bypass CASE FILE SCRATCH
 * The program opens FILE through libc's `open`; the case then uses raw system calls or an
 * io_uring of its own. It prints the name and the result of every call: "ok" or the errno.
 * SCRATCH is a plain file with bytes to copy. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/fs.h>
#include <linux/io_uring.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static int fd, scratch;
static char junk[4096];

static void say(const char *call, long result)
{
    printf("%s %s\n", call, result < 0 ? strerrorname_np(errno) : "ok");
}

/* A raw system call with up to six arguments. */
#define RAW(name, ...) say(#name, syscall(SYS_##name, __VA_ARGS__))

/* A raw system call with six arguments that also bypasses libc's `syscall`, which the library
 * serves. */
static long unseen(long number, long a, long b, long c, long d, long e, long f)
{
#ifdef __x86_64__
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    errno = result < 0 ? (int)-result : 0;
    return result < 0 ? -1 : result;
#else
    (void)number, (void)a, (void)b, (void)c, (void)d, (void)e, (void)f;
    errno = ENOSYS;
    return -1;
#endif
}

static void writes(void)
{
    struct iovec vector = {junk, sizeof junk};
    RAW(write, fd, junk, sizeof junk);
    RAW(pwrite64, fd, junk, sizeof junk, 0L);
    RAW(writev, fd, &vector, 1);
    RAW(pwritev, fd, &vector, 1, 0L, 0L);
    RAW(pwritev2, fd, &vector, 1, 0L, 0L, 0);
}

static void sizes(void)
{
    RAW(ftruncate, fd, 7L);
    RAW(ftruncate, fd, 1L << 30);
    RAW(fallocate, fd, 0, 0L, 1L << 20);
    RAW(fallocate, fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0L, 4096L);
    RAW(fallocate, fd, FALLOC_FL_ZERO_RANGE, 0L, 4096L);
    RAW(fallocate, fd, FALLOC_FL_COLLAPSE_RANGE, 0L, 4096L);
}

static void maps(void)
{
    int both = PROT_READ | PROT_WRITE;
    void *at = (void *)syscall(SYS_mmap, NULL, 4096L, both, MAP_SHARED, fd, 0L);
    if (at != MAP_FAILED)
        memset(at, 'x', 4096);
    say("mmap", at == MAP_FAILED ? -1 : 0);
    /* A read-only mapping cannot be made writable later. */
    at = (void *)syscall(SYS_mmap, NULL, 4096L, PROT_READ, MAP_SHARED, fd, 0L);
    long done = at == MAP_FAILED ? -1 : syscall(SYS_mprotect, at, 4096L, both);
    if (done == 0)
        memset(at, 'x', 4096);
    say("mprotect", done);
}

static void copies(void)
{
    long from = 0, to = 0;
    int pipe_ends[2];
    struct file_clone_range range = {.src_fd = scratch};
    struct iovec vector = {junk, sizeof junk};
    say("copy_file_range", unseen(SYS_copy_file_range, scratch, (long)&from, fd, (long)&to, 4096, 0));
    RAW(sendfile, fd, scratch, &from, 4096L);
    if (pipe(pipe_ends) < 0 || write(pipe_ends[1], junk, 4096) < 0)
        abort();
    to = 0;
    RAW(splice, pipe_ends[0], NULL, fd, &to, 4096L, 0);
    /* Pages of the program are given to a pipe, and from there to the file. */
    if (syscall(SYS_vmsplice, pipe_ends[1], &vector, 1L, 0) < 0)
        abort();
    to = 0;
    RAW(splice, pipe_ends[0], NULL, fd, &to, 4096L, 0);
    say("clone", syscall(SYS_ioctl, fd, FICLONE, scratch));
    say("clone_range", syscall(SYS_ioctl, fd, FICLONERANGE, &range));
}

static void kernel_aio(void)
{
    aio_context_t context = 0;
    struct iocb block = {.aio_fildes = fd, .aio_lio_opcode = IOCB_CMD_PWRITE, .aio_buf = (uintptr_t)junk, .aio_nbytes = sizeof junk};
    struct iocb *blocks = &block;
    struct io_event event;
    if (syscall(SYS_io_setup, 4, &context) < 0)
        abort();
    if (syscall(SYS_io_submit, context, 1L, &blocks) < 0) {
        say("io_submit", -1);
        return;
    }
    syscall(SYS_io_getevents, context, 1L, 1L, &event, NULL);
    errno = (int)-event.res;
    say("io_submit", event.res < 0 ? -1 : 0);
}

static struct io_uring_params parameters;
static char *rings;
static struct io_uring_sqe *entries;
static int ring;

static int open_ring(void)
{
    ring = (int)syscall(SYS_io_uring_setup, 4, &parameters);
    if (ring < 0)
        return -1;
    size_t len = parameters.cq_off.cqes + parameters.cq_entries * sizeof(struct io_uring_cqe);
    size_t other = parameters.sq_off.array + parameters.sq_entries * sizeof(unsigned);
    rings = mmap(NULL, len > other ? len : other, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    entries = mmap(NULL, parameters.sq_entries * sizeof *entries, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
    return rings == MAP_FAILED || entries == MAP_FAILED || !(parameters.features & IORING_FEAT_SINGLE_MMAP) ? -1 : 0;
}

/* Submits one entry and waits for its result. */
static void ring_does(const char *name, struct io_uring_sqe entry)
{
    unsigned *tail = (unsigned *)(rings + parameters.sq_off.tail), *head = (unsigned *)(rings + parameters.cq_off.head);
    unsigned *array = (unsigned *)(rings + parameters.sq_off.array);
    unsigned slot = *tail & (parameters.sq_entries - 1);
    entries[slot] = entry;
    array[slot] = slot;
    __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
    if (syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0L) != 1)
        abort();
    struct io_uring_cqe *done = (struct io_uring_cqe *)(rings + parameters.cq_off.cqes) + (*head & (parameters.cq_entries - 1));
    errno = -done->res;
    say(name, done->res < 0 ? -1 : 0);
    __atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
}

static void uring(void)
{
    struct iovec vector = {junk, sizeof junk};
    if (open_ring() < 0) {
        say("io_uring_setup", -1);
        return;
    }
    struct io_uring_sqe entry = {.opcode = IORING_OP_WRITE, .fd = fd, .addr = (uintptr_t)junk, .len = sizeof junk};
    ring_does("uring_write", entry);
    entry.opcode = IORING_OP_WRITEV;
    entry.addr = (uintptr_t)&vector;
    entry.len = 1;
    ring_does("uring_writev", entry);
    struct io_uring_sqe space = {.opcode = IORING_OP_FALLOCATE, .fd = fd, .addr = 1 << 20};
    ring_does("uring_fallocate", space);
    /* As fio does. */
    if (syscall(SYS_io_uring_register, ring, IORING_REGISTER_FILES, &fd, 1) == 0) {
        struct io_uring_sqe fixed = {
            .opcode = IORING_OP_WRITE, .flags = IOSQE_FIXED_FILE, .fd = 0, .addr = (uintptr_t)junk, .len = sizeof junk};
        ring_does("uring_fixed_write", fixed);
    }
}

/* Calls that only read see the manifest and change nothing. */
static void reads(void)
{
    static char in[16];
    char *at = (char *)syscall(SYS_mmap, NULL, 4096L, PROT_READ, MAP_PRIVATE, fd, 0L);
    long from = 0;
    int pipe_ends[2];
    if (pipe(pipe_ends) < 0)
        abort();
    say("get_pread", syscall(SYS_pread64, fd, in, sizeof in, 0L));
    say("get_map", at == MAP_FAILED || memcmp(at, in, sizeof in) != 0 ? -1 : 0);
    say("get_sendfile", syscall(SYS_sendfile, pipe_ends[1], fd, &from, 4096L));
    from = 0;
    say("get_splice", syscall(SYS_splice, fd, &from, pipe_ends[1], NULL, 4096L, 0));
    say("get_tee", syscall(SYS_tee, pipe_ends[0], pipe_ends[1], 1L, SPLICE_F_NONBLOCK));
    if (memcmp(in, "stripewise file,", sizeof in) != 0)
        abort();
}

/* The descriptor's duplicates, and those passed through another process, give no more access. */
static void duplicates(void)
{
    int first = fd;
    fd = (int)syscall(SYS_dup, first);
    RAW(pwrite64, fd, junk, sizeof junk, 0L);
    fd = (int)syscall(SYS_fcntl, first, F_DUPFD, 100L);
    RAW(pwrite64, fd, junk, sizeof junk, 0L);
    fd = dup(first);
    RAW(pwrite64, fd, junk, sizeof junk, 0L);
}

/* The kernel's `fcntl` may change the library's mark on the descriptor, but that gives no
 * access. */
static void notes(void)
{
    RAW(fcntl, fd, F_SETSIG, 0L);
    RAW(pwrite64, fd, junk, sizeof junk, 0L);
    RAW(fcntl, fd, F_SETFL, (long)O_APPEND);
    RAW(write, fd, junk, sizeof junk);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"writes", writes}, {"sizes", sizes}, {"maps", maps}, {"copies", copies}, {"kernel_aio", kernel_aio},
    {"uring", uring}, {"reads", reads}, {"duplicates", duplicates}, {"notes", notes},
};

int main(int argc, char **argv)
{
    memset(junk, 'x', sizeof junk);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (argc == 2)
            puts(cases[i].name);
        if (argc < 4 || strcmp(argv[1], cases[i].name) != 0)
            continue;
        static const int ways[] = {O_RDWR, O_WRONLY, O_RDWR | O_APPEND, O_RDONLY};
        for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
            fd = open(argv[2], ways[way]);
            scratch = open(argv[3], O_RDONLY);
            if (fd < 0 || scratch < 0)
                abort();
            cases[i].run();
            /* The library still serves the descriptor. */
            char byte;
            long moved = (ways[way] & O_ACCMODE) == O_WRONLY ? pwrite(fd, "", 0, 0) : pread(fd, &byte, 1, 0);
            if (moved < 0)
                abort();
            close(fd);
        }
        return 0;
    }
    return argc == 2 ? 0 : 2;
}
