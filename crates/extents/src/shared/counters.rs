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

/// Number of counters of the file as a whole.
const OF_FILE: usize = 10;
pub(super) const COUNTERS: usize = OF_FILE + 3 * CopyId::LIMIT;

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
            Self::Read(copy) => OF_FILE + copy.index(),
            Self::Written(copy) => OF_FILE + CopyId::LIMIT + copy.index(),
            Self::Copied(copy) => OF_FILE + 2 * CopyId::LIMIT + copy.index(),
        }
    }
}
