//! Background work on a file. Replicas: synchronization. Caches: write-back of dirty data, the
//! prefetch queue, and evicting to the watermark.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use stripewise_cluster::OverlayKind;
use stripewise_extents::{CopyId, Counter, Select, Span};
use stripewise_policy::background::{
    Pace, Pressure, Step, Unit, WANTED_MAX, free_bytes, lacks_space, pause_under_load_ns,
};

use super::background::{Progress, Work};
use super::copy_set::CopySet;
use super::request::Yields;
use super::space::{total, without};
use super::state::Overlay;
use crate::error::{Logged, Result};
use crate::file::LogicalFile;
use crate::file::copy::OpenCopy;

/// Pause of a file after its background work failed.
const AFTER_ERROR_NS: u64 = 1_000_000_000;

impl LogicalFile {
    /// Copies and evictions of a file with several copies.
    pub(crate) fn as_copying(self: &Arc<Self>) -> Option<Work> {
        self.as_work(|file, copies| {
            file.begin_serving(copies);
            copies.work().unwrap_or_else(|_| {
                copies.overlay.progress.rest(file.sys().now_ns() + AFTER_ERROR_NS);
                0
            })
        })
    }

    /// Lets other nodes be served from now on, if there can be any.
    fn begin_serving(self: &Arc<Self>, copies: &CopySet<'_>) {
        let Overlay { is_served, context, .. } = copies.overlay;
        if !copies.map.has_session() || is_served.swap(true, Ordering::Relaxed) {
            return;
        }
        let serving = self.as_work(|_, copies| {
            // What fails is tried again after a while, and fails in requests as well.
            let _ = copies.serve_other_nodes();
            0
        });
        context.background.iter().zip(serving).for_each(|(background, work)| background.serving.add(work));
    }

    /// Background work on the file. Between two units it holds no reference to the file.
    fn as_work(self: &Arc<Self>, unit: fn(&Arc<Self>, &CopySet<'_>) -> u64) -> Option<Work> {
        let (file, turn) = (Arc::downgrade(self), self.overlay()?.turn.clone());
        Some(Arc::new(move || {
            if file.strong_count() == 0 {
                return None;
            }
            let Some(_turn) = turn.begin() else { return Some(0) };
            let file = file.upgrade()?;
            Some(file.copies_if_joined().map_or(0, |copies| unit(&file, &copies)))
        }))
    }
}

impl CopySet<'_> {
    /// Does one unit of background work. Returns the bytes copied or evicted; 0 if there is nothing
    /// to do now.
    pub(crate) fn work(&self) -> Result<u64> {
        if !self.file.is_writable() {
            return Ok(0);
        }
        let (now_ns, progress) = (self.file.sys().now_ns(), &self.overlay.progress);
        let step = Step::at(now_ns, progress.pauses(), self.is_idle(now_ns));
        if step == Step::Rest || self.is_mapped() || (step == Step::Relieve && !self.is_pressed()?) {
            return Ok(0);
        }
        let done = self.work_once(step, step.pieces_max())?;
        if step == Step::Relieve && done > 0 {
            let took_ns = self.file.sys().now_ns().saturating_sub(now_ns);
            let (processes, _) = self.overlay.measured.processes(&self.map);
            let pause_ns = pause_under_load_ns(took_ns, processes);
            progress.next_under_load_ns.store(now_ns.saturating_add(pause_ns), Ordering::Relaxed);
        }
        Ok(done)
    }

    /// Does what other nodes that have the file open wait for.
    pub(crate) fn serve_other_nodes(&self) -> Result<()> {
        self.map.poll(&|| self.file.sync_objects(true), &|| self.file.try_settle()).logged()
    }

    /// Does the first unit of a step that finds something to do, on at most `pieces` ranges,
    /// regardless of other activity.
    pub(crate) fn work_once(&self, step: Step, pieces: usize) -> Result<u64> {
        let Overlay { copies, manifest, .. } = self.overlay;
        for unit in step.units(copies.kind, manifest.all_copies().count()) {
            let (bytes, counter) = match unit {
                Unit::KeepFree => (self.evict_to_watermark(), None),
                Unit::Copy { to } if self.copy(CopyId::new(to)).is_none() => continue,
                Unit::Copy { to } => {
                    let counter =
                        if copies.is_cache() { Counter::WriteBacks } else { Counter::Synchronisations };
                    (self.work_on_copy(CopyId::new(to), pieces)?, Some(counter))
                }
                Unit::Fetch => (self.fetch_some()?, Some(Counter::Fetches)),
            };
            if bytes > 0 {
                counter.into_iter().for_each(|counter| self.map.count(counter, 1));
                return Ok(bytes);
            }
        }
        Ok(0)
    }

    /// Whether no application uses the servers of the file, so that copying disturbs nothing.
    fn is_idle(&self, now_ns: u64) -> bool {
        let copies = self.file.present().map(OpenCopy::number);
        self.overlay.under_way.load(Ordering::Relaxed) == 0 && !self.overlay.activity.is_used(copies, now_ns)
    }

    /// Whether a cache is under pressure and more has been written since the last check: a process
    /// that only reads needs no space. Always false for replicas: any range may be out of sync, and
    /// close brings it in sync.
    fn is_pressed(&self) -> Result<bool> {
        let OverlayKind::Cache { capacity_per_server, .. } = self.overlay.copies.kind else { return Ok(false) };
        let mut written = 0;
        for copy in self.caches() {
            written += self.map.counted(Counter::Written(copy.number())).logged()?;
        }
        if self.overlay.progress.written.swap(written, Ordering::Relaxed) == written {
            return Ok(false);
        }
        let mut pressure = Pressure::default();
        for copy in self.caches() {
            let clean = self.map.clean_bytes(copy.number()).logged()?;
            pressure.add(self.used_space(copy).unwrap_or(0), clean, self.servers_of_space(copy));
        }
        Ok(pressure.is_high(capacity_per_server))
    }

    /// Copies ranges missing in copy `to`, starting where the last unit ended.
    fn work_on_copy(&self, to: CopyId, pieces: usize) -> Result<u64> {
        let size = self.file.size()?;
        let place = &self.overlay.progress.at[to.index()];
        let at = match place.load(Ordering::Relaxed) {
            Progress::NOWHERE => self.map.part_of_node(size).logged()?,
            at => at,
        };
        let span = match self.first_missing(to, at..size)? {
            Some(span) => span,
            None => match self.first_missing(to, 0..at.min(size))? {
                Some(span) => span,
                None => return Ok(0),
            },
        };
        let pace = self.pace();
        let whole = span.start..pace.piece_end(span.start).min(size);
        let range = self.chunk(to, &span, whole, pieces)?;
        place.store(range.end, Ordering::Relaxed);
        let Some(from) = self.source(&span) else { return Ok(0) };
        let begun_ns = self.file.sys().now_ns();
        let bytes = total(&self.copy_yielding(range, from, to)?);
        if bytes > 0 {
            self.overlay.progress.copied(pace, begun_ns, bytes);
        }
        Ok(bytes)
    }

    /// Copies a chunk, unless requests of other nodes use the servers. Returns the ranges that
    /// became valid.
    fn copy_yielding(&self, range: Range<u64>, from: CopyId, to: CopyId) -> Result<Vec<Range<u64>>> {
        let Some(mut copier) = self.map.copier().logged()? else { return Ok(Vec::new()) };
        let (sys, progress) = (self.file.sys(), &self.overlay.progress);
        let begun_ns = sys.now_ns();
        let yields = &|took_ns| {
            let until_ns = progress.yielding.lock().until_ns(sys.now_ns(), took_ns);
            until_ns.inspect(|&until_ns| progress.rest(until_ns)).is_some()
        };
        let yields = self.map.has_session().then_some(yields as Yields<'_>);
        let copied = self.copy_between(&mut copier, range, from, to, yields)?;
        if !copied.is_empty() {
            let now_ns = sys.now_ns();
            progress.yielding.lock().copied(now_ns, now_ns.saturating_sub(begun_ns));
        }
        Ok(copied)
    }

    /// Extends the copy of `span` to other ranges missing in `whole`, which starts where `span`
    /// does: up to `pieces` ranges in all.
    pub(super) fn chunk(
        &self,
        to: CopyId,
        span: &Span,
        whole: Range<u64>,
        pieces: usize,
    ) -> Result<Range<u64>> {
        if span.end >= whole.end {
            return Ok(whole);
        }
        let spans = self.map.list(Select::NotValidIn(to), whole.clone(), pieces).logged()?;
        Ok(whole.start..spans.last().map_or(whole.end, |last| last.end))
    }

    pub(super) fn first_missing(&self, to: CopyId, range: Range<u64>) -> Result<Option<Span>> {
        if range.is_empty() {
            return Ok(None);
        }
        let spans = self.map.list(Select::NotValidIn(to), range, 1).logged()?;
        Ok(spans.first().copied())
    }

    pub(super) fn source(&self, span: &Span) -> Option<CopyId> {
        let usable = self.preferred(span.mask.and(self.present_mask()));
        self.choice().source(span.start, span.len(), usable)
    }

    fn evict_to_watermark(&self) -> u64 {
        let OverlayKind::Cache { capacity_per_server: capacity, .. } = self.overlay.copies.kind else {
            return 0;
        };
        let full = |copy: &&OpenCopy| {
            copy.is_cache() && self.used_space(copy).is_some_and(|used| lacks_space(used, capacity))
        };
        let mut given_up = 0;
        for copy in self.file.present().filter(full) {
            given_up += u64::from(self.make_room(copy.number(), free_bytes(capacity)));
        }
        given_up
    }

    /// Fetches one queued prefetch hint, if there is space.
    fn fetch_some(&self) -> Result<u64> {
        let (size, pace) = (self.file.size()?, self.pace());
        if size == 0 {
            return Ok(0);
        }
        for copy in self.caches() {
            for span in self.map.list(Select::Hinted(copy.number()), 0..size, WANTED_MAX).logged()? {
                let begun_ns = self.file.sys().now_ns();
                let range = span.start..pace.piece_end(span.start).min(size);
                let bytes = self.fetch(copy.number(), &range, Self::copy_yielding)?;
                if bytes > 0 {
                    self.overlay.progress.copied(pace, begun_ns, bytes);
                    return Ok(bytes);
                }
            }
        }
        Ok(0)
    }

    /// Fetches a range into a cache copy with `copy_range`, which returns the ranges that became
    /// valid. Returns their bytes: 0 if there is no space or another process writes there.
    pub(crate) fn fetch(
        &self,
        to: CopyId,
        range: &Range<u64>,
        copy_range: impl FnOnce(&Self, Range<u64>, CopyId, CopyId) -> Result<Vec<Range<u64>>>,
    ) -> Result<u64> {
        let Some(span) = self.first_missing(to, range.clone())? else { return Ok(0) };
        let range = span.start..span.end.min(range.end);
        let (Some(from), Some(copy)) = (self.source(&span), self.usable(to)) else {
            return Ok(0);
        };
        if !self.take_space(copy, &range) {
            return Ok(0);
        }
        let copied = copy_range(self, range.clone(), from, to);
        self.give_space(copy, &without(&[range], copied.as_deref().unwrap_or_default()));
        copied.map(|copied| total(&copied))
    }

    /// The pace of this process: all processes of all nodes that have the file open together keep
    /// to its limit.
    fn pace(&self) -> Pace {
        let (processes, nodes) = (self.map.processes().unwrap_or(1), self.map.nodes().unwrap_or(1));
        let pace = Pace::new(self.overlay.copies.background, (processes * nodes) as u64);
        match self.map.has_session() {
            true => pace.at_once(self.overlay.progress.yielding.lock().chunk_bytes()),
            false => pace,
        }
    }
}
