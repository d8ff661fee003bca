//! Support for mmap: which extents of which objects make up a mapping.

use std::ops::Range;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::Ordering;

use stripewise_extents::{Copier, CopyId, Select, Span};
use stripewise_layout::MAX_OFFSET;
use stripewise_policy::background::CHUNK_BYTES;
use stripewise_sys::asking;

use super::LogicalFile;
use super::overlay::{CopySet, total};
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
    pub object_offset: u64,
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
            self.grow_objects(end, self.parts.writable)?;
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
            let fd = self.objects().fd(piece.target as usize).logged()?;
            extents.push(MapExtent {
                fd: fd.as_raw_fd(),
                object_offset: piece.target_offset,
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
            end => self.grow_objects(end, true),
        }
    }

    /// After a write that ended at file offset `end`, and without the size lock: makes pages of
    /// this process's mappings accessible up to the file's new size.
    ///
    /// # Errors
    /// Those of ftruncate(2) on an object.
    pub fn grow_mapped_after(&self, end: u64) -> Result<()> {
        if !self.outgrows_mapping(end) {
            return Ok(());
        }
        let _lock = self.lock_size_shared()?;
        self.grow_mapped()
    }

    /// Whether a write that ended at file offset `end` may have made the file longer while this
    /// process has it mapped.
    #[inline]
    pub fn outgrows_mapping(&self, end: u64) -> bool {
        self.mapped_to.load(Ordering::Acquire) != 0 && end > self.size_hint.load(Ordering::Relaxed)
    }

    /// Grows every object to its full size in a file that ends at the smaller of `end` and the file
    /// size: pages past the end of an object cannot be accessed. The caller holds the size lock.
    fn grow_objects(&self, end: u64, writable: bool) -> Result<()> {
        let sizes = self.objects().sizes().logged()?;
        let end = end.min(self.size()?);
        for (index, now) in sizes.into_iter().enumerate() {
            let full = self.original().layout().object_size(index as u32, end);
            if now >= full {
                continue;
            }
            if !writable {
                return Err(Errno::NODEV);
            }
            self.objects().grow(index, full).logged()?;
        }
        Ok(())
    }
}

/// Maximum ranges listed at a time.
const RANGES: usize = 64;
/// Maximum wait for other processes without any progress, and the pause between two attempts, ns.
const PATIENCE_NS: u64 = 30_000_000_000;
const PAUSE_NS: u64 = 100_000;

/// Limits the wait for other processes, which may be stopped. The limit does not apply while this
/// process's own background thread is at work: that thread is not stopped as long as this one runs,
/// however slow the machine is.
struct Patience<'f> {
    copies: &'f CopySet<'f>,
    until_ns: u64,
}

impl<'f> Patience<'f> {
    fn new(copies: &'f CopySet<'f>) -> Self {
        Self { copies, until_ns: copies.file.sys().now_ns() + PATIENCE_NS }
    }

    fn renew(&mut self) {
        *self = Self::new(self.copies);
    }

    /// Pauses before the next attempt. EAGAIN: no progress within the limit. EINTR: a signal
    /// arrived.
    fn pause(&self) -> Result<()> {
        if asking::is_interrupted() {
            return Err(Errno::INTR);
        }
        let now_ns = self.copies.file.sys().now_ns();
        if now_ns >= self.until_ns && !self.copies.overlay.turn.is_working() {
            return Err(Errno::AGAIN);
        }
        self.copies.file.sys().sleep_until_ns(now_ns + PAUSE_NS);
        Ok(())
    }
}

impl CopySet<'_> {
    /// Makes the original complete, and `range` valid in the original alone. From then on, until
    /// this process leaves the file, all processes write to the original, and no process copies or
    /// evicts.
    ///
    /// # Errors
    /// ENODEV: this process may not write, and the original is incomplete. EINTR: a signal ended a
    /// wait. EAGAIN: a process that copies seems to be stopped. Otherwise the errors of pwrite(2).
    fn bring_to_original(&self, range: Range<u64>) -> Result<()> {
        if !self.file.is_writable() {
            return self.map_read_only();
        }
        if !self.overlay.has_mapped() || !self.dirty(1)?.is_empty() {
            self.begin_mapping()?;
        }
        self.make_alone(range)
    }

    fn map_read_only(&self) -> Result<()> {
        self.map.set_mapped(true).logged()?;
        if self.dirty(1)?.is_empty() {
            self.overlay.mapped.store(true, Ordering::Release);
            return Ok(());
        }
        if !self.overlay.has_mapped() {
            self.map.set_mapped(false).logged()?;
        }
        Err(Errno::NODEV)
    }

    fn begin_mapping(&self) -> Result<()> {
        if !self.overlay.has_mapped() {
            self.write_back_once()?;
        }
        // Another process that begins a mapping waits here: two of them would keep each other from
        // copying.
        let patience = Patience::new(self);
        let mut copier = loop {
            match self.map.copier().logged()? {
                Some(copier) => break copier,
                None => patience.pause()?,
            }
        };
        self.map.set_mapped(true).logged()?;
        // All writes go to the original from here on.
        copier.copies_for_own_mapping();
        let brought = self.bring_rest(&mut copier);
        match brought {
            Ok(()) => self.overlay.mapped.store(true, Ordering::Release),
            // Earlier mappings of this process still need the flag.
            Err(_) if self.overlay.has_mapped() => {}
            Err(_) => self.map.set_mapped(false).logged()?,
        }
        brought
    }

    /// The first `max` ranges below the file size that are not valid in the original.
    fn dirty(&self, max: usize) -> Result<Vec<Span>> {
        let size = self.file.size()?;
        self.dirty_in(0..size, max)
    }

    fn dirty_in(&self, range: Range<u64>, max: usize) -> Result<Vec<Span>> {
        if range.is_empty() {
            return Ok(Vec::new());
        }
        self.map.list(Select::NotValidIn(CopyId::ORIGINAL), range, max).logged()
    }

    /// Copies the dirty ranges to the original in one pass over the file, so that little remains
    /// for the time when no other process may copy. Skips ranges that other processes are writing.
    fn write_back_once(&self) -> Result<()> {
        let (mut at, size) = (0, self.file.size()?);
        loop {
            let dirty = self.dirty_in(at..size, RANGES)?;
            let Some(last) = dirty.last() else { return Ok(()) };
            at = last.end;
            if let Some(mut copier) = self.map.copier().logged()? {
                self.copy_dirty(&mut copier, &dirty)?;
            }
        }
    }

    /// Copies dirty ranges to the original, except where other processes are writing. Returns
    /// bytes.
    fn copy_dirty(&self, copier: &mut Copier<'_>, dirty: &[Span]) -> Result<u64> {
        let mut bytes = 0;
        for span in dirty {
            let Some(from) = self.preferred(span.mask.and(self.present_mask())).lowest() else {
                return Err(self.log_lost(span));
            };
            let mut at = span.start;
            while at < span.end {
                let end = span.end.min(at + CHUNK_BYTES);
                bytes += total(&self.copy_between(copier, at..end, from, CopyId::ORIGINAL, None)?);
                at = end;
            }
        }
        Ok(bytes)
    }

    /// Makes the original complete while all processes write to it: the dirty ranges only become
    /// fewer.
    fn bring_rest(&self, copier: &mut Copier<'_>) -> Result<()> {
        let mut patience = Patience::new(self);
        loop {
            let size = self.file.size()?;
            let dirty = self.dirty_in(0..size, RANGES)?;
            if dirty.is_empty() {
                return self.bring_what_is_cut_off(size);
            }
            match self.copy_dirty(copier, &dirty)? {
                // Other processes are writing there, which makes the original valid too.
                0 => patience.pause()?,
                _ => patience.renew(),
            }
        }
    }

    /// Makes ranges past the file size valid in the original. They were cut off by a truncate and
    /// are zeros in every copy, but until they are forgotten the map may list them as valid in
    /// another copy alone, and no process forgets them while the file is mapped. The file may grow
    /// over them again.
    fn bring_what_is_cut_off(&self, size: u64) -> Result<()> {
        loop {
            let dirty = self.dirty_in(size..u64::MAX, RANGES)?;
            if dirty.is_empty() {
                return Ok(());
            }
            dirty.iter().try_for_each(|span| self.make_alone(span.range()))?;
        }
    }

    /// Makes `range` valid in the original alone, also where other copies are valid too: stores
    /// through the mapping change only the original. Past the file size all copies are identical.
    fn make_alone(&self, range: Range<u64>) -> Result<()> {
        let mut guard = self.map.begin_write(range.clone()).logged()?;
        guard.wrote(range, CopyId::ORIGINAL).logged()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::setup::Setup;
    use crate::tests::support::{CREATE, Stage, open};

    #[test]
    fn only_others_try_the_patience() {
        let stage = Stage::of(&Setup::replicas());
        let opened = open(&stage.runtime(), &stage.path("f"), CREATE).unwrap();
        let copies = opened.file.copies().unwrap().unwrap();
        let patience = Patience { copies: &copies, until_ns: 0 };
        let working = copies.overlay.turn.begin().unwrap();
        assert_eq!(patience.pause(), Ok(()), "its own thread is slow on a busy machine");
        drop(working);
        assert_eq!(patience.pause(), Err(Errno::AGAIN));
    }
}
