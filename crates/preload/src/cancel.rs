//! `pthread_cancel`. A call that POSIX makes a cancellation point is one on a managed file, too: at
//! its beginning, when nothing is held and nothing on the stack needs to be dropped. Further in,
//! and in our own libraries, nothing is one.
//!
//! The functions between the program's call and [`point`] have no destructors: the C library
//! unwinds them.

use std::ffi::{c_char, c_int, c_long};
use std::ptr;

use stripewise_sys::{Errno, Result};

use crate::real::Real;
use crate::{errno, inside};

const PTHREAD_CANCEL_DISABLE: c_int = 1;
const PTHREAD_CANCEL_ASYNCHRONOUS: c_int = 1;

unsafe extern "C-unwind" {
    fn pthread_testcancel();
    fn pthread_setcanceltype(kind: c_int, before: *mut c_int) -> c_int;
}

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

/// Where a thread that was cancelled ends.
#[inline]
pub fn point() {
    if !inside::active() {
        // SAFETY: takes nothing.
        unsafe { pthread_testcancel() }
    }
}

/// What openat2(2) takes.
#[repr(C)]
pub struct OpenHow {
    /// O_RDONLY, ...
    pub flags: u64,
    /// For O_CREAT.
    pub mode: u64,
    /// RESOLVE_NO_SYMLINKS, ...
    pub resolve: u64,
}

type SyscallFn = unsafe extern "C-unwind" fn(c_long, c_int, *const c_char, *const OpenHow, usize) -> c_long;

/// openat2(2), past our own. A thread that waits in there (for the other end of a FIFO, the end of
/// a lease) can be cancelled, as in libc's `open`; as there, a descriptor that it has just got
/// stays open then.
///
/// # Errors
/// What the kernel says; EFAULT for a path that cannot be read.
#[inline(never)]
pub fn openat2(dir: c_int, path: *const c_char, how: &OpenHow) -> Result<c_int> {
    // SAFETY: its type, with the arguments of this call.
    static SYSCALL: Real<SyscallFn> = unsafe { Real::new(c"syscall") };
    let (system, before, mut kind) = (SYSCALL.get(), errno::get(), 0);
    // SAFETY: only the kernel follows the path. Where the thread may be cancelled at any
    // instruction, nothing is held and no value has a destructor.
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

/// The thread is not cancelled, until this is dropped.
pub struct Held(c_int);

impl Held {
    /// From now on.
    #[inline]
    pub fn new() -> Self {
        let mut before = 0;
        // SAFETY: of the calling thread.
        unsafe { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &raw mut before) };
        Self(before)
    }
}

impl Drop for Held {
    #[inline]
    fn drop(&mut self) {
        let mut now = 0;
        // SAFETY: what `new` was given.
        unsafe { pthread_setcancelstate(self.0, &raw mut now) };
    }
}
