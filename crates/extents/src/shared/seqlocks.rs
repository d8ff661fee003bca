//! Seqlocks of the segments, which tell whether cached entries of a segment are still current, and
//! the times when segments were last used.
//!
//! A transaction that changes the map in a segment makes the segment's seqlock odd and different
//! from any earlier value, while it holds the index writer lock and before it commits. After the
//! commit it makes the seqlock even, unless another change has begun meanwhile. It follows:
//! - An even value that is the same before and after the index is read stands for the entries read,
//!   as long as it does not change.
//! - A value that stays odd because its process died around its commit stands for nothing, so the
//!   index is read instead. The holder of the index writer lock knows that no transaction is in
//!   progress and may make the value even ([`SharedState::heal`]).

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{SharedState, Word};
use crate::hooks::reach;
use crate::index::{SEGMENT, SEGMENT_BITS};

/// A change of more segments than this marks the global seqlock instead.
const NAMED_MAX: u64 = 64;

/// The seqlock values of a range at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// The sum of the values, which only increase: two sums are equal only if all values are.
    sum: u64,
    /// Whether all values were even.
    certain: bool,
}

impl Stamp {
    /// A stamp that never [`equals`](Stamp::equals) another.
    pub const UNKNOWN: Self = Self { sum: 0, certain: false };

    pub fn is_certain(self) -> bool {
        self.certain
    }

    /// Whether nothing changed between the two stamps.
    pub fn equals(self, other: Self) -> bool {
        self.certain && other.certain && self.sum == other.sum
    }

    fn add(self, seqlock: u64) -> Self {
        Self { sum: self.sum.wrapping_add(seqlock), certain: self.certain && seqlock.is_multiple_of(2) }
    }
}

/// Seqlocks made odd for a change: (index, odd value).
#[derive(Debug, Default)]
pub(crate) struct Marks(Vec<(usize, u64)>);

/// Index of the global seqlock in [`Marks`].
const GLOBAL: usize = usize::MAX;

/// Numbers of the segments that overlap a range.
pub(crate) fn segments(range: &Range<u64>) -> Range<u64> {
    if range.is_empty() { 0..0 } else { range.start >> SEGMENT_BITS..((range.end - 1) >> SEGMENT_BITS) + 1 }
}

/// The byte range of a segment.
pub(crate) fn of_segment(segment: u64) -> Range<u64> {
    let start = segment << SEGMENT_BITS;
    start..start.saturating_add(SEGMENT)
}

impl SharedState {
    fn seqlock_index(&self, segment: u64) -> usize {
        segment as usize & (self.geometry.seqlocks - 1)
    }

    fn seqlock(&self, index: usize) -> &AtomicU64 {
        if index == GLOBAL { self.word(Word::GlobalSeqlock) } else { &self.seqlock_words()[index] }
    }

    /// The current seqlock values of `range`.
    pub fn stamp(&self, range: &Range<u64>) -> Stamp {
        let load = |stamp: Stamp, index| stamp.add(self.seqlock(index).load(Ordering::SeqCst));
        let stamp = load(Stamp { sum: 0, certain: true }, GLOBAL);
        let segments = segments(range);
        if segments.end - segments.start >= self.geometry.seqlocks as u64 {
            return (0..self.geometry.seqlocks).fold(stamp, load);
        }
        segments.map(|segment| self.seqlock_index(segment)).fold(stamp, load)
    }

    /// Makes the seqlocks of `ranges` odd. The caller holds the index writer lock and has not
    /// committed yet.
    pub fn mark(&self, ranges: &[Range<u64>]) -> Marks {
        let mut marks = Marks::default();
        let count: u64 = ranges.iter().map(segments).map(|segments| segments.end - segments.start).sum();
        let mut indices: Vec<usize> = if count > NAMED_MAX {
            vec![GLOBAL]
        } else {
            ranges.iter().flat_map(segments).map(|segment| self.seqlock_index(segment)).collect()
        };
        indices.sort_unstable();
        indices.dedup();
        for index in indices {
            let word = self.seqlock(index);
            let before = word.load(Ordering::SeqCst);
            let odd = if before.is_multiple_of(2) { before + 1 } else { before + 2 };
            word.store(odd, Ordering::SeqCst);
            marks.0.push((index, odd));
        }
        marks
    }

    /// Makes the marked seqlocks even. The caller has committed.
    pub fn settle(&self, marks: Marks) {
        for (index, odd) in marks.0 {
            let word = self.seqlock(index);
            reach("seqlock even");
            let _ = word.compare_exchange(odd, odd + 1, Ordering::SeqCst, Ordering::SeqCst);
        }
    }

    /// Makes odd seqlocks of `range` even, with new values. The caller holds the index writer lock.
    pub fn heal(&self, range: &Range<u64>) {
        let heal = |index| {
            let word = self.seqlock(index);
            let odd = word.load(Ordering::SeqCst);
            if !odd.is_multiple_of(2) {
                let _ = word.compare_exchange(odd, odd + 1, Ordering::SeqCst, Ordering::SeqCst);
            }
        };
        heal(GLOBAL);
        let segments = segments(range);
        let count = (segments.end - segments.start).min(self.geometry.seqlocks as u64);
        (segments.start..segments.start + count).for_each(|segment| heal(self.seqlock_index(segment)));
    }

    /// Records that the segments of `range` were used at `now`, in units of any clock that all
    /// processes share.
    pub fn touch(&self, range: &Range<u64>, now: u64) {
        for segment in segments(range).take(self.geometry.seqlocks) {
            let word = &self.last_use_words()[self.seqlock_index(segment)];
            if word.load(Ordering::Relaxed) != now {
                word.store(now, Ordering::Relaxed);
            }
        }
    }

    /// When a segment was last used; segments that share a word are not distinguished.
    pub fn last_use(&self, segment: u64) -> u64 {
        self.last_use_words()[self.seqlock_index(segment)].load(Ordering::Relaxed)
    }
}
