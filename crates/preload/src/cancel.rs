//! `pthread_cancel`. A call that POSIX makes a cancellation point is one on a managed file, too: at its beginning, when nothing
//! is held and nothing on the stack needs to be dropped. Further in, and in our own libraries, nothing is one.
//!
//! The functions between the program's call and [`point`] have no destructors: the C library unwinds them.

use std::ffi::c_int;

use crate::inside;

const PTHREAD_CANCEL_DISABLE: c_int = 1;

unsafe extern "C-unwind" {
    fn pthread_testcancel();
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
