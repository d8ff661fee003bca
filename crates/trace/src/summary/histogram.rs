//! Counts of values: exact for the first 64 distinct values, by powers of two for the rest.

use std::collections::BTreeMap;

use serde::Serialize;

/// Number of distinct values that are counted exactly: those that appear first.
const EXACT_VALUES: usize = 64;

/// Number of requests by size.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sizes {
    /// Requests by size in bytes, for the first 64 distinct sizes.
    pub exact: BTreeMap<u64, u64>,
    /// Requests of other sizes, by size rounded down to a power of two, bytes.
    pub rounded: BTreeMap<u64, u64>,
}

impl Sizes {
    pub(super) fn add(&mut self, size: u64) {
        if let Some(count) = self.exact.get_mut(&size) {
            *count += 1;
        } else if self.exact.len() < EXACT_VALUES {
            self.exact.insert(size, 1);
        } else {
            let rounded = if size == 0 { 0 } else { 1 << size.ilog2() };
            *self.rounded.entry(rounded).or_default() += 1;
        }
    }

    /// Sizes in bytes and their counts, most frequent first; the sizes of `rounded` are rounded
    /// down.
    pub fn by_count(&self) -> Vec<(u64, u64)> {
        let mut all: BTreeMap<u64, u64> = self.exact.clone();
        for (size, count) in &self.rounded {
            *all.entry(*size).or_default() += count;
        }
        let mut all: Vec<_> = all.into_iter().collect();
        all.sort_by_key(|(size, count)| (std::cmp::Reverse(*count), *size));
        all
    }
}

/// Number of requests by distance to the previous one, bytes, for the first 64 distinct distances.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Distances(pub BTreeMap<i64, u64>);

impl Distances {
    pub(super) fn add(&mut self, distance: i64) {
        if self.0.len() < EXACT_VALUES || self.0.contains_key(&distance) {
            *self.0.entry(distance).or_default() += 1;
        }
    }

    /// The most frequent distance and its count.
    pub fn most_frequent(&self) -> Option<(i64, u64)> {
        self.0.iter().max_by_key(|(_, count)| **count).map(|(distance, count)| (*distance, *count))
    }
}
