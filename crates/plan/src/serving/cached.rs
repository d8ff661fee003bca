//! The requests of a cached file that the cache serves: SLA's choice, and the fraction of the
//! chosen data that fits.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::Hasher;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use stripewise_cluster::{CacheMode, CopySpec, OverlayKind};
use stripewise_policy::{CopyCosts, Identifier, Kind, Mixer, SharedServers};

use crate::candidate::{Candidate, Placement};
use crate::problem::Problem;
use crate::workload::{Group, Request};

/// About the number of searches for a cache's layout, times the servers of a request, that share
/// the budget of requests in a large cluster.
const SEARCHED: usize = 1 << 12;

/// The predicted effect of a cache.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExpectedCache {
    /// The admission mode: `sla`, `sca`, `nsca`, `off`.
    pub mode: String,
    /// Bytes that cached data of these files may fill, on all servers together.
    pub capacity_bytes: f64,
    /// Number of performance-critical requests.
    pub critical_requests: f64,
    /// Bytes that they move.
    pub critical_request_bytes: f64,
    /// Bytes of their data, each byte counted once.
    pub critical_bytes: f64,
    /// The fraction of this data that fits.
    pub fits: f64,
    /// x: the fraction of all requests' time on the original that hits would take there. If hits
    /// took no time, the requests would run 1/(1-x) times as fast.
    pub time_of_hits: f64,
    /// Cost of all requests by SLA's model without a cache, process-seconds.
    pub original_s: f64,
    /// The same with the cache.
    pub cached_s: f64,
    /// The cost with a single layout in the cache: 1-DH, 2-D with every number of groups, 1-DV.
    pub layouts: Vec<CacheLayout>,
}

/// A cache with a single layout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CacheLayout {
    /// `1-DH`, `2-D g=2`, ..., `1-DV`.
    pub name: String,
    /// Whether the plan's cache has this layout.
    pub chosen: bool,
    /// Cost of all requests by SLA's model, process-seconds.
    pub cached_s: f64,
}

/// Decides which requests are critical, and which of their data fits into the cache.
pub struct Admission<'a> {
    problem: &'a Problem<'a>,
    candidate: &'a Candidate,
    /// All copies, the original first.
    copies: Vec<Placement<'a>>,
    mode: CacheMode,
    /// Number of requests.
    pub requests: f64,
    /// The effect of the cache, without [`Admission::time_of_hits`] and the costs of single
    /// layouts.
    pub effect: ExpectedCache,
}

impl<'a> Admission<'a> {
    /// For a candidate with cache copies. All files of the plan share the cache in proportion to
    /// their sizes. `None` for a candidate without a cache.
    pub fn of(problem: &'a Problem<'a>, candidate: &'a Candidate) -> Option<Self> {
        let OverlayKind::Cache { mode, capacity_per_server, .. } = candidate.overlay.as_ref()?.kind else {
            return None;
        };
        let copies = candidate.placements(problem.set);
        let effect = ExpectedCache::default();
        let mut admission = Self { problem, candidate, copies, mode, requests: 0.0, effect };
        let mut effect = ExpectedCache { mode: mode.name().to_owned(), ..ExpectedCache::default() };
        let mut requests = 0.0;
        // The gain of the critical requests if all their data fits.
        let mut saved_s = 0.0;
        let mut extents = Vec::new();
        for group in &problem.set.groups {
            let sample = admission.sample(group);
            let weight = group.weight(sample.len());
            admission.each(group, &sample, |request, critical, cost_s| {
                let original_s = weight * cost_s(0);
                requests += weight;
                effect.original_s += original_s;
                if critical > 0 {
                    let &Request { file, offset, size, .. } = request;
                    effect.critical_requests += weight;
                    effect.critical_request_bytes += weight * size as f64;
                    saved_s += original_s - weight * cost_s(critical);
                    extents.push((file, offset, offset + size));
                }
            });
        }
        let file_bytes = problem.set.total_size() as f64;
        effect.critical_bytes = (effect.critical_request_bytes * unique_fraction(extents)).min(file_bytes);
        let servers = targets(candidate.copies()).len() as f64;
        let of_set = file_bytes / problem.plan_bytes.max(1) as f64;
        let space = capacity_per_server as f64 * servers * of_set.min(1.0);
        effect.capacity_bytes = space;
        effect.fits = if effect.critical_bytes > space { space / effect.critical_bytes } else { 1.0 };
        effect.cached_s = effect.original_s - effect.fits * saved_s;
        (admission.requests, admission.effect) = (requests, effect);
        Some(admission)
    }

    fn sample(&self, group: &'a Group) -> Cow<'a, [Request]> {
        // The search for a cache's layout admits the requests once per group count.
        let admissions = if self.problem.is_large() { SEARCHED } else { 1 };
        self.problem.cost_sample(group, admissions * self.copies.len(), &[])
    }

    /// Calls `tell` for every request of a sample, in order, with the copy that should have its
    /// data (the original if it is not critical) and with its cost on every copy, seconds.
    pub fn each(
        &self,
        group: &Group,
        sample: &[Request],
        mut tell: impl FnMut(&Request, usize, &dyn Fn(usize) -> f64),
    ) {
        let kind = Kind { op: group.op, access: group.access };
        let mut identifiers = Identifiers::new(self, group);
        for request in sample {
            let identifier = identifiers.of(request.file as usize);
            let critical = identifier.critical(kind, request.offset, request.size).unwrap_or(0);
            tell(request, critical, &|copy| identifier.cost_s(copy, kind, request.offset, request.size));
        }
    }

    /// x: the fraction of all requests' time on the original that hits would take there.
    pub fn time_of_hits(&self) -> f64 {
        let mut hits_s = 0.0;
        for group in &self.problem.set.groups {
            let sample = self.sample(group);
            let weight = group.weight(sample.len());
            self.each(group, &sample, |request, critical, cost_s| {
                if self.served(critical, request) > 0 {
                    hits_s += weight * cost_s(0);
                }
            });
        }
        part(hits_s, self.effect.original_s).min(1.0)
    }

    /// The copy that serves each request of a sample.
    pub fn copies(&self, group: &Group, sample: &[Request]) -> Vec<u8> {
        let mut copies = Vec::with_capacity(sample.len());
        self.each(group, sample, |request, critical, _| copies.push(self.served(critical, request) as u8));
        copies
    }

    /// The copy that serves a request whose data should be in the copy `critical`. Whether the data
    /// fit is random by file and offset, but deterministic.
    pub fn served(&self, critical: usize, request: &Request) -> usize {
        if chance(request) < self.effect.fits { critical } else { 0 }
    }
}

/// The identifiers of the files, for the concurrency of one group. Files with the same layout in a
/// copy share the costs there.
struct Identifiers<'s> {
    admission: &'s Admission<'s>,
    /// The servers of every copy, as its requests share them.
    servers: Vec<SharedServers>,
    /// By copy and layout.
    costs: HashMap<(usize, u32), Arc<CopyCosts>>,
    /// By the layouts that a file has in its copies, the original's first.
    known: HashMap<Vec<u32>, Identifier>,
}

impl<'s> Identifiers<'s> {
    fn new(admission: &'s Admission<'s>, group: &Group) -> Self {
        let (classes, procs) = (&admission.problem.servers.classes, group.procs.max(1));
        let groups = std::iter::once(1).chain(admission.candidate.copies().iter().map(|copy| copy.groups));
        let shared = |groups| SharedServers::new(classes, procs, groups).expect("the parameters were checked");
        let (costs, known) = (HashMap::new(), HashMap::new());
        Self { admission, servers: groups.map(shared).collect(), costs, known }
    }

    fn of(&mut self, file: usize) -> &Identifier {
        let layouts = self.admission.copies.iter().map(|copy| copy.layout_of[file]).collect();
        self.known.entry(layouts).or_insert_with_key(|layouts| {
            let costs = |(copy, &layout): (usize, &u32)| {
                let costs = self.costs.entry((copy, layout)).or_insert_with(|| {
                    let layout = &self.admission.copies[copy].layouts[layout as usize];
                    let costs = CopyCosts::new(layout, &self.servers[copy]);
                    Arc::new(costs.expect("the cluster has all targets"))
                });
                Arc::clone(costs)
            };
            let mut costs: Vec<Arc<CopyCosts>> = layouts.iter().enumerate().map(costs).collect();
            let original = costs.remove(0);
            Identifier::of(self.admission.mode, original, costs)
        })
    }
}

fn targets(copies: &[CopySpec]) -> Vec<u32> {
    let mut targets: Vec<u32> = copies.iter().flat_map(CopySpec::targets).collect();
    targets.sort_unstable();
    targets.dedup();
    targets
}

/// The fraction of the extents' total length (file, start, end) that remains when every byte counts
/// once.
fn unique_fraction(mut extents: Vec<(u32, u64, u64)>) -> f64 {
    let all: f64 = extents.iter().map(|extent| (extent.2 - extent.1) as f64).sum();
    extents.sort_unstable();
    let (mut unique, mut last) = (0.0, (u32::MAX, 0));
    for (file, start, end) in extents {
        let from = if last.0 == file { start.max(last.1) } else { start };
        unique += end.saturating_sub(from) as f64;
        last = (file, if last.0 == file { end.max(last.1) } else { end });
    }
    if all > 0.0 { unique / all } else { 1.0 }
}

/// A pseudo-random number from 0 to 1 that depends only on the request's file and offset.
fn chance(request: &Request) -> f64 {
    let mut mixer = Mixer::default();
    mixer.write_u32(request.file);
    mixer.write_u64(request.offset);
    mixer.finish() as f64 / u64::MAX as f64
}

/// Returns `some` divided by `all`, or 0 if `all` is 0.
pub fn part(some: f64, all: f64) -> f64 {
    if all > 0.0 { some / all } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_counts_once() {
        assert_eq!(unique_fraction(vec![]), 1.0);
        assert_eq!(unique_fraction(vec![(0, 0, 10), (0, 10, 20), (1, 0, 10)]), 1.0);
        assert_eq!(unique_fraction(vec![(0, 0, 10), (0, 5, 15), (0, 0, 20), (1, 0, 10)]), 30.0 / 50.0);
    }

    #[test]
    fn chance_is_even() {
        let request = |n: u64| Request { offset: n * 4096, ..Request::default() };
        let below = (0..10_000u64).filter(|&n| chance(&request(n)) < 0.3).count();
        assert!((2_800..3_200).contains(&below), "{below}");
    }
}
