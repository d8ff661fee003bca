//! Statistics: counters summed over all processes since the shared state was created.

use std::sync::atomic::Ordering;

use super::{Block, SharedState};
use crate::CopyId;

/// A counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// Reads and writes of the application.
    Requests,
    /// Requests that the model classifies as performance-critical.
    Critical,
    /// Requests served entirely by a cache copy.
    Hits,
    /// Requests served partly by a cache copy.
    PartialHits,
    /// Ranges evicted from a cache copy.
    Evictions,
    /// Bytes evicted from a cache copy.
    EvictedBytes,
    /// Ranges copied to copy 0 in the background.
    WriteBacks,
    /// Ranges copied to a cache copy in the background.
    Fetches,
    /// Ranges copied from one replica to another in the background.
    Synchronisations,
    /// Copier operations given up because a process writes there.
    GivenUp,
    /// Bytes read from a copy.
    Read(CopyId),
    /// Bytes written to a copy.
    Written(CopyId),
    /// Bytes copied to a copy in the background.
    Copied(CopyId),
}

const NAMES: [&str; 10] = [
    "requests",
    "critical",
    "hits",
    "partial_hits",
    "evictions",
    "evicted_bytes",
    "write_backs",
    "fetches",
    "synchronisations",
    "given_up",
];
const BY_COPY: [&str; 3] = ["read_bytes", "written_bytes", "copied_bytes"];
pub(super) const COUNTERS: usize = NAMES.len() + BY_COPY.len() * CopyId::LIMIT;

/// Index of counter `kind` of [`BY_COPY`] of a copy.
const fn by_copy(kind: usize, copy: CopyId) -> usize {
    NAMES.len() + kind * CopyId::LIMIT + copy.index()
}

impl Counter {
    fn index(self) -> usize {
        match self {
            Self::Requests => 0,
            Self::Critical => 1,
            Self::Hits => 2,
            Self::PartialHits => 3,
            Self::Evictions => 4,
            Self::EvictedBytes => 5,
            Self::WriteBacks => 6,
            Self::Fetches => 7,
            Self::Synchronisations => 8,
            Self::GivenUp => 9,
            Self::Read(copy) => by_copy(0, copy),
            Self::Written(copy) => by_copy(1, copy),
            Self::Copied(copy) => by_copy(2, copy),
        }
    }
}

impl SharedState {
    /// Adds to a counter of the process that owns `block`; no other process writes that word.
    pub fn count(&self, block: &Block, counter: Counter, by: u64) {
        self.counter_word(block.number, counter.index()).fetch_add(by, Ordering::Relaxed);
    }

    pub fn counted(&self, counter: Counter) -> u64 {
        self.sum(counter.index())
    }

    fn sum(&self, counter: usize) -> u64 {
        let of = |block| self.counter_word(block, counter).load(Ordering::Relaxed);
        (0..self.blocks_used()).map(of).fold(0, u64::wrapping_add)
    }

    /// The value that the owner of `block` has added to a counter.
    pub fn counted_by(&self, block: &Block, counter: Counter) -> u64 {
        let now = self.counter_word(block.number, counter.index()).load(Ordering::Relaxed);
        now.wrapping_sub(block.before[counter.index()])
    }

    /// The sums of all counters by name. Names of per-copy counters, for `copies` copies, end in
    /// the copy number.
    pub fn all_counted(&self, copies: usize) -> Vec<(String, u64)> {
        let plain = NAMES.iter().enumerate().map(|(index, name)| ((*name).to_owned(), self.sum(index)));
        let of_copies = BY_COPY.iter().enumerate().flat_map(|(kind, name)| {
            (0..copies).map(move |copy| (format!("{name}.{copy}"), self.sum(by_copy(kind, CopyId::new(copy)))))
        });
        plain.chain(of_copies).collect()
    }
}
