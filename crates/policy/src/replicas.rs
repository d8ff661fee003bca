//! Hybrid replication (CIL §5): of the copies that may serve a request, the cheapest one serves
//! it.

use crate::costs::Costs;
use crate::kind::Kind;
use crate::span::{Part, Span, cover, runs};

impl Costs {
    /// Chooses the copies that serve a read. Appends the ranges to `parts` in file order; `spans`
    /// cover the request.
    ///
    /// Each span goes to the cheapest of its valid copies, and adjacent spans on the same copy are
    /// joined. The whole request instead goes to the cheapest copy that is valid throughout if that
    /// costs no more than the sum of the ranges' costs.
    pub fn read(&self, kind: Kind, spans: &[Span], parts: &mut impl Extend<Part>) {
        let (Some(first), Some(last)) = (spans.first(), spans.last()) else { return };
        let (start, end) = (first.start, last.end);
        debug_assert!(cover(spans, start, end), "{spans:?}");
        let whole = |copy| Part { start, end, copy };
        let common = spans.iter().fold(u8::MAX, |mask, span| mask & span.mask);
        if spans.iter().all(|span| span.mask == common) {
            parts.extend(self.cheapest(kind, start, end - start, common).map(whole));
            return;
        }
        let cheapest = |span: &Span| {
            self.cheapest(kind, span.start, span.end - span.start, span.mask).map(|copy| span.by(copy))
        };
        let single: Vec<Part> = runs(spans.iter().filter_map(cheapest)).collect();
        let cost_s = |part: &Part| self.cost_s(part.copy, kind, part.start, part.end - part.start);
        match self.cheapest_with_cost(kind, start, end - start, common) {
            Some((copy, whole_s)) if whole_s <= single.iter().map(cost_s).sum() => parts.extend([whole(copy)]),
            _ => parts.extend(single),
        }
    }

    /// Chooses the copy for a write of `len` bytes at `offset`: the cheapest one in `allowed`,
    /// which excludes, for example, the destination of a background copy. The other copies become
    /// stale there. `None` if `allowed` has no copy of the file.
    pub fn write(&self, kind: Kind, offset: u64, len: u64, allowed: u8) -> Option<usize> {
        self.cheapest(kind, offset, len, allowed)
    }
}
