//! Read requests.

use std::ops::Range;

use crate::hooks::reach;
use crate::joined::Joined;
use crate::shared::{Stamp, Word};
use crate::{CopyId, Map, Result, Span};

/// A read of a range in progress.
pub struct ReadGuard<'m> {
    joined: &'m Joined,
    range: Range<u64>,
    spans: Vec<Span>,
    stamp: Stamp,
    evictions: u64,
}

impl Map {
    /// Begins a read of `range`. The caller reads each span from one of its copies and then calls
    /// [`ReadGuard::still_valid`].
    pub fn begin_read(&self, range: Range<u64>) -> Result<ReadGuard<'_>> {
        let joined = self.joined()?;
        let evictions = joined.shared.get(Word::Evictions);
        let (spans, stamp) = joined.spans(&range, false)?;
        if let Some(span) = spans.iter().find(|span| span.mask != joined.index.map.default) {
            joined.touch(&(span.start..range.end));
        }
        Ok(ReadGuard { joined, range, spans, stamp, evictions })
    }
}

impl ReadGuard<'_> {
    /// Spans with their valid copies that cover the range in order without gaps.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Must be called after the data was read. Returns whether the copy that each span was read
    /// from, given by `chosen`, was valid all the time. If not, the caller reads everything again
    /// with a new guard, because the data may come from an unfinished write or from a hole.
    pub fn still_valid(&self, chosen: impl Fn(&Span) -> CopyId) -> Result<bool> {
        reach("read");
        if self.joined.shared.stamp(&self.range).equals(self.stamp) {
            return Ok(true);
        }
        let (now, _) = self.joined.spans(&self.range, false)?;
        let valid = self.spans.iter().all(|span| {
            let copy = chosen(span);
            let overlaps = |now: &&Span| now.start < span.end && span.start < now.end;
            now.iter().filter(overlaps).all(|now| now.mask.contains(copy))
        });
        // A copy may have been evicted and fetched again in between.
        Ok(valid && self.joined.shared.get(Word::Evictions) == self.evictions)
    }
}
