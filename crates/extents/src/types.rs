//! Copies, sets of copies, ranges.

use std::fmt;
use std::ops::Range;

/// Number of a copy of the file: 0 is the original.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CopyId(u8);

impl CopyId {
    /// The original.
    pub const ORIGINAL: Self = Self(0);
    /// A file has at most this many copies.
    pub const LIMIT: usize = 8;

    /// Copy `number`, less than [`CopyId::LIMIT`].
    ///
    /// # Panics
    /// When it is not.
    pub const fn new(number: usize) -> Self {
        assert!(number < Self::LIMIT, "a file has at most 8 copies");
        Self(number as u8)
    }

    /// Its number.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for CopyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A set of copies: those that are valid for some bytes. Bit n is copy n.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mask(u8);

impl Mask {
    /// No copy.
    pub const NONE: Self = Self(0);
    /// The original alone: what a byte of a cached file has that was never cached.
    pub const ORIGINAL: Self = Self(1);

    /// The copies of these bits.
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// Copies 0 to `copies` - 1: what a byte of a replicated file has that was never written.
    ///
    /// # Panics
    /// When there are more than [`CopyId::LIMIT`].
    pub const fn all(copies: usize) -> Self {
        assert!(copies <= CopyId::LIMIT, "a file has at most 8 copies");
        Self(((1u16 << copies) - 1) as u8)
    }

    /// One copy.
    pub const fn only(copy: CopyId) -> Self {
        Self(1 << copy.0)
    }

    /// Bit n is copy n.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Whether it has no copy.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether `copy` is in it.
    pub const fn contains(self, copy: CopyId) -> bool {
        self.0 & (1 << copy.0) != 0
    }

    /// Whether `copy` and nothing else is in it.
    pub const fn is_only(self, copy: CopyId) -> bool {
        self.0 == 1 << copy.0
    }

    /// With `copy`.
    #[must_use]
    pub const fn with(self, copy: CopyId) -> Self {
        Self(self.0 | (1 << copy.0))
    }

    /// Without `copy`.
    #[must_use]
    pub const fn without(self, copy: CopyId) -> Self {
        Self(self.0 & !(1 << copy.0))
    }

    /// Number of copies.
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// The copy with the lowest number; `None` of the empty set.
    pub const fn lowest(self) -> Option<CopyId> {
        if self.0 == 0 { None } else { Some(CopyId(self.0.trailing_zeros() as u8)) }
    }

    /// The copies, lowest first.
    pub fn iter(self) -> impl Iterator<Item = CopyId> {
        (0..CopyId::LIMIT as u8).map(CopyId).filter(move |&copy| self.contains(copy))
    }
}

impl fmt::Debug for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(CopyId::index)).finish()
    }
}

/// A range of bytes and the copies that are valid for all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
    /// The valid copies; never empty.
    pub mask: Mask,
    /// A copy that this guard's holder must not write these bytes to: somebody is copying them to it, or takes them
    /// out of it, just now. It may be the only valid one: then write to another, which [`crate::WriteGuard::wrote`] makes
    /// the valid one.
    pub forbidden: Option<CopyId>,
}

impl Span {
    /// A span without a forbidden copy.
    pub const fn new(range: Range<u64>, mask: Mask) -> Self {
        Self { start: range.start, end: range.end, mask, forbidden: None }
    }

    /// Its bytes.
    pub const fn range(&self) -> Range<u64> {
        self.start..self.end
    }

    /// Number of bytes.
    pub const fn len(&self) -> u64 {
        self.end - self.start
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.start >= self.end
    }

    /// Whether copy 0 is not valid.
    pub const fn is_dirty(&self) -> bool {
        !self.mask.contains(CopyId::ORIGINAL)
    }
}
