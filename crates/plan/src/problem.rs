//! One file set with everything that its planning needs.

use std::borrow::Cow;

use stripewise_cluster::{Cluster, CopySpec, Overlay, OverlayKind};
use stripewise_model::Cost;

use crate::candidate::Candidate;
use crate::mapped::PAGE;
use crate::mapping::Mapped;
use crate::options::Options;
use crate::servers::Servers;
use crate::windows::windows;
use crate::workload::{FileSet, Group, Request};

/// Requests that are costed in all, over all candidates and groups of a set.
const COST_BUDGET: usize = 1 << 25;
/// Requests of a group that are costed for each candidate at least, in windows of so many.
const COST_SAMPLE_MIN: usize = 2048;
const COST_WINDOW: usize = 128;

/// A file set to be planned.
pub struct Problem<'a> {
    /// The files and their requests.
    pub set: &'a FileSet,
    /// The storage.
    pub cluster: &'a Cluster,
    /// The same, by target.
    pub servers: &'a Servers,
    /// What the user chose.
    pub options: &'a Options,
    /// Bytes of all files of all sets: the space of every target is shared out in proportion to size.
    pub plan_bytes: u64,
    /// S: the request size that moves the most bytes.
    pub size: u64,
}

impl<'a> Problem<'a> {
    /// Of a set out of a plan whose files have `plan_bytes` together. The set has at least one request.
    pub fn new(
        set: &'a FileSet,
        cluster: &'a Cluster,
        servers: &'a Servers,
        options: &'a Options,
        plan_bytes: u64,
    ) -> Self {
        Self { set, cluster, servers, options, plan_bytes, size: set.dominant_size() }
    }

    /// What the widths of stripes must be multiples of, where a file system stripes or programs map
    /// the files; `None`: nothing.
    pub fn width_unit(&self) -> Option<u64> {
        let native = self.options.native.is_some();
        let pools = self.cluster.tiers.iter().filter(|tier| native || tier.driver.is_pool());
        let of_pools = pools.filter_map(|tier| tier.driver.native()).map(|(system, _)| system.width_unit());
        of_pools.chain(self.is_mapped().then_some(PAGE)).max()
    }

    /// Whether stripewise must map the files: a file system maps its own layouts, whatever their
    /// stripes.
    pub fn is_mapped(&self) -> bool {
        self.set.mapped && self.options.native.is_none()
    }

    /// What planners round the widths of stripes to, bytes.
    pub fn align(&self) -> u64 {
        self.width_unit().unwrap_or(1).max(PAGE)
    }

    /// Bytes of target `target` that all files of the set may fill together.
    pub fn space_for_set(&self, target: u32) -> u64 {
        self.part_of_space(target, self.set.total_size())
    }

    /// Bytes of target `target` that the set's largest file may fill: `C_s` where the target is an SServer.
    pub fn space_for_file(&self, target: u32) -> u64 {
        self.part_of_space(target, self.set.largest())
    }

    fn part_of_space(&self, target: u32, bytes: u64) -> u64 {
        let capacity = self.servers.capacity(target);
        let share = u128::from(capacity) * u128::from(bytes) / u128::from(self.plan_bytes.max(1));
        u64::try_from(share).unwrap_or(u64::MAX).min(capacity)
    }

    /// The group that moves the most bytes: the kind of request that servers are compared by.
    pub fn main_group(&self) -> &'a Group {
        self.set.groups.iter().max_by_key(|group| group.bytes).expect("a planned set has requests")
    }

    /// Further copies of the files as the user wants them kept, for the main group's processes.
    pub fn overlay(&self, kind: OverlayKind, copies: Vec<CopySpec>) -> Overlay {
        let (options, group) = (&self.options.copies, self.main_group());
        let procs = group.procs.max(1);
        Overlay {
            kind,
            copies,
            lazy_close: options.lazy_close,
            durability: options.durability,
            background: options.background,
            procs,
            procs_per_node: group.procs_per_node.clamp(1, procs),
        }
    }

    /// How long the network link of a client node takes for its processes' part of a group, seconds.
    pub fn client_link_s(&self, group: &Group) -> f64 {
        let share = f64::from(group.procs_per_node) / f64::from(group.procs.max(1));
        group.bytes as f64 * share * self.servers.network().per_byte_s
    }

    /// The overall cost of one of `candidates` candidates.
    pub fn cost(&self, candidate: &Candidate, candidates: usize) -> Cost {
        let layout_of = candidate.layout_of(self.set);
        let of_group = |group: &Group| {
            let sample = self.cost_sample(group, candidates);
            Mapped::new(&sample, &candidate.layouts, &layout_of).cost(group, self.servers)
        };
        self.set.groups.iter().map(of_group).sum()
    }

    /// The requests of a group that are costed for each of `candidates` candidates: all that were kept, unless that
    /// would take too long.
    pub fn cost_sample(&self, group: &'a Group, candidates: usize) -> Cow<'a, [Request]> {
        let evaluations = (candidates * self.set.groups.len()).max(1);
        windows(group, (COST_BUDGET / evaluations).max(COST_SAMPLE_MIN), COST_WINDOW)
    }
}
