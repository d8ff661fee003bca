//! The Data Identifier (SLA §3.3): decides whether a request is performance-critical, and which
//! copy should cache its data.

use stripewise_cluster::CacheMode;
use stripewise_layout::Layout;
use stripewise_model::error::at_least_1;
use stripewise_model::{ClassParams, ModelError, Network, PreparedCost, Server, Startup};

use crate::balance::Balance;
use crate::costs::{CopyView, try_all_kinds};
use crate::kind::Kind;
use crate::span::ORIGINAL;

/// The costs of requests on the original and on every cache copy by SLA's model: the expected
/// startup under contention and the largest sub-request, without the network. Its functions panic
/// if the file has no such copy.
#[derive(Clone, Debug)]
pub struct Identifier {
    mode: CacheMode,
    /// Per copy, by [`Kind::index`]; copy 0 is the original.
    costs: Vec<[PreparedCost; 4]>,
    pub(crate) layouts: Vec<Layout>,
    /// The first cache copy in 1-DH.
    one_dh: Option<usize>,
    balance: Option<Balance>,
}

impl Identifier {
    /// Prepares the costs of a file with the layout `original` and at most 7 cache copies (1, 2,
    /// ...). Their targets have the parameters in `classes` by index; `procs` is p.
    ///
    /// Startups are uniform on [α, p·α] on the original, which is assumed to be 1-DH, and on [α,
    /// max(1, ⌊p/g⌋)·α] on a cache copy with g groups (Eq. 7-12).
    ///
    /// # Errors
    /// A target without a class; invalid times; p of 0.
    pub fn new(
        mode: CacheMode,
        original: &Layout,
        copies: &[CopyView<'_>],
        classes: &[ClassParams],
        procs: u32,
    ) -> Result<Self, ModelError> {
        let prepare = |layout: &Layout, sharing: u32, kind: Kind| {
            let server = |class: &ClassParams| Server::new(class.service(kind.op, kind.access), sharing);
            let servers: Vec<Server> = classes.iter().map(server).collect::<Result<_, _>>()?;
            PreparedCost::new(layout, &servers, Network::default(), 1, Startup::Expected)
        };
        at_least_1("the number of processes", procs)?;
        let mut costs = vec![try_all_kinds(|kind| prepare(original, procs, kind))?];
        for copy in copies {
            let sharing = procs / copy.groups.max(1);
            costs.push(try_all_kinds(|kind| prepare(copy.layout, sharing, kind))?);
        }
        let layouts = std::iter::once(original).chain(copies.iter().map(|copy| copy.layout));
        let one_dh = copies.iter().position(|copy| copy.groups <= 1).map(|index| index + 1);
        Ok(Self { mode, costs, layouts: layouts.cloned().collect(), one_dh, balance: None })
    }

    /// Adds a balance: critical writes are admitted only while that keeps the tiers equally busy.
    /// Without it they are admitted whenever there is space, as in Algorithm 1. The balance affects
    /// the modes `sla` and `sca`; `nsca` admits everything, `off` nothing.
    pub fn balanced(self, balance: Balance) -> Self {
        Self { balance: Some(balance), ..self }
    }

    /// T: the cost in seconds of the request of `len` bytes at `offset` on a copy.
    pub fn cost_s(&self, copy: usize, kind: Kind, offset: u64, len: u64) -> f64 {
        self.costs[copy][kind.index()].cost(offset, len).total_s()
    }

    /// `B_l = T_H - T_S(l)`: the seconds that a request saves on a cache copy (Eq. 13-15).
    pub fn benefit_s(&self, copy: usize, kind: Kind, offset: u64, len: u64) -> f64 {
        self.cost_s(ORIGINAL, kind, offset, len) - self.cost_s(copy, kind, offset, len)
    }

    /// The copy that should cache the request's data; `None` if they should not be cached.
    ///
    /// In mode `sla` it is the copy with the largest benefit, if that is above 0 (Eq. 16), and
    /// among equal ones the first; in `sca` the 1-DH copy if its benefit is above 0; in `nsca` the
    /// 1-DH copy; in `off` there is none. A request of 0 bytes is never cached.
    pub fn critical(&self, kind: Kind, offset: u64, len: u64) -> Option<usize> {
        if len == 0 {
            return None;
        }
        match self.mode {
            CacheMode::Off => None,
            CacheMode::Nsca => self.one_dh,
            CacheMode::Sca => self.one_dh.filter(|&copy| self.benefit_s(copy, kind, offset, len) > 0.0),
            CacheMode::Sla => self.most_beneficial(kind, offset, len),
        }
    }

    fn most_beneficial(&self, kind: Kind, offset: u64, len: u64) -> Option<usize> {
        let mut best = None;
        let mut least_s = self.cost_s(ORIGINAL, kind, offset, len);
        for copy in 1..self.costs.len() {
            let cost_s = self.cost_s(copy, kind, offset, len);
            if cost_s < least_s {
                (best, least_s) = (Some(copy), cost_s);
            }
        }
        best
    }

    /// The balance that limits the admission of critical writes, if the mode has one.
    pub(crate) fn balance(&self) -> Option<&Balance> {
        self.balance.as_ref().filter(|_| matches!(self.mode, CacheMode::Sla | CacheMode::Sca))
    }
}
