//! Judging candidates: the overall cost and a short replay for all, a longer replay for those that matter.

use std::collections::HashMap;

use rayon::prelude::*;

use crate::candidate::{Candidate, Judged, Method};
use crate::elapsed::{estimate, replay};
use crate::mapping::{Mapped, thin};
use crate::problem::Problem;
use crate::workload::Group;

/// Requests that are replayed per group, and per process of it: in short, and in full.
const SHORT_SAMPLE: usize = 1024;
const SHORT_PER_PROCESS: usize = 4;
const FULL_SAMPLE: usize = 8192;
const FULL_PER_PROCESS: usize = 16;
/// Requests that are costed in all, over all candidates of a set: with more, groups are thinned.
const COST_BUDGET: usize = 1 << 25;
/// Requests that are replayed in full in all, over all candidates of a set.
const FULL_BUDGET: usize = 1 << 22;
/// Candidates that are replayed in full in any case, besides the notable ones: the best by the short replay.
const FULL_LEAST: usize = 8;

/// A candidate to judge.
pub struct Entry {
    /// The candidate.
    pub candidate: Candidate,
    /// Replay it in full, however far it seems from the best: people will look at it.
    pub notable: bool,
}

/// Judges all candidates, in their order. Candidates with the same layouts are judged once.
pub fn judge(problem: &Problem<'_>, entries: Vec<Entry>) -> Vec<Judged> {
    let sampled: usize = problem.set.groups.iter().map(|group| group.sample.len()).sum();
    let all = sampled * entries.len();
    let thinning = all.div_ceil(COST_BUDGET).max(1);
    let first = first_with_layouts(&entries);
    let mut judged: Vec<Judged> = entries
        .par_iter()
        .enumerate()
        .map(|(index, entry)| judge_one(problem, entry, first[index] == index, thinning))
        .collect();
    for index in replay_order(&entries, &first, &judged, problem) {
        judged[index].method = Method::Full;
    }
    judged.par_iter_mut().for_each(|judged| {
        if judged.method == Method::Full {
            judged.elapsed_s = elapsed(problem, &judged.candidate, Method::Full);
        }
    });
    for index in 0..judged.len() {
        let from = first[index];
        if from != index {
            let Judged { candidate, notable, .. } = judged[index].clone();
            judged[index] = Judged { candidate, notable, ..judged[from].clone() };
        }
    }
    judged
}

/// Per entry: the first with the same layouts.
fn first_with_layouts(entries: &[Entry]) -> Vec<usize> {
    let mut known = HashMap::new();
    let key = |candidate: &Candidate| {
        let regions: Vec<_> = candidate.layouts.iter().map(|layout| layout.regions().to_vec()).collect();
        (regions, candidate.spread.field, candidate.spread.stride, candidate.by_file.clone())
    };
    let first = |(index, entry): (usize, &Entry)| *known.entry(key(&entry.candidate)).or_insert(index);
    entries.iter().enumerate().map(first).collect()
}

/// Which candidates to replay in full: the notable ones, and the others, best first, as far as the budget goes.
fn replay_order(entries: &[Entry], first: &[usize], judged: &[Judged], problem: &Problem<'_>) -> Vec<usize> {
    let notable = |index: usize| (0..entries.len()).any(|e| first[e] == index && entries[e].notable);
    let mut order: Vec<usize> = (0..entries.len()).filter(|&index| first[index] == index).collect();
    order.sort_by(|&a, &b| {
        notable(b).cmp(&notable(a)).then(judged[a].elapsed_s.total_cmp(&judged[b].elapsed_s))
    });
    let must = order.iter().filter(|&&index| notable(index)).count() + FULL_LEAST;
    let each: usize = problem.set.groups.iter().map(|group| Method::Full.sample(group)).sum();
    order.truncate(must.max(FULL_BUDGET / each.max(1)));
    order
}

impl Method {
    /// How many requests of a group are replayed at most.
    fn sample(self, group: &Group) -> usize {
        let (in_all, per_process) = match self {
            Self::Short => (SHORT_SAMPLE, SHORT_PER_PROCESS),
            Self::Full => (FULL_SAMPLE, FULL_PER_PROCESS),
        };
        in_all.max(per_process.saturating_mul(group.procs as usize)).min(group.sample.len())
    }
}

fn judge_one(problem: &Problem<'_>, entry: &Entry, wanted: bool, thinning: usize) -> Judged {
    let candidate = &entry.candidate;
    let mut judged = Judged {
        candidate: candidate.clone(),
        notable: entry.notable,
        cost: Default::default(),
        elapsed_s: f64::INFINITY,
        method: Method::Short,
        busiest: 0,
        busiest_s: 0.0,
        servers_per_request: 0.0,
    };
    if !wanted {
        return judged;
    }
    let mut busy_s = vec![0.0; problem.servers.count()];
    let mut touched = 0.0;
    let files = candidate.layout_of(problem.set);
    for group in &problem.set.groups {
        let sample = thin(&group.sample, group.sample.len().div_ceil(thinning));
        let mapped = Mapped::new(&sample, &candidate.layouts, &files);
        judged.cost += mapped.cost(group, problem.servers);
        touched += mapped.add_busy(group, problem.servers, &mut busy_s);
    }
    judged.elapsed_s = elapsed(problem, candidate, Method::Short);
    let busiest = (0..busy_s.len()).max_by(|&a, &b| busy_s[a].total_cmp(&busy_s[b]).then(b.cmp(&a)));
    judged.busiest = busiest.unwrap_or(0) as u32;
    judged.busiest_s = busiest.map_or(0.0, |server| busy_s[server]);
    judged.servers_per_request = touched / problem.set.requests().max(1) as f64;
    judged
}

/// Expected wall-clock seconds of a candidate.
pub fn elapsed(problem: &Problem<'_>, candidate: &Candidate, method: Method) -> f64 {
    let files = candidate.layout_of(problem.set);
    let of_group = |group: &Group| {
        let sample = thin(&group.sample, method.sample(group));
        let flow = Mapped::new(&sample, &candidate.layouts, &files).flow(group, &sample, problem.servers);
        // Too few requests of too many processes tell nothing about their order.
        let sparse = (sample.len() as u64) < group.count.min(u64::from(group.procs) * SHORT_PER_PROCESS as u64);
        let servers_s =
            if sparse { group.count as f64 * estimate(&flow, group.procs) } else { replay(&flow, group.count) };
        servers_s.max(problem.client_link_s(group))
    };
    problem.set.groups.iter().map(of_group).sum()
}
