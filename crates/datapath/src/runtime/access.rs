//! What the application's descriptors of managed files may do in the kernel: read.
//!
//! A descriptor that could write would let everything that goes past the library (raw system calls,
//! io_uring, what libc does inside) write into the manifest. What the application asked for is for
//! its own side to remember and to obey.

use std::os::fd::BorrowedFd;

use stripewise_sys::{Kind, Mode, OFlags, SysRef};

use crate::Result;

/// Whether a descriptor with these flags may be written through.
pub(super) fn writes(flags: OFlags) -> bool {
    matches!(flags & OFlags::RWMODE, OFlags::WRONLY | OFlags::RDWR)
}

/// The flags with which the kernel opens the application's descriptor of an existing managed file.
pub(super) fn public(flags: OFlags) -> OFlags {
    let flags = flags - (OFlags::CREATE | OFlags::EXCL | OFlags::TRUNC);
    if writes(flags) { (flags - OFlags::RWMODE) | OFlags::RDONLY } else { flags }
}

/// Opens a file that its owner may not open like that: the owner gives himself `permission` for
/// this moment.
///
/// # Errors
/// Those of `open`; EPERM for others than the owner.
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
