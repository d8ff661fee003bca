//! The copies of an open file, with the extent map that says where each is valid.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use stripewise_cluster::Counts;
use stripewise_extents::{CopyId, Counter, Map, MapError, Mask, Select, Span};
use stripewise_policy::{Kind, Redirected};
use stripewise_target::Few;

use super::choice::{Choice, Part};
use super::slot::MapRef;
use super::state::{Overlay, UnderWay};
use super::statistics::counts;
use crate::error::{Errno, Logged, Result};
use crate::file::LogicalFile;
use crate::file::copy::OpenCopy;
use crate::manifest::Copies;
use crate::notice;

/// Maximum spans listed at a time.
const SPANS_MAX: usize = 4096;

/// An open file with several copies, its state in this process, and its extent map, which stays
/// joined until this is dropped. All operations on the copies are methods of this type.
pub(crate) struct CopySet<'f> {
    pub(crate) file: &'f LogicalFile,
    pub(crate) overlay: &'f Overlay,
    pub(crate) map: MapRef<'f>,
}

impl LogicalFile {
    /// The copies; joins the map if necessary. `None` for a file with one copy.
    pub(crate) fn copies(&self) -> Result<Option<CopySet<'_>>> {
        let Some(overlay) = self.overlay() else { return Ok(None) };
        Ok(Some(CopySet { file: self, overlay, map: overlay.map()? }))
    }

    /// The copies, if this process has joined the map and not left it.
    pub(crate) fn copies_if_joined(&self) -> Option<CopySet<'_>> {
        let overlay = self.overlay()?;
        Some(CopySet { file: self, overlay, map: overlay.slot.known()? })
    }

    /// The counts since the last call; `None` if they are all 0 or the file has one copy.
    pub fn take_statistics(&self) -> Option<Counts> {
        let CopySet { overlay, map, .. } = self.copies_if_joined()?;
        let now = counts(self.manifest(), |counter| map.counted_here(counter));
        let news = now.clone().since(&std::mem::replace(&mut *overlay.reported.lock(), now));
        (!news.is_empty()).then_some(news)
    }

    /// The copies, for a command that changes them; `None` if the command does not apply to them.
    ///
    /// # Errors
    /// EBADF: this process may not write. Otherwise same as [`LogicalFile::copies`].
    pub(crate) fn copies_to_change(&self, applies: fn(&Copies) -> bool) -> Result<Option<CopySet<'_>>> {
        if !self.overlay().is_some_and(|overlay| applies(&overlay.copies)) {
            return Ok(None);
        }
        if self.is_writable() { self.copies() } else { Err(Errno::BADF) }
    }
}

impl<'f> CopySet<'f> {
    /// Copy `number`; `None` if it is lost.
    pub(crate) fn copy(&self, number: CopyId) -> Option<&'f OpenCopy> {
        self.file.present().find(|copy| copy.number() == number)
    }

    /// Copy `number`, if it is open and has not failed in this process.
    pub(crate) fn usable(&self, number: CopyId) -> Option<&'f OpenCopy> {
        self.copy(number).filter(|_| !self.failing().contains(number))
    }

    pub(crate) fn caches(&self) -> impl Iterator<Item = &'f OpenCopy> {
        self.file.present().filter(|copy| copy.is_cache())
    }

    pub(crate) fn present_mask(&self) -> Mask {
        self.file.present().fold(Mask::NONE, |mask, copy| mask.with(copy.number()))
    }

    /// The copies that failed in this process.
    fn failing(&self) -> Mask {
        Mask::from_bits(self.overlay.failing.load(Ordering::Relaxed))
    }

    pub(crate) fn choice(&self) -> Arc<Choice> {
        let procs = self.procs();
        let Overlay { manifest, copies, rates, choice, .. } = self.overlay;
        let current = choice.lock().clone();
        if let Some(current) = current.filter(|current| current.procs == procs) {
            return current;
        }
        let new = Arc::new(Choice::new(manifest, copies, rates.as_ref(), procs));
        *choice.lock() = Some(new.clone());
        new
    }

    fn procs(&self) -> (u32, u32) {
        let measured = || self.overlay.measured.processes(&self.map);
        self.overlay.context.concurrency.get().unwrap_or_else(measured)
    }

    /// The copies of `copies` that have not failed; all of them if all have failed.
    pub(crate) fn preferred(&self, copies: Mask) -> Mask {
        let preferred = copies.minus(self.failing());
        if preferred.is_empty() { copies } else { preferred }
    }

    /// Calls `each` with all spans of `range` that `select` selects. Reads the map in several
    /// steps.
    pub(crate) fn each_span(&self, select: Select, range: Range<u64>, each: impl FnMut(&Span)) -> Result<()> {
        each_span(&self.map, select, range, each).logged()
    }

    /// From now on uses a copy only where no other copy can be used. Returns false if that was so
    /// before.
    pub(crate) fn avoid(&self, copy: CopyId, error: Errno) -> bool {
        let before = self.overlay.failing.fetch_or(Mask::only(copy).bits(), Ordering::Relaxed);
        let newly = !Mask::from_bits(before).contains(copy);
        if newly {
            let path = self.file.path().display();
            let name = self.overlay.manifest.all_copies().nth(copy.index()).map_or("", |copy| copy.name);
            notice::warn_once(&format!(
                "{path}: copy {name} fails ({error}); others are used where they can be"
            ));
        }
        newly
    }

    /// Whether any process has the file mapped: all processes then write to the original.
    pub(crate) fn is_mapped(&self) -> bool {
        self.map.is_mapped().unwrap_or(true)
    }

    /// Whether other nodes have the file open.
    pub(crate) fn is_sharing(&self) -> bool {
        self.map.is_sharing().unwrap_or(true)
    }

    /// Starts a request: resumes paused background work, and counts the request so that background
    /// work yields to it.
    pub(crate) fn begin(&self) -> UnderWay<'f> {
        self.overlay.turn.resume();
        if let Some(background) = &self.overlay.context.background {
            background.copying.start();
            if self.overlay.is_served.load(Ordering::Relaxed) {
                background.serving.start();
            }
        }
        self.overlay.under_way.fetch_add(1, Ordering::Relaxed);
        self.map.count(Counter::Requests, 1);
        UnderWay(&self.overlay.under_way)
    }

    /// Asks the policy which copies serve a request in `range`, see [`Choice::choose`].
    pub(super) fn redirect(
        &self,
        kind: Kind,
        range: Range<u64>,
        spans: &[stripewise_policy::Span],
        allowed: Mask,
        space: &mut impl stripewise_policy::Space,
        parts: &mut Few<Part>,
    ) -> Redirected {
        let file = self.overlay.manifest.id.0.as_chunks::<8>().0.first();
        let file = file.map_or(0, |first| u64::from_ne_bytes(*first));
        let request =
            stripewise_policy::Request { file, kind, offset: range.start, len: range.end - range.start };
        let data = &self.overlay.context.data;
        let redirected = self.choice().choose(data, &request, spans, allowed, space, parts);
        if redirected.critical.is_some() {
            self.map.count(Counter::Critical, 1);
        }
        redirected
    }

    pub(crate) fn count_hits(&self, parts: &[Part]) {
        // In a cached file, the default mask is the original alone; in a replicated file it is all
        // copies.
        if self.map.spec().default != Mask::ORIGINAL {
            return;
        }
        let cached = parts.iter().filter(|part| part.copy > 0).count();
        if cached == parts.len() && cached > 0 {
            self.map.count(Counter::Hits, 1);
        } else if cached > 0 {
            self.map.count(Counter::PartialHits, 1);
        }
    }
}

/// Calls `each` with all spans of `range` that `select` selects. Reads the map in several steps.
pub(crate) fn each_span(
    map: &Map,
    select: Select,
    mut range: Range<u64>,
    mut each: impl FnMut(&Span),
) -> std::result::Result<(), MapError> {
    while !range.is_empty() {
        let spans = map.list(select, range.clone(), SPANS_MAX)?;
        let Some(last) = spans.last() else { break };
        range.start = last.end;
        spans.iter().for_each(&mut each);
    }
    Ok(())
}
