//! Counts of what this process has done with a file with several copies.

use stripewise_extents::{CopyId, Counter, Map};

const COUNTERS: [(&str, Counter); 8] = [
    ("requests", Counter::Requests),
    ("critical", Counter::Critical),
    ("hits", Counter::Hits),
    ("partial_hits", Counter::PartialHits),
    ("evictions", Counter::Evictions),
    ("evicted_bytes", Counter::EvictedBytes),
    ("write_backs", Counter::WriteBacks),
    ("fetches", Counter::Fetches),
];

type OfCopy = fn(CopyId) -> Counter;

const BY_COPY: [(&str, OfCopy); 3] =
    [("read_bytes", Counter::Read), ("written_bytes", Counter::Written), ("copied_bytes", Counter::Copied)];

/// Names and values.
pub type Counts = Vec<(&'static str, u64)>;

/// Counts by name; `docs/formats/statistics.md` defines names and meaning. The counts of several
/// processes can be added up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// The counts of the file.
    pub counts: Counts,
    /// Name and counts of each copy, the original first.
    pub copies: Vec<(String, Counts)>,
}

impl Statistics {
    /// The counts of this process since it joined the map of a file whose copies have these names.
    pub(super) fn of<'n>(map: &Map, names: impl Iterator<Item = &'n str>) -> Self {
        let of_copy = |(number, name): (usize, &str)| {
            let counted = |counter: OfCopy| map.counted_here(counter(CopyId::new(number)));
            (name.to_owned(), BY_COPY.iter().map(|(name, counter)| (*name, counted(*counter))).collect())
        };
        Self {
            counts: COUNTERS.iter().map(|(name, counter)| (*name, map.counted_here(*counter))).collect(),
            copies: names.enumerate().map(of_copy).collect(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        let mut all = self.counts.iter().chain(self.copies.iter().flat_map(|(_, counts)| counts));
        all.all(|(_, count)| *count == 0)
    }

    pub(super) fn since(&self, earlier: &Self) -> Self {
        let minus = |now: &[(&'static str, u64)], then: &[(&'static str, u64)]| {
            let then = then.iter().map(|(_, count)| *count).chain(std::iter::repeat(0));
            now.iter().zip(then).map(|((name, now), then)| (*name, now.saturating_sub(then))).collect()
        };
        let none = Vec::new();
        let then = earlier.copies.iter().map(|(_, counts)| counts).chain(std::iter::repeat(&none));
        let copies = self.copies.iter().zip(then);
        Self {
            counts: minus(&self.counts, &earlier.counts),
            copies: copies.map(|((name, now), then)| (name.clone(), minus(now, then))).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_reported_is_not_reported_again() {
        let counted = |requests, read| Statistics {
            counts: vec![("requests", requests), ("hits", 1)],
            copies: vec![("original".to_owned(), vec![("read_bytes", read)])],
        };
        let (first, second) = (counted(3, 100), counted(5, 700));
        assert_eq!(first.since(&Statistics::default()), first);
        let news = second.since(&first);
        assert_eq!(news.counts, [("requests", 2), ("hits", 0)]);
        assert_eq!(news.copies, [("original".to_owned(), vec![("read_bytes", 600)])]);
        assert!(!news.is_empty() && second.since(&second).is_empty());
        let only_copied = Statistics { counts: Vec::new(), ..counted(0, 1) };
        assert!(!only_copied.is_empty());
    }
}
