//! Values of byte ranges.

use std::collections::BTreeMap;
use std::ops::Range;

/// A value for each byte, or none. Ranges never overlap; adjacent ones differ.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ranges<T>(BTreeMap<u64, (u64, T)>);

impl<T> Default for Ranges<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Copy + Eq> Ranges<T> {
    /// Gives `range` a value, or none.
    pub fn set(&mut self, range: &Range<u64>, value: Option<T>) {
        if range.is_empty() {
            return;
        }
        let mut new = range.clone();
        // Neighbors are looked at as well: they may have the same value.
        let near: Vec<_> = self.touching(range).collect();
        for (old, other) in near {
            self.0.remove(&old.start);
            if Some(other) == value {
                new = new.start.min(old.start)..new.end.max(old.end);
                continue;
            }
            for rest in [old.start..old.end.min(range.start), old.start.max(range.end)..old.end] {
                if !rest.is_empty() {
                    self.0.insert(rest.start, (rest.end, other));
                }
            }
        }
        if let Some(value) = value {
            self.0.insert(new.start, (new.end, value));
        }
    }

    /// The ranges that overlap `range` or are adjacent to it, last one first.
    fn touching(&self, range: &Range<u64>) -> impl Iterator<Item = (Range<u64>, T)> {
        let start = range.start;
        let before = self.0.range(..=range.end).rev();
        before.map(|(&at, &(end, value))| (at..end, value)).take_while(move |(old, _)| old.end >= start)
    }

    /// The ranges that have a value, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Range<u64>, T)> {
        self.0.iter().map(|(&start, &(end, value))| (start..end, value))
    }

    /// The pieces that cover `range` in order, gaps included.
    pub fn pieces(&self, range: &Range<u64>) -> Vec<(Range<u64>, Option<T>)> {
        let mut found: Vec<_> = self.touching(range).collect();
        found.reverse();
        let (mut pieces, mut at) = (Vec::new(), range.start);
        for (old, value) in found {
            let part = old.start.max(range.start)..old.end.min(range.end);
            if part.is_empty() {
                continue;
            }
            if part.start > at {
                pieces.push((at..part.start, None));
            }
            at = part.end;
            pieces.push((part, Some(value)));
        }
        if at < range.end {
            pieces.push((at..range.end, None));
        }
        pieces
    }

    /// Whether any byte of `range` has a value.
    pub fn overlaps(&self, range: &Range<u64>) -> bool {
        self.pieces(range).iter().any(|(_, value)| value.is_some())
    }

    /// Whether every byte of `range` has a value.
    pub fn covers(&self, range: &Range<u64>) -> bool {
        self.pieces(range).iter().all(|(_, value)| value.is_some())
    }

    /// Whether no byte has a value.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
