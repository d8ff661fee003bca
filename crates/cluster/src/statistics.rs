//! Statistics of files with several copies, as processes write them and reports read them:
//! `docs/formats/statistics.md`.

use serde::{Deserialize, Serialize};

use crate::CacheMode;

/// A line of a statistics file: the counts of one process for one file since its previous line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatisticsLine {
    /// Path of the file as the process opened it.
    pub path: String,
    /// The file's id. A file that is recreated or placed gets another id.
    pub file: String,
    /// Process id on its node.
    pub pid: u32,
    /// Rank, if the process has one.
    // The attribute makes the key mandatory, also if its value is null.
    #[serde(deserialize_with = "Option::deserialize")]
    pub rank: Option<u32>,
    /// Kind of the copies.
    pub kind: CopiesKind,
    /// The cache's admission mode; `None` for replicas.
    pub mode: Option<CacheMode>,
    /// The counters.
    #[serde(flatten)]
    pub counts: Counts,
}

/// Kind of the copies of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CopiesKind {
    /// Whole copies with different layouts.
    Replicas,
    /// Ranges of the file on faster servers.
    Cache,
}

/// Counters of one file, from one process or summed over several.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Number of reads and writes.
    pub requests: u64,
    /// Number of requests that the model considers performance-critical.
    pub critical: u64,
    /// Number of requests served entirely by cache copies.
    pub hits: u64,
    /// Number of requests served partly by cache copies.
    pub partial_hits: u64,
    /// Number of ranges evicted from a cache copy.
    pub evictions: u64,
    /// Bytes of these ranges.
    pub evicted_bytes: u64,
    /// Number of ranges copied to the original in the background.
    pub write_backs: u64,
    /// Number of ranges copied to a cache copy in the background.
    pub fetches: u64,
    /// Counters by copy; copy 0 is the original.
    pub copies: Vec<CopyCounts>,
}

/// Counters of one copy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyCounts {
    /// `original`, or the copy's name in the plan.
    pub name: String,
    /// Bytes read from it for requests.
    pub read_bytes: u64,
    /// Bytes written to it for requests.
    pub written_bytes: u64,
    /// Bytes copied to it from another copy.
    pub copied_bytes: u64,
}

impl Counts {
    fn all_mut(&mut self) -> impl Iterator<Item = &mut u64> {
        let of_file = [
            &mut self.requests,
            &mut self.critical,
            &mut self.hits,
            &mut self.partial_hits,
            &mut self.evictions,
            &mut self.evicted_bytes,
            &mut self.write_backs,
            &mut self.fetches,
        ];
        let of_copies = self
            .copies
            .iter_mut()
            .flat_map(|copy| [&mut copy.read_bytes, &mut copy.written_bytes, &mut copy.copied_bytes]);
        of_file.into_iter().chain(of_copies)
    }

    /// Adds the counts of other processes, or those of another file with as many copies.
    pub fn add(&mut self, more: &Self) {
        for (sum, number) in self.all_mut().zip(more.clone().all_mut()) {
            *sum = sum.saturating_add(*number);
        }
    }

    /// Returns what was counted since `earlier`, which may lack the copies.
    #[must_use]
    pub fn since(mut self, earlier: &Self) -> Self {
        for (now, then) in self.all_mut().zip(earlier.clone().all_mut()) {
            *now = now.saturating_sub(*then);
        }
        self
    }

    /// Returns whether all counters are 0.
    pub fn is_empty(&self) -> bool {
        self.clone().all_mut().all(|count| *count == 0)
    }

    /// Returns the copies' names, the original's first.
    pub fn copy_names(&self) -> impl Iterator<Item = &str> {
        self.copies.iter().map(|copy| copy.name.as_str())
    }

    /// Returns the bytes that requests moved.
    pub fn bytes(&self) -> u64 {
        self.copies.iter().fold(0, |sum, copy| sum.saturating_add(copy.bytes()))
    }
}

impl CopyCounts {
    /// Returns the bytes read and written for requests.
    pub fn bytes(&self) -> u64 {
        self.read_bytes.saturating_add(self.written_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_reported_is_not_reported_again() {
        let counted = |requests, read_bytes| Counts {
            requests,
            hits: 1,
            copies: vec![CopyCounts { name: "original".to_owned(), read_bytes, ..CopyCounts::default() }],
            ..Counts::default()
        };
        let (first, second) = (counted(3, 100), counted(5, 700));
        assert_eq!(first.clone().since(&Counts::default()), first);
        let news = second.clone().since(&first);
        assert_eq!(news, Counts { hits: 0, ..counted(2, 600) });
        assert!(!news.is_empty() && second.clone().since(&second).is_empty());
        assert!(!Counts { hits: 0, ..counted(0, 1) }.is_empty(), "only copied");
    }
}
