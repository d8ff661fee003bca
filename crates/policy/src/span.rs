//! Byte ranges and the copies that hold their newest value.

/// The number of the original among the copies of a file.
pub const ORIGINAL: u8 = 0;

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
    /// Whether a copy other than the original holds the newest bytes.
    pub(crate) fn is_cached(&self) -> bool {
        self.mask & !(1 << ORIGINAL) != 0
    }
}

/// Joins adjacent ranges on the same copy, which are one request to that copy. Input and output are
/// (start, end, copy).
pub fn runs(parts: impl IntoIterator<Item = (u64, u64, u8)>) -> impl Iterator<Item = (u64, u64, u8)> {
    let mut parts = parts.into_iter().peekable();
    std::iter::from_fn(move || {
        let (start, mut end, copy) = parts.next()?;
        while let Some(next) = parts.next_if(|next| next.0 == end && next.2 == copy) {
            end = next.1;
        }
        Some((start, end, copy))
    })
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
