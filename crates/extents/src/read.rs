//! Reading.

use std::ops::Range;

use crate::board::{Stamp, Word};
use crate::hooks::reach;
use crate::joined::Joined;
use crate::{CopyId, Map, Result, Span};

/// A read of a range.
pub struct ReadGuard<'m> {
    joined: &'m Joined,
    range: Range<u64>,
    spans: Vec<Span>,
    stamp: Stamp,
    evictions: u64,
}

impl Map {
    /// Begins a read of `range`: the caller reads each part from one of its copies, and then asks
    /// [`ReadGuard::still_valid`].
    ///
    /// # Errors
    /// When the index is gone.
    pub fn begin_read(&self, range: Range<u64>) -> Result<ReadGuard<'_>> {
        let joined = self.joined()?;
        let evictions = joined.board.get(Word::Evictions);
        let (spans, stamp) = joined.spans(&range, false)?;
        if let Some(span) = spans.iter().find(|span| span.mask != joined.index.map.default) {
            joined.touch(&(span.start..range.end));
        }
        Ok(ReadGuard { joined, range, spans, stamp, evictions })
    }
}

impl ReadGuard<'_> {
    /// The range in parts, in order, without gaps: which copies are valid.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// To be asked when the data has been read: whether the copy that each span was read from, as `chosen` says, was valid all the time.
    /// If not, everything is to be read again, with a new guard: what was read may be of a write that is not finished, or a hole.
    ///
    /// # Errors
    /// When the index is gone.
    pub fn still_valid(&self, chosen: impl Fn(&Span) -> CopyId) -> Result<bool> {
        reach("read");
        if self.joined.board.stamp(&self.range).equals(self.stamp) {
            return Ok(true);
        }
        let (now, _) = self.joined.spans(&self.range, false)?;
        let valid = self.spans.iter().all(|span| {
            let copy = chosen(span);
            let overlaps = |now: &&Span| now.start < span.end && span.start < now.end;
            now.iter().filter(overlaps).all(|now| now.mask.contains(copy))
        });
        // A copy may have been evicted and fetched again in between.
        Ok(valid && self.joined.board.get(Word::Evictions) == self.evictions)
    }
}
