//! `pthread_cancel`. A call that POSIX defines as a cancellation point is one on a managed file,
//! too: at its beginning, where no lock is held and no value on the stack needs to be dropped.
//! Later in the call, and in the library's dependencies, cancellation is disabled.
//!
//! The functions between the program's call and [`point`] have no destructors, because the C
//! library unwinds them.

use std::ffi::{c_char, c_int, c_long};
use std::ptr;

use stripewise_sys::{Errno, Result};

use crate::process::real::Real;
use crate::process::{errno, guard};

const PTHREAD_CANCEL_ASYNCHRONOUS: c_int = 1;

unsafe extern "C-unwind" {
    fn pthread_testcancel();
    fn pthread_setcanceltype(kind: c_int, before: *mut c_int) -> c_int;
}

/// A cancellation point: ends the thread if it was cancelled.
#[inline]
pub fn point() {
    if !guard::active() {
        // SAFETY: has no arguments.
        unsafe { pthread_testcancel() }
    }
}

/// The argument structure of openat2(2), `struct open_how`.
#[repr(C)]
pub struct OpenHow {
    /// O_ flags.
    pub flags: u64,
    /// The mode of a new file.
    pub mode: u64,
    /// RESOLVE_ flags.
    pub resolve: u64,
}

type SyscallFn = unsafe extern "C-unwind" fn(c_long, c_int, *const c_char, *const OpenHow, usize) -> c_long;

/// openat2(2), bypassing the library's own functions. A thread that waits in it (for the other end
/// of a FIFO, or the end of a lease) can be cancelled, as in libc's `open`. As there, a descriptor
/// that the kernel has just returned then stays open.
///
/// # Errors
/// The kernel's errno; EFAULT if the path cannot be read.
#[inline(never)]
pub fn openat2(dir: c_int, path: *const c_char, how: &OpenHow) -> Result<c_int> {
    // SAFETY: its type, with the arguments of this call.
    static SYSCALL: Real<SyscallFn> = unsafe { Real::new(c"syscall") };
    let (system, before, mut kind) = (SYSCALL.get(), errno::get(), 0);
    // SAFETY: only the kernel reads the path. While the thread may be cancelled at any instruction,
    // it holds no lock and no value that needs to be dropped.
    let (fd, failed) = unsafe {
        pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &raw mut kind);
        let fd = system(libc::SYS_openat2, dir, path, how, size_of::<OpenHow>());
        let failed = errno::get();
        pthread_setcanceltype(kind, ptr::null_mut());
        (fd, failed)
    };
    errno::set(before);
    if fd < 0 { Err(Errno::from_raw_os_error(failed)) } else { Ok(fd as c_int) }
}
