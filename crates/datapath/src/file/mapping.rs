//! Support for mmap: which extents of which objects make up a mapping.

use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::Ordering;

use stripewise_layout::MAX_OFFSET;

use super::LogicalFile;
use crate::error::{Errno, Logged, Result};

/// Maximum extents of one mapping. (The kernel's default limit per process is 65530.)
const EXTENTS_MAX: usize = 1 << 20;

/// An extent of a file that one mmap(2) of an object covers. Offsets and length are multiples of
/// the page size, except for the length of the last extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapExtent {
    /// The private descriptor of the object; it stays open while the [`LogicalFile`] lives.
    pub fd: RawFd,
    /// Offset in the object, bytes.
    pub component_offset: u64,
    /// Offset in the file, bytes.
    pub file_offset: u64,
    /// Length, bytes.
    pub len: u64,
}

impl LogicalFile {
    /// The extents that make up a mapping of `len` bytes at `offset` (a multiple of `page`). Access
    /// to them below the file size never gives SIGBUS: objects that end early are grown first, and
    /// again whenever this process makes the file longer.
    ///
    /// # Errors
    /// ENODEV: the stripes are not multiples of the page size, or objects would have to grow and
    /// this process may not write. EOVERFLOW: more than 2^20 extents.
    pub fn map_extents(&self, offset: u64, len: u64, page: u64) -> Result<Vec<MapExtent>> {
        if page == 0 || !offset.is_multiple_of(page) || len == 0 {
            return Err(Errno::INVAL);
        }
        let end = offset.checked_add(len).filter(|&end| end <= MAX_OFFSET).ok_or(Errno::OVERFLOW)?;
        if let Some(copies) = self.copies()? {
            copies.bring_to_original(offset..end)?;
        }
        self.mapped_to.fetch_max(end, Ordering::AcqRel);
        {
            let _lock = self.lock_size_shared()?;
            self.grow_components(end, self.parts.writable)?;
        }
        let mut extents = Vec::new();
        for piece in self.original().layout().pieces(offset, len) {
            let last = piece.file_offset + piece.len == end;
            let starts = piece.file_offset | piece.target_offset;
            if !starts.is_multiple_of(page) || !(last || piece.len.is_multiple_of(page)) {
                return Err(Errno::NODEV);
            }
            if extents.len() == EXTENTS_MAX {
                return Err(Errno::OVERFLOW);
            }
            let fd = self.components().fd(piece.target as usize).logged()?;
            extents.push(MapExtent {
                fd: fd.as_raw_fd(),
                component_offset: piece.target_offset,
                file_offset: piece.file_offset,
                len: piece.len,
            });
        }
        // From now on the process may write through a shared mapping at any time.
        if self.parts.writable {
            self.mark_written();
        }
        Ok(extents)
    }

    /// Called with the size lock after the file has grown: makes pages of this process's mappings
    /// accessible up to the new size.
    pub(super) fn grow_mapped(&self) -> Result<()> {
        match self.mapped_to.load(Ordering::Acquire) {
            0 => Ok(()),
            end => self.grow_components(end, true),
        }
    }

    /// Called without the size lock after a write that ended at file offset `end`: does the same as
    /// [`LogicalFile::grow_mapped`].
    pub(super) fn grow_mapped_after(&self, end: u64) -> Result<()> {
        if self.mapped_to.load(Ordering::Acquire) == 0 || end <= self.size_hint.load(Ordering::Relaxed) {
            return Ok(());
        }
        let _lock = self.lock_size_shared()?;
        self.grow_mapped()
    }

    /// Grows every object to its full size in a file that ends at the smaller of `end` and the file
    /// size: pages past the end of an object cannot be accessed. The caller holds the size lock.
    fn grow_components(&self, end: u64, writable: bool) -> Result<()> {
        let sizes = self.components().sizes().logged()?;
        let end = end.min(self.size()?);
        for (index, now) in sizes.into_iter().enumerate() {
            let full = self.original().layout().component_size(index as u32, end);
            if now >= full {
                continue;
            }
            if !writable {
                return Err(Errno::NODEV);
            }
            self.components().grow(index, full).logged()?;
        }
        Ok(())
    }
}
