//! Background work on a file. Replicas: synchronization. Caches: write-back of dirty data, the
//! prefetch queue, and evicting to the watermark.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use stripewise_cluster::OverlayKind;
use stripewise_extents::{CopyId, Counter, Select, Span};

use super::super::OpenCopy;
use super::CopySet;
use super::copying::{CHUNK_BYTES, PIECES_MAX_IDLE};
use crate::error::{Logged, Result};

/// While applications use the file's servers, the processes take turns at write-back: after each
/// range, a process pauses for this multiple of the time it took, times the number of processes.
/// Continuous write-back costs the slow servers 5 to 13 % of their time (measured), as much as it
/// saves them when they are the bottleneck.
const MAKE_WAY: u64 = 16;
/// The watermark: if less than 1/`FREE_PART` of a cache server is free, that much is evicted.
const FREE_PART: u64 = 32;
/// Maximum queued prefetch hints considered in one step.
const WANTED: usize = 16;
/// Minimum bytes copied at once under a bandwidth limit: smaller copies would be little but request
/// overhead.
const PIECE_BYTES_MIN: u64 = 4096;

/// The progress of a file's background work in this process.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Bytes that had been written to caches at the last check.
    written: AtomicU64,
    /// Earliest time of the next copy, ns.
    next_ns: AtomicU64,
    /// Earliest time of the next copy while applications use the file's servers, ns.
    next_under_load_ns: AtomicU64,
    /// Per copy, the offset at which the next search for missing ranges starts.
    at: [AtomicU64; 8],
}

impl Progress {
    /// Allows no background work before this time.
    pub fn rest(&self, until_ns: u64) {
        self.next_ns.store(until_ns, Ordering::Relaxed);
    }
}

impl CopySet<'_> {
    /// Does one unit of background work. Returns the bytes copied or evicted; 0 if there is nothing
    /// to do now.
    ///
    /// # Errors
    /// Same as pread(2), pwrite(2) and fsync(2).
    pub(crate) fn work(&self) -> Result<u64> {
        let now_ns = self.file.sys().now_ns();
        if !self.file.is_writable()
            || now_ns < self.overlay.progress.next_ns.load(Ordering::Relaxed)
            || self.is_mapped()
        {
            return Ok(0);
        }
        let idle = self.is_idle(now_ns);
        let makes_way = now_ns < self.overlay.progress.next_under_load_ns.load(Ordering::Relaxed);
        if !idle && (makes_way || !self.is_pressed()?) {
            return Ok(0);
        }
        let done = match idle {
            true => self.work_once(PIECES_MAX_IDLE)?,
            // No request waits for a prefetch, so write back only; one range, to stay below the
            // load of the applications.
            false => self.write_back(1)?,
        };
        let took_ns = self.file.sys().now_ns().saturating_sub(now_ns);
        if !idle && done > 0 {
            let rest_ns =
                took_ns.saturating_mul(MAKE_WAY * u64::from(self.overlay.measured.processes(&self.map)));
            self.overlay.progress.next_under_load_ns.store(now_ns.saturating_add(rest_ns), Ordering::Relaxed);
        }
        Ok(done)
    }

    /// Does one unit of background work on at most `pieces` ranges, regardless of other activity.
    ///
    /// # Errors
    /// Same as [`CopySet::work`].
    pub(crate) fn work_once(&self, pieces: usize) -> Result<u64> {
        match self.overlay.copies.kind {
            OverlayKind::Replicas => self.work_on_replicas(pieces),
            OverlayKind::Cache { .. } => match self.write_back(pieces)? {
                0 => self.fetch_some(),
                bytes => Ok(bytes),
            },
        }
    }

    /// Whether no application uses the servers of the file, so that copying disturbs nothing.
    fn is_idle(&self, now_ns: u64) -> bool {
        let copies = self.file.present().map(OpenCopy::number);
        self.overlay.under_way.load(Ordering::Relaxed) == 0 && !self.overlay.activity.is_used(copies, now_ns)
    }

    /// Whether more than half of a cache's space may hold dirty data and more has been written
    /// since the last check: a process that only reads needs no space. Always false for replicas:
    /// any range may be out of sync, and close brings it in sync.
    fn is_pressed(&self) -> Result<bool> {
        let OverlayKind::Cache { capacity_per_server, .. } = self.overlay.copies.kind else { return Ok(false) };
        let mut written = 0;
        for copy in self.caches() {
            written += self.map.counted(Counter::Written(CopyId::new(copy.number()))).logged()?;
        }
        if self.overlay.progress.written.swap(written, Ordering::Relaxed) == written {
            return Ok(false);
        }
        let (mut fullest, mut clean) = (0, 0);
        for copy in self.caches() {
            fullest = fullest.max(self.used_space(copy).unwrap_or(0));
            let bytes = self.map.clean_bytes(CopyId::new(copy.number())).logged()?;
            clean += bytes / self.servers_of_space(copy);
        }
        Ok(fullest.saturating_sub(clean) > capacity_per_server / 2)
    }

    fn work_on_replicas(&self, pieces: usize) -> Result<u64> {
        for copy in self.file.present() {
            let bytes = self.work_on_copy(copy.number(), pieces)?;
            if bytes > 0 {
                self.map.count(Counter::Synchronisations, 1);
                return Ok(bytes);
            }
        }
        Ok(0)
    }

    /// Evicts clean data from a cache if space is short, else writes dirty data back.
    fn write_back(&self, pieces: usize) -> Result<u64> {
        let OverlayKind::Cache { capacity_per_server, .. } = self.overlay.copies.kind else { return Ok(0) };
        let given_up = self.evict_to_watermark(capacity_per_server);
        if given_up > 0 {
            return Ok(given_up);
        }
        let bytes = self.work_on_copy(0, pieces)?;
        if bytes > 0 {
            self.map.count(Counter::WriteBacks, 1);
        }
        Ok(bytes)
    }

    /// Copies ranges missing in copy `to`, starting where the last unit ended.
    fn work_on_copy(&self, to: usize, pieces: usize) -> Result<u64> {
        let size = self.file.size()?;
        let Some(place) = self.overlay.progress.at.get(to) else { return Ok(0) };
        let at = place.load(Ordering::Relaxed);
        let span = match self.first_missing(to, at..size)? {
            Some(span) => span,
            None => match self.first_missing(to, 0..at.min(size))? {
                Some(span) => span,
                None => return Ok(0),
            },
        };
        let pace = Pace::of(self);
        let range = self.chunk(to, &span, pace.piece(&span, size), pieces)?;
        place.store(range.end, Ordering::Relaxed);
        let Some(from) = self.source(&span) else { return Ok(0) };
        let Some(mut copier) = self.map.copier().logged()? else { return Ok(0) };
        let begun_ns = self.file.sys().now_ns();
        let bytes = self.copy_between(&mut copier, range, from, to)?;
        pace.rest(&self.overlay.progress, begun_ns, bytes);
        Ok(bytes)
    }

    /// Extends the copy of `span` to other ranges missing in `whole`, which starts where `span`
    /// does: up to `pieces` ranges in all.
    pub(super) fn chunk(&self, to: usize, span: &Span, whole: Range<u64>, pieces: usize) -> Result<Range<u64>> {
        if span.end >= whole.end {
            return Ok(whole);
        }
        let spans = self.map.list(Select::NotValidIn(CopyId::new(to)), whole.clone(), pieces).logged()?;
        Ok(whole.start..spans.last().map_or(whole.end, |last| last.end))
    }

    /// The first range that is not valid in copy `to`.
    pub(super) fn first_missing(&self, to: usize, range: Range<u64>) -> Result<Option<Span>> {
        if range.is_empty() {
            return Ok(None);
        }
        let spans = self.map.list(Select::NotValidIn(CopyId::new(to)), range, 1).logged()?;
        Ok(spans.first().copied())
    }

    /// The best copy to copy a range from.
    pub(super) fn source(&self, span: &Span) -> Option<usize> {
        let usable = self.preferred(span.mask.bits() & self.present_mask());
        self.choice().source(span.start, span.len(), usable)
    }

    fn evict_to_watermark(&self, capacity: u64) -> u64 {
        let part = capacity / FREE_PART;
        let full = |copy: &&OpenCopy| {
            copy.is_cache() && self.used_space(copy).is_some_and(|used| used + part > capacity)
        };
        let mut given_up = 0;
        for copy in self.file.present().filter(full) {
            given_up += u64::from(self.make_room(copy.number(), part));
        }
        given_up
    }

    /// Fetches one queued prefetch hint, if there is space.
    fn fetch_some(&self) -> Result<u64> {
        let (size, pace) = (self.file.size()?, Pace::of(self));
        for copy in self.caches() {
            let number = CopyId::new(copy.number());
            let wanted =
                if size == 0 { Ok(Vec::new()) } else { self.map.list(Select::Wanted(number), 0..size, WANTED) };
            for span in wanted.logged()? {
                let begun_ns = self.file.sys().now_ns();
                let bytes = self.fetch(copy.number(), &pace.piece(&span, size))?;
                if bytes > 0 {
                    pace.rest(&self.overlay.progress, begun_ns, bytes);
                    self.map.count(Counter::Fetches, 1);
                    return Ok(bytes);
                }
            }
        }
        Ok(0)
    }

    /// Fetches a range into a cache copy. Returns 0 if there is no space or another process writes
    /// there.
    pub(super) fn fetch(&self, to: usize, range: &Range<u64>) -> Result<u64> {
        let Some(span) = self.first_missing(to, range.clone())? else { return Ok(0) };
        let range = span.start..span.end.min(range.end);
        let (Some(from), Some(copy)) = (self.source(&span), self.usable(to)) else {
            return Ok(0);
        };
        if !self.take_space(copy, &range) {
            return Ok(0);
        }
        let copied = match self.map.copier().logged() {
            Ok(Some(mut copier)) => self.copy_between(&mut copier, range.clone(), from, to),
            Ok(None) => Ok(0),
            Err(error) => Err(error),
        };
        if copied != Ok(range.end - range.start) {
            self.give_space(copy, std::slice::from_ref(&range));
        }
        copied
    }
}

/// Limits the background copying of one process, so that all processes that have the file open
/// together keep to the file's limit.
struct Pace {
    /// Bytes per second; `None` for no limit.
    limit: Option<u64>,
}

impl Pace {
    fn of(copies: &CopySet<'_>) -> Self {
        let each = |all| all / copies.map.processes().unwrap_or(1).max(1) as u64;
        Self { limit: copies.overlay.copies.background.map(|all| each(all).max(1)) }
    }

    /// The range to copy together with `span`: to the end of the chunk in which `span` starts, but
    /// at most what the limit allows in a second.
    fn piece(&self, span: &Span, size: u64) -> Range<u64> {
        let most = self.limit.map_or(CHUNK_BYTES, |limit| limit.clamp(PIECE_BYTES_MIN, CHUNK_BYTES));
        let whole = chunk(span, size);
        whole.start..whole.end.min(whole.start.saturating_add(most))
    }

    /// Schedules the next copy after `bytes` were copied.
    fn rest(&self, progress: &Progress, begun_ns: u64, bytes: u64) {
        let Some(limit) = self.limit else { return };
        let pause_ns = u128::from(bytes) * 1_000_000_000 / u128::from(limit);
        progress.rest(begun_ns.saturating_add(u64::try_from(pause_ns).unwrap_or(u64::MAX)));
    }
}

/// The range from the start of `span` to the end of the chunk in which it starts.
pub(super) fn chunk(span: &Span, size: u64) -> Range<u64> {
    let end = (span.start + 1).checked_next_multiple_of(CHUNK_BYTES).unwrap_or(u64::MAX);
    span.start..end.min(size)
}
