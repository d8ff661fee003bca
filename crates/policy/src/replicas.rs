//! Hybrid replication (CIL §5): of the copies that may serve a request, the cheapest one serves
//! it.

use crate::costs::{Costs, Kind};
use crate::span::{Span, cover, runs};

/// A range of a request that one copy serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadPart {
    /// First byte, a file offset.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
    /// The copy.
    pub copy: u8,
}

impl Costs {
    /// Chooses the copies that serve a read. Appends the ranges to `parts` in file order; `spans`
    /// cover the request.
    ///
    /// Each span goes to the cheapest of its valid copies, and adjacent spans on the same copy are
    /// joined. The whole request instead goes to the cheapest copy that is valid throughout if that
    /// costs no more than the sum of the ranges' costs.
    pub fn read(&self, kind: Kind, spans: &[Span], parts: &mut Vec<ReadPart>) {
        let (Some(first), Some(last)) = (spans.first(), spans.last()) else { return };
        let (start, end) = (first.start, last.end);
        debug_assert!(cover(spans, start, end), "{spans:?}");
        let common = spans.iter().fold(u8::MAX, |mask, span| mask & span.mask);
        if spans.iter().all(|span| span.mask == common) {
            let copy = self.cheapest(kind, start, end - start, common);
            parts.extend(copy.map(|copy| ReadPart { start, end, copy }));
            return;
        }
        let from = parts.len();
        let cheapest = |span: &Span| {
            let copy = self.cheapest(kind, span.start, span.end - span.start, span.mask)?;
            Some((span.start, span.end, copy))
        };
        let joined = runs(spans.iter().filter_map(cheapest));
        parts.extend(joined.map(|(start, end, copy)| ReadPart { start, end, copy }));
        if let Some((copy, whole_s)) = self.cheapest_with_cost(kind, start, end - start, common) {
            let cost_s = |part: &ReadPart| self.cost_s(part.copy, kind, part.start, part.end - part.start);
            if whole_s <= parts[from..].iter().map(cost_s).sum() {
                parts.truncate(from);
                parts.push(ReadPart { start, end, copy });
            }
        }
    }

    /// Chooses the copy for a write of `len` bytes at `offset`: the cheapest one in `allowed`,
    /// which excludes, for example, the destination of a background copy. The other copies become
    /// stale there. `None` if `allowed` has no copy of the file.
    pub fn write(&self, kind: Kind, offset: u64, len: u64, allowed: u8) -> Option<u8> {
        self.cheapest(kind, offset, len, allowed)
    }
}
