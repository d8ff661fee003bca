/* Makes one system call of a traced child fail, without doing it. */
#define _GNU_SOURCE
#include "campaign.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { END = 100001, SMALL_MAP = 65536 };

/* To this thread: another one that takes it, which nobody traces, would stop the whole process
 * for good. */
void window_begin(void) { syscall(SYS_tgkill, (int)syscall(SYS_getpid), (int)syscall(SYS_gettid), SIGSTOP); }

void window_end(void) { syscall(END); }

struct listed {
    long number;
    const char *name;
    int errors[7];
};

/* What each system call fails with where a file system, memory or descriptors run out. Those that never fail are not here. */
static const struct listed lists[] = {
    {SYS_openat, "openat", {EMFILE, ENFILE, EIO, ESTALE, ENOMEM, EINTR}},
    {SYS_openat2, "openat2", {EMFILE, ENFILE, EIO, ESTALE, ENOMEM, EINTR}},
    {SYS_open, "open", {EMFILE, ENFILE, EIO, ESTALE, ENOMEM, EINTR}},
    {SYS_newfstatat, "newfstatat", {EIO, ESTALE, ENOMEM, EINTR}},
    {SYS_fstat, "fstat", {EIO, ESTALE, ENOMEM, EINTR}},
    {SYS_statx, "statx", {EIO, ESTALE, ENOMEM}},
    {SYS_statfs, "statfs", {EIO, ENOMEM, EINTR}},
    {SYS_fstatfs, "fstatfs", {EIO, ENOMEM, EINTR}},
    {SYS_read, "read", {EIO, ESTALE, EINTR, ENOMEM}},
    {SYS_readv, "readv", {EIO, ESTALE, EINTR, ENOMEM}},
    {SYS_pread64, "pread64", {EIO, ESTALE, EINTR, ENOMEM}},
    {SYS_preadv, "preadv", {EIO, ESTALE, EINTR, ENOMEM}},
    {SYS_preadv2, "preadv2", {EIO, ESTALE, EINTR, ENOMEM}},
    {SYS_write, "write", {EIO, ENOSPC, EINTR, ESTALE}},
    {SYS_writev, "writev", {EIO, ENOSPC, EINTR, ESTALE}},
    {SYS_pwrite64, "pwrite64", {EIO, ENOSPC, EDQUOT, EINTR, ESTALE}},
    {SYS_pwritev, "pwritev", {EIO, ENOSPC, EDQUOT, EINTR, ESTALE}},
    {SYS_pwritev2, "pwritev2", {EIO, ENOSPC, EDQUOT, EINTR, ESTALE}},
    {SYS_lseek, "lseek", {EIO, ESTALE}},
    {SYS_fsync, "fsync", {EIO, ENOSPC, EINTR}},
    {SYS_fdatasync, "fdatasync", {EIO, ENOSPC, EINTR}},
    {SYS_ftruncate, "ftruncate", {EIO, EINTR, ESTALE}},
    {SYS_fallocate, "fallocate", {ENOSPC, EIO, EINTR}},
    {SYS_fcntl, "fcntl", {ENOLCK, EIO, EINTR, EMFILE}},
    {SYS_flock, "flock", {ENOLCK, EINTR}},
    {SYS_unlinkat, "unlinkat", {EIO, ESTALE, ENOMEM}},
    {SYS_renameat, "renameat", {EIO, ENOSPC, ESTALE}},
    {SYS_renameat2, "renameat2", {EIO, ENOSPC, ESTALE}},
    {SYS_linkat, "linkat", {EIO, ENOSPC, ESTALE}},
    {SYS_mkdirat, "mkdirat", {EIO, ENOSPC, ESTALE}},
    {SYS_readlinkat, "readlinkat", {EIO, ENOMEM, ESTALE}},
    {SYS_getdents64, "getdents64", {EIO, ENOMEM, ESTALE}},
    {SYS_fchmod, "fchmod", {EIO, ESTALE}},
    {SYS_fchmodat, "fchmodat", {EIO, ESTALE}},
    {SYS_fchown, "fchown", {EIO, ESTALE}},
    {SYS_fchownat, "fchownat", {EIO, ESTALE}},
    {SYS_utimensat, "utimensat", {EIO, ESTALE}},
    {SYS_close, "close", {EIO, EINTR}},
    {SYS_mmap, "mmap", {ENOMEM}},
    {SYS_io_submit, "io_submit", {EAGAIN, EIO}},
    {SYS_clone3, "clone3", {EAGAIN}},
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
    /* malloc's own memory: without it Rust ends the process. */
    int is_mallocs = regs->orig_rax == SYS_mmap && (int)regs->r8 < 0 && regs->rsi >= SMALL_MAP;
    return is_mallocs ? NULL : find((long)regs->orig_rax);
}

static int wait_for(int pid, int *status)
{
    return waitpid(pid, status, __WALL) == pid && WIFSTOPPED(*status);
}

/* From the entry of a system call to its exit, where it has failed. close(2) always closes. */
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

void inject(int pid, struct injection *it)
{
    int seen = 0, entering = 1, status = 0;
    it->number = it->error = it->listed = 0;
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
        while (it->listed < 7 && listed->errors[it->listed])
            it->listed++;
        it->number = listed->number;
        it->error = listed->errors[it->which % it->listed];
        if (!fail(pid, &regs, it->error, &status))
            goto ended;
        entering = 0;
    }
    ptrace(PTRACE_DETACH, pid, 0, 0);
    waitpid(pid, &status, __WALL);
ended:
    it->status = status;
}
