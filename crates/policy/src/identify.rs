//! The Data Identifier (SLA §3.3): decides whether a request is performance-critical, and which
//! copy should cache its data.

use std::sync::Arc;

use stripewise_cluster::CacheMode;
use stripewise_layout::Layout;
use stripewise_model::error::at_least_1;
use stripewise_model::{ClassParams, ModelError, Network, PreparedCost, Server, Startup};

use crate::balance::Balance;
use crate::costs::{CopyView, try_all_kinds};
use crate::kind::Kind;
use crate::span::ORIGINAL;

/// The servers of a copy as the processes share them, by [`Kind::index`].
#[derive(Clone, Debug)]
pub struct SharedServers {
    by_kind: [Vec<Server>; 4],
    groups: u32,
}

impl SharedServers {
    /// Targets with the parameters `classes` by index; `procs` is p. The original counts as 1-DH,
    /// one group.
    ///
    /// # Errors
    /// Invalid times.
    pub fn new(classes: &[ClassParams], procs: u32, groups: u32) -> Result<Self, ModelError> {
        let sharing = procs / groups.max(1);
        let servers = |kind: Kind| {
            let server = |class: &ClassParams| Server::new(class.service(kind.op, kind.access), sharing);
            classes.iter().map(server).collect()
        };
        Ok(Self { by_kind: try_all_kinds(servers)?, groups })
    }
}

/// The costs of requests on one copy by SLA's model.
#[derive(Clone, Debug)]
pub struct CopyCosts {
    pub(crate) layout: Layout,
    by_kind: [PreparedCost; 4],
    /// g; 1 is 1-DH.
    groups: u32,
}

impl CopyCosts {
    /// For a file that has this layout in the copy.
    ///
    /// # Errors
    /// A target without a server.
    pub fn new(layout: &Layout, servers: &SharedServers) -> Result<Self, ModelError> {
        let prepare = |kind: Kind| {
            let servers = &servers.by_kind[kind.index()];
            PreparedCost::new(layout, servers, Network::default(), 1, Startup::Expected)
        };
        Ok(Self { layout: layout.clone(), by_kind: try_all_kinds(prepare)?, groups: servers.groups })
    }
}

/// The costs of requests on the original and on every cache copy by SLA's model: the expected
/// startup under contention and the largest sub-request, without the network. Its functions panic
/// if the file has no such copy.
#[derive(Clone, Debug)]
pub struct Identifier {
    mode: CacheMode,
    /// Copy 0 is the original.
    pub(crate) copies: Vec<Arc<CopyCosts>>,
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
        at_least_1("the number of processes", procs)?;
        let on_all = |layout, groups| CopyCosts::new(layout, &SharedServers::new(classes, procs, groups)?);
        let original = on_all(original, 1)?;
        let caches = copies.iter().map(|copy| Ok(Arc::new(on_all(copy.layout, copy.groups)?)));
        Ok(Self::of(mode, Arc::new(original), caches.collect::<Result<Vec<_>, ModelError>>()?))
    }

    /// As [`Identifier::new`], from costs that other files with the same layouts have, too.
    pub fn of(mode: CacheMode, original: Arc<CopyCosts>, caches: Vec<Arc<CopyCosts>>) -> Self {
        let one_dh = caches.iter().position(|copy| copy.groups <= 1).map(|index| index + 1);
        let copies = std::iter::once(original).chain(caches).collect();
        Self { mode, copies, one_dh, balance: None }
    }

    /// Adds a balance: critical writes are admitted only while that keeps the tiers equally busy.
    /// Without it they are admitted whenever there is space, as in Algorithm 1. The balance affects
    /// the modes `sla` and `sca`; `nsca` admits everything, `off` nothing.
    pub fn balanced(self, balance: Balance) -> Self {
        Self { balance: Some(balance), ..self }
    }

    /// T: the cost in seconds of the request of `len` bytes at `offset` on a copy.
    pub fn cost_s(&self, copy: usize, kind: Kind, offset: u64, len: u64) -> f64 {
        self.copies[copy].by_kind[kind.index()].cost(offset, len).total_s()
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
        for copy in 1..self.copies.len() {
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
