//! What mmap needs to know.

use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::Ordering;

use stripewise_layout::MAX_OFFSET;

use super::LogicalFile;
use crate::{Errno, Result, trouble};

/// More parts than this make no sensible mapping (the kernel's default limit per process is 65530).
const EXTENTS_MAX: usize = 1 << 20;

/// A part of a file that one mmap(2) of a component covers; everything is a multiple of the page size, but for the
/// length of the last part.
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

impl LogicalFile {
    /// The parts of which a mapping of `len` bytes at `offset` (a multiple of `page`) is made.
    /// Below the size no access to them gives SIGBUS: components that end early are grown first,
    /// and again whenever this process makes the file longer.
    ///
    /// # Errors
    /// ENODEV: the stripes are not multiples of the page size, or components would have to grow and this process may
    /// not write. EOVERFLOW: more than 2^20 parts.
    pub fn map_extents(&self, offset: u64, len: u64, page: u64) -> Result<Vec<MapExtent>> {
        if page == 0 || !offset.is_multiple_of(page) || len == 0 {
            return Err(Errno::INVAL);
        }
        let end = offset.checked_add(len).filter(|&end| end <= MAX_OFFSET).ok_or(Errno::OVERFLOW)?;
        if let Some(overlay) = self.overlay() {
            self.bring_to_original(overlay, offset..end)?;
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
            let fd = self.components().fd(piece.target as usize).map_err(|error| trouble::told(&error))?;
            extents.push(MapExtent {
                fd: fd.as_raw_fd(),
                component_offset: piece.target_offset,
                file_offset: piece.file_offset,
                len: piece.len,
            });
        }
        // Through a shared mapping it may write at any time from now on.
        if self.parts.writable {
            self.mark_written();
        }
        Ok(extents)
    }

    /// After the file has become longer, with the size lock: pages of this process's mappings that
    /// are in the file now can be touched.
    pub(super) fn grow_mapped(&self) -> Result<()> {
        match self.mapped_to.load(Ordering::Acquire) {
            0 => Ok(()),
            end => self.grow_components(end, true),
        }
    }

    /// After a write that ended at file offset `end`, without the size lock: the same.
    pub(super) fn grow_mapped_after(&self, end: u64) -> Result<()> {
        if self.mapped_to.load(Ordering::Acquire) == 0 || end <= self.size_hint.load(Ordering::Relaxed) {
            return Ok(());
        }
        let _lock = self.lock_size_shared()?;
        self.grow_mapped()
    }

    /// Makes every component as long as it would be in a full file, up to file offset `end` and the
    /// file's size: a page past a component's end cannot be touched. With the size lock.
    fn grow_components(&self, end: u64, writable: bool) -> Result<()> {
        let sizes = self.components().sizes().map_err(|error| trouble::told(&error))?;
        let end = end.min(self.size()?);
        for (index, now) in sizes.into_iter().enumerate() {
            let full = self.original().layout().component_size(index as u32, end);
            if now >= full {
                continue;
            }
            if !writable {
                return Err(Errno::NODEV);
            }
            self.components().grow(index, full).map_err(|error| trouble::told(&error))?;
        }
        Ok(())
    }
}
