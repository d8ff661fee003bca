//! Converts Rust results to C's convention: `-1` with `errno` for a failure. Success leaves `errno`
//! unchanged.

use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use stripewise_sys::{Errno, Result};

use crate::process::guard::{Blocked, SignalForkGuard};
pub use crate::process::kernel::{errno as get, set_errno as set};

/// The value of a C return type that stands for a failure.
pub trait Failure {
    /// The value after which the caller reads errno.
    const FAILED: Self;
}

macro_rules! failures {
    ($($type:ty = $value:expr),+ $(,)?) => {
        $(impl Failure for $type {
            const FAILED: Self = $value;
        })+
    };
}

failures!(
    c_int = -1,
    isize = -1,
    i64 = -1,
    // `mmap` and `fopen`.
    *mut c_void = libc::MAP_FAILED,
    *mut libc::FILE = std::ptr::null_mut(),
);

/// Runs this library's version of a call while signals wait. An error becomes errno and
/// [`Failure::FAILED`], a panic becomes EIO (and is logged once). Success leaves errno unchanged.
pub fn serve<T: Failure>(body: impl FnOnce() -> Result<T>) -> T {
    let _guard = SignalForkGuard::new();
    answer(body)
}

/// As [`serve`], for calls that may wait for other processes and can be repeated. A signal ends the
/// wait. If all its handlers have SA_RESTART, the call is repeated after they have run.
pub fn serve_interruptible<T: Failure>(body: impl FnMut() -> Result<T>) -> T {
    serve_interruptible_after(None, body)
}

/// As [`serve_interruptible`], for a call in which signals wait already.
pub fn serve_interruptible_after<T: Failure>(
    mut signals: Option<Blocked>,
    mut body: impl FnMut() -> Result<T>,
) -> T {
    loop {
        let guard = SignalForkGuard::interruptible(signals.take());
        let result = caught(&mut body);
        let again = matches!(result, Err(Errno::INTR)) && guard.is_to_be_repeated();
        drop(guard);
        if !again {
            return result.unwrap_or_else(fail);
        }
    }
}

/// As [`serve`], for calls that wait as long as the application asks, or that touch no managed
/// file: signals are not blocked.
pub fn answer<T: Failure>(body: impl FnOnce() -> Result<T>) -> T {
    caught(body).unwrap_or_else(fail)
}

/// As [`serve`], for calls that return the error number itself and do not set errno
/// (`posix_fallocate`).
pub fn serve_code(body: impl FnOnce() -> Result<()>) -> c_int {
    guarded(body).err().map_or(0, Errno::raw_os_error)
}

/// Sets errno to this error and returns [`Failure::FAILED`].
pub fn fail<T: Failure>(error: Errno) -> T {
    set(error.raw_os_error());
    T::FAILED
}

/// As [`caught`], while signals wait.
pub fn guarded<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    let _guard = SignalForkGuard::new();
    caught(body)
}

/// Runs `body` and leaves errno unchanged. A panic in it becomes EIO; the panic hook logs it.
pub fn caught<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    // A panic can leave only the state of one call on one file inconsistent. Its locks do not
    // propagate poisoning.
    let before = get();
    let result = catch_unwind(AssertUnwindSafe(body)).unwrap_or(Err(Errno::IO));
    set(before);
    result
}

/// Runs `body`, which leaves errno unchanged. A panic in it becomes the default value.
#[inline]
pub fn unless_panicking<T: Default>(body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_default()
}

/// As [`caught`], for work without a result that C would see. A panic becomes the default value.
pub fn quietly<T: Default>(body: impl FnOnce() -> T) -> T {
    caught(|| Ok(body())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An errno that code inside a call leaves behind, as LMDB or malloc may.
    const OF_INSIDE: c_int = libc::EDOM;
    const BEFORE: c_int = libc::ERANGE;

    #[test]
    fn a_success_leaves_errno_and_a_failure_sets_it() {
        set(BEFORE);
        let call = |result: Result<c_int>| {
            answer(|| {
                set(OF_INSIDE);
                result
            })
        };
        assert_eq!((call(Ok(3)), get()), (3, BEFORE));
        assert_eq!((call(Err(Errno::NOSPC)), get()), (-1, libc::ENOSPC));
        assert_eq!((serve_code(|| Err(Errno::NOSPC)), get()), (libc::ENOSPC, libc::ENOSPC));
    }

    #[test]
    fn a_panic_is_eio() {
        let panics = || answer(|| -> Result<c_int> { panic!("a defect") });
        let ended = std::panic::catch_unwind(|| (panics(), get()));
        assert_eq!(ended.ok(), Some((-1, libc::EIO)));
    }
}
