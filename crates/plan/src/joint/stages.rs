//! Stages: times in which different processes use different files, and so share the servers.
//!
//! A stage takes at least as long as each server works in it, and as each lane takes alone: these
//! are rows of the linear program. How long it really takes is the result of a replay of all its
//! requests together. The groups of a lane follow one another in it, as they do everywhere else.

use std::collections::BTreeMap;

use crate::candidate::Judged;
use crate::elapsed::{Flow, Joining, replay};
use crate::evaluate::Load;
use crate::options::Objective;
use crate::problem::Problem;
use crate::serving::Serving;
use crate::workload::{FileSet, Group, Lane, RUN};

/// Number of requests of a group that are replayed, if it has so many.
const REPLAYED: u64 = 8192;
/// Number of requests of each process that are replayed, if the sample has so many.
const PER_PROCESS: u64 = 16;

/// A stage of an application.
pub struct Stage {
    /// The index of the application.
    pub application: u32,
    number: u32,
    /// How often it runs.
    times: u64,
    /// By lane: its number, and the indices of its sets.
    lanes: BTreeMap<u32, Vec<usize>>,
    /// The fraction of all requests that are replayed.
    fraction: f64,
}

/// A set in a layout.
#[derive(Clone, Copy)]
pub struct Placed<'a> {
    /// The set.
    pub problem: &'a Problem<'a>,
    /// The layout.
    pub judged: &'a Judged,
    /// Number of candidates that it is compared with. They are judged by the same sample.
    pub count: usize,
}

impl Placed<'_> {
    /// Seconds (or cost) of the set outside of stages.
    pub fn outside_s(&self) -> f64 {
        let groups = &self.problem.set.groups;
        if self.problem.options.objective == Objective::Cost || groups.iter().all(|group| group.lane.is_none())
        {
            return self.problem.options.objective.of(self.judged);
        }
        let at_close_s = Serving::new(self.problem, &self.judged.candidate).wait_at_close_s();
        // The client's calls are not replayed with the stages.
        let client_s = self.judged.client_s.unwrap_or(0.0);
        self.load(|group| group.lane.is_none()).elapsed_s + at_close_s + client_s
    }

    /// What those of its groups need that are `wanted`.
    pub fn load(&self, wanted: impl Fn(&Group) -> bool) -> Load {
        Load::of(self.problem, &self.judged.candidate, self.count, wanted)
    }
}

/// Seconds (or cost) of all sets in these layouts.
pub fn total_s(stages: &[Stage], placed: &[Placed<'_>]) -> f64 {
    let outside_s: f64 = placed.iter().map(Placed::outside_s).sum();
    outside_s + stages.iter().map(|stage| stage.elapsed_s(|index| placed[index])).sum::<f64>()
}

impl Stage {
    /// All stages of these sets. An overall cost is a sum, whatever happens at the same time.
    pub fn all_of(sets: &[FileSet], objective: Objective) -> Vec<Self> {
        if objective == Objective::Cost {
            return Vec::new();
        }
        let mut stages = BTreeMap::<(u32, u32), Self>::new();
        for (index, set) in sets.iter().enumerate() {
            for group in &set.groups {
                let Some(Lane { stage: number, number: lane }) = group.lane else { continue };
                let &Group { application, times, .. } = group;
                let new = || Self { application, number, times, lanes: BTreeMap::new(), fraction: 1.0 };
                let stage = stages.entry((application, number)).or_insert_with(new);
                let members = stage.lanes.entry(lane).or_default();
                if members.last() != Some(&index) {
                    members.push(index);
                }
                stage.fraction = stage.fraction.min(replayed(group) as f64 / group.count.max(1) as f64);
            }
        }
        stages.into_values().collect()
    }

    /// The indices of its sets, each once.
    pub fn sets(&self) -> Vec<usize> {
        let mut sets: Vec<usize> = self.lanes.values().flatten().copied().collect();
        sets.sort_unstable();
        sets.dedup();
        sets
    }

    /// Seconds that all runs of the stage take with these layouts, by set.
    pub fn elapsed_s<'a>(&self, placed: impl Fn(usize) -> Placed<'a>) -> f64 {
        let load = self.load(&placed);
        let least_s = load.elapsed_s.max(load.busiest_s());
        let large = |&index: &usize| placed(index).problem.is_large();
        // Wide requests are not replayed on all of their servers, but on others for each group.
        if self.lanes.values().flatten().any(large) {
            return least_s;
        }
        let of_lane = |(&lane, members): (&u32, &Vec<usize>)| {
            members.iter().flat_map(|&member| self.flows(lane, placed(member))).collect()
        };
        let lanes: Vec<Vec<(Flow, f64)>> = self.lanes.iter().map(of_lane).collect();
        let parts = lanes.iter().flat_map(|lane| lane.iter().zip(0..));
        let parts = parts.map(|((flow, weight), index)| Joining { flow, weight: *weight, follows: index > 0 });
        let together_s = replay(&Flow::joined(parts), 0) / self.fraction * self.times as f64;
        together_s.max(least_s)
    }

    /// The load of the stage: the sums of the servers' times, and the longest of the lanes' other
    /// times.
    pub fn load<'a>(&self, placed: impl Fn(usize) -> Placed<'a>) -> Load {
        let mut all = Load::default();
        for (&lane, members) in &self.lanes {
            let mut of_lane = Load::default();
            members.iter().for_each(|&member| of_lane.add(self.load_in(lane, placed(member))));
            let elapsed_s = all.elapsed_s.max(of_lane.elapsed_s);
            let floor_s = all.floor_s.max(of_lane.floor_s);
            let rounds_s = all.rounds_s.max(of_lane.rounds_s);
            all.add(of_lane);
            all = Load { elapsed_s, floor_s, rounds_s, ..all };
        }
        all
    }

    /// The flow of every group of a set that is in a lane, and what its times are multiplied by.
    fn flows(&self, lane: u32, placed: Placed<'_>) -> Vec<(Flow, f64)> {
        let Placed { problem, judged, .. } = placed;
        let serving = Serving::new(problem, &judged.candidate);
        let of_group = |group: &Group| {
            let least = u64::from(group.procs).saturating_mul(PER_PROCESS);
            let most = ((group.count as f64 * self.fraction).ceil() as u64).max(least) as usize;
            let requests = group.windows(most, RUN.max(least as usize).min(most));
            let mapped = serving.serve(group, &requests).mapped;
            let flow = mapped.flow(group, &requests, problem.servers, usize::MAX);
            let weight = group.count as f64 * self.fraction / flow.len().max(1) as f64;
            (flow, weight)
        };
        problem.set.groups.iter().filter(|group| self.has_in(lane, group)).map(of_group).collect()
    }

    /// Whether the requests of a group are in the stage.
    pub fn has(&self, group: &Group) -> bool {
        group.lane.is_some_and(|lane| self.has_in(lane.number, group))
    }

    fn has_in(&self, lane: u32, group: &Group) -> bool {
        group.application == self.application && group.lane == Some(Lane { stage: self.number, number: lane })
    }

    /// What a set needs in a lane.
    fn load_in(&self, lane: u32, placed: Placed<'_>) -> Load {
        placed.load(|group| self.has_in(lane, group))
    }

    /// Number of rows of the program for this stage: one for each of the `space` rows of the space,
    /// and one for each lane.
    pub fn rows(&self, space: usize) -> usize {
        space + self.lanes.len()
    }

    /// What a set in a layout uses of these rows, the first of which is `first`, in one run.
    /// `add_mean` adds the busy seconds of all servers to the `space` rows.
    pub fn uses(
        &self,
        index: usize,
        placed: Placed<'_>,
        (first, space): (usize, usize),
        add_mean: impl Fn(&[f64], &mut [f64]),
    ) -> Vec<(u32, f64)> {
        let mut uses = vec![0.0; self.rows(space)];
        for (place, (&lane, members)) in self.lanes.iter().enumerate() {
            if members.contains(&index) {
                let load = self.load_in(lane, placed);
                add_mean(&load.busy_s, &mut uses);
                uses[space + place] += load.elapsed_s;
            }
        }
        let used = uses.into_iter().map(|seconds| seconds / self.times as f64).zip(first as u32..);
        used.filter(|(seconds, _)| *seconds > 0.0).map(|(seconds, row)| (row, seconds)).collect()
    }

    /// Its weight in the program.
    pub fn weight(&self) -> f64 {
        self.times as f64
    }
}

/// Number of requests of a group to replay.
fn replayed(group: &Group) -> u64 {
    let wanted = REPLAYED.max(u64::from(group.procs).saturating_mul(PER_PROCESS));
    wanted.min(group.sample.len() as u64).max(1)
}
