//! Hybrid replication (CIL §5.1): the cost of a request on every copy of a file, and the copies
//! that serve it.

use stripewise_layout::Layout;
use stripewise_model::{ClassParams, ModelError, Network, PreparedCost, Startup};

use crate::kind::Kind;
use crate::mean::MeanCosts;
use crate::span::{Part, Span, cover, runs};

/// A copy of a file, as the models see it.
#[derive(Clone, Copy, Debug)]
pub struct CopyView<'a> {
    /// The copy's layout.
    pub layout: &'a Layout,
    /// Number of servers over which the processes' files are spread in this copy: the targets of
    /// all layouts of the plan's rule for the copy, which are at least those of `layout`.
    pub spread_over: usize,
    /// g, the number of groups of a cache copy: 1 is 1-DH, the number of the copy's servers is
    /// 1-DV, anything in between is 2-D. Unused for the original and for replicas.
    pub groups: u32,
}

/// The costs of a file's copies. Its functions panic if the file has no such copy.
///
/// The cost of a request on a copy is the mean over all aligned places that a request of its size
/// may have in the layout's region where it begins. Its own place must not matter: where groups or
/// stripes are unequal, every process would choose for each request the copy that has it on servers
/// that few others use, until all processes do.
///
/// Ties are resolved as follows. The first choice is among the copies whose files use only some of
/// the servers and that cost at most [`NEARLY`] more than the cheapest copy: the one with the
/// fewest servers per file (fewer connections, and fewer requests that one slow server delays),
/// then the cheapest, then the lowest number. If there is none, the cheapest copy is chosen, and
/// among equal ones the lowest number.
#[derive(Debug)]
pub struct Costs {
    copies: Vec<MeanCosts>,
    /// Per copy, the number of servers that its file uses; `None` if the processes' files use no
    /// others.
    part_of_servers: Vec<Option<usize>>,
}

/// Costs whose difference is below this fraction are equal.
const TIE: f64 = 1e-12;
/// Costs whose difference is below this fraction are nearly equal, because service times are not
/// known more precisely.
pub const NEARLY: f64 = 0.03;

impl Costs {
    /// Prepares the costs of at most 8 copies. Their layouts use targets whose parameters are in
    /// `classes` by index; `procs` is (p, c).
    ///
    /// A server is shared by as many of the p processes as requests of this size reach it
    /// ([`PreparedCost::by_reach`]), and by more where requests meet at random (`mean`).
    ///
    /// # Errors
    /// A target without a class; invalid times; p or c of 0, or c above p.
    pub fn new(
        copies: &[CopyView<'_>],
        classes: &[ClassParams],
        network: Network,
        procs: (u32, u32),
    ) -> Result<Self, ModelError> {
        let prepare = |copy: &CopyView<'_>, kind: Kind| {
            let services: Vec<_> = classes.iter().map(|class| class.service(kind.op, kind.access)).collect();
            let (layout, servers) = (copy.layout, copy.spread_over);
            PreparedCost::by_reach(layout, &services, servers, network, procs, Startup::EverySharer)
        };
        let copy = |copy: &CopyView<'_>| {
            let prepared = try_all_kinds(|kind| prepare(copy, kind))?;
            Ok(MeanCosts::new(copy.layout, prepared, procs.0, copy.spread_over))
        };
        let part_of_servers = |copy: &CopyView<'_>| {
            let servers = copy.layout.targets().count();
            (servers < copy.spread_over).then_some(servers)
        };
        Ok(Self {
            part_of_servers: copies.iter().map(part_of_servers).collect(),
            copies: copies.iter().map(copy).collect::<Result<_, ModelError>>()?,
        })
    }

    /// The cost in seconds, on a copy, of a request of `len` bytes that begins in the region of
    /// `offset`. Exact at eight sizes per power of two, and interpolated between them.
    pub fn cost_s(&self, copy: usize, kind: Kind, offset: u64, len: u64) -> f64 {
        self.copies[copy].cost_s(kind, offset, len)
    }

    /// The copy of `mask` with the lowest cost for the request, and that cost in seconds; [`Costs`]
    /// describes ties. `None` if `mask` has no copy of the file.
    pub fn cheapest_with_cost(&self, kind: Kind, offset: u64, len: u64, mask: u8) -> Option<(usize, f64)> {
        let mut costs_s = [0.0; 8];
        let mut best: Option<(usize, f64)> = None;
        for copy in in_mask(mask, self.copies.len()) {
            let cost_s = self.cost_s(copy, kind, offset, len);
            costs_s[copy] = cost_s;
            if best.is_none_or(|(_, least_s)| cost_s < least_s * (1.0 - TIE)) {
                best = Some((copy, cost_s));
            }
        }
        let least_s = best?.1;
        let on_few = |copy: usize| {
            let cost_s = costs_s[copy];
            let servers = self.part_of_servers[copy]?;
            (cost_s <= least_s * (1.0 + NEARLY)).then_some((servers, cost_s, copy))
        };
        let on_few = in_mask(mask, self.copies.len()).filter_map(on_few);
        let fewest = on_few.min_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        fewest.map(|(_, cost_s, copy)| (copy, cost_s)).or(best)
    }

    /// The copy that [`Costs::cheapest_with_cost`] returns. It serves a write if `mask` has the
    /// copies that may be written to; the others become stale there. Computes no cost if there is
    /// only one candidate.
    pub fn cheapest(&self, kind: Kind, offset: u64, len: u64, mask: u8) -> Option<usize> {
        let mut copies = in_mask(mask, self.copies.len());
        match (copies.next(), copies.next()) {
            (first, None) => first,
            _ => self.cheapest_with_cost(kind, offset, len, mask).map(|best| best.0),
        }
    }

    /// Chooses the copies that serve a read (CIL §5.1). Appends the ranges to `parts` in file
    /// order; `spans` cover the request.
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
}

/// The copies in a mask, limited to the first `count`.
pub(crate) fn in_mask(mask: u8, count: usize) -> impl Iterator<Item = usize> {
    (0..count.min(8)).filter(move |copy| mask & (1 << copy) != 0)
}

/// Makes a value for every kind of request.
pub(crate) fn try_all_kinds<T>(make: impl Fn(Kind) -> Result<T, ModelError>) -> Result<[T; 4], ModelError> {
    let [a, b, c, d] = Kind::ALL.map(make);
    Ok([a?, b?, c?, d?])
}

/// Calls `use_bytes` with the bytes of a range on each target of a layout. Up to 64 targets nothing
/// is allocated.
pub(crate) fn with_bytes_per_target<T>(
    layout: &Layout,
    offset: u64,
    len: u64,
    use_bytes: impl FnOnce(&[u64]) -> T,
) -> T {
    let (mut on_stack, mut on_heap) = ([0; 64], Vec::new());
    let bytes = match on_stack.get_mut(..layout.target_count()) {
        Some(bytes) => bytes,
        None => {
            on_heap.resize(layout.target_count(), 0);
            &mut on_heap[..]
        }
    };
    layout.bytes_per_target(offset, len, bytes);
    use_bytes(bytes)
}
