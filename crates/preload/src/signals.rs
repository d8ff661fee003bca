//! Signals wait while a call on a managed file runs, as they do while the kernel reads or writes a plain one. So a handler
//! never interrupts the data path in the middle of a lock, and may itself read and write managed files.

use std::mem::MaybeUninit;
use std::ptr;

use libc::sigset_t;

/// Those that a defect raises in the thread that has it: to hold them back would end the process without a word.
const OF_DEFECTS: [i32; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGABRT];

/// Holds signals back until it is dropped.
pub struct HeldBack {
    before: sigset_t,
}

impl HeldBack {
    /// From now on, in this thread.
    pub fn new() -> Self {
        let mut set = MaybeUninit::uninit();
        let mut before = MaybeUninit::uninit();
        // SAFETY: sets of this function's. The signals that libc needs for itself are never in a full set.
        unsafe {
            libc::sigfillset(set.as_mut_ptr());
            for signal in OF_DEFECTS {
                libc::sigdelset(set.as_mut_ptr(), signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), before.as_mut_ptr());
            Self { before: before.assume_init() }
        }
    }
}

impl Drop for HeldBack {
    fn drop(&mut self) {
        // SAFETY: what `new` was given.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, ptr::null_mut()) };
    }
}
