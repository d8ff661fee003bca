//! Judging candidates: the overall cost and a short replay for all, a full replay for the promising
//! and the notable ones.

use std::borrow::Cow;
use std::collections::HashMap;

use rayon::prelude::*;
use stripewise_cluster::Spread;
use stripewise_model::Cost;

use crate::candidate::{Candidate, Judged, Method};
use crate::client::{CallTimes, requests_s};
use crate::elapsed::{Flow, estimate, floor_s, replay};
use crate::layouts::Layouts;
use crate::options::Objective;
use crate::problem::Problem;
use crate::serving::Serving;
use crate::workload::{Group, RUN, Request};

/// A short replay: 2048 requests per group, in windows of at least 256 neighbors and of at least 4
/// requests per process.
pub const SHORT: Effort = Effort { requests: 2048, window: 256, per_process: 4, sub_requests: 1 << 16 };
/// A full replay at its shortest; [`Effort::full`] raises `requests` as far as the budget allows.
pub const FULL: Effort = Effort { requests: 8192, window: RUN, per_process: 16, sub_requests: 1 << 18 };
/// Budget of a file set for full replays: requests summed over all candidates.
const FULL_BUDGET: usize = 1 << 24;
/// Budget of a file set for full replays in a large cluster: sub-requests summed over all
/// candidates.
const FULL_BUDGET_LARGE: usize = 1 << 22;
/// Number of candidates that are always replayed in full in addition to the notable ones: the best
/// by the short replay. At least the number of copies that a file may have.
const FULL_LEAST: usize = 8;

/// Elapsed times within this fraction of the least count as equal: the predictions are no more
/// exact than this.
const EQUAL_ELAPSED: f64 = 0.005;
/// Overall costs within this fraction of the least count as equal: they are sums of formulas, so
/// only rounding differs.
const EQUAL_COST: f64 = 1e-9;

/// How many requests of a group are replayed.
#[derive(Clone, Copy)]
pub struct Effort {
    requests: usize,
    window: usize,
    per_process: usize,
    /// Maximum number of replayed sub-requests of a group in a large cluster.
    sub_requests: usize,
}

impl Effort {
    /// The effort of a full replay when all `candidates` of them share the budget.
    pub fn full(problem: &Problem<'_>, candidates: usize) -> Self {
        let replays = (candidates * problem.set.groups.len()).max(1);
        Self { requests: FULL.requests.max(FULL_BUDGET / replays), ..FULL }
    }

    fn sample<'a>(self, serving: &Serving<'a>, group: &'a Group) -> Cow<'a, [Request]> {
        let window = self.window.max(self.per_process.saturating_mul(group.procs as usize));
        serving.problem.bounded_windows(group, &serving.copies, self.requests.max(window), window)
    }

    fn sub_requests(self, problem: &Problem<'_>) -> usize {
        if problem.is_large() { self.sub_requests } else { usize::MAX }
    }
}

/// Judges all candidates and keeps their order. Candidates with the same layouts are judged once.
pub fn judge(problem: &Problem<'_>, candidates: Vec<Candidate>) -> Vec<Judged> {
    let count = candidates.len();
    judge_among(problem, candidates, count)
}

/// As [`judge`], for some of `count` candidates that will be compared: all of them are judged by
/// the same sample of the requests.
pub fn judge_among(problem: &Problem<'_>, candidates: Vec<Candidate>, count: usize) -> Vec<Judged> {
    let first = first_with_layouts(&candidates);
    let mut judged: Vec<Judged> = candidates
        .into_par_iter()
        .enumerate()
        .map(|(index, candidate)| judge_one(problem, candidate, first[index] == index, count))
        .collect();
    let effort = Effort::full(problem, count);
    for index in worth_a_full_replay(&first, &judged, problem, effort) {
        judged[index].method = Method::Full;
    }
    judged.par_iter_mut().for_each(|judged| {
        if judged.method == Method::Full {
            let servers_s = elapsed(&Serving::new(problem, &judged.candidate), effort);
            judged.elapsed_s = servers_s + judged.client_s.unwrap_or(0.0);
        }
    });
    for index in 0..judged.len() {
        if first[index] != index {
            let candidate = judged[index].candidate.clone();
            judged[index] = Judged { candidate, ..judged[first[index]].clone() };
        }
    }
    judged
}

/// Per candidate: the index of the first one with the same layouts.
fn first_with_layouts(candidates: &[Candidate]) -> Vec<usize> {
    let mut known = HashMap::new();
    let key = |candidate: &Candidate| {
        let spread = |spread: &Spread| (spread.field, spread.stride);
        let copies = candidate.copies().iter();
        let copies: Vec<_> =
            copies.map(|copy| (Layouts::from(&copy.layouts[..]), spread(&copy.spread), copy.groups)).collect();
        (candidate.layouts.clone(), spread(&candidate.spread), candidate.by_file.clone(), copies)
    };
    let first = |(index, candidate)| *known.entry(key(candidate)).or_insert(index);
    candidates.iter().enumerate().map(first).collect()
}

/// Indices of the candidates to replay in full: all notable ones, then the best others as far as
/// the budget allows, at least [`FULL_LEAST`] of them.
fn worth_a_full_replay(
    first: &[usize],
    judged: &[Judged],
    problem: &Problem<'_>,
    effort: Effort,
) -> Vec<usize> {
    let notable = |index: usize| first.iter().zip(judged).any(|(&f, j)| f == index && j.candidate.notable);
    let mut order: Vec<usize> = (0..judged.len()).filter(|&index| first[index] == index).collect();
    order.sort_by(|&a, &b| {
        notable(b).cmp(&notable(a)).then(judged[a].elapsed_s.total_cmp(&judged[b].elapsed_s))
    });
    let must = order.iter().filter(|&&index| notable(index)).count() + FULL_LEAST;
    let each: usize = problem.set.groups.iter().map(|group| group.sample.len().min(effort.requests)).sum();
    let budget = match problem.is_large() {
        true => FULL_BUDGET_LARGE / effort.sub_requests,
        false => FULL_BUDGET / each.max(1),
    };
    order.truncate(must.max(budget));
    order
}

fn judge_one(problem: &Problem<'_>, candidate: Candidate, wanted: bool, candidates: usize) -> Judged {
    let mut judged = Judged::unknown(candidate);
    if !wanted {
        return judged;
    }
    let mut busy_s = vec![0.0; problem.servers.count()];
    let (mut touched, mut client_s) = (0.0, 0.0);
    let serving = Serving::new(problem, &judged.candidate);
    for group in &problem.set.groups {
        let sample = problem.cost_sample(group, candidates, &serving.copies);
        let served = serving.serve(group, &sample);
        judged.cost = judged.cost + served.mapped.cost(group, problem.servers);
        touched += served.mapped.add_busy(group, problem.servers, &mut busy_s);
        client_s += requests_s(&serving, group, &served.mapped);
    }
    judged.background = serving.background();
    client_s += CallTimes::of(&serving).seconds(&problem.set.calls);
    let is_known = problem.servers.client.is_some() || problem.set.has_memory_time();
    judged.client_s = is_known.then_some(client_s);
    judged.elapsed_s = elapsed(&serving, SHORT) + client_s;
    let busiest = (0..busy_s.len()).max_by(|&a, &b| busy_s[a].total_cmp(&busy_s[b]).then(b.cmp(&a)));
    judged.busiest = busiest.unwrap_or(0) as u32;
    judged.busiest_s = busiest.map_or(0.0, |server| busy_s[server]);
    judged.servers_per_request = touched / problem.set.requests().max(1) as f64;
    judged
}

/// Expected wall-clock seconds of a candidate without those of the client, including the wait at
/// close for replicas.
pub fn elapsed(serving: &Serving<'_>, effort: Effort) -> f64 {
    let groups = serving.problem.set.groups.iter();
    groups.map(|group| elapsed_of(serving, group, effort)).sum::<f64>() + serving.wait_at_close_s()
}

/// By group: the expected wall-clock seconds, including the client's for requests, and the overall
/// cost of one of `count` candidates.
pub fn by_group(problem: &Problem<'_>, candidate: &Candidate, count: usize) -> Vec<(f64, Cost)> {
    let (serving, effort) = (Serving::new(problem, candidate), Effort::full(problem, count));
    let of_group = |group: &Group| {
        let sample = problem.cost_sample(group, count, &serving.copies);
        let mapped = serving.serve(group, &sample).mapped;
        let elapsed_s = elapsed_of(&serving, group, effort) + requests_s(&serving, group, &mapped);
        (elapsed_s, mapped.cost(group, problem.servers))
    };
    problem.set.groups.iter().map(of_group).collect()
}

/// Expected wall-clock seconds of all runs of one group.
fn elapsed_of(serving: &Serving<'_>, group: &Group, effort: Effort) -> f64 {
    seconds_of(serving.problem, group, &flow_of(serving, group, effort))
}

/// The flow of a sample of a group.
fn flow_of(serving: &Serving<'_>, group: &Group, effort: Effort) -> Flow {
    let problem = serving.problem;
    let requests = effort.sample(serving, group);
    let mapped = serving.serve(group, &requests).mapped;
    mapped.flow(group, &requests, problem.servers, effort.sub_requests(problem))
}

/// Expected wall-clock seconds of all runs of a group, of which `flow` is a sample.
fn seconds_of(problem: &Problem<'_>, group: &Group, flow: &Flow) -> f64 {
    // With too few requests per process the sample says nothing about their order.
    let per_process = SHORT.per_process as u64 * u64::from(group.procs);
    let servers_s = if (flow.len() as u64) < group.count.min(per_process) {
        let estimate_s = group.count as f64 * estimate(flow, group.procs);
        // Thousands of connections per request are more than the closed form can leave out.
        if problem.is_large() { estimate_s.max(problem.connect_s(group, flow)) } else { estimate_s }
    } else {
        replay(flow, group.count)
    };
    group.times as f64 * servers_s.max(problem.client_link_s(group))
}

/// What some of a set's groups need in all runs, if nothing else uses the servers.
#[derive(Clone, Debug, Default)]
pub struct Load {
    /// Expected wall-clock seconds.
    pub elapsed_s: f64,
    /// The same without waiting: the busiest server works all the time, or a process does.
    pub floor_s: f64,
    /// Seconds that processes wait for the slowest one of a collective call.
    pub rounds_s: f64,
    /// Seconds that each server is busy.
    pub busy_s: Vec<f64>,
}

impl Load {
    /// The load of those groups of a set that are `wanted`, in a candidate. The sample is that for
    /// `count` candidates.
    pub fn of(
        problem: &Problem<'_>,
        candidate: &Candidate,
        count: usize,
        wanted: impl Fn(&Group) -> bool,
    ) -> Self {
        let (serving, effort) = (Serving::new(problem, candidate), Effort::full(problem, count));
        let mut load = Self { busy_s: vec![0.0; problem.servers.count()], ..Self::default() };
        for group in problem.set.groups.iter().filter(|group| wanted(group)) {
            let flow = flow_of(&serving, group, effort);
            let elapsed_s = seconds_of(problem, group, &flow);
            let least_s = (group.count as f64 * floor_s(&flow, group.procs)).max(problem.client_link_s(group));
            load.elapsed_s += elapsed_s;
            load.floor_s += elapsed_s.min(group.times as f64 * least_s);
            if group.collective {
                let free_s = seconds_of(problem, group, &flow.without_rounds());
                load.rounds_s += (elapsed_s - free_s).max(0.0);
            }
            let sample = problem.cost_sample(group, count, &serving.copies);
            serving.serve(group, &sample).mapped.add_busy(group, problem.servers, &mut load.busy_s);
        }
        load
    }

    /// Seconds that the busiest server works.
    pub fn busiest_s(&self) -> f64 {
        self.busy_s.iter().copied().fold(0.0, f64::max)
    }

    /// Adds another load, which follows this one.
    pub fn add(&mut self, other: Self) {
        self.elapsed_s += other.elapsed_s;
        self.floor_s += other.floor_s;
        self.rounds_s += other.rounds_s;
        self.busy_s.resize(self.busy_s.len().max(other.busy_s.len()), 0.0);
        self.busy_s.iter_mut().zip(other.busy_s).for_each(|(sum, busy_s)| *sum += busy_s);
    }
}

/// Those of `picks` that compete. When elapsed times are compared, candidates with only a short
/// replay do not: they were far from the best.
pub fn competing(problem: &Problem<'_>, candidates: &[Judged], picks: &[usize]) -> Vec<usize> {
    let exact = |index: &usize| {
        candidates[*index].method == Method::Full || problem.options.objective == Objective::Cost
    };
    let known: Vec<usize> = picks.iter().copied().filter(exact).collect();
    if known.is_empty() { picks.to_vec() } else { known }
}

/// Index of the candidate with the least objective. Among equally good ones ([`EQUAL_ELAPSED`],
/// [`EQUAL_COST`]) the least value of the other objective decides, then the fewest servers, then
/// the name.
pub fn best_of(problem: &Problem<'_>, candidates: &[Judged], picks: &[usize]) -> usize {
    let picks = competing(problem, candidates, picks);
    let first = |index: usize| problem.options.objective.of(&candidates[index]);
    let least = picks.iter().map(|&index| first(index)).fold(f64::INFINITY, f64::min);
    let (equal, second): (f64, fn(&Judged) -> f64) = match problem.options.objective {
        Objective::Elapsed => (EQUAL_ELAPSED, Judged::predicted_s),
        Objective::Cost => (EQUAL_COST, |judged| judged.elapsed_s),
    };
    let as_good = picks.iter().copied().filter(|&index| first(index) <= least * (1.0 + equal));
    let order = |&a: &usize, &b: &usize| {
        let (a, b) = (&candidates[a], &candidates[b]);
        let servers = || a.candidate.targets().cmp(&b.candidate.targets());
        let name = || a.candidate.name.cmp(&b.candidate.name);
        second(a).total_cmp(&second(b)).then_with(servers).then_with(name)
    };
    as_good.min_by(order).unwrap_or(0)
}
