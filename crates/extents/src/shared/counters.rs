//! Statistics: counters summed over all processes since the shared state was created.

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
    pub(super) fn index(self) -> usize {
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

/// Names and indices of all counters of a file with so many copies. Names of per-copy counters end
/// in the copy number.
pub(super) fn named(copies: usize) -> impl Iterator<Item = (String, usize)> {
    let plain = NAMES.iter().enumerate().map(|(index, name)| ((*name).to_owned(), index));
    let of_copies = BY_COPY.iter().enumerate().flat_map(move |(kind, name)| {
        (0..copies).map(move |copy| (format!("{name}.{copy}"), by_copy(kind, CopyId::new(copy))))
    });
    plain.chain(of_copies)
}
