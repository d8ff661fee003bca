//! Queries and prefetch hints for the background work.

use std::collections::HashMap;
use std::ops::Range;

use crate::index::{Entry, SEGMENT_BITS};
use crate::joined::Joined;
use crate::shared::{of_segment, segments};
use crate::{CopyId, Map, Result, Span};

/// The ranges that [`Map::list`] selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Select {
    /// Ranges where this copy is not valid, including those by default.
    NotValidIn(CopyId),
    /// Ranges where this copy and another one are valid, so that they could be evicted from this
    /// copy.
    CleanIn(CopyId),
    /// Ranges in the prefetch queue of this copy.
    Hinted(CopyId),
    /// Ranges with another mask than the default one.
    Listed,
}

/// [`Map::least_recent`] divides longer ranges into segments only up to this number of segments.
const PIECE_SEGMENTS_MAX: u64 = 4096;

impl Map {
    /// Adds `range` to the prefetch queue of `copy` (the paper's C_flag), where it stays until it
    /// is valid in `copy`. Bytes that are already valid there are left out.
    ///
    /// # Errors
    /// ENOSPC if the index cannot grow, EIO if it is gone.
    pub fn add_hint(&self, range: Range<u64>, copy: CopyId) -> Result<()> {
        let joined = self.joined()?;
        let mut hints = Vec::new();
        joined.each_part(range, |part| {
            if !part.mask.contains(copy) {
                hints.push(part.start..part.end);
            }
            true
        })?;
        if hints.is_empty() {
            return Ok(());
        }
        let mut txn = joined.write()?;
        for range in hints {
            joined.index.add_hint(&mut txn, range, copy)?;
        }
        txn.commit()
    }

    /// The first `max` ranges of the selected kind within `range`, in order and cut to it. To
    /// continue, call this with a range from the end of the last one on. Other processes may change
    /// the map meanwhile.
    pub fn list(&self, select: Select, range: Range<u64>, max: usize) -> Result<Vec<Span>> {
        let joined = self.joined()?;
        if let Select::Hinted(copy) = select {
            return joined.hints(range, copy, max);
        }
        let default = joined.index.map.default;
        let fits = |part: &Entry| match select {
            Select::NotValidIn(copy) => !part.mask.contains(copy),
            Select::CleanIn(copy) => could_be_evicted(part, copy),
            Select::Hinted(_) => false,
            Select::Listed => part.mask != default,
        };
        let mut spans = Vec::new();
        joined.each_part(range, |part| {
            if fits(&part) {
                part.span().add_to(&mut spans);
            }
            spans.len() <= max
        })?;
        spans.truncate(max);
        Ok(spans)
    }

    /// Approximate number of bytes that could be evicted from `copy`, 0 if there are none. This
    /// only reads a word of the shared state.
    pub fn clean_bytes(&self, copy: CopyId) -> Result<u64> {
        Ok(self.joined()?.shared.clean(copy))
    }

    /// Ranges that could be evicted from `copy`, together at least `bytes` long if there are that
    /// many. Ranges of the least recently used segments come first. The segments are examined one
    /// by one where that is less work than reading the whole map.
    pub fn least_recent(&self, copy: CopyId, bytes: u64) -> Result<Vec<Span>> {
        let joined = self.joined()?;
        let mut found = Found { spans: Vec::new(), missing_bytes: bytes };
        let (entries, segments) = joined.extent()?;
        if segments <= entries {
            for (_, segment) in joined.by_last_use(0..segments) {
                joined.each_part(of_segment(segment), |part| {
                    !could_be_evicted(&part, copy) || found.add(part.span())
                })?;
                if found.missing_bytes == 0 {
                    break;
                }
            }
            return Ok(found.spans);
        }
        let mut by_segment: HashMap<u64, Vec<Span>> = HashMap::new();
        joined.each_part(0..u64::MAX, |part| {
            if could_be_evicted(&part, copy) {
                for piece in pieces(&part) {
                    by_segment.entry(piece.start >> SEGMENT_BITS).or_default().push(piece);
                }
            }
            true
        })?;
        for (_, segment) in joined.by_last_use(by_segment.keys().copied()) {
            let spans = by_segment.remove(&segment).unwrap_or_default();
            if !spans.into_iter().all(|span| found.add(span)) {
                break;
            }
        }
        Ok(found.spans)
    }

    /// Whether a copier operation is in progress, or was when its process died.
    pub fn is_copying(&self) -> Result<bool> {
        Ok(!self.joined()?.shared.slot().is_idle())
    }

    /// The space that the map takes.
    pub fn space(&self) -> Result<Space> {
        let joined = self.joined()?;
        let txn = joined.read()?;
        let (entries, entry_bytes) = joined.index.size(&txn)?;
        let index_bytes = joined.index.env.used_bytes()?;
        let journal_bytes = crate::journal::Position::load(&joined.shared).end;
        Ok(Space { entries, entry_bytes, index_bytes, journal_bytes })
    }
}

/// The space that a map takes; see [`Map::space`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Number of ranges listed.
    pub entries: u64,
    /// Bytes of the pages that hold the ranges.
    pub entry_bytes: u64,
    /// Bytes of the index in use, free pages included.
    pub index_bytes: u64,
    /// Length of the journal, bytes.
    pub journal_bytes: u64,
}

/// Ranges found for eviction.
struct Found {
    spans: Vec<Span>,
    missing_bytes: u64,
}

impl Found {
    /// Adds a span while bytes are missing. Returns whether more are missing.
    fn add(&mut self, span: Span) -> bool {
        if self.missing_bytes > 0 {
            self.missing_bytes = self.missing_bytes.saturating_sub(span.len());
            self.spans.push(span);
        }
        self.missing_bytes > 0
    }
}

fn could_be_evicted(part: &Entry, copy: CopyId) -> bool {
    part.mask.contains(copy) && !part.mask.is_only(copy)
}

/// The spans of an entry, one per segment; a very long entry is returned whole.
fn pieces(part: &Entry) -> Vec<Span> {
    let span = part.span();
    let segments = segments(&span.range());
    if segments.end - segments.start > PIECE_SEGMENTS_MAX {
        return vec![span];
    }
    segments.filter_map(|segment| span.cut(&of_segment(segment))).collect()
}

impl Joined {
    /// Number of entries, and number of segments up to the end of the last entry.
    fn extent(&self) -> Result<(u64, u64)> {
        let txn = self.read()?;
        let (entries, _) = self.index.size(&txn)?;
        let end = self.index.map.end(&txn)?;
        Ok((entries, segments(&(0..end)).end))
    }

    /// Segments sorted by last use, the least recently used one first.
    fn by_last_use(&self, segments: impl Iterator<Item = u64>) -> Vec<(u64, u64)> {
        let mut sorted: Vec<(u64, u64)> =
            segments.map(|segment| (self.shared.last_use(segment), segment)).collect();
        sorted.sort_unstable();
        sorted
    }

    fn hints(&self, range: Range<u64>, copy: CopyId, max: usize) -> Result<Vec<Span>> {
        let txn = self.read()?;
        let (mut spans, mut more) = (Vec::new(), true);
        let mut inner = Ok(());
        let visited = self.index.hints.visit(&txn, range.clone(), |entry| {
            if entry.mask.contains(copy) {
                let part = entry.start.max(range.start)..entry.end.min(range.end);
                inner = self.index.map.parts(&txn, part, |part| {
                    if !part.mask.contains(copy) {
                        part.span().add_to(&mut spans);
                    }
                    true
                });
                more = inner.is_ok() && spans.len() <= max;
            }
            more
        });
        visited.and(inner)?;
        spans.truncate(max);
        Ok(spans)
    }
}
