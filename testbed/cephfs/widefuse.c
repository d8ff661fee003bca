/* Preload library for a ceph-fuse that is linked with libfuse 2. It enables requests of up to
 * 1 MiB, and several requests of one call in parallel.
 *
 * libfuse 2 cannot tell the kernel that it accepts more than 128 KiB at a time. A direct read or
 * write of a program then becomes a sequence of such pieces, each waiting for the previous one, and
 * no request is ever on two OSDs. The kernel client and a ceph-fuse with libfuse 3 have no such
 * limit. This library adds the two flags that libfuse 2 lacks and a longer queue to the answer to
 * the kernel's first request (FUSE_INIT), and gives libfuse larger buffers. */
#include <linux/fuse.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { TRANSFER = 1 << 20, PAGE = 4096, HEADER = PAGE };
/* Number of requests that the kernel sends before it waits for answers. Its default, 12, is less
 * than a few processes send to a few OSDs, so some OSDs would be idle. */
enum { IN_FLIGHT = 256 };

/* Replaces libfuse's function: the number of bytes that libfuse reads from the kernel at once. */
size_t fuse_chan_bufsize(void *channel);
size_t fuse_chan_bufsize(void *channel)
{
    (void)channel;
    return TRANSFER + HEADER;
}

/* Whether these two parts are the answer to FUSE_INIT: no other answer of this length contains the
 * protocol's numbers. */
static int is_answer_to_init(const struct iovec *parts, int count)
{
    const struct fuse_init_out *init = count == 2 ? parts[1].iov_base : NULL;
    return init && parts[0].iov_len == sizeof(struct fuse_out_header) &&
           parts[1].iov_len >= offsetof(struct fuse_init_out, time_gran) && parts[1].iov_len <= sizeof *init &&
           init->major == FUSE_KERNEL_VERSION && init->max_write == TRANSFER;
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    static atomic_bool done;
    if (atomic_load(&done) || !is_answer_to_init(parts, count))
        return syscall(SYS_writev, fd, parts, count);
    atomic_store(&done, 1);
    struct fuse_out_header header;
    struct fuse_init_out init = {0};
    memcpy(&header, parts[0].iov_base, sizeof header);
    memcpy(&init, parts[1].iov_base, parts[1].iov_len);
    init.flags |= FUSE_MAX_PAGES | FUSE_ASYNC_DIO;
    init.max_pages = TRANSFER / PAGE;
    init.max_background = IN_FLIGHT;
    init.congestion_threshold = IN_FLIGHT * 3 / 4;
    header.len = sizeof header + sizeof init;
    const struct iovec both[] = {{&header, sizeof header}, {&init, sizeof init}};
    ssize_t written = syscall(SYS_writev, fd, both, 2);
    return written == (ssize_t)header.len ? (ssize_t)(parts[0].iov_len + parts[1].iov_len) : written;
}
