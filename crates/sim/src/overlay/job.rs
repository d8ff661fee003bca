//! What a file's background copying is doing just now.

use std::ops::Range;

use stripewise_policy::Span;

use super::request::Part;

/// Ranges that are being copied.
#[derive(Debug)]
pub(crate) struct Job {
    pub(super) to: usize,
    /// What is copied, and where it was valid when it began.
    pub(super) spans: Vec<Span>,
    pub(super) began_ns: u64,
    /// It is read; then it is written.
    pub(super) is_read: bool,
    /// Somebody wrote there meanwhile: all of it was for nothing.
    pub(super) disturbed: bool,
    /// Space was taken for it.
    pub(super) fetches: bool,
    /// The servers were used by others.
    pub(super) under_load: bool,
}

impl Job {
    /// What of a range is being copied.
    pub fn overlapping(&self, range: &Range<u64>) -> impl Iterator<Item = (u64, u64)> {
        let cut = |span: &Span| (span.start.max(range.start), span.end.min(range.end));
        self.spans.iter().map(cut).filter(|(start, end)| start < end)
    }

    /// A range is written to.
    pub fn disturb(&mut self, range: &Range<u64>) {
        let disturbed = self.overlapping(range).next().is_some();
        self.disturbed |= disturbed;
    }

    pub fn parts(&self, copy: usize) -> Vec<Part> {
        self.spans.iter().map(|span| Part { start: span.start, end: span.end, copy }).collect()
    }

    pub fn bytes(&self) -> u64 {
        self.spans.iter().map(|span| span.end - span.start).sum()
    }
}
