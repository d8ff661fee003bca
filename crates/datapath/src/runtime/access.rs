//! Access modes of the application's descriptors of managed files: the kernel opens them read-only.
//!
//! A writable descriptor would let everything that bypasses the library (raw system calls,
//! io_uring, writes inside libc) write into the manifest. The application's side stores and
//! enforces the access mode that was asked for.

use std::os::fd::BorrowedFd;

use stripewise_sys::{Kind, Mode, OFlags, SysRef};

use crate::Result;

/// Whether these flags ask for write access.
pub(super) fn writes(flags: OFlags) -> bool {
    matches!(flags & OFlags::RWMODE, OFlags::WRONLY | OFlags::RDWR)
}

/// The flags with which the kernel opens the application's descriptor of an existing managed file:
/// read-only, without creation or truncation.
pub(super) fn public(flags: OFlags) -> OFlags {
    let flags = flags - (OFlags::CREATE | OFlags::EXCL | OFlags::TRUNC);
    if writes(flags) { (flags - OFlags::RWMODE) | OFlags::RDONLY } else { flags }
}

/// Opens an anchor whose mode denies it: adds `permission` to the mode for the duration of `open`.
///
/// # Errors
/// The errors of `open`; EPERM if this process does not belong to the owner.
pub(super) fn with_lifted_mode<T>(
    sys: &SysRef,
    anchor: BorrowedFd<'_>,
    permission: Mode,
    open: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let mode = Mode::from_raw_mode(sys.stat(anchor)?.st_mode & 0o7777);
    sys.set_mode(Kind::Open(anchor), mode | permission)?;
    let opened = open();
    sys.set_mode(Kind::Open(anchor), mode)?;
    opened
}
