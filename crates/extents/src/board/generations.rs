//! Generations: whether what a process knows of a segment is still so. And when segments were last used.
//!
//! Whoever changes the map in a segment makes its generation odd and unlike any before, inside the writer's lock of the index
//! and before the commit, and even after it, if nobody has begun another change meanwhile. So
//! - an even generation that stays the same while the index is read stands for what was read, as long as it is the same;
//! - one that stays odd, because its process died beside its commit, stands for nothing: the index is asked. Whoever holds the
//!   writer's lock knows that nobody is in the middle of anything, and may make it even ([`Board::heal`]).

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Board, Word};
use crate::hooks::reach;
use crate::index::{SEGMENT, SEGMENT_BITS};

/// A change that touches more segments counts as one of everything.
const NAMED_MAX: u64 = 64;

/// The generations of a range at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Of counters that only rise: equal only if all are.
    sum: u64,
    /// All were even.
    certain: bool,
}

impl Stamp {
    /// What stands for nothing.
    pub const UNKNOWN: Self = Self { sum: 0, certain: false };

    pub fn is_certain(self) -> bool {
        self.certain
    }

    /// Whether nothing has changed between the two.
    pub fn equals(self, other: Self) -> bool {
        self.certain && other.certain && self.sum == other.sum
    }

    fn add(self, generation: u64) -> Self {
        Self { sum: self.sum.wrapping_add(generation), certain: self.certain && generation.is_multiple_of(2) }
    }
}

/// Generations that were made odd for a change: (word, its value).
#[derive(Debug, Default)]
pub(crate) struct Marks(Vec<(usize, u64)>);

/// In [`Marks`], the global generation.
const GLOBAL: usize = usize::MAX;

/// The segments that overlap a range.
pub(crate) fn segments(range: &Range<u64>) -> Range<u64> {
    if range.is_empty() { 0..0 } else { range.start >> SEGMENT_BITS..((range.end - 1) >> SEGMENT_BITS) + 1 }
}

/// The bytes of a segment.
pub(crate) fn of_segment(segment: u64) -> Range<u64> {
    let start = segment << SEGMENT_BITS;
    start..start.saturating_add(SEGMENT)
}

impl Board {
    fn generation_index(&self, segment: u64) -> usize {
        segment as usize & (self.geometry.generations - 1)
    }

    fn generation(&self, index: usize) -> &AtomicU64 {
        if index == GLOBAL { self.word(Word::GlobalGeneration) } else { &self.generation_words()[index] }
    }

    /// The generations of `range`, now.
    pub fn stamp(&self, range: &Range<u64>) -> Stamp {
        let load = |stamp: Stamp, index| stamp.add(self.generation(index).load(Ordering::SeqCst));
        let stamp = load(Stamp { sum: 0, certain: true }, GLOBAL);
        let segments = segments(range);
        if segments.end - segments.start >= self.geometry.generations as u64 {
            return (0..self.geometry.generations).fold(stamp, load);
        }
        segments.map(|segment| self.generation_index(segment)).fold(stamp, load)
    }

    /// Before the commit of a change of `ranges`, by who holds the writer's lock of the index.
    pub fn mark(&self, ranges: &[Range<u64>]) -> Marks {
        let mut marks = Marks::default();
        let count: u64 = ranges.iter().map(segments).map(|segments| segments.end - segments.start).sum();
        let mut indices: Vec<usize> = if count > NAMED_MAX {
            vec![GLOBAL]
        } else {
            ranges.iter().flat_map(segments).map(|segment| self.generation_index(segment)).collect()
        };
        indices.sort_unstable();
        indices.dedup();
        for index in indices {
            let word = self.generation(index);
            let before = word.load(Ordering::SeqCst);
            let odd = if before.is_multiple_of(2) { before + 1 } else { before + 2 };
            word.store(odd, Ordering::SeqCst);
            marks.0.push((index, odd));
        }
        marks
    }

    /// After the commit.
    pub fn settle(&self, marks: Marks) {
        for (index, odd) in marks.0 {
            let word = self.generation(index);
            reach("generation even");
            let _ = word.compare_exchange(odd, odd + 1, Ordering::SeqCst, Ordering::SeqCst);
        }
    }

    /// Makes odd generations of `range` even and new, by who holds the writer's lock of the index.
    pub fn heal(&self, range: &Range<u64>) {
        let heal = |index| {
            let word = self.generation(index);
            let odd = word.load(Ordering::SeqCst);
            if !odd.is_multiple_of(2) {
                let _ = word.compare_exchange(odd, odd + 1, Ordering::SeqCst, Ordering::SeqCst);
            }
        };
        heal(GLOBAL);
        let segments = segments(range);
        let count = (segments.end - segments.start).min(self.geometry.generations as u64);
        (segments.start..segments.start + count).for_each(|segment| heal(self.generation_index(segment)));
    }

    /// Notes that the segments of `range` are used at `now` (any clock that all processes share).
    pub fn touch(&self, range: &Range<u64>, now: u64) {
        for segment in segments(range).take(self.geometry.generations) {
            let word = &self.last_use_words()[self.generation_index(segment)];
            if word.load(Ordering::Relaxed) != now {
                word.store(now, Ordering::Relaxed);
            }
        }
    }

    /// When a segment, or another with the same word, was last used.
    pub fn last_use(&self, segment: u64) -> u64 {
        self.last_use_words()[self.generation_index(segment)].load(Ordering::Relaxed)
    }
}
