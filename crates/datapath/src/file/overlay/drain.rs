//! Drain and warm: copies everything to where it belongs, unless other processes keep writing
//! there.

use std::ops::{ControlFlow, Range};

use stripewise_extents::{CopyId, Select, Span};
use stripewise_policy::background::{self, PIECES_MAX, Pace};
use stripewise_sys::IoVec;
use stripewise_target::Outcome;

use super::choice::Part;
use super::copy_set::CopySet;
use super::request::{Request, Transfer};
use super::space::total;
use crate::error::{Errno, Logged, Result};
use crate::file::LogicalFile;
use crate::file::copy::{IoOptions, OpenCopy};
use crate::manifest::Copies;

/// Pause between polls for a copier of another process to finish, ns.
const LOOK_NS: u64 = 1_000_000;
/// Number of polls before a closing process leaves the rest to that copier.
const LOOKS: u32 = 10_000;
/// Maximum passes that copy nothing because other processes work on the ranges, before the rest is
/// reported as left. (A range also looks busy briefly while the state of a dead process is
/// cleared.)
const TRIES: u32 = 50;
/// Pause between such passes, ns.
const TRY_NS: u64 = 10_000_000;
/// The same maximum for a process that closes the file.
const CLOSING_TRIES: u32 = 5;

/// The result of [`LogicalFile::drain`] or [`LogicalFile::warm`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// Bytes copied.
    pub bytes: u64,
    /// Bytes not copied: other processes are writing there, copies are lost, or (when warming)
    /// there is no space.
    pub left_bytes: u64,
}

/// Progress callback: gets the bytes done and the bytes to do. It is called without any lock of the
/// file, because it may stop this process. `Break` ends the operation.
pub type Tell<'a> = &'a mut dyn FnMut(u64, u64) -> ControlFlow<()>;

/// The result of one pass over a file.
#[derive(Clone, Copy, Debug, Default)]
struct Pass {
    bytes: u64,
    left: u64,
    /// Bytes of `left` where other processes are at work.
    busy: u64,
    stopped: bool,
}

impl LogicalFile {
    /// Makes the original complete and, for a file with replicas, all copies. An interrupted drain
    /// keeps what it has copied. A file with one copy needs no drain.
    ///
    /// # Errors
    /// EBADF: this process may not write. Otherwise the errors of pread(2) and pwrite(2); EIO.
    pub fn drain(&self, tell: Tell<'_>) -> Result<Drained> {
        self.fill(self.copies_to_change(|_| true)?, |copies| copies.drain(tell))
    }

    /// Fetches the prefetch queue into the cache, as far as there is space.
    ///
    /// # Errors
    /// Same as [`LogicalFile::drain`].
    pub fn warm(&self, tell: Tell<'_>) -> Result<Drained> {
        self.fill(self.copies_to_change(Copies::is_cache)?, |copies| copies.warm(tell))
    }

    /// Syncs the file after `fill`, without a use of the map by this call.
    fn fill<'f>(
        &'f self,
        copies: Option<CopySet<'f>>,
        fill: impl FnOnce(&CopySet<'f>) -> Result<Drained>,
    ) -> Result<Drained> {
        let Some(copies) = copies else { return Ok(Drained::default()) };
        let drained = fill(&copies)?;
        drop(copies);
        self.sync(false)?;
        Ok(drained)
    }
}

impl CopySet<'_> {
    fn drain(&self, tell: Tell<'_>) -> Result<Drained> {
        let destinations = self.destinations();
        let mut total = 0;
        for &to in &destinations {
            total += self.missing_bytes(to)?;
        }
        let (mut drained, mut stopped, mut tries) = (Drained::default(), false, 0);
        loop {
            let (before, mut busy) = (drained.bytes, 0);
            drained.left_bytes = 0;
            for &to in &destinations {
                let pass = self.pass(to, u32::MAX, &mut |bytes| {
                    drained.bytes += bytes;
                    tell(drained.bytes.min(total), total)
                })?;
                drained.left_bytes += if pass.stopped { self.missing_bytes(to)? } else { pass.left };
                stopped |= pass.stopped;
                busy += pass.busy;
            }
            if drained.bytes == before && busy > 0 && tries < TRIES && !stopped {
                tries += 1;
                self.file.sys().sleep_until_ns(self.file.sys().now_ns() + TRY_NS);
                continue;
            }
            if drained.left_bytes == 0 || drained.bytes == before || stopped {
                return Ok(drained);
            }
        }
    }

    fn warm(&self, tell: Tell<'_>) -> Result<Drained> {
        let wanted = self.wanted()?;
        let total = wanted.iter().map(|(_, range)| range.end - range.start).sum();
        let (mut drained, mut flow) = (Drained::default(), ControlFlow::Continue(()));
        for (to, mut range) in wanted {
            while !range.is_empty() && flow.is_continue() {
                let end = range.end.min(range.start + background::CHUNK_BYTES);
                let bytes = self.fetch(to, &(range.start..end), |copies, chunk, from, to| {
                    copies.copy_chunk(chunk, from, to).map(Option::unwrap_or_default)
                })?;
                drained.bytes += bytes;
                drained.left_bytes += (end - range.start).saturating_sub(bytes);
                flow = tell(drained.bytes, total);
                range.start = end;
            }
            drained.left_bytes += range.end - range.start;
        }
        Ok(drained)
    }

    /// Called when the application closes the file or ends: brings replicas in sync, except for
    /// ranges that other processes are writing right now.
    pub(crate) fn bring_in_sync(&self) -> Result<()> {
        if self.overlay.copies.is_cache()
            || self.overlay.copies.lazy_close
            || !self.file.is_writable()
            || self.is_mapped()
            || self.is_sharing()
        {
            return Ok(());
        }
        for to in self.destinations() {
            for _ in 0..CLOSING_TRIES {
                let pass = self.pass(to, LOOKS, &mut |_| ControlFlow::Continue(()))?;
                if pass.busy == 0 {
                    break;
                }
                self.file.sys().sleep_until_ns(self.file.sys().now_ns() + LOOK_NS);
            }
        }
        Ok(())
    }

    fn destinations(&self) -> Vec<CopyId> {
        self.file.present().filter(|copy| !copy.is_cache()).map(OpenCopy::number).collect()
    }

    /// Copies the ranges missing in copy `to`, in one pass from the start of the file to its end.
    /// Polls at most `looks` times for other copiers.
    fn pass(&self, to: CopyId, looks: u32, tell: &mut dyn FnMut(u64) -> ControlFlow<()>) -> Result<Pass> {
        let (mut pass, mut at, mut looked) = (Pass::default(), 0, 0);
        let size = self.file.size()?;
        while let Some(span) = self.first_missing(to, at..size)? {
            let whole = span.start..Pace::UNLIMITED.piece_end(span.start).min(size);
            let chunk = self.chunk(to, &span, whole, PIECES_MAX)?;
            at = span.end.min(chunk.end);
            let len = at - span.start;
            let Some(from) = self.source(&span) else {
                pass.left += len;
                continue;
            };
            let copied = self.copy_chunk(chunk, from, to)?.map(|copied| total(&copied));
            match copied {
                Some(0) => {
                    pass.left += len;
                    pass.busy += len;
                }
                Some(bytes) => pass.bytes += bytes,
                None if looked == looks => return Ok(Pass { left: pass.left + len, ..pass }),
                None => {
                    looked += 1;
                    at = span.start;
                }
            }
            if tell(copied.unwrap_or(0)).is_break() {
                return Ok(Pass { stopped: true, ..pass });
            }
            if copied.is_none() {
                self.file.sys().sleep_until_ns(self.file.sys().now_ns() + LOOK_NS);
            }
        }
        Ok(pass)
    }

    /// Copies one chunk; `None` if another process is the copier. Returns without holding any lock,
    /// because the progress callback may stop this process.
    fn copy_chunk(&self, chunk: Range<u64>, from: CopyId, to: CopyId) -> Result<Option<Vec<Range<u64>>>> {
        match self.map.copier().logged()? {
            Some(mut copier) => self.copy_between(&mut copier, chunk, from, to, None).map(Some),
            None => Ok(None),
        }
    }

    pub(crate) fn missing_bytes(&self, copy: CopyId) -> Result<u64> {
        let mut bytes = 0;
        self.each_span(Select::NotValidIn(copy), 0..self.file.size()?, |span| bytes += span.len())?;
        Ok(bytes)
    }

    /// All ranges of the prefetch queue below the file size, with their destination copies.
    pub(super) fn wanted(&self) -> Result<Vec<(CopyId, Range<u64>)>> {
        let size = self.file.size()?;
        let mut wanted = Vec::new();
        for copy in self.caches() {
            let number = copy.number();
            self.each_span(Select::Hinted(number), 0..size, |span| wanted.push((number, span.range())))?;
        }
        Ok(wanted)
    }
}

/// Bytes of each copy compared at a time.
const COMPARED_BYTES: u64 = 4 << 20;
/// Maximum number of reported differences.
const DIFFERENCES_MAX: usize = 1000;

/// A range that should be identical in two copies but is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// From the first differing byte to the last one within the range compared.
    pub range: Range<u64>,
    /// The numbers of the two copies.
    pub copies: (usize, usize),
}

impl LogicalFile {
    /// Compares all ranges that are valid in several copies. Other processes may use the file
    /// meanwhile. `tell` gets the bytes done and the bytes to do.
    ///
    /// # Errors
    /// Same as pread(2).
    pub fn compare(&self, tell: Tell<'_>) -> Result<Vec<Difference>> {
        self.copies()?.map_or(Ok(Vec::new()), |copies| copies.compare(tell))
    }
}

impl CopySet<'_> {
    fn compare(&self, tell: Tell<'_>) -> Result<Vec<Difference>> {
        let size = self.file.size()?;
        let mut memory = Vec::new();
        let (mut differences, mut at) = (Vec::new(), 0);
        while at < size && differences.len() < DIFFERENCES_MAX {
            let end = size.min(at + COMPARED_BYTES);
            let guard = self.map.begin_read(at..end).logged()?;
            let mut found = Vec::new();
            for span in guard.spans() {
                self.compare_span(span, size, &mut memory, &mut found)?;
            }
            // Differences in ranges that were written meanwhile mean nothing.
            let mut valid = true;
            for copy in guard.spans().iter().flat_map(|span| span.mask.iter()) {
                let chosen =
                    |span: &Span| if span.mask.contains(copy) { Some(copy) } else { span.mask.lowest() };
                let still = guard.still_valid(|span| chosen(span).unwrap_or(copy));
                valid &= found.is_empty() || still.logged()?;
            }
            if valid {
                differences.extend(found);
            }
            at = end;
            if let ControlFlow::Break(()) = tell(at, size) {
                break;
            }
        }
        Ok(differences)
    }

    fn compare_span(
        &self,
        span: &Span,
        size: u64,
        memory: &mut Vec<u8>,
        found: &mut Vec<Difference>,
    ) -> Result<()> {
        let copies = span.mask.and(self.present_mask());
        let Some(first) = copies.lowest().filter(|_| copies.len() > 1) else { return Ok(()) };
        let len = span.len() as usize;
        memory.resize(2 * len, 0);
        let (one, other) = memory.split_at_mut(len);
        self.read_copy(span, first, size, one)?;
        for copy in copies.without(first).iter() {
            self.read_copy(span, copy, size, other)?;
            let differs = |index: &usize| one[*index] != other[*index];
            if let Some(start) = (0..len).find(differs) {
                let end = (start..len).rfind(differs).unwrap_or(start) + 1;
                let range = span.start + start as u64..span.start + end as u64;
                found.push(Difference { range, copies: (first.index(), copy.index()) });
            }
        }
        Ok(())
    }

    fn read_copy(&self, span: &Span, copy: CopyId, size: u64, into: &mut [u8]) -> Result<()> {
        let buffers = [IoVec { base: into.as_mut_ptr(), len: into.len() }];
        let request =
            Request { buffers: &buffers, offset: span.start, len: span.len(), options: IoOptions::default() };
        let part = [Part { start: span.start, end: span.end, copy: copy.index() }];
        // SAFETY: `into` is borrowed exclusively.
        let ended = unsafe { self.transfer_unmarked(Transfer::ReadBelow(size), &request, &part) };
        match ended.first() {
            Some(Outcome { done, .. }) if *done as u64 == span.len() => Ok(()),
            Some(Outcome { error: Some(error), .. }) => Err(*error),
            _ => Err(Errno::IO),
        }
    }
}

/// With more invalid ranges than this a copy is skipped: each range costs a sync.
const RANGES_MAX: usize = 4096;

impl LogicalFile {
    /// Frees the space of bytes that are not valid in the cache copies that hold them, and counts
    /// the used space of their servers again.
    ///
    /// # Errors
    /// EBADF: this process may not write. Otherwise the errors of fsync(2); EIO.
    pub fn tidy(&self) -> Result<()> {
        self.copies_to_change(Copies::is_cache)?.map_or(Ok(()), |copies| copies.tidy())
    }
}

impl CopySet<'_> {
    fn tidy(&self) -> Result<()> {
        for copy in self.caches() {
            self.tidy_copy(copy)?;
            for target in copy.objects().targets() {
                self.overlay.context.spaces.recount(self.overlay.base(), target)?;
            }
        }
        Ok(())
    }

    fn tidy_copy(&self, copy: &OpenCopy) -> Result<()> {
        let size = self.file.size()?;
        if size == 0 {
            return Ok(());
        }
        let invalid = Select::NotValidIn(copy.number());
        let invalid = self.map.list(invalid, 0..size, RANGES_MAX + 1).logged()?;
        if invalid.len() <= RANGES_MAX {
            for span in invalid {
                // Nothing in the range is valid, so the eviction only punches it out.
                self.evict(copy, span.range())?;
            }
        }
        Ok(())
    }
}
