//! The stored form of an index entry.

use crate::{Mask, Span};

/// Binary logarithm of the segment size. Entries are not joined across segment boundaries, so that
/// a change in one segment leaves the sequence numbers of other segments alone.
pub(crate) const SEGMENT_BITS: u32 = 20;
/// Bytes of a segment, the unit that a seqlock of the shared state covers.
pub(crate) const SEGMENT: u64 = 1 << SEGMENT_BITS;

/// A range of bytes and its mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub start: u64,
    pub end: u64,
    pub mask: Mask,
    /// Number of the transaction that last changed the entry.
    pub seq: u64,
}

const SHORT: usize = 12;
const LONG: usize = 16;
/// Mask of a transaction number. 7 bytes last for 2000 years at a million transactions per second.
const SEQ_MASK: u64 = (1 << 56) - 1;

/// The stored value of an entry: 12 bytes, or 16 if the range is longer than 4 GiB.
pub(super) struct Stored {
    bytes: [u8; LONG],
    len: usize,
}

impl Stored {
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl Entry {
    pub(super) fn store(&self) -> Stored {
        let tail = (self.seq & SEQ_MASK) << 8 | u64::from(self.mask.bits());
        let mut bytes = [0; LONG];
        let len = match u32::try_from(self.end - self.start) {
            Ok(short) => {
                bytes[..4].copy_from_slice(&short.to_ne_bytes());
                bytes[4..SHORT].copy_from_slice(&tail.to_ne_bytes());
                SHORT
            }
            Err(_) => {
                bytes[..8].copy_from_slice(&self.end.to_ne_bytes());
                bytes[8..].copy_from_slice(&tail.to_ne_bytes());
                LONG
            }
        };
        Stored { bytes, len }
    }

    /// Decodes a stored entry; `None` if [`Entry::store`] cannot have produced the value.
    pub(super) fn load(start: u64, value: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u64::from_ne_bytes(value.get(at..at + 8)?.try_into().ok()?));
        let (end, tail) = match value.len() {
            SHORT => {
                let len = u32::from_ne_bytes(value[..4].try_into().ok()?);
                (start.checked_add(u64::from(len))?, word(4)?)
            }
            LONG => (word(0)?, word(8)?),
            _ => return None,
        };
        let entry = Self { start, end, mask: Mask::from_bits(tail as u8), seq: tail >> 8 };
        (end > start).then_some(entry)
    }

    /// The range and its mask.
    pub fn span(&self) -> Span {
        Span::new(self.start..self.end, self.mask)
    }

    /// Whether this entry and the one that follows may be joined into one.
    pub(super) fn joins(&self, next: &Self) -> bool {
        let within = self.start >> SEGMENT_BITS == (next.end - 1) >> SEGMENT_BITS;
        self.end == next.start && self.mask == next.mask && (within || self.seq == next.seq)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_stored_is_loaded(start: u64, len in 1u64.., mask: u8, seq in 0..=SEQ_MASK) {
            let entry = Entry { start, end: start.saturating_add(len), mask: Mask::from_bits(mask), seq };
            if entry.end > start {
                prop_assert_eq!(Entry::load(start, entry.store().as_slice()), Some(entry));
            }
        }

        #[test]
        fn any_bytes_are_loaded_or_refused(start: u64, bytes in prop::collection::vec(any::<u8>(), 0..20)) {
            if let Some(entry) = Entry::load(start, &bytes) {
                prop_assert!(entry.end > entry.start);
            }
        }
    }

    #[test]
    fn an_entry_of_a_usual_size_takes_12_bytes() {
        let entry = Entry { start: 1 << 40, end: (1 << 40) + 4096, mask: Mask::ORIGINAL, seq: 7 };
        assert_eq!(entry.store().as_slice().len(), 12);
    }
}
