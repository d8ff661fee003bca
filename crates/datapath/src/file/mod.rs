//! One managed file of this process.

use std::os::fd::RawFd;

use stripewise_sys::{IoVec, Stat, Timespec};

use crate::manifest::Manifest;
use crate::runtime::{Change, FileKey};
use crate::{Errno, Result};

/// How one read or write is to be done.
#[derive(Clone, Copy, Debug, Default)]
pub struct IoOptions {
    /// The application's descriptor has O_DIRECT: the components are read and written past the page cache where
    /// stripe widths, offset, lengths and addresses permit it, and through it where not.
    pub direct: bool,
}

/// Size and times of a managed file, computed from anchor and components.
#[derive(Clone, Copy, Debug)]
pub struct Attributes {
    /// Logical size, bytes.
    pub size_bytes: u64,
    /// 512-byte blocks of all components.
    pub blocks: u64,
    /// The latest of anchor and components.
    pub modified: Timespec,
    /// The latest of anchor and components.
    pub changed: Timespec,
    /// The latest of anchor and components.
    pub accessed: Timespec,
}

/// What lseek(2) looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whence {
    /// SEEK_DATA.
    Data,
    /// SEEK_HOLE.
    Hole,
}

/// A part of a file that one mmap(2) of a component covers; everything is a multiple of the page size, but for the
/// length of the last part of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapExtent {
    /// The component's private descriptor; it stays open while the [`LogicalFile`] lives.
    pub fd: RawFd,
    /// Offset in the component, bytes.
    pub component_offset: u64,
    /// Offset in the file, bytes.
    pub file_offset: u64,
    /// Bytes.
    pub len: u64,
}

/// A managed file: its manifest, its components, and private descriptors of them.
///
/// All methods may be called from any thread at any time. Offsets and sizes are those of the logical file. No method
/// knows the application's descriptors: who may read or write through which is for the caller to check.
#[derive(Debug)]
pub struct LogicalFile {
    key: FileKey,
    manifest: Manifest,
}

impl LogicalFile {
    /// Device and inode of the anchor.
    pub fn key(&self) -> FileKey {
        self.key
    }

    /// As it was when this process opened the file.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// preadv(2). Fewer bytes than asked: the end of the file, or an error after that many bytes. Bytes that were never
    /// written are zeros.
    ///
    /// # Safety
    /// As [`stripewise_sys::Sys::preadv`]: invalid memory gives EFAULT, but nobody else may have references to it.
    ///
    /// # Errors
    /// As preadv(2); EIO where a target is missing.
    pub unsafe fn read_at(&self, buffers: &[IoVec], offset: u64, options: IoOptions) -> Result<usize> {
        let _ = (buffers, offset, options);
        Err(Errno::NOSYS)
    }

    /// pwritev(2). The result is the length of the leading part that was written on every target. After a result the
    /// caller that must be synchronous (O_SYNC, RWF_DSYNC) calls [`LogicalFile::sync`].
    ///
    /// # Safety
    /// As [`LogicalFile::read_at`], but shared references are allowed.
    ///
    /// # Errors
    /// As pwritev(2): when nothing was written. EFBIG past 2^63-1.
    pub unsafe fn write_at(&self, buffers: &[IoVec], offset: u64, options: IoOptions) -> Result<usize> {
        let _ = (buffers, offset, options);
        Err(Errno::NOSYS)
    }

    /// Writes at the end of the file, wherever that is, as one step for every process of the node that appends.
    /// Returns (the offset where it was written, bytes).
    ///
    /// # Safety
    /// As [`LogicalFile::write_at`].
    ///
    /// # Errors
    /// As [`LogicalFile::write_at`].
    pub unsafe fn append(&self, buffers: &[IoVec], options: IoOptions) -> Result<(u64, usize)> {
        let _ = (buffers, options);
        Err(Errno::NOSYS)
    }

    /// The logical size now, bytes. One fstat per component.
    ///
    /// # Errors
    /// EIO.
    pub fn size(&self) -> Result<u64> {
        Err(Errno::NOSYS)
    }

    /// ftruncate(2).
    ///
    /// # Errors
    /// As ftruncate(2).
    pub fn truncate(&self, size: u64) -> Result<()> {
        let _ = size;
        Err(Errno::NOSYS)
    }

    /// posix_fallocate(3), or fallocate(2) with FALLOC_FL_KEEP_SIZE if `keep_size`.
    ///
    /// # Errors
    /// As those; ENOSPC leaves what was allocated so far.
    pub fn allocate(&self, offset: u64, len: u64, keep_size: bool) -> Result<()> {
        let _ = (offset, len, keep_size);
        Err(Errno::NOSYS)
    }

    /// fsync(2), or fdatasync(2) if `data_only`: everything that any process wrote before survives a power cut.
    ///
    /// # Errors
    /// As fsync(2).
    pub fn sync(&self, data_only: bool) -> Result<()> {
        let _ = data_only;
        Err(Errno::NOSYS)
    }

    /// Size, blocks and times.
    ///
    /// # Errors
    /// EIO.
    pub fn attributes(&self) -> Result<Attributes> {
        Err(Errno::NOSYS)
    }

    /// Puts [`LogicalFile::attributes`] into what the kernel said of the anchor.
    ///
    /// # Errors
    /// EIO; `stat` is unchanged then.
    pub fn correct_stat(&self, stat: &mut Stat) -> Result<()> {
        let _ = stat;
        Err(Errno::NOSYS)
    }

    /// futimens(2), fchmod(2), fchown(2): of the anchor and of all components.
    ///
    /// # Errors
    /// As those, of the anchor; then the components are unchanged.
    pub fn change(&self, change: &Change) -> Result<()> {
        let _ = change;
        Err(Errno::NOSYS)
    }

    /// Where the next data or hole at or after `offset` begins (the caller sets its descriptor's offset to it).
    /// Everything below the size counts as data.
    ///
    /// # Errors
    /// ENXIO at or past the end.
    pub fn seek(&self, whence: Whence, offset: u64) -> Result<u64> {
        let _ = (whence, offset);
        Err(Errno::NOSYS)
    }

    /// The parts of which a mapping of `len` bytes at `offset` (a multiple of `page`) is made. Below the size no access
    /// to them gives SIGBUS: components that end early are grown first.
    ///
    /// # Errors
    /// ENODEV: the stripes are not multiples of the page size. EOVERFLOW: more than 2^20 parts.
    pub fn map_extents(&self, offset: u64, len: u64, page: u64) -> Result<Vec<MapExtent>> {
        let _ = (offset, len, page);
        Err(Errno::NODEV)
    }

    /// To be called when the application closes its last descriptor of the file (and may be called at any close):
    /// brings the anchor's size and time up to date if this process wrote. Errors are not reported: close(2) has none
    /// to give for them, and inside the library the anchor's size is not used.
    pub fn closing(&self) {}
}
