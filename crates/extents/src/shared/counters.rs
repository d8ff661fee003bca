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

impl Counter {
    fn index(self) -> usize {
        let by_copy = |kind, copy: CopyId| NAMES.len() + kind * CopyId::LIMIT + copy.index();
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
        self.counter(block, counter.index()).fetch_add(by, Ordering::Relaxed);
    }

    pub fn counted(&self, counter: Counter) -> u64 {
        self.counter_sum(counter.index())
    }

    /// The value that the owner of `block` has added to a counter.
    pub fn counted_by(&self, block: &Block, counter: Counter) -> u64 {
        self.counter_of(block, counter.index())
    }

    /// The sums of all counters by name. Names of per-copy counters, for `copies` copies, end in
    /// the copy number.
    pub fn all_counted(&self, copies: usize) -> Vec<(String, u64)> {
        let plain = NAMES.iter().enumerate().map(|(index, name)| ((*name).to_owned(), self.counter_sum(index)));
        let by_copy = BY_COPY.iter().enumerate().flat_map(|(kind, name)| {
            (0..copies).map(move |copy| {
                let index = NAMES.len() + kind * CopyId::LIMIT + copy;
                (format!("{name}.{copy}"), self.counter_sum(index))
            })
        });
        plain.chain(by_copy).collect()
    }
}
