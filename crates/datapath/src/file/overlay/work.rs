//! Background work on a file. Replicas: synchronization. Caches: write-back of dirty data, the
//! prefetch queue, and evicting to the watermark.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use stripewise_cluster::OverlayKind;
use stripewise_extents::{CopyId, Counter, Map, Select, Span};
use stripewise_policy::background::{
    Pace, Pauses, Pressure, Step, Unit, WANTED_MAX, free_bytes, lacks_space, pause_under_load_ns,
};

use super::super::LogicalFile;
use super::Overlay;
use crate::{Result, trouble};

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

    fn pauses(&self) -> Pauses {
        let load = |time: &AtomicU64| time.load(Ordering::Relaxed);
        Pauses { next_ns: load(&self.next_ns), next_under_load_ns: load(&self.next_under_load_ns) }
    }

    /// Schedules the next copy after `bytes` were copied.
    fn copied(&self, pace: Pace, begun_ns: u64, bytes: u64) {
        if let Some(pause_ns) = pace.pause_ns(bytes) {
            self.rest(begun_ns.saturating_add(pause_ns));
        }
    }
}

impl LogicalFile {
    /// Does one unit of background work. Returns the bytes copied or evicted; 0 if there is nothing
    /// to do now.
    ///
    /// # Errors
    /// Same as pread(2), pwrite(2) and fsync(2).
    pub(crate) fn work(&self, overlay: &Overlay) -> Result<u64> {
        let Some(map) = overlay.slot.known().filter(|_| self.is_writable()) else { return Ok(0) };
        let now_ns = self.sys().now_ns();
        let step = Step::at(now_ns, overlay.progress.pauses(), self.is_idle(overlay, now_ns));
        if step == Step::Rest || overlay.is_mapped(&map) {
            return Ok(0);
        }
        if step == Step::Relieve && !self.is_pressed(overlay, &map)? {
            return Ok(0);
        }
        let done = self.work_once(overlay, &map, step, step.pieces_max())?;
        if step == Step::Relieve && done > 0 {
            let took_ns = self.sys().now_ns().saturating_sub(now_ns);
            let pause_ns = pause_under_load_ns(took_ns, overlay.measured.processes(&map));
            overlay.progress.next_under_load_ns.store(now_ns.saturating_add(pause_ns), Ordering::Relaxed);
        }
        Ok(done)
    }

    /// Does the first unit of a step that finds something to do, on at most `pieces` ranges,
    /// regardless of other activity.
    ///
    /// # Errors
    /// Same as [`LogicalFile::work`].
    pub(crate) fn work_once(&self, overlay: &Overlay, map: &Map, step: Step, pieces: usize) -> Result<u64> {
        for unit in step.units(overlay.copies.kind, overlay.manifest.all_copies().count()) {
            let (bytes, counter) = match unit {
                Unit::KeepFree => (self.keep_some_free(overlay, map), None),
                Unit::Copy { to } if self.copy(to).is_none() => continue,
                Unit::Copy { to } => {
                    let counter =
                        if overlay.copies.is_cache() { Counter::WriteBacks } else { Counter::Synchronisations };
                    (self.work_on_copy(overlay, map, to, pieces)?, Some(counter))
                }
                Unit::Fetch => (self.fetch_some(overlay, map)?, Some(Counter::Fetches)),
            };
            if bytes > 0 {
                counter.into_iter().for_each(|counter| map.count(counter, 1));
                return Ok(bytes);
            }
        }
        Ok(0)
    }

    /// Whether no application uses the servers of the file, so that copying disturbs nothing.
    fn is_idle(&self, overlay: &Overlay, now_ns: u64) -> bool {
        let copies = self.present().map(super::super::OpenCopy::number);
        overlay.under_way.load(Ordering::Relaxed) == 0 && !overlay.activity.is_used(copies, now_ns)
    }

    /// Whether a cache is under pressure and more has been written since the last check: a process
    /// that only reads needs no space. Always false for replicas: any range may be out of sync, and
    /// close brings it in sync.
    fn is_pressed(&self, overlay: &Overlay, map: &Map) -> Result<bool> {
        let OverlayKind::Cache { capacity_per_server, .. } = overlay.copies.kind else { return Ok(false) };
        let mut written = 0;
        for copy in self.present().filter(|copy| copy.is_cache()) {
            let counted = map.counted(Counter::Written(CopyId::new(copy.number())));
            written += counted.map_err(|error| trouble::map_told(&error))?;
        }
        if overlay.progress.written.swap(written, Ordering::Relaxed) == written {
            return Ok(false);
        }
        let mut pressure = Pressure::default();
        for copy in self.present().filter(|copy| copy.is_cache()) {
            let clean = map.clean_bytes(CopyId::new(copy.number()));
            let clean = clean.map_err(|error| trouble::map_told(&error))?;
            let fullest = self.used_space(overlay, copy).unwrap_or(0);
            pressure.add(fullest, clean, overlay.servers_of_space(copy));
        }
        Ok(pressure.is_high(capacity_per_server))
    }

    /// Copies ranges missing in copy `to`, starting where the last unit ended.
    fn work_on_copy(&self, overlay: &Overlay, map: &Map, to: usize, pieces: usize) -> Result<u64> {
        let size = self.size()?;
        let Some(place) = overlay.progress.at.get(to) else { return Ok(0) };
        let at = place.load(Ordering::Relaxed);
        let span = match self.first_missing(map, to, at..size)? {
            Some(span) => span,
            None => match self.first_missing(map, to, 0..at.min(size))? {
                Some(span) => span,
                None => return Ok(0),
            },
        };
        let pace = overlay.pace(map);
        let whole = span.start..pace.piece_end(span.start).min(size);
        let range = self.chunk(map, to, &span, whole, pieces)?;
        place.store(range.end, Ordering::Relaxed);
        let Some(from) = self.source(overlay, map, &span) else { return Ok(0) };
        let Some(mut copier) = map.copier().map_err(|error| trouble::map_told(&error))? else { return Ok(0) };
        let begun_ns = self.sys().now_ns();
        let bytes = self.copy_between(&mut copier, range, from, to)?;
        overlay.progress.copied(pace, begun_ns, bytes);
        Ok(bytes)
    }

    /// Extends the copy of `span` to other ranges missing in `whole`, which starts where `span`
    /// does: up to `pieces` ranges in all.
    pub(super) fn chunk(
        &self,
        map: &Map,
        to: usize,
        span: &Span,
        whole: Range<u64>,
        pieces: usize,
    ) -> Result<Range<u64>> {
        if span.end >= whole.end {
            return Ok(whole);
        }
        let spans = map.list(Select::NotValidIn(CopyId::new(to)), whole.clone(), pieces);
        let spans = spans.map_err(|error| trouble::map_told(&error))?;
        Ok(whole.start..spans.last().map_or(whole.end, |last| last.end))
    }

    /// The first range that is not valid in copy `to`.
    pub(super) fn first_missing(&self, map: &Map, to: usize, range: Range<u64>) -> Result<Option<Span>> {
        if range.is_empty() {
            return Ok(None);
        }
        let spans = map.list(Select::NotValidIn(CopyId::new(to)), range, 1);
        Ok(spans.map_err(|error| trouble::map_told(&error))?.first().copied())
    }

    /// The best copy to copy a range from.
    pub(super) fn source(&self, overlay: &Overlay, map: &Map, span: &Span) -> Option<usize> {
        let usable = overlay.preferred(span.mask.bits() & self.present_mask());
        overlay.choice(map).source(span.start, span.len(), usable)
    }

    fn keep_some_free(&self, overlay: &Overlay, map: &Map) -> u64 {
        let OverlayKind::Cache { capacity_per_server: capacity, .. } = overlay.copies.kind else { return 0 };
        let full = |copy: &&super::super::OpenCopy| {
            copy.is_cache() && self.used_space(overlay, copy).is_some_and(|used| lacks_space(used, capacity))
        };
        let mut given_up = 0;
        for copy in self.present().filter(full) {
            given_up += u64::from(self.make_room(overlay, map, copy.number(), free_bytes(capacity)));
        }
        given_up
    }

    /// Fetches one queued prefetch hint, if there is space.
    fn fetch_some(&self, overlay: &Overlay, map: &Map) -> Result<u64> {
        let (size, pace) = (self.size()?, overlay.pace(map));
        for copy in self.present().filter(|copy| copy.is_cache()) {
            let number = CopyId::new(copy.number());
            let wanted =
                if size == 0 { Ok(Vec::new()) } else { map.list(Select::Wanted(number), 0..size, WANTED_MAX) };
            for span in wanted.map_err(|error| trouble::map_told(&error))? {
                let begun_ns = self.sys().now_ns();
                let bytes = self.fetch(
                    overlay,
                    map,
                    copy.number(),
                    &(span.start..pace.piece_end(span.start).min(size)),
                )?;
                if bytes > 0 {
                    overlay.progress.copied(pace, begun_ns, bytes);
                    return Ok(bytes);
                }
            }
        }
        Ok(0)
    }

    /// Fetches a range into a cache copy. Returns 0 if there is no space or another process writes
    /// there.
    pub(super) fn fetch(&self, overlay: &Overlay, map: &Map, to: usize, range: &Range<u64>) -> Result<u64> {
        let Some(span) = self.first_missing(map, to, range.clone())? else { return Ok(0) };
        let range = span.start..span.end.min(range.end);
        let (Some(from), Some(copy)) = (self.source(overlay, map, &span), self.usable(overlay, to)) else {
            return Ok(0);
        };
        if !self.take_space(overlay, copy, &range) {
            return Ok(0);
        }
        let copied = match map.copier().map_err(|error| trouble::map_told(&error)) {
            Ok(Some(mut copier)) => self.copy_between(&mut copier, range.clone(), from, to),
            Ok(None) => Ok(0),
            Err(error) => Err(error),
        };
        if copied != Ok(range.end - range.start) {
            self.give_space(overlay, copy, std::slice::from_ref(&range));
        }
        copied
    }
}

impl Overlay {
    /// The pace of this process: all processes that have the file open together keep to its limit.
    fn pace(&self, map: &Map) -> Pace {
        Pace::new(self.copies.background, map.processes().unwrap_or(1) as u64)
    }
}
