//! The limit of the size of files, RLIMIT_FSIZE.

use rustix::process::{Resource, getrlimit};
use stripewise_sys::{Errno, Result};

/// Whether RLIMIT_FSIZE permits a file of this size.
pub fn is_below_limit(size: u64) -> bool {
    getrlimit(Resource::Fsize).current.is_none_or(|limit| size <= limit)
}

/// Number of bytes that RLIMIT_FSIZE leaves at the offset. At the limit it sends SIGXFSZ and fails,
/// as the kernel does.
pub fn room_below_limit(offset: u64) -> Result<u64> {
    let Some(limit) = getrlimit(Resource::Fsize).current else { return Ok(u64::MAX) };
    if offset < limit { Ok(limit - offset) } else { Err(exceeded()) }
}

/// Refuses, as the kernel does, to extend a file of `now()` bytes beyond RLIMIT_FSIZE. `now` is
/// called only if `size` is above the limit.
/// Errors: EFBIG, with SIGXFSZ. The error of `now`.
pub fn check_limit(size: u64, now: impl FnOnce() -> Result<u64>) -> Result<()> {
    let Some(limit) = getrlimit(Resource::Fsize).current else { return Ok(()) };
    if size > limit && size > now()? { Err(exceeded()) } else { Ok(()) }
}

fn exceeded() -> Errno {
    // SAFETY: no memory is involved.
    unsafe { libc::raise(libc::SIGXFSZ) };
    Errno::FBIG
}
