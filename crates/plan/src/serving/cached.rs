//! The requests of a cached file that the cache serves: SLA's choice, and the fraction of the
//! chosen data that fits.

use std::collections::HashMap;
use std::hash::Hasher;

use stripewise_cluster::{CacheMode, CopySpec};
use stripewise_policy::{CopyView, Identifier, Kind, Mixer};

use crate::candidate::{Candidate, Placement};
use crate::problem::Problem;
use crate::workload::{Group, Request};

/// Decides which requests are critical, and which of their data fits into the cache.
pub struct Admission<'a> {
    problem: &'a Problem<'a>,
    /// All copies, the original first, and g of each cache copy.
    copies: Vec<Placement<'a>>,
    groups: Vec<u32>,
    mode: CacheMode,
    /// Bytes that cached data of the files may fill, on all servers together.
    pub capacity_bytes: f64,
    /// The effect of the cache.
    pub costs: CacheCosts,
}

/// The predicted handling of one request.
pub struct Expectation<'a> {
    /// Its cost on every copy, seconds.
    pub costs_s: &'a [f64],
    /// The copy in which it gains most; 0, the original, if it is not critical.
    pub critical: usize,
    /// The copy that serves it.
    pub served: usize,
}

/// The effect of a cache on the requests of a problem.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CacheCosts {
    /// Number of requests.
    pub requests: f64,
    /// Number of critical requests.
    pub critical: f64,
    /// Bytes of the data of critical requests, each byte counted once.
    pub critical_bytes: f64,
    /// The fraction of these bytes that fits into the cache.
    pub fits: f64,
    /// Cost of all requests by SLA's model without a cache, process-seconds.
    pub original_s: f64,
    /// The same with the cache.
    pub cached_s: f64,
}

impl<'a> Admission<'a> {
    /// For a candidate with cache copies of `capacity_per_server` bytes. All files of the plan
    /// share the cache in proportion to their sizes.
    pub fn new(
        problem: &'a Problem<'a>,
        candidate: &'a Candidate,
        mode: CacheMode,
        capacity_per_server: u64,
    ) -> Self {
        let mut admission = Self {
            problem,
            copies: candidate.placements(problem.set),
            groups: candidate.copies().iter().map(|copy| copy.groups).collect(),
            mode,
            capacity_bytes: 0.0,
            costs: CacheCosts::default(),
        };
        let mut costs = CacheCosts::default();
        // The gain of the critical requests if all their data fits.
        let (mut saved_s, mut bytes) = (0.0, 0.0);
        let mut extents = Vec::new();
        for group in &problem.set.groups {
            let sample = problem.cost_sample(group, 1 + candidate.copies().len());
            let weight = group.count as f64 / sample.len().max(1) as f64;
            let mut identifiers = HashMap::new();
            for request in sample.iter() {
                let (identifier, kind) = (admission.identifier(&mut identifiers, group, request), kind(group));
                let &Request { file, offset, size, .. } = request;
                let cost_s = |copy| weight * identifier.cost_s(copy, kind, offset, size);
                costs.requests += weight;
                costs.original_s += cost_s(0);
                if let Some(copy) = identifier.critical(kind, offset, size) {
                    costs.critical += weight;
                    saved_s += cost_s(0) - cost_s(copy);
                    bytes += weight * size as f64;
                    extents.push((file, offset, offset + size));
                }
            }
        }
        costs.critical_bytes = (bytes * unique_part(extents)).min(problem.set.total_size() as f64);
        let servers = targets(candidate.copies()).len() as f64;
        let of_set = problem.set.total_size() as f64 / problem.plan_bytes.max(1) as f64;
        let space = capacity_per_server as f64 * servers * of_set.min(1.0);
        costs.fits = if costs.critical_bytes > space { space / costs.critical_bytes } else { 1.0 };
        costs.cached_s = costs.original_s - costs.fits * saved_s;
        (admission.capacity_bytes, admission.costs) = (space, costs);
        admission
    }

    /// Calls `tell` with the cost and the copy of every request of a sample, in order.
    pub fn expect(&self, group: &Group, sample: &[Request], mut tell: impl FnMut(Expectation<'_>)) {
        let mut identifiers = HashMap::new();
        let mut costs_s = vec![0.0; self.copies.len()];
        for request in sample {
            let identifier = self.identifier(&mut identifiers, group, request);
            let (kind, &Request { offset, size, .. }) = (kind(group), request);
            for (copy, cost_s) in costs_s.iter_mut().enumerate() {
                *cost_s = identifier.cost_s(copy, kind, offset, size);
            }
            let critical = identifier.critical(kind, offset, size).unwrap_or(0);
            tell(Expectation { costs_s: &costs_s, critical, served: self.served(critical, request) });
        }
    }

    /// The copy that serves each request of a sample.
    pub fn copies(&self, group: &Group, sample: &[Request]) -> Vec<u8> {
        let mut identifiers = HashMap::new();
        let copy_of = |request: &Request| {
            let identifier = self.identifier(&mut identifiers, group, request);
            let critical = identifier.critical(kind(group), request.offset, request.size);
            self.served(critical.unwrap_or(0), request) as u8
        };
        sample.iter().map(copy_of).collect()
    }

    /// The copy that serves a request whose data should be in the copy `critical`. Whether the data
    /// fit is random by file and offset, but deterministic.
    fn served(&self, critical: usize, request: &Request) -> usize {
        if chance(request) < self.costs.fits { critical } else { 0 }
    }

    /// The identifier of a request's file, for the concurrency of its group.
    fn identifier<'i>(&self, known: &'i mut Identifiers, group: &Group, request: &Request) -> &'i Identifier {
        let file = request.file as usize;
        let layouts = self.copies.iter().map(|copy| copy.layout_of[file]).collect();
        known.entry(layouts).or_insert_with(|| {
            let view = |(copy, &groups): (&Placement<'a>, &u32)| {
                let layout = copy.layout(file);
                CopyView { layout, spread_over: 1, groups }
            };
            let views: Vec<CopyView<'_>> = self.copies[1..].iter().zip(&self.groups).map(view).collect();
            let (classes, procs) = (&self.problem.servers.classes, group.procs.max(1));
            Identifier::new(self.mode, self.copies[0].layout(file), &views, classes, procs)
                .expect("the parameters were checked")
        })
    }
}

/// Identifiers by the layouts that a file has in its copies, the original's first.
type Identifiers = HashMap<Vec<u32>, Identifier>;

fn kind(group: &Group) -> Kind {
    Kind { op: group.op, access: group.access }
}

fn targets(copies: &[CopySpec]) -> Vec<u32> {
    let mut targets: Vec<u32> = copies.iter().flat_map(CopySpec::targets).collect();
    targets.sort_unstable();
    targets.dedup();
    targets
}

/// The fraction of the extents' total length (file, start, end) that remains when every byte counts
/// once.
fn unique_part(mut extents: Vec<(u32, u64, u64)>) -> f64 {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_counts_once() {
        assert_eq!(unique_part(vec![]), 1.0);
        assert_eq!(unique_part(vec![(0, 0, 10), (0, 10, 20), (1, 0, 10)]), 1.0);
        assert_eq!(unique_part(vec![(0, 0, 10), (0, 5, 15), (0, 0, 20), (1, 0, 10)]), 30.0 / 50.0);
    }

    #[test]
    fn chance_is_even() {
        let request = |n: u64| Request { offset: n * 4096, ..Request::default() };
        let below = (0..10_000u64).filter(|&n| chance(&request(n)) < 0.3).count();
        assert!((2_800..3_200).contains(&below), "{below}");
    }
}
