//! Counters of a file with several copies in the terms of its statistics.

use stripewise_cluster::{CopyCounts, Counts};
use stripewise_extents::{CopyId, Counter};

/// The counters of a file whose copies have these names; `count` gives the value of each.
pub(crate) fn counts<'n>(names: impl Iterator<Item = &'n str>, count: impl Fn(Counter) -> u64) -> Counts {
    let of_copy = |(number, name): (usize, &str)| {
        let copy = CopyId::new(number);
        CopyCounts {
            name: name.to_owned(),
            read_bytes: count(Counter::Read(copy)),
            written_bytes: count(Counter::Written(copy)),
            copied_bytes: count(Counter::Copied(copy)),
        }
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
        copies: names.enumerate().map(of_copy).collect(),
    }
}
