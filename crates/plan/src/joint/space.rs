//! The space that file sets need on the servers.

use std::collections::BTreeSet;

use stripewise_cluster::{CopySpec, OverlayKind};

use crate::candidate::{Candidate, bytes_by_target};
use crate::choose::Decision;
use crate::problem::Problem;

/// The bytes on each server that a set needs: those of its files and replicas, and what it may
/// fill with cached data.
pub fn needed(problem: &Problem<'_>, candidate: &Candidate) -> Vec<u64> {
    let mut bytes = placed(problem, candidate);
    if let Some(per_server) = cache_capacity(candidate) {
        let share = problem.set.total_size() as f64 / problem.plan_bytes.max(1) as f64;
        for target in candidate.copies().iter().flat_map(CopySpec::targets).collect::<BTreeSet<u32>>() {
            let sum = &mut bytes[target as usize];
            *sum = sum.saturating_add((per_server as f64 * share.min(1.0)) as u64);
        }
    }
    bytes
}

/// The bytes on each server of all copies that have all bytes of the files.
fn placed(problem: &Problem<'_>, candidate: &Candidate) -> Vec<u64> {
    let mut copies = candidate.placements(problem.set);
    if cache_capacity(candidate).is_some() {
        copies.truncate(1);
    }
    sum(copies.iter().map(|copy| {
        let layouts = (&copy.layouts[..], &copy.layout_of[..]);
        bytes_by_target(&problem.set.files, layouts, problem.servers.count())
    }))
}

/// The limit of the cached data on each server, bytes, if there are cache copies.
fn cache_capacity(candidate: &Candidate) -> Option<u64> {
    match candidate.overlay.as_ref()?.kind {
        OverlayKind::Cache { capacity_per_server, .. } => Some(capacity_per_server),
        OverlayKind::Replicas => None,
    }
}

/// Sums of the bytes on each server.
pub fn sum(all: impl Iterator<Item = Vec<u64>>) -> Vec<u64> {
    all.reduce(|mut sums, bytes| {
        sums.iter_mut().zip(bytes).for_each(|(sum, bytes)| *sum = sum.saturating_add(bytes));
        sums
    })
    .unwrap_or_default()
}

/// Lowers the limits of cached data to what the files that are placed leave of `space`, bytes by
/// server. Programs fill a cache up to its limit, whatever else the plan has put there.
pub fn limit_caches(chosen: &mut [Decision], problems: &[Problem<'_>], space: &[u64]) {
    let of_set = |(decision, problem): (&Decision, &Problem<'_>)| placed(problem, &decision.chosen().candidate);
    let placed = sum(chosen.iter().zip(problems).map(of_set));
    for decision in chosen.iter_mut().filter(|decision| !decision.keep) {
        let best = decision.best;
        let Some(overlay) = &mut decision.candidates[best].candidate.overlay else { continue };
        let targets = overlay.copies.iter().flat_map(CopySpec::targets);
        let left = targets.map(|target| space[target as usize].saturating_sub(placed[target as usize])).min();
        if let (OverlayKind::Cache { capacity_per_server, .. }, Some(left)) = (&mut overlay.kind, left) {
            *capacity_per_server = left.min(*capacity_per_server);
        }
    }
}
