//! Copy numbers, sets of copies and ranges with their valid copies.

use std::fmt;
use std::ops::Range;

/// The number of a copy of the file; 0 is the original.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CopyId(u8);

impl CopyId {
    /// Copy 0, the original.
    pub const ORIGINAL: Self = Self(0);
    /// The maximum number of copies of a file, the original included.
    pub const LIMIT: usize = 8;

    /// Returns copy `number`.
    ///
    /// # Panics
    /// If `number` is [`CopyId::LIMIT`] or more.
    pub const fn new(number: usize) -> Self {
        assert!(number < Self::LIMIT, "a file has at most 8 copies");
        Self(number as u8)
    }

    /// The copy's number, 0 to [`CopyId::LIMIT`] - 1.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for CopyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A set of copies, usually those that are valid for some bytes. Bit n is copy n.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mask(u8);

impl Mask {
    /// The empty set.
    pub const NONE: Self = Self(0);
    /// The original alone: the mask of a byte of a cached file that was never cached.
    pub const ORIGINAL: Self = Self(1);

    /// The set with the given bits.
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// Copies 0 to `copies` - 1: the mask of a byte of a replicated file that was never written.
    ///
    /// # Panics
    /// If `copies` is more than [`CopyId::LIMIT`].
    pub const fn all(copies: usize) -> Self {
        assert!(copies <= CopyId::LIMIT, "a file has at most 8 copies");
        Self(((1u16 << copies) - 1) as u8)
    }

    /// The set of one copy.
    pub const fn only(copy: CopyId) -> Self {
        Self(1 << copy.0)
    }

    /// The set as bits; bit n is copy n.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether `copy` is in the set.
    pub const fn contains(self, copy: CopyId) -> bool {
        self.0 & (1 << copy.0) != 0
    }

    /// Whether `copy` is the only copy in the set.
    pub const fn is_only(self, copy: CopyId) -> bool {
        self.0 == 1 << copy.0
    }

    /// The set with `copy` added.
    #[must_use]
    pub const fn with(self, copy: CopyId) -> Self {
        Self(self.0 | (1 << copy.0))
    }

    /// The set with `copy` removed.
    #[must_use]
    pub const fn without(self, copy: CopyId) -> Self {
        Self(self.0 & !(1 << copy.0))
    }

    /// The copies that are also in `other`.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The copies that are not in `other`.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Number of copies in the set.
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// The copy with the lowest number; `None` if the set is empty.
    pub const fn lowest(self) -> Option<CopyId> {
        if self.0 == 0 { None } else { Some(CopyId(self.0.trailing_zeros() as u8)) }
    }

    /// The copies in the set, lowest number first.
    pub fn iter(self) -> impl Iterator<Item = CopyId> {
        (0..CopyId::LIMIT as u8).map(CopyId).filter(move |&copy| self.contains(copy))
    }
}

impl fmt::Debug for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(CopyId::index)).finish()
    }
}

/// A range of bytes whose valid copies are the same throughout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u64,
    /// Offset one past the last byte.
    pub end: u64,
    /// The valid copies; never empty.
    pub mask: Mask,
    /// Copies that the holder of this guard must not write these bytes to: the copier is writing
    /// them to that copy or evicting them from it, or other nodes write to another one. They may be
    /// the only valid ones: the caller then writes to another copy, which
    /// [`crate::WriteGuard::wrote`] makes the valid one.
    pub forbidden: Mask,
}

impl Span {
    /// A span without a forbidden copy.
    pub const fn new(range: Range<u64>, mask: Mask) -> Self {
        Self { start: range.start, end: range.end, mask, forbidden: Mask::NONE }
    }

    /// The part of the span that lies in `range`; `None` if there is none.
    pub(crate) fn cut(self, range: &Range<u64>) -> Option<Self> {
        let cut = Self { start: self.start.max(range.start), end: self.end.min(range.end), ..self };
        Some(cut).filter(|cut| !cut.is_empty())
    }

    /// Appends the span to others, or extends the last one if it is adjacent and has the same mask.
    pub(crate) fn add_to(self, spans: &mut Vec<Self>) {
        match spans.last_mut() {
            Some(last) if last.end == self.start && last.mask == self.mask => last.end = self.end,
            _ => spans.push(self),
        }
    }

    /// The span with the lowest of its valid copies alone.
    pub(crate) fn in_lowest(self) -> Self {
        Self { mask: self.mask.lowest().map_or(self.mask, Mask::only), ..self }
    }

    /// The byte range of the span.
    pub const fn range(&self) -> Range<u64> {
        self.start..self.end
    }

    /// Length, bytes.
    pub const fn len(&self) -> u64 {
        self.end - self.start
    }

    /// Whether the span has no bytes.
    pub const fn is_empty(&self) -> bool {
        self.start >= self.end
    }

    /// Whether copy 0 is not valid.
    pub const fn is_dirty(&self) -> bool {
        !self.mask.contains(CopyId::ORIGINAL)
    }
}
