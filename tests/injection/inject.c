/* Makes one system call of a traced child fail without executing it. */
#define _GNU_SOURCE
#include "campaign.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { END = 100001, SMALL_MAP = 65536 };

/* Sent to this thread. If an untraced thread took it, the whole process would stop for good. */
void window_begin(void) { syscall(SYS_tgkill, (int)syscall(SYS_getpid), (int)syscall(SYS_gettid), SIGSTOP); }

void window_end(void) { syscall(END); }

enum { BROKEN_MAX = 7, REFUSED_MAX = 2 };

struct listed {
    long number;
    const char *name;
    int broken[BROKEN_MAX];   /* exhausted file system, memory or descriptors */
    int refused[REFUSED_MAX]; /* missing permission: expected for anchors, so the library checks for one */
};

/* The errnos of each system call; those that never fail are missing. Among the refusals, EACCES
 * also comes from servers (NFS, BeeGFS) for any call that they serve; EPERM comes from
 * attributes (immutable), sticky directories, O_NOATIME, and system call filters. */
static const struct listed lists[] = {
    {SYS_openat, "openat", {EMFILE, ENFILE, EIO, ESTALE, ENOMEM, EINTR}, {EACCES, EPERM}},
    {SYS_openat2, "openat2", {EMFILE, ENFILE, EIO, ESTALE, ENOMEM, EINTR}, {EACCES, EPERM}},
    {SYS_open, "open", {EMFILE, ENFILE, EIO, ESTALE, ENOMEM, EINTR}, {EACCES, EPERM}},
    {SYS_newfstatat, "newfstatat", {EIO, ESTALE, ENOMEM, EINTR}, {EACCES}},
    {SYS_fstat, "fstat", {EIO, ESTALE, ENOMEM, EINTR}, {EACCES}},
    {SYS_statx, "statx", {EIO, ESTALE, ENOMEM}, {EACCES}},
    {SYS_statfs, "statfs", {EIO, ENOMEM, EINTR}, {EACCES}},
    {SYS_fstatfs, "fstatfs", {EIO, ENOMEM, EINTR}, {0}},
    {SYS_faccessat2, "faccessat2", {EIO, ESTALE, ENOMEM}, {EACCES, EPERM}},
    {SYS_read, "read", {EIO, ESTALE, EINTR, ENOMEM}, {EACCES}},
    {SYS_readv, "readv", {EIO, ESTALE, EINTR, ENOMEM}, {EACCES}},
    {SYS_pread64, "pread64", {EIO, ESTALE, EINTR, ENOMEM}, {EACCES}},
    {SYS_preadv, "preadv", {EIO, ESTALE, EINTR, ENOMEM}, {EACCES}},
    {SYS_preadv2, "preadv2", {EIO, ESTALE, EINTR, ENOMEM}, {EACCES}},
    {SYS_write, "write", {EIO, ENOSPC, EINTR, ESTALE}, {EACCES, EPERM}},
    {SYS_writev, "writev", {EIO, ENOSPC, EINTR, ESTALE}, {EACCES, EPERM}},
    {SYS_pwrite64, "pwrite64", {EIO, ENOSPC, EDQUOT, EINTR, ESTALE}, {EACCES, EPERM}},
    {SYS_pwritev, "pwritev", {EIO, ENOSPC, EDQUOT, EINTR, ESTALE}, {EACCES, EPERM}},
    {SYS_pwritev2, "pwritev2", {EIO, ENOSPC, EDQUOT, EINTR, ESTALE}, {EACCES, EPERM}},
    {SYS_lseek, "lseek", {EIO, ESTALE}, {0}},
    {SYS_fsync, "fsync", {EIO, ENOSPC, EINTR}, {EACCES}},
    {SYS_fdatasync, "fdatasync", {EIO, ENOSPC, EINTR}, {EACCES}},
    {SYS_ftruncate, "ftruncate", {EIO, EINTR, ESTALE}, {EACCES, EPERM}},
    {SYS_fallocate, "fallocate", {ENOSPC, EIO, EINTR}, {EACCES, EPERM}},
    {SYS_fcntl, "fcntl", {ENOLCK, EIO, EINTR, EMFILE}, {EACCES, EPERM}},
    {SYS_flock, "flock", {ENOLCK, EINTR}, {0}},
    {SYS_unlinkat, "unlinkat", {EIO, ESTALE, ENOMEM}, {EACCES, EPERM}},
    {SYS_renameat, "renameat", {EIO, ENOSPC, ESTALE}, {EACCES, EPERM}},
    {SYS_renameat2, "renameat2", {EIO, ENOSPC, ESTALE}, {EACCES, EPERM}},
    {SYS_linkat, "linkat", {EIO, ENOSPC, ESTALE}, {EACCES, EPERM}},
    {SYS_mkdirat, "mkdirat", {EIO, ENOSPC, ESTALE}, {EACCES, EPERM}},
    {SYS_readlinkat, "readlinkat", {EIO, ENOMEM, ESTALE}, {EACCES}},
    {SYS_getdents64, "getdents64", {EIO, ENOMEM, ESTALE}, {EACCES}},
    {SYS_fchmod, "fchmod", {EIO, ESTALE}, {EACCES, EPERM}},
    {SYS_fchmodat, "fchmodat", {EIO, ESTALE}, {EACCES, EPERM}},
    {SYS_fchown, "fchown", {EIO, ESTALE}, {EACCES, EPERM}},
    {SYS_fchownat, "fchownat", {EIO, ESTALE}, {EACCES, EPERM}},
    {SYS_utimensat, "utimensat", {EIO, ESTALE}, {EACCES, EPERM}},
    {SYS_close, "close", {EIO, EINTR}, {0}},
    {SYS_mmap, "mmap", {ENOMEM}, {EACCES, EPERM}},
    {SYS_io_submit, "io_submit", {EAGAIN, EIO}, {0}},
    {SYS_clone3, "clone3", {EAGAIN}, {EPERM}},
};

static const struct listed *find(long number)
{
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (lists[i].number == number)
            return &lists[i];
    return NULL;
}

const char *system_call_name(long number)
{
    const struct listed *listed = find(number);
    return listed ? listed->name : "?";
}

static const struct listed *may_fail(const struct user_regs_struct *regs)
{
    /* malloc's own memory: without it Rust aborts the process. */
    int is_mallocs = regs->orig_rax == SYS_mmap && (int)regs->r8 < 0 && regs->rsi >= SMALL_MAP;
    return is_mallocs ? NULL : find((long)regs->orig_rax);
}

static int wait_for(int pid, int *status)
{
    return waitpid(pid, status, __WALL) == pid && WIFSTOPPED(*status);
}

/* Steps from the entry of a system call to its exit, where it has failed. close(2) always
 * closes. */
static int fail(int pid, struct user_regs_struct *regs, int error, int *status)
{
    if (regs->orig_rax != SYS_close) {
        regs->orig_rax = (unsigned long long)-1;
        ptrace(PTRACE_SETREGS, pid, 0, regs);
    }
    ptrace(PTRACE_SYSCALL, pid, 0, 0);
    if (!wait_for(pid, status))
        return 0;
    ptrace(PTRACE_GETREGS, pid, 0, regs);
    regs->rax = (unsigned long long)-error;
    ptrace(PTRACE_SETREGS, pid, 0, regs);
    return 1;
}

/* The path of an open, because some results depend on which open failed. */
static void note_path(int pid, const struct user_regs_struct *regs, struct injection *it)
{
    unsigned long at = regs->orig_rax == SYS_open ? regs->rdi : regs->rsi;
    int opens = regs->orig_rax == SYS_open || regs->orig_rax == SYS_openat || regs->orig_rax == SYS_openat2;
    struct iovec to = {it->path, sizeof it->path - 1}, from = {(void *)at, sizeof it->path - 1};
    /* The path may end before the end of the requested memory. */
    while (opens && from.iov_len > 0 && process_vm_readv(pid, &to, 1, &from, 1, 0) < 0)
        from.iov_len -= 1 + from.iov_len / 8;
}

/* Number of errnos in a list. */
static int count_errors(const int *errors, int most)
{
    int count = 0;
    while (count < most && errors[count])
        count++;
    return count;
}

void inject(int pid, struct injection *it)
{
    int seen = 0, entering = 1, status = 0;
    it->number = it->error = it->listed = it->refusals = 0;
    memset(it->path, 0, sizeof it->path);
    if (!wait_for(pid, &status) || WSTOPSIG(status) != SIGSTOP)
        goto ended;
    ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
    for (int signal = 0;; entering = !entering) {
        ptrace(PTRACE_SYSCALL, pid, 0, signal);
        signal = 0;
        if (!wait_for(pid, &status))
            goto ended;
        if (WSTOPSIG(status) != (SIGTRAP | 0x80)) {
            signal = WSTOPSIG(status);
            entering = !entering;
            continue;
        }
        if (!entering)
            continue;
        struct user_regs_struct regs;
        ptrace(PTRACE_GETREGS, pid, 0, &regs);
        if (regs.orig_rax == END)
            break;
        const struct listed *listed = may_fail(&regs);
        if (!listed || seen++ != it->nth)
            continue;
        int broken = count_errors(listed->broken, BROKEN_MAX), which;
        it->refusals = count_errors(listed->refused, REFUSED_MAX);
        it->listed = broken + it->refusals;
        it->number = listed->number;
        which = it->which % it->listed;
        it->error = which < broken ? listed->broken[which] : listed->refused[which - broken];
        note_path(pid, &regs, it);
        if (!fail(pid, &regs, it->error, &status))
            goto ended;
        entering = 0;
    }
    ptrace(PTRACE_DETACH, pid, 0, 0);
    waitpid(pid, &status, __WALL);
ended:
    it->status = status;
}
