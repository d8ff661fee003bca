//! Counters of a file with several copies in the terms of its statistics.

use stripewise_cluster::{CopyCounts, Counts};
use stripewise_extents::Counter;

use crate::manifest::{CopyRef, Manifest};

/// The counters of a file; `count` gives the value of each.
pub(crate) fn counts(manifest: &Manifest, count: impl Fn(Counter) -> u64) -> Counts {
    let of_copy = |CopyRef { number, name, .. }: CopyRef<'_>| CopyCounts {
        name: name.to_owned(),
        read_bytes: count(Counter::Read(number)),
        written_bytes: count(Counter::Written(number)),
        copied_bytes: count(Counter::Copied(number)),
    };
    Counts {
        requests: count(Counter::Requests),
        critical: count(Counter::Critical),
        hits: count(Counter::Hits),
        partial_hits: count(Counter::PartialHits),
        evictions: count(Counter::Evictions),
        evicted_bytes: count(Counter::EvictedBytes),
        write_backs: count(Counter::WriteBacks),
        fetches: count(Counter::Fetches),
        copies: manifest.all_copies().map(of_copy).collect(),
    }
}
