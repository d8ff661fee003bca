//! One file set with everything that is needed to plan it.

use std::borrow::Cow;

use stripewise_cluster::{Cluster, CopySpec, FileSystem, Overlay, OverlayKind};
use stripewise_model::Cost;

use crate::candidate::{Candidate, Placement};
use crate::counts::EVERY_COUNT;
use crate::elapsed::Flow;
use crate::mapping::{Mapped, pieces_at_most};
use crate::options::Options;
use crate::servers::Servers;
use crate::workload::{FileSet, Group, Request};

/// Page size, bytes. A trace does not record it. A machine with larger pages maps files in these
/// stripes only if the stripes are also multiples of its page size.
pub const PAGE: u64 = 4 << 10;

/// Maximum number of costed requests of a file set, over all candidates and groups.
const COST_BUDGET: usize = 1 << 25;
/// Minimum number of requests of a group that are costed for each candidate, in windows of
/// [`COST_WINDOW`].
const COST_SAMPLE_MIN: usize = 2048;
const COST_WINDOW: usize = 128;
/// Maximum number of pieces into which a group's requests are divided on one copy, in a large
/// cluster; requests that divide in the same way count once.
const PIECES_MAX: usize = 1 << 17;
/// That many requests are mapped however many pieces they have.
const PIECED_LEAST: usize = 64;

/// A file set to plan.
#[derive(Clone, Copy)]
pub struct Problem<'a> {
    /// The files and their requests.
    pub set: &'a FileSet,
    /// The storage servers and the network.
    pub cluster: &'a Cluster,
    /// The cluster's parameters by target.
    pub servers: &'a Servers,
    /// The user's options.
    pub options: &'a Options,
    /// Total size of all files of all sets, bytes. The file sets share the space of every target in
    /// proportion to their sizes.
    pub plan_bytes: u64,
    /// S: the request size that moves the most bytes.
    pub size: u64,
}

impl<'a> Problem<'a> {
    /// The problem of one set of a plan whose files have `plan_bytes` bytes in total. The set must
    /// have at least one request.
    pub fn new(
        set: &'a FileSet,
        cluster: &'a Cluster,
        servers: &'a Servers,
        options: &'a Options,
        plan_bytes: u64,
    ) -> Self {
        Self { set, cluster, servers, options, plan_bytes, size: set.dominant_size() }
    }

    /// Stripe widths must be multiples of this many bytes where a file system stripes or programs
    /// map the files; `None`: any width.
    pub fn width_unit(&self) -> Option<u64> {
        let of_systems = self.systems().map(FileSystem::width_unit);
        of_systems.chain(self.is_mapped().then_some(PAGE)).max()
    }

    /// The smallest width from `width` bytes on that stripes may have.
    pub fn width_above(&self, width: u64) -> u64 {
        let multiple = width.next_multiple_of(self.width_unit().unwrap_or(1));
        self.systems().map(|system| system.width_above(multiple)).fold(multiple, u64::max)
    }

    /// The file systems that stripe themselves.
    pub fn systems(&self) -> impl Iterator<Item = FileSystem> {
        let native = self.options.native.is_some();
        let tiers = self.cluster.tiers.iter().filter(move |tier| native || tier.driver.is_pool());
        tiers.filter_map(|tier| tier.driver.native()).map(|(system, _)| system)
    }

    /// Whether stripewise must map the files. A file system maps its own layouts, whatever their
    /// stripes.
    pub fn is_mapped(&self) -> bool {
        self.set.mapped && self.options.native.is_none()
    }

    /// The multiple to which planners round the widths of stripes, bytes.
    pub fn align(&self) -> u64 {
        self.width_unit().unwrap_or(1).max(PAGE)
    }

    /// Bytes of each target that all files of the set together may fill.
    pub fn space_for_set(&self) -> Vec<u64> {
        let bytes = self.set.total_size();
        (0..self.servers.count() as u32).map(|target| self.part_of_space(target, bytes)).collect()
    }

    /// The targets, each with its bytes that the set's largest file may fill: `C_s` if the target
    /// is an SServer.
    pub fn space_for_file(&self, targets: &[u32]) -> Vec<(u32, u64)> {
        let bytes = self.set.largest();
        targets.iter().map(|&target| (target, self.part_of_space(target, bytes))).collect()
    }

    fn part_of_space(&self, target: u32, bytes: u64) -> u64 {
        let capacity = self.servers.capacities[target as usize];
        let share = u128::from(capacity) * u128::from(bytes) / u128::from(self.plan_bytes.max(1));
        u64::try_from(share).unwrap_or(u64::MAX).min(capacity)
    }

    /// The group that moves the most bytes. Servers are compared by its kind of requests.
    pub fn main_group(&self) -> &'a Group {
        self.set.groups.iter().max_by_key(|group| group.all_bytes()).expect("a planned set has requests")
    }

    /// The numbers of processes and of their files, which the groups of 2-D divide among
    /// themselves.
    pub fn sharers(&self) -> [usize; 2] {
        let files = if self.set.private { self.set.count() as usize } else { 1 };
        [self.main_group().procs as usize, files]
    }

    /// The overlay of files with extra copies, with the user's options, for the main group's
    /// processes.
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

    /// Seconds that a client node's network link needs for its processes' share of a group.
    pub fn client_link_s(&self, group: &Group) -> f64 {
        let share = f64::from(group.procs_per_node) / f64::from(group.procs.max(1));
        group.bytes as f64 * share * self.servers.network.per_byte_s
    }

    /// Seconds that a client node needs for its processes' share of a group's connections.
    pub fn connect_s(&self, group: &Group, flow: &Flow) -> f64 {
        let share = f64::from(group.procs_per_node) / f64::from(group.procs.max(1));
        group.count as f64 * share * flow.connections() * self.servers.network.establish_s
    }

    /// The overall cost of `candidate`, which is one of `candidates` that share the budget.
    pub fn cost(&self, candidate: &Candidate, candidates: usize) -> Cost {
        let copies = [candidate.original(self.set)];
        let of_group = |group: &Group| {
            Mapped::new(&self.cost_sample(group, candidates, &copies), &copies[0]).cost(group, self.servers)
        };
        self.set.groups.iter().map(of_group).sum()
    }

    /// The requests of a group to cost for each of `candidates` candidates: the whole sample,
    /// unless it exceeds the budget. They will be mapped to `copies`.
    pub fn cost_sample(
        &self,
        group: &'a Group,
        candidates: usize,
        copies: &[Placement<'_>],
    ) -> Cow<'a, [Request]> {
        let evaluations = (candidates * self.set.groups.len()).max(1);
        self.bounded_windows(group, copies, (COST_BUDGET / evaluations).max(COST_SAMPLE_MIN), COST_WINDOW)
    }

    /// As [`Group::windows`]; in a large cluster fewer requests if they have more than
    /// [`PIECES_MAX`] pieces on one of the copies.
    pub fn bounded_windows(
        &self,
        group: &'a Group,
        copies: &[Placement<'_>],
        limit: usize,
        window: usize,
    ) -> Cow<'a, [Request]> {
        let mut sample = group.windows(limit, window);
        while self.is_large() && sample.len() > PIECED_LEAST {
            let pieces = copies.iter().map(|copy| pieces_at_most(&sample, copy, PIECES_MAX)).max().unwrap_or(0);
            if pieces <= PIECES_MAX {
                break;
            }
            let fewer = sample.len() as f64 * (PIECES_MAX as f64 / pieces as f64);
            let limit = (fewer as usize).clamp(PIECED_LEAST, (sample.len() / 2).max(PIECED_LEAST));
            sample = group.windows(limit, window.min(limit));
        }
        sample
    }

    /// Whether the cluster has so many servers that planning bounds the number of sub-requests, not
    /// only that of requests.
    pub fn is_large(&self) -> bool {
        self.servers.count() > EVERY_COUNT
    }
}
