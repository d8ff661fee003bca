//! This process's cache of the map, by segment. An entry is valid as long as the segment's seqlock
//! is unchanged.
//!
//! A segment is loaded when it is requested a second time with the same seqlock value. Loading a
//! segment that other processes keep changing would not pay off; for such a segment only the
//! requested range is read from the index.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::index::SEGMENT;
use crate::shared::Stamp;
use crate::{Mask, Span};

/// Number of pages. A page covers 64 MiB of the file, so up to 128 GiB no two segments compete for
/// a slot.
const PAGES: usize = 2048;
const SLOTS_OF_PAGE: usize = 64;
/// Maximum number of cached runs, in all and of one segment. A run takes 4 bytes: 32 MiB in all, 64
/// KiB for a segment.
const RUNS_MAX: usize = 8 << 20;
const RUNS_OF_SEGMENT_MAX: usize = 16 << 10;

type Page = [Line; SLOTS_OF_PAGE];

/// A slot in a cache line of its own.
#[derive(Debug)]
#[repr(align(64))]
struct Line(RwLock<Slot>);

const _: () = assert!(size_of::<Line>() == 64);

/// The segments that this process has cached.
#[derive(Debug)]
pub(crate) struct Cache {
    pages: Box<[OnceLock<Box<Page>>]>,
    runs: AtomicUsize,
}

#[derive(Debug)]
struct Slot {
    segment: u64,
    /// The seqlock value of the last lookup, and of the load.
    stamp: Stamp,
    /// The runs of equal masks, each as (offset in the segment of its first byte) << 8 | mask.
    /// Empty if the segment is not loaded.
    runs: Box<[u32]>,
}

/// Result of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// The segment is cached; its spans were added.
    Yes,
    /// The segment is not cached; look up the range in the index.
    No,
    /// The segment is not cached; load all of it.
    Load,
    /// The seqlock is odd, with the same value as at the last lookup: the process that made it odd
    /// may have died.
    Stuck,
}

impl Cache {
    pub fn new() -> Self {
        let pages = (0..PAGES).map(|_| OnceLock::new()).collect();
        Self { pages, runs: AtomicUsize::new(0) }
    }

    fn slot(&self, segment: u64) -> &RwLock<Slot> {
        let index = segment as usize % (PAGES * SLOTS_OF_PAGE);
        let page = self.pages[index / SLOTS_OF_PAGE]
            .get_or_init(|| Box::new(std::array::from_fn(|_| Line(RwLock::new(Slot::empty())))));
        &page[index % SLOTS_OF_PAGE].0
    }

    /// Adds the spans of `range`, which lies in `segment`, if the segment is cached with the value
    /// `stamp`.
    pub fn look(&self, segment: u64, range: &Range<u64>, stamp: Stamp, spans: &mut Vec<Span>) -> Known {
        let lock = self.slot(segment);
        let same = {
            let slot = read(lock);
            let same = slot.segment == segment && slot.stamp == stamp;
            if same && stamp.is_certain() && !slot.runs.is_empty() {
                slot.copy_to(range, spans);
                return Known::Yes;
            }
            same
        };
        if same {
            return if stamp.is_certain() { Known::Load } else { Known::Stuck };
        }
        self.replace(&mut write(lock), Slot { segment, stamp, runs: Box::default() });
        Known::No
    }

    /// Caches a segment with the value `stamp`; `spans` are the spans of the whole segment, in
    /// order.
    pub fn keep(&self, segment: u64, stamp: Stamp, spans: &[Span]) {
        if spans.len() > RUNS_OF_SEGMENT_MAX {
            return;
        }
        if self.runs.load(Ordering::Relaxed) + spans.len() > RUNS_MAX {
            self.clear_page(segment);
            if self.runs.load(Ordering::Relaxed) + spans.len() > RUNS_MAX {
                return;
            }
        }
        let run = |span: &Span| ((span.start % SEGMENT) as u32) << 8 | u32::from(span.mask.bits());
        let slot = Slot { segment, stamp, runs: spans.iter().map(run).collect() };
        self.replace(&mut write(self.slot(segment)), slot);
    }

    fn clear_page(&self, segment: u64) {
        let first = segment - segment % SLOTS_OF_PAGE as u64;
        for segment in first..first + SLOTS_OF_PAGE as u64 {
            self.replace(&mut write(self.slot(segment)), Slot::empty());
        }
    }

    fn replace(&self, slot: &mut Slot, new: Slot) {
        self.runs.fetch_add(new.runs.len(), Ordering::Relaxed);
        self.runs.fetch_sub(slot.runs.len(), Ordering::Relaxed);
        *slot = new;
    }
}

impl Slot {
    fn empty() -> Self {
        Self { segment: u64::MAX, stamp: Stamp::UNKNOWN, runs: Box::default() }
    }

    /// The run that contains an offset in the segment. Runs mostly have similar lengths, so the
    /// search starts at an interpolated guess, which is usually in the right cache line.
    fn run_at(&self, offset: u32) -> usize {
        let begins_before = |index: usize| self.runs[index] >> 8 <= offset;
        let guess = (u64::from(offset) * self.runs.len() as u64 / SEGMENT) as usize;
        let (mut low, mut high, mut step) = (guess, guess + 1, 4);
        while low > 0 && !begins_before(low) {
            (low, high) = (low.saturating_sub(step), low);
            step *= 2;
        }
        while high < self.runs.len() && begins_before(high) {
            (low, high) = (high, (high + step).min(self.runs.len()));
            step *= 2;
        }
        let around = &self.runs[low..high];
        low + around.partition_point(|&run| run >> 8 <= offset).saturating_sub(1)
    }

    fn copy_to(&self, range: &Range<u64>, spans: &mut Vec<Span>) {
        let base = self.segment * SEGMENT;
        let offset = |run: u32| base + u64::from(run >> 8);
        let first = self.run_at((range.start - base) as u32);
        for (index, &run) in self.runs.iter().enumerate().skip(first) {
            let start = offset(run).max(range.start);
            if start >= range.end {
                break;
            }
            let end = self.runs.get(index + 1).map_or(range.end, |&next| offset(next).min(range.end));
            Span::new(start..end, Mask::from_bits(run as u8)).add_to(spans);
        }
    }
}

fn read(lock: &RwLock<Slot>) -> RwLockReadGuard<'_, Slot> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write(lock: &RwLock<Slot>) -> RwLockWriteGuard<'_, Slot> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_run_of_an_offset_is_found(mut starts in prop::collection::vec(0u32..1 << 20, 0..200), bits in 1u32..21, at: u32) {
            // Also with starts that crowd at the beginning.
            starts.iter_mut().for_each(|start| *start &= (1 << bits) - 1);
            starts.push(0);
            starts.sort_unstable();
            starts.dedup();
            let runs = starts.iter().map(|start| start << 8).collect();
            let slot = Slot { segment: 0, stamp: Stamp::UNKNOWN, runs };
            let offset = at % (1 << 20);
            prop_assert_eq!(slot.run_at(offset), starts.partition_point(|&start| start <= offset) - 1);
        }
    }
}
