//! Memory shared between processes through a file.

use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::{Errno, Result};

/// Mapped memory that is shared with the kernel or other processes; unmapped on drop.
#[derive(Debug)]
pub(crate) struct Mapping {
    pub base: NonNull<u8>,
    len: usize,
}

impl Mapping {
    /// Maps `len` bytes of a file at `offset`, readable and writable.
    pub fn new(fd: BorrowedFd<'_>, len: usize, offset: u64, flags: MapFlags) -> Result<Self> {
        Self::protected(fd, len, offset, flags, ProtFlags::READ | ProtFlags::WRITE)
    }

    fn protected(
        fd: BorrowedFd<'_>,
        len: usize,
        offset: u64,
        flags: MapFlags,
        protection: ProtFlags,
    ) -> Result<Self> {
        // SAFETY: a new mapping at an address that the kernel chooses.
        let base =
            unsafe { mmap(std::ptr::null_mut(), len, protection, MapFlags::SHARED | flags, fd, offset)? };
        Ok(Self { base: NonNull::new(base.cast()).ok_or(Errno::NOMEM)?, len })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and no reference outlives self.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
    }
}

/// Whether the kernel would map the open, readable file shared: not if it keeps no pages of it.
pub(crate) fn has_pages(fd: BorrowedFd<'_>) -> Result<bool> {
    match Mapping::protected(fd, 1, 0, MapFlags::empty(), ProtFlags::READ) {
        Ok(_) => Ok(true),
        Err(Errno::NODEV) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// A shared, writable mapping of the beginning of a file; unmapped on drop. A forked child inherits
/// it with the same memory.
#[derive(Debug)]
pub struct SharedMap {
    memory: Mapping,
    words: usize,
}

// SAFETY: the memory is accessed as atomics only.
unsafe impl Send for SharedMap {}
// SAFETY: as above.
unsafe impl Sync for SharedMap {}

impl SharedMap {
    /// Maps the first `words` 64-bit words of a file that is at least that long. An access beyond
    /// the end of the file would raise SIGBUS, so a file that may be shortened must not be mapped.
    pub(crate) fn new(fd: BorrowedFd<'_>, words: usize) -> Result<Self> {
        let memory = Mapping::new(fd, words * size_of::<AtomicU64>(), 0, MapFlags::empty())?;
        Ok(Self { memory, words })
    }

    /// The words. Other processes may change them at any time.
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: mapped, page-aligned and `words` long, until drop.
        unsafe { std::slice::from_raw_parts(self.memory.base.as_ptr().cast(), self.words) }
    }
}
