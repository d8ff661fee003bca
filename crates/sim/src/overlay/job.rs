//! The state of a file's background copying.

use std::ops::Range;

use stripewise_policy::{Part, Span};

/// A copy operation in progress.
#[derive(Debug)]
pub(crate) struct Job {
    pub(super) to: usize,
    /// The ranges being copied, with their valid copies at the start.
    pub(super) spans: Vec<Span>,
    pub(super) began_ns: u64,
    /// The data has been read and is being written.
    pub(super) is_read: bool,
    /// A process has written to one of the ranges meanwhile, so the operation will be discarded.
    pub(super) disturbed: bool,
    /// Space was taken for the operation.
    pub(super) fetches: bool,
    /// Applications were using the servers at the start.
    pub(super) under_load: bool,
}

impl Job {
    /// The ranges being copied that overlap `range`, cut to it.
    pub fn overlapping(&self, range: &Range<u64>) -> impl Iterator<Item = (u64, u64)> {
        let cut = |span: &Span| (span.start.max(range.start), span.end.min(range.end));
        self.spans.iter().map(cut).filter(|(start, end)| start < end)
    }

    /// Records a write to `range`.
    pub fn disturb(&mut self, range: &Range<u64>) {
        let disturbed = self.overlapping(range).next().is_some();
        self.disturbed |= disturbed;
    }

    pub fn parts(&self, copy: usize) -> Vec<Part> {
        self.spans.iter().map(|span| span.by(copy)).collect()
    }

    pub fn bytes(&self) -> u64 {
        self.spans.iter().map(|span| span.end - span.start).sum()
    }
}
