//! The valid copies of each byte: the data path's extent map, in memory.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use stripewise_policy::Span;

/// Binary logarithm of the segments by which use is recorded, as in the extent map.
const SEGMENT_BITS: u32 = 20;

/// Ranges without the default mask, and indices of them.
#[derive(Debug)]
pub(crate) struct Map {
    default: u8,
    /// Copies that should have everything.
    whole: u8,
    /// Extents by start; adjacent ones have different masks.
    extents: BTreeMap<u64, Extent>,
    /// Per copy in `whole`, the starts of the extents that it lacks.
    missing: [BTreeSet<u64>; 8],
    missing_bytes: [u64; 8],
    /// Per copy, its bytes that are also valid in another copy.
    clean_bytes: [u64; 8],
    /// Per used segment, the number of its last use; and the same ordered by that number.
    used: HashMap<u64, u64>,
    by_use: BTreeSet<(u64, u64)>,
    uses: u64,
    /// Per copy, the prefetch queue: ranges by start.
    wanted: [BTreeMap<u64, u64>; 8],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extent {
    end: u64,
    mask: u8,
}

impl Map {
    /// All bytes are valid in the copies `default`; those in `whole` should have everything.
    pub fn new(default: u8, whole: u8) -> Self {
        Self {
            default,
            whole,
            extents: BTreeMap::new(),
            missing: Default::default(),
            missing_bytes: [0; 8],
            clean_bytes: [0; 8],
            used: HashMap::new(),
            by_use: BTreeSet::new(),
            uses: 0,
            wanted: Default::default(),
        }
    }

    /// The spans of a non-empty range.
    pub fn spans(&self, range: &Range<u64>) -> Vec<Span> {
        let mut spans: Vec<Span> = Vec::new();
        let mut push = |start: u64, end: u64, mask: u8| match spans.last_mut() {
            Some(last) if last.mask == mask => last.end = end,
            _ => spans.push(Span { start, end, mask }),
        };
        let mut at = range.start;
        let first =
            self.extents.range(..=range.start).next_back().filter(|(_, extent)| extent.end > range.start);
        let rest = self.extents.range(range.start + 1..range.end);
        for (&start, extent) in first.into_iter().chain(rest) {
            let (start, end) = (start.max(range.start), extent.end.min(range.end));
            if at < start {
                push(at, start, self.default);
            }
            push(start, end, extent.mask);
            at = end;
        }
        if at < range.end {
            push(at, range.end, self.default);
        }
        spans
    }

    /// Records the use of a range.
    pub fn touch(&mut self, range: &Range<u64>) {
        for segment in range.start >> SEGMENT_BITS..=(range.end - 1) >> SEGMENT_BITS {
            self.uses += 1;
            if let Some(before) = self.used.insert(segment, self.uses) {
                self.by_use.remove(&(before, segment));
            }
            self.by_use.insert((self.uses, segment));
        }
    }

    /// Makes a range valid in exactly the copies of `mask`.
    pub fn set(&mut self, range: &Range<u64>, mask: u8) {
        self.split(range.start);
        self.split(range.end);
        let inside: Vec<u64> = self.extents.range(range.clone()).map(|(&start, _)| start).collect();
        for start in inside {
            self.remove(start);
        }
        if mask == self.default {
            return;
        }
        // Joins adjacent extents with the same mask.
        let (mut start, mut end) = (range.start, range.end);
        let before = self.extents.range(..start).next_back();
        if let Some((&before, _)) = before.filter(|(_, extent)| extent.end == start && extent.mask == mask) {
            start = before;
            self.remove(before);
        }
        if let Some(&after) = self.extents.get(&end).filter(|extent| extent.mask == mask) {
            self.remove(end);
            end = after.end;
        }
        self.insert(start, Extent { end, mask });
    }

    fn split(&mut self, at: u64) {
        let around = self.extents.range(..at).next_back().filter(|(_, extent)| extent.end > at);
        if let Some((&start, &extent)) = around {
            self.remove(start);
            self.insert(start, Extent { end: at, ..extent });
            self.insert(at, extent);
        }
    }

    fn insert(&mut self, start: u64, extent: Extent) {
        self.extents.insert(start, extent);
        let bytes = extent.end - start;
        for copy in copies_in(self.whole & !extent.mask) {
            self.missing[copy].insert(start);
            self.missing_bytes[copy] += bytes;
        }
        for copy in clean_in(extent.mask) {
            self.clean_bytes[copy] += bytes;
        }
    }

    fn remove(&mut self, start: u64) {
        let Some(extent) = self.extents.remove(&start) else { return };
        let bytes = extent.end - start;
        for copy in copies_in(self.whole & !extent.mask) {
            self.missing[copy].remove(&start);
            self.missing_bytes[copy] -= bytes;
        }
        for copy in clean_in(extent.mask) {
            self.clean_bytes[copy] -= bytes;
        }
    }

    /// Bytes that the copies in `whole` lack, summed over these copies.
    pub fn all_missing(&self) -> u64 {
        self.missing_bytes.iter().sum()
    }

    /// The first range at or after `at` that a copy in `whole` lacks, or from the start if there is
    /// none, with the copies that have it.
    pub fn next_missing(&self, copy: usize, at: u64) -> Option<Span> {
        let set = &self.missing[copy];
        let span = |&start: &u64| {
            let extent = self.extents[&start];
            Span { start, end: extent.end, mask: extent.mask }
        };
        let around = set.range(..at).next_back().map(span).filter(|span| span.end > at);
        let cut = around.map(|span| Span { start: at, ..span });
        cut.or_else(|| set.range(at..).next().map(span)).or_else(|| set.first().map(span))
    }

    /// The first `most` spans in `range` that are not valid in `copy`.
    pub fn missing_in(&self, copy: usize, range: &Range<u64>, most: usize) -> Vec<Span> {
        let spans = self.spans(range).into_iter();
        spans.filter(|span| span.mask & 1 << copy == 0).take(most).collect()
    }

    /// Bytes of a copy that could be evicted.
    pub fn clean_bytes(&self, copy: usize) -> u64 {
        self.clean_bytes[copy]
    }

    /// Ranges that could be evicted from a copy, at least `bytes` long if there are that many.
    /// Ranges of the least recently used segments come first; ranges that overlap `but` are left
    /// out.
    pub fn least_recent(&self, copy: usize, bytes: u64, but: &Range<u64>) -> Vec<Range<u64>> {
        let (mut found, mut sum) = (Vec::new(), 0);
        for &(_, segment) in &self.by_use {
            let of_segment = segment << SEGMENT_BITS..(segment + 1) << SEGMENT_BITS;
            for span in self.spans(&of_segment) {
                let is_clean = span.mask & 1 << copy != 0 && span.mask.count_ones() > 1;
                if is_clean && (span.end <= but.start || but.end <= span.start) {
                    found.push(span.start..span.end);
                    sum += span.end - span.start;
                }
            }
            if sum >= bytes {
                break;
            }
        }
        found
    }

    /// Adds `range` to the prefetch queue of `copy`, except where it is valid there.
    pub fn want(&mut self, range: &Range<u64>, copy: usize) {
        let spans = self.spans(range);
        for span in spans.into_iter().filter(|span| span.mask & 1 << copy == 0) {
            let wanted = &mut self.wanted[copy];
            let (mut start, mut end) = (span.start, span.end);
            // Joins overlapping and adjacent ranges.
            while let Some((&other, &until)) =
                wanted.range(..=end).next_back().filter(|(_, until)| **until >= start)
            {
                wanted.remove(&other);
                (start, end) = (start.min(other), end.max(until));
            }
            wanted.insert(start, end);
        }
    }

    /// Whether any prefetch queue has ranges.
    pub fn wants(&self) -> bool {
        self.wanted.iter().any(|wanted| !wanted.is_empty())
    }

    /// The first `most` spans of the prefetch queue of a copy from byte `from` on. Ranges that have
    /// become valid meanwhile are left out.
    pub fn wanted(&mut self, copy: usize, from: u64, most: usize) -> Vec<Span> {
        let mut found = Vec::new();
        let before = self.wanted[copy].range(..from).next_back().filter(|(_, end)| **end > from);
        let mut range = before.map(|(_, &end)| from..end);
        let mut at = from;
        while found.len() < most {
            let first = || self.wanted[copy].range(at..).next().map(|(&start, &end)| start..end);
            let Some(range) = range.take().or_else(first) else { break };
            at = range.start + 1;
            let known = found.len();
            found.extend(self.spans(&range).into_iter().filter(|span| span.mask & 1 << copy == 0));
            if found.len() == known {
                self.wanted[copy].remove(&range.start);
            }
        }
        found.truncate(most);
        found
    }

    /// Removes a range from the prefetch queue.
    pub fn want_no_more(&mut self, range: &Range<u64>, copy: usize) {
        let wanted = &mut self.wanted[copy];
        while let Some((&start, &end)) =
            wanted.range(..range.end).next_back().filter(|(_, end)| **end > range.start)
        {
            wanted.remove(&start);
            if end > range.end {
                wanted.insert(range.end, end);
            }
            if start < range.start {
                wanted.insert(start, range.start);
            }
        }
    }
}

fn copies_in(mask: u8) -> impl Iterator<Item = usize> {
    (0..8).filter(move |copy| mask & 1 << copy != 0)
}

/// The copies of a mask from which data could be evicted.
fn clean_in(mask: u8) -> impl Iterator<Item = usize> {
    copies_in(if mask.count_ones() > 1 { mask } else { 0 })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compared with a mask per byte.
        #[test]
        fn the_map_is_that_of_single_bytes(
            sets in proptest::collection::vec((0..60u64, 1..30u64, 1..8u8), 0..40),
            look in (0..80u64, 1..40u64),
        ) {
            let (default, whole) = (0b111, 0b011);
            let mut map = Map::new(default, whole);
            let mut bytes = [default; 128];
            for (start, len, mask) in sets {
                map.set(&(start..start + len), mask);
                bytes[start as usize..(start + len) as usize].fill(mask);
                let count = |fits: &dyn Fn(u8) -> bool| bytes.iter().filter(|mask| fits(**mask)).count() as u64;
                for copy in 0..2 {
                    prop_assert_eq!(map.missing_bytes[copy], count(&|mask| mask & 1 << copy == 0));
                }
                for copy in 0..3 {
                    let clean = |mask: u8| mask != default && mask & 1 << copy != 0 && mask.count_ones() > 1;
                    prop_assert_eq!(map.clean_bytes(copy), count(&clean));
                }
            }
            let spans = map.spans(&(look.0..look.0 + look.1));
            let masks: Vec<u8> =
                spans.iter().flat_map(|span| (span.start..span.end).map(|_| span.mask)).collect();
            prop_assert_eq!(&masks, &bytes[look.0 as usize..(look.0 + look.1) as usize]);
            prop_assert!(spans.windows(2).all(|two| two[0].end == two[1].start && two[0].mask != two[1].mask));
            let first = (look.0..128).chain(0..look.0).find(|&at| bytes[at as usize] & 1 == 0);
            // After the last one, the search starts over and finds a whole extent.
            prop_assert_eq!(map.next_missing(0, look.0).map(|span| span.start), first);
        }

        #[test]
        fn what_is_wanted_is_a_set(
            wants in proptest::collection::vec((any::<bool>(), 0..60u64, 1..30u64), 0..40),
        ) {
            let mut map = Map::new(1, 1);
            map.set(&(20..30), 0b11);
            let mut bytes = [false; 128];
            for (want, start, len) in wants {
                if want {
                    map.want(&(start..start + len), 1);
                } else {
                    map.want_no_more(&(start..start + len), 1);
                }
                for at in start..start + len {
                    bytes[at as usize] = want && !(20..30).contains(&at);
                }
            }
            let wanted: Vec<u64> = map.wanted(1, 0, 1000).iter().flat_map(|span| span.start..span.end).collect();
            let expected: Vec<u64> = (0..128).filter(|&at| bytes[at as usize]).collect();
            prop_assert_eq!(wanted, expected);
        }
    }

    #[test]
    fn what_was_used_least_recently_goes_first() {
        let mut map = Map::new(1, 1);
        for segment in [2u64, 0, 1] {
            let range = segment << SEGMENT_BITS..(segment << SEGMENT_BITS) + 100;
            map.touch(&range);
            map.set(&range, 0b11);
        }
        map.set(&(50..60), 0b10);
        map.touch(&(2 << SEGMENT_BITS..(2 << SEGMENT_BITS) + 1));
        assert_eq!(map.least_recent(1, 120, &(0..0)), [0..50, 60..100, 1 << 20..(1 << 20) + 100]);
        assert_eq!(map.least_recent(1, 10, &(0..70))[0], 1 << 20..(1 << 20) + 100);
    }
}
