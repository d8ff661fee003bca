//! Calls that would bypass the interposed functions: `syscall`, `clone` and `_Fork`.
//!
//! System calls by number that make, close or copy descriptors are served like the libc functions
//! of that name, and so is `copy_file_range`. Other calls that move bytes go to the kernel.

use std::ffi::{c_char, c_int, c_long, c_uint, c_void};

use libc::{off64_t, pid_t};

use crate::calls::dup;
use crate::process::{NoCancellation, Real, errno, guard, identity, kernel};

type SyscallFn = unsafe extern "C" fn(c_long, usize, usize, usize, usize, usize, usize) -> c_long;

/// libc's `syscall`.
// SAFETY: the type of `syscall`, with the largest number of arguments of any call.
static LIBC: Real<SyscallFn> = unsafe { Real::new(c"syscall") };

type Run = extern "C" fn(*mut c_void) -> c_int;

/// `syscall`. Its variable arguments are passed like fixed ones in the 64-bit calling conventions
/// of Linux.
#[unsafe(no_mangle)]
unsafe extern "C" fn syscall(
    number: c_long,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> c_long {
    let real = || unsafe { LIBC.get()(number, a, b, c, d, e, f) };
    if guard::active() {
        return real();
    }
    if number == libc::SYS_copy_file_range {
        // SAFETY: the caller's arguments. Many programs make this call by number, because glibc has
        // the function only since 2.27.
        let copied = unsafe {
            libc::copy_file_range(a as c_int, b as *mut off64_t, c as c_int, d as *mut off64_t, e, f as c_uint)
        };
        return copied as c_long;
    }
    // SAFETY: the caller's arguments of the call that it asked for.
    unsafe { by_number(number, [a, b, c, d], real) }
}

/// Serves a call by number. The `libc::` functions here resolve to this library.
unsafe fn by_number(number: c_long, arguments: [usize; 4], real: impl FnOnce() -> c_long) -> c_long {
    let [a, b, c, d] = arguments;
    let (first, second) = (a as c_int, b as c_int);
    // A system call by number is never a cancellation point.
    let _held = NoCancellation::new();
    let opened = |path: usize, flags: c_int, mode: usize, dir| unsafe {
        libc::openat(dir, path as *const c_char, flags, mode as libc::mode_t)
    };
    let result = unsafe {
        match number {
            libc::SYS_openat if changes(c) => opened(b, c as c_int, d, first),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_open if changes(b) => opened(a, second, c, libc::AT_FDCWD),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_creat => opened(a, libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC, b, libc::AT_FDCWD),
            libc::SYS_close => libc::close(first),
            libc::SYS_close_range => libc::close_range(a as c_uint, b as c_uint, c as c_int),
            libc::SYS_dup => libc::dup(first),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_dup2 => libc::dup2(first, second),
            libc::SYS_dup3 => libc::dup3(first, second, c as c_int),
            libc::SYS_recvmsg => libc::recvmsg(first, b as *mut libc::msghdr, c as c_int) as c_int,
            libc::SYS_recvmmsg => {
                let count = real() as c_int;
                dup::forget_all(b as *const libc::mmsghdr, count);
                count
            }
            libc::SYS_exit_group => libc::_exit(first),
            libc::SYS_fcntl if matches!(second, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC) => {
                libc::fcntl(first, second, c)
            }
            _ if opens(number) => {
                let fd = dup::forget(real() as c_int);
                match number {
                    // Possibly an anchor.
                    libc::SYS_openat if is_refused(fd, c) => opened(b, c as c_int, d, first),
                    #[cfg(target_arch = "x86_64")]
                    libc::SYS_open if is_refused(fd, b) => opened(a, second, c, libc::AT_FDCWD),
                    _ => fd,
                }
            }
            _ if forks(number, a) => forked(real) as c_int,
            _ => return real(),
        }
    };
    c_long::from(result)
}

/// Whether an open with these flags creates or truncates a file. All other opens go to the kernel,
/// and the descriptor is examined at its first use: allocators open files by number while they
/// start, when no code of the library may run.
fn changes(flags: usize) -> bool {
    flags as c_int & (libc::O_CREAT | libc::O_TRUNC) != 0
}

/// Whether the kernel refused to open a file for writing, as it does for anchors.
fn is_refused(fd: c_int, flags: usize) -> bool {
    fd < 0 && errno::get() == libc::EACCES && flags as c_int & libc::O_ACCMODE != libc::O_RDONLY
}

/// Whether the call returns a descriptor that may refer to any file.
fn opens(number: c_long) -> bool {
    #[cfg(target_arch = "x86_64")]
    if number == libc::SYS_open {
        return true;
    }
    matches!(number, libc::SYS_openat | libc::SYS_openat2 | libc::SYS_open_by_handle_at | libc::SYS_pidfd_getfd)
}

/// Whether the call creates a process with memory of its own.
fn forks(number: c_long, first: usize) -> bool {
    #[cfg(target_arch = "x86_64")]
    if number == libc::SYS_fork {
        return true;
    }
    let flags = match number {
        libc::SYS_clone => first as u64,
        // The flags are the first field of the structure that the argument points to.
        libc::SYS_clone3 if kernel::is_readable(first as *const c_void, size_of::<u64>()) => unsafe {
            (first as *const u64).read_unaligned()
        },
        _ => return false,
    };
    flags & libc::CLONE_VM as u64 == 0
}

/// Runs a call that creates a process without fork handlers; calls on managed files wait meanwhile.
fn forked<T: Copy + Default + PartialEq>(call: impl FnOnce() -> T) -> T {
    identity::before_fork();
    let result = call();
    if result == T::default() {
        identity::after_fork_in_child()
    } else {
        identity::after_fork_in_parent()
    }
    result
}

interpose!(
    // `_Fork`, which does not run the fork handlers.
    _Fork = |real| -> pid_t { forked(real) },
    clone = |&real,
             run: Option<Run>,
             stack: *mut c_void,
             flags: c_int,
             argument: *mut c_void,
             parent: usize,
             tls: usize,
             child: usize|
     -> c_int {
        let Some(run) = run.filter(|_| flags & libc::CLONE_VM == 0) else {
            return unsafe { real(run, stack, flags, argument, parent, tls, child) };
        };
        let mut with = Begin { run, argument };
        identity::before_fork();
        let result = unsafe { real(Some(begin), stack, flags, (&raw mut with).cast(), parent, tls, child) };
        identity::after_fork_in_parent();
        result
    },
);

/// The start of a cloned process. Lies on the stack of the parent, of which the child has a copy.
struct Begin {
    run: Run,
    argument: *mut c_void,
}

extern "C" fn begin(with: *mut c_void) -> c_int {
    identity::after_fork_in_child();
    // SAFETY: passed by `clone`.
    let Begin { run, argument } = unsafe { with.cast::<Begin>().read() };
    let code = run(argument);
    // libc would end this thread only, and a thread of this library could keep the process alive.
    // SAFETY: this library's own.
    unsafe { libc::_exit(code) }
}
