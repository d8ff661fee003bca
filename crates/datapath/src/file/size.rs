//! The logical size: query, truncate and allocate.

use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering;

use stripewise_extents::Select;
use stripewise_layout::MAX_OFFSET;

use super::LogicalFile;
use super::copy::{OpenCopy, log_lost};
use super::lock::SizeLock;
use super::overlay::CopySet;
use crate::error::{Errno, Logged, Result};
use crate::{anchor, intent};

impl LogicalFile {
    /// The current logical size in bytes: the largest size that any copy gives. Costs one fstat per
    /// object.
    ///
    /// # Errors
    /// EIO.
    pub fn size(&self) -> Result<u64> {
        let largest = self.largest()?;
        let size = match self.interrupted_truncate()? {
            Some(size) => size,
            None if self.lost().next().is_some() => match self.copies()? {
                Some(copies) => largest.max(copies.end_of_lost()?),
                None => largest,
            },
            None => largest,
        };
        self.size_hint.store(size, Ordering::Relaxed);
        Ok(size)
    }

    pub(super) fn largest(&self) -> Result<u64> {
        let sizes = self.present().map(OpenCopy::file_size);
        sizes.reduce(|one, other| Ok(one?.max(other?))).unwrap_or(Ok(0))
    }

    /// The target size of an interrupted truncate that this process saw and may not finish; `None`
    /// once another process has finished it.
    pub(super) fn interrupted_truncate(&self) -> Result<Option<u64>> {
        if !self.interrupted.load(Ordering::Acquire) {
            return Ok(None);
        }
        let pending = self.pending(self.manifest_copy())?;
        self.interrupted.store(pending.is_some(), Ordering::Release);
        Ok(pending)
    }

    /// The target size of the pending truncate recorded in `copy`, a descriptor of `ID.manifest`.
    pub(super) fn pending(&self, copy: BorrowedFd<'_>) -> Result<Option<u64>> {
        intent::read(self.sys(), copy, self.parts.anchored.text_bytes)
    }

    /// Whether a truncate was interrupted, as far as this can be seen without the size lock.
    pub(crate) fn is_interrupted(&self) -> Result<bool> {
        Ok(self.manifest().pending_truncate.is_some() || self.pending(self.manifest_copy())?.is_some())
    }

    /// Finishes a truncate whose process died. If this process may not write, behaves as if the
    /// truncate were finished.
    pub(crate) fn settle(&self) -> Result<()> {
        if self.manifest().pending_truncate.is_some() {
            self.take_over_intent()?;
        }
        self.lock_size_shared().map(drop)
    }

    /// Finishes a truncate whose process died, for a thread that other nodes wait for.
    ///
    /// # Errors
    /// EAGAIN if another process has the size lock; EROFS if this one may not write.
    pub(crate) fn try_settle(&self) -> Result<()> {
        if self.parts.writable { self.try_lock_size().map(drop) } else { Err(Errno::ROFS) }
    }

    /// Must be called before any write without the size lock. Finishes a truncate of this process
    /// that failed halfway; otherwise a process that finishes it later would cut off data written
    /// since.
    pub(super) fn finish_interrupted(&self) -> Result<()> {
        if self.interrupted.load(Ordering::Acquire) { self.settle() } else { Ok(()) }
    }

    fn note_intent(&self, lock: &SizeLock<'_>, size: u64) -> Result<()> {
        let text_bytes = self.parts.anchored.text_bytes;
        intent::note(self.sys(), lock.copy()?, self.anchor(), text_bytes, size)
    }

    /// Moves an intent that an earlier version recorded in the anchor to `ID.manifest`.
    ///
    /// # Errors
    /// EIO if this process may not write: the size stays unknown until a process that may write
    /// opens the file.
    fn take_over_intent(&self) -> Result<()> {
        if !self.parts.writable {
            return Err(Errno::IO);
        }
        let lock = self.lock_size_as_it_is()?;
        let now = anchor::read(self.sys(), self.anchor(), &self.parts.path).logged()?;
        let Some(size) = now.and_then(|now| now.manifest.pending_truncate) else { return Ok(()) };
        self.note_intent(&lock, size)?;
        anchor::blank_pending(self.sys(), self.anchor())
    }

    /// ftruncate(2). Happens entirely or not at all, even if this process is killed or the power
    /// fails.
    ///
    /// # Errors
    /// Same as ftruncate(2).
    pub fn truncate(&self, size: u64) -> Result<()> {
        if size > MAX_OFFSET {
            return Err(Errno::FBIG);
        }
        if !self.parts.writable {
            return Err(Errno::BADF);
        }
        let lock = self.lock_size()?;
        self.mark_written();
        let now = self.size()?;
        if size >= now {
            self.original().grow_to(size)?;
            self.grow_mapped()?;
        } else {
            self.refuse_if_lost()?;
            let cut = self.cut_to(&lock, size, true);
            cut.inspect_err(|_| self.interrupted.store(true, Ordering::Release))?;
        }
        self.size_hint.store(size, Ordering::Relaxed);
        Ok(())
    }

    /// Completes a truncate after its intent was recorded, by this process or by one that died. The
    /// caller holds the size lock.
    pub(super) fn finish_truncate(&self, lock: &SizeLock<'_>, size: u64) -> Result<()> {
        self.refuse_if_lost()?;
        self.cut_to(lock, size, false)
    }

    /// Cuts the file to `size`. `is_new`: the intent is not recorded yet. Other nodes are kept away
    /// from before the intent is recorded until it is removed: whoever finishes the truncate would
    /// cut off what they write.
    fn cut_to(&self, lock: &SizeLock<'_>, size: u64, is_new: bool) -> Result<()> {
        let cut = || {
            // Protocol order: the intent must be durable before the first object is cut.
            if is_new {
                self.note_intent(lock, size)?;
            }
            self.present().try_for_each(|copy| copy.cut(size))?;
            self.original().grow_to(size)?;
            // The cuts must be durable before the intent is removed, and the removal before any new
            // write.
            self.sync_objects(true)?;
            intent::forget(self.sys(), lock.copy()?)
        };
        match self.copies()? {
            Some(copies) => copies.cut_map(size, cut),
            None => cut(),
        }
    }

    /// Refuses to cut while a copy is lost: on its return, that copy would bring back the bytes cut
    /// off.
    fn refuse_if_lost(&self) -> Result<()> {
        self.lost().next().map_or(Ok(()), |lost| Err(log_lost(lost)))
    }

    /// posix_fallocate(3), or fallocate(2) with FALLOC_FL_KEEP_SIZE if `keep_size`.
    ///
    /// # Errors
    /// Same as those calls; space allocated before ENOSPC stays allocated.
    pub fn allocate(&self, offset: u64, len: u64, keep_size: bool) -> Result<()> {
        if len == 0 {
            return Err(Errno::INVAL);
        }
        let end = offset.checked_add(len).filter(|&end| end <= MAX_OFFSET).ok_or(Errno::FBIG)?;
        if !self.parts.writable {
            return Err(Errno::BADF);
        }
        self.finish_interrupted()?;
        self.mark_written();
        self.original()
            .each_extent(&(offset..end), |fd, start, bytes| self.sys().allocate(fd, start, bytes, keep_size))?;
        if keep_size { Ok(()) } else { self.grow_mapped_after(end) }
    }
}

type Cached<'f> = (&'f OpenCopy, Vec<Range<u64>>);

impl<'f> CopySet<'f> {
    /// The end of the last range that is valid only in lost copies.
    fn end_of_lost(&self) -> Result<u64> {
        let (present, mut end) = (self.present_mask(), 0);
        self.each_span(Select::Listed, 0..u64::MAX, |span| {
            if span.mask.and(present).is_empty() {
                end = span.end;
            }
        })?;
        Ok(end)
    }

    /// Cuts the objects to file size `to` by calling `cut`. The caller holds the size lock. The
    /// masks past the new size may stay in the map: every copy has zeros there.
    fn cut_map(&self, to: u64, cut: impl FnOnce() -> Result<()>) -> Result<()> {
        let guard = self.map.begin_truncate(to).logged()?;
        cut()?;
        drop(guard);
        let freed = self.cached_behind(to)?;
        if self.map.truncated(to, || self.file.largest()).logged()? {
            // Ranges that were not forgotten count as used until they are evicted.
            freed.iter().for_each(|(copy, ranges)| self.give_space(copy, ranges));
        }
        Ok(())
    }

    /// The ranges past `to` that are valid in each cache copy.
    fn cached_behind(&self, to: u64) -> Result<Vec<Cached<'f>>> {
        let mut behind: Vec<_> = self.caches().map(|copy| (copy, Vec::new())).collect();
        if behind.is_empty() {
            return Ok(behind);
        }
        self.each_span(Select::Listed, to..u64::MAX, |span| {
            for (copy, ranges) in &mut behind {
                if span.mask.contains(copy.number()) {
                    ranges.push(span.range());
                }
            }
        })?;
        Ok(behind)
    }
}
