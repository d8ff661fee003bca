//! Byte ranges and the copies that hold their newest value.

use std::ops::Range;

/// The number of the original among the copies of a file.
pub const ORIGINAL: usize = 0;

/// A byte range whose valid copies are the same throughout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First byte, a file offset.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
    /// The valid copies: bit n is copy n; never 0.
    pub mask: u8,
}

impl Span {
    /// The whole span, served by a copy.
    pub const fn by(&self, copy: usize) -> Part {
        Part { start: self.start, end: self.end, copy }
    }

    /// Whether a copy other than the original holds the newest bytes.
    pub(crate) fn is_cached(&self) -> bool {
        self.mask & !(1 << ORIGINAL) != 0
    }
}

/// A range of a request that one copy serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// First byte, a file offset.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
    /// The copy.
    pub copy: usize,
}

impl Part {
    /// The byte range.
    pub const fn range(&self) -> Range<u64> {
        self.start..self.end
    }
}

/// Joins adjacent ranges on the same copy, which are one request to that copy.
pub fn runs(parts: impl IntoIterator<Item = Part>) -> impl Iterator<Item = Part> {
    let mut parts = parts.into_iter().peekable();
    std::iter::from_fn(move || {
        let mut run = parts.next()?;
        while let Some(next) = parts.next_if(|next| next.start == run.end && next.copy == run.copy) {
            run.end = next.end;
        }
        Some(run)
    })
}

/// The copy to which a range of a write goes: the `chosen` one, or another where that must not be
/// written to, because a copier is writing there. `possible` and `valid` are masks: the copies that
/// may be written to, and those that hold the newest bytes. `None` if the write has to wait.
pub fn possible_copy(chosen: usize, possible: u8, valid: u8) -> Option<usize> {
    if possible & 1 << chosen != 0 {
        return Some(chosen);
    }
    if possible & 1 << ORIGINAL != 0 {
        return Some(ORIGINAL);
    }
    // A copier is writing the original from a valid copy: write to a valid copy.
    let other = possible & valid;
    (other != 0).then(|| other.trailing_zeros() as usize)
}

/// Whether spans are what the extent map returns for a request: in order, without gaps, none of
/// them empty, each valid in some copy.
pub(crate) fn cover(spans: &[Span], start: u64, end: u64) -> bool {
    let mut at = start;
    let follows = |span: &Span| {
        let follows = span.start == at && span.end > at && span.mask != 0;
        at = span.end;
        follows
    };
    spans.iter().all(follows) && at == end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_that_is_being_made_is_not_written_to() {
        assert_eq!(possible_copy(2, 0b111, 0b010), Some(2));
        assert_eq!(possible_copy(2, 0b011, 0b010), Some(0));
        assert_eq!(possible_copy(0, 0b110, 0b010), Some(1));
        assert_eq!(possible_copy(0, 0b100, 0b010), None);
    }
}
