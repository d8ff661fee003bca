//! What a request costs on every copy of a file (CIL §5.1).

use crate::mean::MeanCosts;
use stripewise_layout::Layout;
use stripewise_model::{Access, ClassParams, ModelError, Network, Op, PreparedCost, Startup};

/// Direction and order of a request: what decides which α and β count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Read or write.
    pub op: Op,
    /// Whether it goes on where its stream's last request ended, as far as the caller knows.
    pub access: Access,
}

impl Kind {
    /// All of them, each at its [`Kind::index`].
    pub const ALL: [Self; 4] = [
        Self { op: Op::Read, access: Access::Random },
        Self { op: Op::Read, access: Access::Sequential },
        Self { op: Op::Write, access: Access::Random },
        Self { op: Op::Write, access: Access::Sequential },
    ];

    pub(crate) fn index(self) -> usize {
        2 * usize::from(self.op == Op::Write) + usize::from(self.access == Access::Sequential)
    }
}

/// One copy of a file, as costs see it.
#[derive(Clone, Copy, Debug)]
pub struct CopyView<'a> {
    /// The copy's layout.
    pub layout: &'a Layout,
    /// Servers over which this copy of the processes' files is spread: the targets of all layouts of the plan's rule
    /// for the copy; those of `layout` at least.
    pub spread_over: usize,
}

/// The costs of a file's copies. To be made anew when the concurrency changes.
///
/// What a request costs on a copy is the mean over all places, in the region of the layout that it begins in, that aligned
/// requests of its size may have. Its own place must not count: where groups or stripes are unequal, every process would choose
/// for each request the copy that has it on servers that few others use, until all do.
///
/// Ties: of all copies that cost [`NEARLY`] as little as the cheapest, those in which files lie on a part of the servers come
/// first, the fewest servers per file before others (connections, and what one slow server delays), then the cheapest, then the lowest
/// number; where there is none, the cheapest copy counts, of equal ones the lowest number.
#[derive(Debug)]
pub struct Costs {
    copies: Vec<MeanCosts>,
    /// Per copy: the servers that its file lies on, if the processes' files are on others, too.
    part_of_servers: Vec<Option<usize>>,
}

/// Costs that differ by less than this part are equal.
const TIE: f64 = 1e-12;
/// And by less than this part nearly equal: service times are not known better.
pub const NEARLY: f64 = 0.03;

impl Costs {
    /// Of at most 8 copies whose layouts use targets that `classes` describes by index; `procs` is p and c.
    ///
    /// A server is shared by as many of the p processes as requests of the size reach it ([`PreparedCost::by_reach`]), and by
    /// more where requests meet at random (`mean`).
    ///
    /// # Errors
    /// A target without a class; times that are not; p or c of 0, or c above p.
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

    /// Number of copies.
    pub fn copies(&self) -> usize {
        self.copies.len()
    }

    /// Seconds that a request of `len` bytes that begins in the region of `offset` costs on a copy. Interpolated between
    /// eight sizes per power of two, and exact at these.
    ///
    /// # Panics
    /// There is no such copy.
    pub fn cost_s(&self, copy: u8, kind: Kind, offset: u64, len: u64) -> f64 {
        self.copies[usize::from(copy)].cost_s(kind, offset, len)
    }

    /// The copy of `mask` on which the request costs least, and what it costs there; for ties see [`Costs`]. `None` if `mask`
    /// has no copy of the file.
    pub fn cheapest_with_cost(&self, kind: Kind, offset: u64, len: u64, mask: u8) -> Option<(u8, f64)> {
        let mut costs_s = [0.0; 8];
        let mut best: Option<(u8, f64)> = None;
        for copy in in_mask(mask, self.copies.len()) {
            let cost_s = self.cost_s(copy, kind, offset, len);
            costs_s[usize::from(copy)] = cost_s;
            if best.is_none_or(|(_, least_s)| cost_s < least_s * (1.0 - TIE)) {
                best = Some((copy, cost_s));
            }
        }
        let least_s = best?.1;
        let on_few = |copy: u8| {
            let cost_s = costs_s[usize::from(copy)];
            let servers = self.part_of_servers[usize::from(copy)]?;
            (cost_s <= least_s * (1.0 + NEARLY)).then_some((servers, cost_s, copy))
        };
        let on_few = in_mask(mask, self.copies.len()).filter_map(on_few);
        let fewest = on_few.min_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        fewest.map(|(_, cost_s, copy)| (copy, cost_s)).or(best)
    }

    /// As [`Costs::cheapest_with_cost`]; costs nothing where there is no choice.
    pub fn cheapest(&self, kind: Kind, offset: u64, len: u64, mask: u8) -> Option<u8> {
        let mut copies = in_mask(mask, self.copies.len());
        match (copies.next(), copies.next()) {
            (first, None) => first,
            _ => self.cheapest_with_cost(kind, offset, len, mask).map(|best| best.0),
        }
    }
}

/// The copies in a mask, of the first `count`.
pub(crate) fn in_mask(mask: u8, count: usize) -> impl Iterator<Item = u8> {
    (0..count.min(8) as u8).filter(move |copy| mask & (1 << copy) != 0)
}

/// Something for every kind of request.
pub(crate) fn try_all_kinds<T>(make: impl Fn(Kind) -> Result<T, ModelError>) -> Result<[T; 4], ModelError> {
    let [a, b, c, d] = Kind::ALL.map(make);
    Ok([a?, b?, c?, d?])
}
