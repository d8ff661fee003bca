/* Every interposed function once: its arguments, and the effect it must have had if it reports
 * success. */
#define _GNU_SOURCE
#include "campaign.h"
#include "../kernel.h"

#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <libaio.h>
#include <linux/fs.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utime.h>

int opened_elsewhere(const char *path)
{
    int fd = (int)call_kernel(SYS_openat, AT_FDCWD, (long)path, O_RDONLY);
    /* The mark of the access mode: decision 0001, "Access mode". */
    call_kernel(SYS_fcntl, fd, F_SETOWN, 1);
    call_kernel(SYS_fcntl, fd, F_SETSIG, 62);
    return fd;
}

#define CALL(name) static long call_##name(struct subject *s __attribute__((unused)))

/* The result of a call inside the window, or minus errno if the result is negative. */
#define IN(expression) \
    ({ \
        window_begin(); \
        errno = 0; \
        long long value_ = (long long)(expression); \
        int error_ = errno; \
        window_end(); \
        errno = error_; \
        (long)(value_ < 0 ? -(long long)(error_ ? error_ : EIO) : value_); \
    })

static unsigned char buffer[2 * SIZE];

static long checked(long got, size_t at)
{
    for (long i = 0; i < got; i++)
        if (buffer[i] != byte_before(at + (size_t)i))
            return WRONG;
    return got == 0 ? WRONG : got;
}

static unsigned char *to_write(void)
{
    for (size_t i = 0; i < WRITE_LEN; i++)
        buffer[i] = byte_written(WRITE_AT + i);
    return buffer;
}

static unsigned char *to_append(void)
{
    for (size_t i = 0; i < WRITE_LEN; i++)
        buffer[i] = byte_written(SIZE + i);
    return buffer;
}

static struct iovec *vectors(unsigned char *bytes)
{
    static struct iovec two[2];
    two[0] = (struct iovec){bytes, 5000};
    two[1] = (struct iovec){bytes + 5000, WRITE_LEN - 5000};
    return two;
}

static long sized(long result, const struct stat *stat, off_t size)
{
    return result == 0 && stat->st_size != size ? WRONG : result;
}

/* Size by name. Whether an unreadable file is managed cannot be determined, so its size is the
 * kernel's. */
static long sized_by_name(long result, off_t size) { return result == 0 && size != SIZE ? MANIFESTS_SIZE : result; }

ssize_t __read_chk(int, void *, size_t, size_t);
ssize_t __pread_chk(int, void *, size_t, off_t, size_t);

CALL(read) { lseek(s->fd, WRITE_AT, SEEK_SET); return checked(IN(read(s->fd, buffer, WRITE_LEN)), WRITE_AT); }
CALL(read_chk) { lseek(s->fd, WRITE_AT, SEEK_SET); return checked(IN(__read_chk(s->fd, buffer, WRITE_LEN, sizeof buffer)), WRITE_AT); }
CALL(readv) { lseek(s->fd, WRITE_AT, SEEK_SET); return checked(IN(readv(s->fd, vectors(buffer), 2)), WRITE_AT); }
CALL(pread) { return checked(IN(pread(s->fd, buffer, WRITE_LEN, WRITE_AT)), WRITE_AT); }
CALL(pread_chk) { return checked(IN(__pread_chk(s->fd, buffer, WRITE_LEN, WRITE_AT, sizeof buffer)), WRITE_AT); }
CALL(preadv) { return checked(IN(preadv(s->fd, vectors(buffer), 2, WRITE_AT)), WRITE_AT); }
CALL(preadv2) { return checked(IN(preadv2(s->fd, vectors(buffer), 2, WRITE_AT, 0)), WRITE_AT); }
CALL(read_end) { return checked(IN(pread(s->fd, buffer, 2 * WRITE_LEN, SIZE - WRITE_LEN)), SIZE - WRITE_LEN); }
CALL(write) { lseek(s->fd, WRITE_AT, SEEK_SET); return IN(write(s->fd, to_write(), WRITE_LEN)); }
CALL(read_piece) { lseek(s->fd, WRITE_AT, SEEK_SET); return checked(IN(read(s->fd, buffer, PIECE_LEN)), WRITE_AT); }
CALL(pread_piece) { return checked(IN(pread(s->fd, buffer, PIECE_LEN, WRITE_AT)), WRITE_AT); }
CALL(write_piece) { lseek(s->fd, WRITE_AT, SEEK_SET); return IN(write(s->fd, to_write(), PIECE_LEN)); }
CALL(pwrite_piece) { return IN(pwrite(s->fd, to_write(), PIECE_LEN, WRITE_AT)); }
CALL(writev) { lseek(s->fd, WRITE_AT, SEEK_SET); return IN(writev(s->fd, vectors(to_write()), 2)); }
CALL(pwrite) { return IN(pwrite(s->fd, to_write(), WRITE_LEN, WRITE_AT)); }
CALL(pwritev) { return IN(pwritev(s->fd, vectors(to_write()), 2, WRITE_AT)); }
CALL(pwritev2) { return IN(pwritev2(s->fd, vectors(to_write()), 2, WRITE_AT, 0)); }
CALL(pwritev2_append) { return IN(pwritev2(s->fd, vectors(to_append()), 2, 0, RWF_APPEND)); }
CALL(append)
{
    fcntl(s->fd, F_SETFL, O_RDWR | O_APPEND);
    long done = IN(write(s->fd, to_append(), WRITE_LEN));
    fcntl(s->fd, F_SETFL, O_RDWR);
    return done;
}
CALL(dprintf) { lseek(s->fd, WRITE_AT, SEEK_SET); return IN(dprintf(s->fd, "%.*s", WRITE_LEN, to_write())); }
static int list_dprintf(int fd, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int done = vdprintf(fd, format, list);
    va_end(list);
    return done;
}
CALL(vdprintf) { lseek(s->fd, WRITE_AT, SEEK_SET); return IN(list_dprintf(s->fd, "%.*s", WRITE_LEN, to_write())); }
CALL(lseek) { long at = IN(lseek(s->fd, 0, SEEK_END)); return at >= 0 && at != SIZE ? WRONG : at; }
CALL(lseek_hole) { long at = IN(lseek(s->fd, 0, SEEK_HOLE)); return at >= 0 && at != SIZE ? WRONG : at; }
CALL(fsync) { return IN(fsync(s->fd)); }
CALL(fdatasync) { return IN(fdatasync(s->fd)); }
CALL(syncfs) { return IN(syncfs(s->fd)); }
CALL(sync_file_range) { return IN(sync_file_range(s->fd, 0, SIZE, SYNC_FILE_RANGE_WRITE)); }
CALL(posix_fadvise) { return -IN(posix_fadvise(s->fd, 0, 0, POSIX_FADV_DONTNEED)); }
CALL(readahead) { return IN(readahead(s->fd, 0, SIZE)); }
CALL(ftruncate) { return IN(ftruncate(s->fd, TRUNCATE_TO)); }
CALL(ftruncate_more) { return IN(ftruncate(s->fd, SIZE + WRITE_LEN)); }
CALL(truncate) { return IN(truncate(s->path, TRUNCATE_TO)); }
CALL(fallocate) { return IN(fallocate(s->fd, 0, 0, SIZE + WRITE_LEN)); }
CALL(posix_fallocate) { return -IN(posix_fallocate(s->fd, 0, SIZE + WRITE_LEN)); }
CALL(mmap)
{
    void *map = MAP_FAILED;
    long result = IN((map = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, s->fd, 0)) == MAP_FAILED ? -1 : 0);
    if (result == 0) {
        memcpy(buffer, map, SIZE);
        munmap(map, SIZE);
        return checked(SIZE, 0);
    }
    return result;
}
CALL(fstat) { struct stat stat; return sized(IN(fstat(s->fd, &stat)), &stat, SIZE); }
CALL(stat) { struct stat at; long r = IN(stat(s->path, &at)); return sized_by_name(r, at.st_size); }
CALL(lstat) { struct stat stat; long r = IN(lstat(s->path, &stat)); return sized_by_name(r, stat.st_size); }
CALL(fstatat) { struct stat stat; long r = IN(fstatat(AT_FDCWD, s->path, &stat, 0)); return sized_by_name(r, stat.st_size); }
CALL(fstatat_empty) { struct stat stat; return sized(IN(fstatat(s->fd, "", &stat, AT_EMPTY_PATH)), &stat, SIZE); }
int __xstat(int, const char *, struct stat *);
int __lxstat(int, const char *, struct stat *);
int __fxstat(int, int, struct stat *);
int __fxstatat(int, int, const char *, struct stat *, int);
CALL(xstat) { struct stat stat; long r = IN(__xstat(1, s->path, &stat)); return sized_by_name(r, stat.st_size); }
CALL(lxstat) { struct stat stat; long r = IN(__lxstat(1, s->path, &stat)); return sized_by_name(r, stat.st_size); }
CALL(fxstat) { struct stat stat; return sized(IN(__fxstat(1, s->fd, &stat)), &stat, SIZE); }
CALL(fxstatat) { struct stat stat; long r = IN(__fxstatat(1, AT_FDCWD, s->path, &stat, 0)); return sized_by_name(r, stat.st_size); }
CALL(statx)
{
    struct statx stat;
    long result = IN(statx(AT_FDCWD, s->path, 0, STATX_BASIC_STATS, &stat));
    return sized_by_name(result, (off_t)stat.stx_size);
}
CALL(statx_empty)
{
    struct statx stat;
    long result = IN(statx(s->fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &stat));
    return result == 0 && stat.stx_size != SIZE ? WRONG : result;
}

/* Opens and reads: an open that succeeds leads to the file, never to its manifest. */
static long opened(int fd)
{
    if (fd < 0)
        return fd;
    long got = pread(fd, buffer, SIZE, 0);
    long result = got < 0 ? -errno : checked(got, 0);
    close(fd);
    return result;
}
static long written(int fd)
{
    if (fd < 0)
        return fd;
    long done = pwrite(fd, to_write(), WRITE_LEN, WRITE_AT);
    done = done < 0 ? -errno : done;
    close(fd);
    return done;
}
static long emptied(int fd)
{
    if (fd < 0)
        return fd;
    struct stat stat;
    long result = fstat(fd, &stat) ? -errno : sized(0, &stat, 0);
    close(fd);
    return result;
}
int __open_2(const char *, int);
int __openat_2(int, const char *, int);
CALL(open) { return opened((int)IN(open(s->path, O_RDONLY))); }
CALL(open_2) { return opened((int)IN(__open_2(s->path, O_RDONLY))); }
CALL(openat) { return opened((int)IN(openat(AT_FDCWD, s->path, O_RDWR))); }
CALL(openat_2) { return opened((int)IN(__openat_2(AT_FDCWD, s->path, O_RDWR))); }
CALL(open_write) { return written((int)IN(open(s->path, O_WRONLY))); }
CALL(open_direct) { return opened((int)IN(open(s->path, O_RDONLY | O_CREAT, 0644))); }
CALL(open_locked)
{
    struct flock lock = {.l_type = F_RDLCK};
    int fd = open(s->path, O_RDONLY);
    fcntl(fd, F_SETLK, &lock);
    return written((int)IN(open(s->path, O_WRONLY)));
}
CALL(open_empty) { return emptied((int)IN(open(s->path, O_RDWR | O_TRUNC))); }
CALL(creat_empty) { return emptied((int)IN(creat(s->path, 0644))); }
CALL(open_create) { return emptied((int)IN(open(s->path, O_RDWR | O_CREAT, 0644))); }
CALL(openat_create) { return emptied((int)IN(openat(AT_FDCWD, s->path, O_RDWR | O_CREAT | O_EXCL, 0644))); }
CALL(open_direct_write) { return written((int)IN(open(s->path, O_RDWR | O_CREAT, 0644))); }
CALL(open_create_empty) { return emptied((int)IN(open(s->path, O_RDWR | O_CREAT | O_TRUNC, 0644))); }
CALL(creat) { return emptied((int)IN(creat(s->path, 0644))); }

static long stream_read(FILE *stream)
{
    if (!stream)
        return -errno;
    long got = (long)fread(buffer, 1, SIZE, stream);
    long result = got == SIZE ? checked(got, 0) : ferror(stream) ? -EIO : WRONG;
    fclose(stream);
    return result;
}
CALL(fopen) { FILE *f = NULL; long r = IN((f = fopen(s->path, "r")) ? 0 : -1); return r ? r : stream_read(f); }
CALL(fopen_empty) { FILE *f = NULL; long r = IN((f = fopen(s->path, "w")) ? 0 : -1); return f ? fclose(f) : r; }
CALL(fopen_create) { FILE *f = NULL; long r = IN((f = fopen(s->path, "w")) ? 0 : -1); return f ? fclose(f) : r; }
CALL(fdopen) { FILE *f = NULL; long r = IN((f = fdopen(dup(s->fd), "r")) ? 0 : -1); if (f) rewind(f); return r ? r : stream_read(f); }
CALL(freopen)
{
    FILE *f = fopen(s->path, "r"), *new = NULL;
    long result = IN((new = freopen(s->path, "r", f)) ? 0 : -1);
    return new ? stream_read(new) : result;
}
CALL(fclose)
{
    FILE *stream = fopen(s->path, "r+");
    setvbuf(stream, NULL, _IOFBF, 2 * WRITE_LEN);
    fseek(stream, WRITE_AT, SEEK_SET);
    fwrite(to_write(), 1, WRITE_LEN, stream);
    long result = IN(fclose(stream));
    return result ? result : WRITE_LEN;
}
CALL(close) { return IN(close(dup(s->fd))); }
CALL(close_last) { int fd = s->fd; s->fd = -1; return IN(close(fd)); }
CALL(close_range) { unsigned fd = (unsigned)s->fd; s->fd = -1; return IN(close_range(fd, fd, 0)); }
CALL(closefrom) { int fd = s->fd; s->fd = -1; return IN((closefrom(fd), 0)); }

/* The duplicate leads to the file, too. */
CALL(dup) { return written((int)IN(dup(s->fd))); }
CALL(dup2) { return written((int)IN(dup2(s->fd, 200))); }
CALL(dup3) { return written((int)IN(dup3(s->fd, 201, O_CLOEXEC))); }
CALL(fcntl) { return written((int)IN(fcntl(s->fd, F_DUPFD, 202))); }
CALL(fcntl_lock) { struct flock lock = {.l_type = F_WRLCK}; return IN(fcntl(s->fd, F_SETLK, &lock)); }
CALL(lockf) { lseek(s->fd, 0, SEEK_SET); return IN(lockf(s->fd, F_TLOCK, 10)); }

CALL(flock) { return IN(flock(s->fd, LOCK_EX | LOCK_NB)); }

CALL(unlink) { return IN(unlink(s->path)); }
CALL(unlinkat) { return IN(unlinkat(AT_FDCWD, s->path, 0)); }
CALL(remove) { return IN(remove(s->path)); }
CALL(rename) { return IN(rename(s->other, s->path)); }
CALL(renameat) { return IN(renameat(AT_FDCWD, s->other, AT_FDCWD, s->path)); }
CALL(renameat2) { return IN(renameat2(AT_FDCWD, s->other, AT_FDCWD, s->path, 0)); }

static const struct timeval now[2] = {{1000, 0}, {2000, 0}};
static const struct timespec exact[2] = {{1000, 0}, {2000, 0}};
CALL(access) { return IN(access(s->path, R_OK | W_OK)); }
CALL(faccessat) { return IN(faccessat(AT_FDCWD, s->path, R_OK | W_OK, AT_EACCESS)); }
CALL(euidaccess) { return IN(euidaccess(s->path, W_OK)); }
CALL(eaccess) { return IN(eaccess(s->path, W_OK)); }
CALL(chmod) { return IN(chmod(s->path, 0640)); }
CALL(fchmod) { return IN(fchmod(s->fd, 0640)); }
CALL(fchmodat) { return IN(fchmodat(AT_FDCWD, s->path, 0640, 0)); }
CALL(chown) { return IN(chown(s->path, getuid(), getgid())); }
CALL(lchown) { return IN(lchown(s->path, getuid(), getgid())); }
CALL(fchown) { return IN(fchown(s->fd, getuid(), getgid())); }
CALL(fchownat) { return IN(fchownat(AT_FDCWD, s->path, getuid(), getgid(), 0)); }
CALL(fchownat_empty) { return IN(fchownat(s->fd, "", getuid(), getgid(), AT_EMPTY_PATH)); }
CALL(utime) { struct utimbuf times = {1000, 2000}; return IN(utime(s->path, &times)); }
CALL(utimes) { return IN(utimes(s->path, now)); }
CALL(lutimes) { return IN(lutimes(s->path, now)); }
CALL(futimes) { return IN(futimes(s->fd, now)); }
CALL(futimesat) { return IN(futimesat(AT_FDCWD, s->path, now)); }
CALL(futimens) { return IN(futimens(s->fd, exact)); }
CALL(utimensat) { return IN(utimensat(AT_FDCWD, s->path, exact, 0)); }
CALL(utimensat_empty) { return IN(utimensat(s->fd, "", exact, AT_EMPTY_PATH)); }

/* The bytes that come out of a pipe are those of the file. */
static long piped(long moved, int end) { return moved < 0 ? moved : checked(read(end, buffer, (size_t)moved), WRITE_AT); }
CALL(sendfile)
{
    off_t at = WRITE_AT;
    int ends[2];
    return pipe(ends) ? WRONG : piped(IN(sendfile(ends[1], s->fd, &at, WRITE_LEN)), ends[0]);
}
CALL(splice)
{
    off_t at = WRITE_AT;
    int ends[2];
    return pipe(ends) ? WRONG : piped(IN(splice(s->fd, &at, ends[1], NULL, WRITE_LEN, 0)), ends[0]);
}
CALL(copy_file_range)
{
    off_t at = WRITE_AT;
    int to = memfd_create("to", 0);
    long copied = IN(copy_file_range(s->fd, &at, to, NULL, WRITE_LEN, 0));
    return copied < 0 ? copied : checked(pread(to, buffer, WRITE_LEN, 0), WRITE_AT);
}
CALL(copy_file_range_to)
{
    off_t at = WRITE_AT;
    int from = memfd_create("from", 0);
    return pwrite(from, to_write(), WRITE_LEN, 0) != WRITE_LEN ? WRONG : IN(copy_file_range(from, &(off_t){0}, s->fd, &at, WRITE_LEN, 0));
}

/* These serve no managed file. Whatever they return, they transfer no bytes of or to the
 * manifest. */
static long refused(long result) { return result >= 0 ? WRONG : result; }
CALL(ioctl) { int to = memfd_create("to", 0); return refused(IN(ioctl(to, FICLONE, s->fd))); }
CALL(ioctl_left) { int left = 0; lseek(s->fd, 0, SEEK_SET); long r = IN(ioctl(s->fd, FIONREAD, &left)); return r == 0 && left != SIZE ? WRONG : r; }

static long finished(long started, struct aiocb *block)
{
    const struct aiocb *list[] = {block};
    if (started < 0)
        return started;
    while (aio_error(block) == EINPROGRESS)
        aio_suspend(list, 1, NULL);
    long result = aio_error(block);
    return result ? -result : aio_return(block);
}
CALL(aio_read)
{
    struct aiocb block = {.aio_fildes = s->fd, .aio_buf = buffer, .aio_nbytes = WRITE_LEN, .aio_offset = WRITE_AT};
    long done = finished(IN(aio_read(&block)), &block);
    return done < 0 ? done : checked(done, WRITE_AT);
}
CALL(aio_write)
{
    struct aiocb block = {.aio_fildes = s->fd, .aio_buf = to_write(), .aio_nbytes = WRITE_LEN, .aio_offset = WRITE_AT};
    return finished(IN(aio_write(&block)), &block);
}
CALL(aio_fsync)
{
    struct aiocb block = {.aio_fildes = s->fd};
    return finished(IN(aio_fsync(O_SYNC, &block)), &block);
}
CALL(aio_suspend)
{
    struct aiocb block = {.aio_fildes = s->fd, .aio_buf = buffer, .aio_nbytes = WRITE_LEN, .aio_offset = WRITE_AT};
    const struct aiocb *list[] = {&block};
    if (aio_read(&block))
        return -errno;
    long waited = IN(aio_suspend(list, 1, NULL));
    long done = finished(0, &block);
    return waited < 0 ? waited : done < 0 ? done : checked(done, WRITE_AT);
}
CALL(aio_cancel) { long result = IN(aio_cancel(s->fd, NULL)); return result < 0 ? result : 0; }
CALL(lio_listio)
{
    struct aiocb block = {.aio_fildes = s->fd, .aio_buf = to_write(), .aio_nbytes = WRITE_LEN, .aio_offset = WRITE_AT};
    struct aiocb *list[] = {&block};
    block.aio_lio_opcode = LIO_WRITE;
    long result = IN(lio_listio(LIO_WAIT, list, 1, NULL));
    return result < 0 ? result : finished(0, &block);
}
static long submitted(struct subject *s, int in_submit)
{
    io_context_t context = 0;
    struct iocb request, *list[] = {&request};
    struct io_event event = {0};
    if (syscall(SYS_io_setup, 4, &context))
        return WRONG;
    io_prep_pwrite(&request, s->fd, to_write(), WRITE_LEN, WRITE_AT);
    long result = in_submit ? IN(io_submit(context, 1, list)) : io_submit(context, 1, list);
    if (result != 1)
        return result < 0 ? result : -EIO;
    long got = in_submit ? io_getevents(context, 1, 1, &event, NULL) : IN(io_getevents(context, 1, 1, &event, NULL));
    if (got != 1)
        got = io_getevents(context, 1, 1, &event, NULL);
    result = got == 1 ? (long)event.res : -EIO;
    io_destroy(context);
    return result;
}
CALL(io_submit) { return submitted(s, 1); }
CALL(io_getevents) { return submitted(s, 0); }

static char *const none[] = {"nothing", NULL};
CALL(spawn)
{
    posix_spawn_file_actions_t actions;
    int pid, status;
    posix_spawn_file_actions_init(&actions);
    long result = -IN(posix_spawn_file_actions_addopen(&actions, 1, s->path, O_WRONLY | O_CREAT | O_TRUNC, 0644));
    /* An error deferred to the child appears there, or the child works correctly. */
    if (result == 0)
        result = -posix_spawn(&pid, "/bin/true", &actions, NULL, none, environ);
    return result == 0 && (waitpid(pid, &status, 0) != pid || status) ? -EIO : result;
}
CALL(recvmsg)
{
    int pair[2];
    char byte = 0, room[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec one = {&byte, 1};
    struct msghdr message = {.msg_iov = &one, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
        return WRONG;
    struct cmsghdr *control = CMSG_FIRSTHDR(&message);
    *control = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
    memcpy(CMSG_DATA(control), &s->fd, sizeof(int));
    sendmsg(pair[0], &message, 0);
    long result = IN(recvmsg(pair[1], &message, 0));
    int fd;
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
    return result < 0 ? result : written(fd);
}
CALL(execve) { return refused(IN(execve("/nonexistent", none, none))); }
CALL(execv) { return refused(IN(execv("/nonexistent", none))); }
CALL(execl) { return refused(IN(execl("/nonexistent", "nothing", NULL))); }
CALL(execveat) { return refused(IN(execveat(AT_FDCWD, "/nonexistent", none, none, 0))); }
CALL(fexecve) { return refused(IN(fexecve(s->fd, none, none))); }
CALL(exit_now) { window_begin(); _exit(0); }

const struct call calls[] = {
    {"read", "read", NOTHING, OPENED, call_read, 0},
    {"read", "read, first use", NOTHING, INHERITED, call_read, 0},
    {"__read_chk", "__read_chk", NOTHING, OPENED, call_read_chk, 0},
    {"readv", "readv", NOTHING, OPENED, call_readv, 0},
    {"pread pread64", "pread", NOTHING, OPENED, call_pread, 0},
    {"pread pread64", "pread, first use", NOTHING, INHERITED, call_pread, 0},
    {"__pread_chk __pread64_chk", "__pread_chk", NOTHING, OPENED, call_pread_chk, 0},
    {"preadv preadv64", "preadv", NOTHING, OPENED, call_preadv, 0},
    {"preadv2 preadv64v2", "preadv2", NOTHING, OPENED, call_preadv2, 0},
    {"pread pread64", "pread at the end", NOTHING, OPENED, call_read_end, 0},
    {"write", "write", WRITES, OPENED, call_write, 0},
    {"write", "write, first use", WRITES, INHERITED, call_write, 0},
    {"writev", "writev", WRITES, OPENED, call_writev, 0},
    {"pwrite pwrite64", "pwrite", WRITES, OPENED, call_pwrite, 0},
    {"pwrite pwrite64", "pwrite, first use", WRITES, INHERITED, call_pwrite, 0},
    {"read", "read, in one object", NOTHING, OPENED, call_read_piece, 0},
    {"pread pread64", "pread, in one object", NOTHING, OPENED, call_pread_piece, 0},
    {"write", "write, in one object", WRITES, OPENED, call_write_piece, 0},
    {"pwrite pwrite64", "pwrite, in one object", WRITES, OPENED, call_pwrite_piece, 0},
    {"pwritev pwritev64", "pwritev", WRITES, OPENED, call_pwritev, 0},
    {"pwritev2 pwritev64v2", "pwritev2", WRITES, OPENED, call_pwritev2, 0},
    {"pwritev2 pwritev64v2", "pwritev2, appending", APPENDS, OPENED, call_pwritev2_append, 0},
    {"write", "write, appending", APPENDS, OPENED, call_append, 0},
    {"dprintf __dprintf_chk", "dprintf", WRITES, OPENED, call_dprintf, 0},
    {"vdprintf __vdprintf_chk", "vdprintf", WRITES, OPENED, call_vdprintf, 0},
    {"lseek lseek64", "lseek to the end", NOTHING, OPENED, call_lseek, 0},
    {"lseek lseek64", "lseek to the end, first use", NOTHING, INHERITED, call_lseek, 0},
    {"lseek lseek64", "lseek to a hole", NOTHING, OPENED, call_lseek_hole, 0},
    {"fsync", "fsync", NOTHING, OPENED, call_fsync, 0},
    {"fdatasync", "fdatasync", NOTHING, OPENED, call_fdatasync, 0},
    {"syncfs", "syncfs", NOTHING, OPENED, call_syncfs, 0},
    {"sync_file_range", "sync_file_range", NOTHING, OPENED, call_sync_file_range, 0},
    {"posix_fadvise posix_fadvise64", "posix_fadvise", NOTHING, OPENED, call_posix_fadvise, 0},
    {"readahead", "readahead", NOTHING, OPENED, call_readahead, 0},
    {"ftruncate ftruncate64", "ftruncate", SHORTENS, OPENED, call_ftruncate, 0},
    {"ftruncate ftruncate64", "ftruncate, first use", SHORTENS, INHERITED, call_ftruncate, 0},
    {"ftruncate ftruncate64", "ftruncate to more", LENGTHENS, OPENED, call_ftruncate_more, 0},
    {"truncate truncate64", "truncate", SHORTENS, CLOSED, call_truncate, 0},
    {"fallocate fallocate64", "fallocate", LENGTHENS, OPENED, call_fallocate, 0},
    {"posix_fallocate posix_fallocate64", "posix_fallocate", LENGTHENS, OPENED, call_posix_fallocate, 0},
    {"mmap mmap64", "mmap", NOTHING, OPENED, call_mmap, 0},
    {"mmap mmap64", "mmap, first use", NOTHING, INHERITED, call_mmap, 0},
    {"fstat fstat64", "fstat", NOTHING, OPENED, call_fstat, 0},
    {"fstat fstat64", "fstat, first use", NOTHING, INHERITED, call_fstat, 0},
    {"stat stat64", "stat", NOTHING, CLOSED, call_stat, 0},
    {"stat stat64", "stat of an open file", NOTHING, OPENED, call_stat, 0},
    {"lstat lstat64", "lstat", NOTHING, CLOSED, call_lstat, 0},
    {"fstatat fstatat64", "fstatat", NOTHING, CLOSED, call_fstatat, 0},
    {"fstatat fstatat64", "fstatat without a name", NOTHING, OPENED, call_fstatat_empty, 0},
    {"__xstat __xstat64", "__xstat", NOTHING, CLOSED, call_xstat, 0},
    {"__lxstat __lxstat64", "__lxstat", NOTHING, CLOSED, call_lxstat, 0},
    {"__fxstat __fxstat64", "__fxstat", NOTHING, OPENED, call_fxstat, 0},
    {"__fxstatat __fxstatat64", "__fxstatat", NOTHING, CLOSED, call_fxstatat, 0},
    {"statx", "statx", NOTHING, CLOSED, call_statx, 0},
    {"statx", "statx without a name", NOTHING, OPENED, call_statx_empty, 0},
    {"open open64 __open __open64", "open", NOTHING, CLOSED, call_open, 0},
    {"__open_2 __open64_2", "__open_2", NOTHING, CLOSED, call_open_2, 0},
    {"openat openat64", "openat", NOTHING, CLOSED, call_openat, 0},
    {"__openat_2 __openat64_2", "__openat_2", NOTHING, CLOSED, call_openat_2, 0},
    {"open", "open for writing", WRITES, CLOSED, call_open_write, 0},
    {"open", "open for writing, with locks", WRITES, CLOSED, call_open_locked, 0},
    {"open", "open, O_CREAT of what is there", NOTHING, CLOSED, call_open_direct, 0},
    {"open", "open, O_TRUNC", EMPTIES, CLOSED, call_open_empty, 0},
    {"creat creat64", "creat of what is there", EMPTIES, CLOSED, call_creat_empty, 0},
    {"open", "open, O_CREAT", CREATES, ABSENT, call_open_create, 0},
    {"openat", "openat, O_EXCL", CREATES, ABSENT, call_openat_create, 0},
    {"creat creat64", "creat", CREATES, ABSENT, call_creat, 0},
    {"open", "open, O_CREAT without a rule", CREATES, ABSENT_UNRULED, call_open_create, 0},
    {"openat", "openat, O_EXCL without a rule", CREATES, ABSENT_UNRULED, call_openat_create, 0},
    {"open", "open, O_TRUNC and O_CREAT without a rule", CREATES, ABSENT_UNRULED, call_open_create_empty, 0},
    {"open", "open, O_CREAT of a plain file", NOTHING, PLAIN_UNRULED, call_open_direct, 0},
    {"open", "open for writing, O_CREAT of a plain file", WRITES, PLAIN_UNRULED, call_open_direct_write, 0},
    {"open", "open, O_TRUNC of a plain file", EMPTIES, PLAIN_UNRULED, call_open_create_empty, 0},
    {"creat", "creat of a plain file", EMPTIES, PLAIN_UNRULED, call_creat_empty, 0},
    {"open", "open, O_CREAT of a moved file", NOTHING, MOVED_UNRULED, call_open_direct, 0},
    {"open", "open for writing, O_CREAT of a moved file", WRITES, MOVED_UNRULED, call_open_direct_write, 0},
    {"open", "open, O_TRUNC of a moved file", EMPTIES, MOVED_UNRULED, call_open_create_empty, 0},
    {"creat", "creat of a moved file", EMPTIES, MOVED_UNRULED, call_creat_empty, 0},
    {"fopen fopen64 _IO_fopen", "fopen", NOTHING, CLOSED, call_fopen, 0},
    {"fopen", "fopen, emptying", EMPTIES, CLOSED, call_fopen_empty, 0},
    {"fopen", "fopen, creating", CREATES, ABSENT, call_fopen_create, 0},
    {"fdopen _IO_fdopen", "fdopen", NOTHING, OPENED, call_fdopen, 0},
    {"freopen freopen64", "freopen", NOTHING, CLOSED, call_freopen, 0},
    {"fclose _IO_fclose", "fclose", WRITES, CLOSED, call_fclose, 0},
    {"close __close", "close of a duplicate", NOTHING, OPENED, call_close, 0},
    {"close __close", "close", NOTHING, OPENED, call_close_last, 0},
    {"close_range", "close_range", NOTHING, OPENED, call_close_range, 0},
    {"closefrom", "closefrom", NOTHING, OPENED, call_closefrom, 0},
    {"dup", "dup", WRITES, OPENED, call_dup, 0},
    {"dup", "dup, first use", WRITES, INHERITED, call_dup, 0},
    {"dup2 __dup2", "dup2", WRITES, OPENED, call_dup2, 0},
    {"dup3", "dup3", WRITES, OPENED, call_dup3, 0},
    {"fcntl fcntl64 __fcntl", "fcntl", WRITES, OPENED, call_fcntl, 0},
    {"fcntl fcntl64 __fcntl", "fcntl, a lock", NOTHING, OPENED, call_fcntl_lock, 0},
    {"lockf lockf64", "lockf", NOTHING, OPENED, call_lockf, 0},
    {"flock", "flock", NOTHING, OPENED, call_flock, 0},
    {"unlink", "unlink", REMOVES, CLOSED, call_unlink, 0},
    {"unlink", "unlink of an open file", REMOVES, OPENED, call_unlink, 0},
    {"unlinkat", "unlinkat", REMOVES, CLOSED, call_unlinkat, 0},
    {"remove", "remove", REMOVES, CLOSED, call_remove, 0},
    {"rename", "rename", REPLACES, CLOSED, call_rename, 0},
    {"renameat", "renameat", REPLACES, CLOSED, call_renameat, 0},
    {"renameat2", "renameat2", REPLACES, CLOSED, call_renameat2, 0},
    {"access", "access", NOTHING, CLOSED, call_access, 0},
    {"faccessat", "faccessat", NOTHING, CLOSED, call_faccessat, 0},
    {"euidaccess", "euidaccess", NOTHING, CLOSED, call_euidaccess, 0},
    {"eaccess", "eaccess", NOTHING, CLOSED, call_eaccess, 0},
    {"chmod", "chmod", NOTHING, CLOSED, call_chmod, 0},
    {"fchmod", "fchmod", NOTHING, OPENED, call_fchmod, 0},
    {"fchmodat", "fchmodat", NOTHING, CLOSED, call_fchmodat, 0},
    {"chown", "chown", NOTHING, CLOSED, call_chown, 0},
    {"lchown", "lchown", NOTHING, CLOSED, call_lchown, 0},
    {"fchown", "fchown", NOTHING, OPENED, call_fchown, 0},
    {"fchownat", "fchownat", NOTHING, CLOSED, call_fchownat, 0},
    {"fchownat", "fchownat without a name", NOTHING, OPENED, call_fchownat_empty, 0},
    {"utime", "utime", NOTHING, CLOSED, call_utime, 0},
    {"utimes", "utimes", NOTHING, CLOSED, call_utimes, 0},
    {"lutimes", "lutimes", NOTHING, CLOSED, call_lutimes, 0},
    {"futimes", "futimes", NOTHING, OPENED, call_futimes, 0},
    {"futimesat", "futimesat", NOTHING, CLOSED, call_futimesat, 0},
    {"futimens", "futimens", NOTHING, OPENED, call_futimens, 0},
    {"utimensat", "utimensat", NOTHING, CLOSED, call_utimensat, 0},
    {"utimensat", "utimensat without a name", NOTHING, OPENED, call_utimensat_empty, 0},
    {"sendfile sendfile64", "sendfile", NOTHING, OPENED, call_sendfile, 1},
    {"splice", "splice", NOTHING, OPENED, call_splice, 1},
    {"copy_file_range", "copy_file_range", NOTHING, OPENED, call_copy_file_range, 0},
    {"copy_file_range", "copy_file_range, first use", NOTHING, INHERITED, call_copy_file_range, 0},
    {"copy_file_range", "copy_file_range to it", WRITES, OPENED, call_copy_file_range_to, 0},
    {"ioctl", "ioctl, clone", NOTHING, OPENED, call_ioctl, 1},
    {"ioctl", "ioctl, bytes left", NOTHING, OPENED, call_ioctl_left, 0},
    {"aio_read aio_read64 aio_return aio_return64", "aio_read", NOTHING, OPENED, call_aio_read, 0},
    {"aio_write aio_write64", "aio_write", WRITES, OPENED, call_aio_write, 0},
    {"aio_write aio_write64", "aio_write, first use", WRITES, INHERITED, call_aio_write, 0},
    {"aio_fsync aio_fsync64", "aio_fsync", NOTHING, OPENED, call_aio_fsync, 0},
    {"aio_suspend aio_suspend64", "aio_suspend", NOTHING, OPENED, call_aio_suspend, 0},
    {"aio_cancel aio_cancel64", "aio_cancel", NOTHING, OPENED, call_aio_cancel, 0},
    {"lio_listio lio_listio64", "lio_listio", WRITES, OPENED, call_lio_listio, 0},
    {"io_submit", "io_submit", WRITES, OPENED, call_io_submit, 0},
    {"io_getevents io_pgetevents io_cancel io_destroy io_queue_release", "io_getevents", WRITES, OPENED, call_io_getevents, 0},
    {"posix_spawn_file_actions_addopen", "posix_spawn_file_actions_addopen", EMPTIES, CLOSED, call_spawn, 0},
    {"recvmsg", "recvmsg", WRITES, OPENED, call_recvmsg, 0},
    {"execve execvpe", "execve", NOTHING, OPENED, call_execve, 1},
    {"execv execvp", "execv", NOTHING, OPENED, call_execv, 1},
    {"execl execlp execle", "execl", NOTHING, OPENED, call_execl, 1},
    {"execveat", "execveat", NOTHING, OPENED, call_execveat, 1},
    {"fexecve", "fexecve", NOTHING, OPENED, call_fexecve, 1},
    {"_exit _Exit", "_exit", NOTHING, OPENED, call_exit_now, 0},
};
const size_t call_count = sizeof calls / sizeof *calls;
