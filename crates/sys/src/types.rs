//! Arguments and results of the interface.

use std::ffi::OsString;
use std::os::fd::BorrowedFd;
use std::path::Path;

use rustix::fs::FileType;

/// The directory that a relative path starts from; `None` for the process's working directory.
pub type Dir<'a> = Option<BorrowedFd<'a>>;

/// A buffer in the kernel's form (`struct iovec`). Only the kernel dereferences the pointer.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct IoVec {
    /// Address of the first byte.
    pub base: *mut u8,
    /// Length, bytes.
    pub len: usize,
}

// SAFETY: safe code cannot dereference the pointer.
unsafe impl Send for IoVec {}
// SAFETY: as above.
unsafe impl Sync for IoVec {}

/// Kind of an OFD lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    /// Can be held together with other shared locks. The descriptor must be open for reading.
    Shared,
    /// Excludes all other locks. The descriptor must be open for writing.
    Exclusive,
}

/// The file of a call that concerns times, mode, owner or extended attributes.
#[derive(Clone, Copy, Debug)]
pub enum Kind<'a> {
    /// An open file.
    Open(BorrowedFd<'a>),
    /// A name; symbolic links are followed.
    Named(Dir<'a>, &'a Path),
}

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The name in the directory.
    pub name: OsString,
    /// The file's type; `Unknown` if the file system does not report it.
    pub kind: FileType,
}

/// An alignment in bytes that is sufficient for direct I/O on all devices in use.
pub const DIRECT_ALIGNMENT_MOST: u64 = 4096;
