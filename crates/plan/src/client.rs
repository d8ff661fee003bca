//! What calls cost the client itself, as measured: the time that no server works.
//!
//! An open, create, close or stat of a file takes `a + b * n` for its n objects, of all copies; a
//! request takes `a + b * n` for the n objects that it touches. A pool over which the file system
//! stripes is one object. If the objects are on several tiers, each costs what its tier's do, and
//! the largest `a` counts. Of a request only the time beyond that of a plain file counts, because
//! the latter is a part of α.
//!
//! Processes make their calls at the same time, and each makes its own one after another. So the
//! calls on a set's files take their sum divided by the largest number of processes that use the
//! files at once, and a group's requests take theirs divided by the processes of the group. These
//! seconds are added to those of the servers, since a process that makes a call does not wait for
//! a request.
//!
//! Requests that memory served (`memory.rs`) take their traced time, which no layout changes. It is
//! the client's, too.
//!
//! Files that are plain now, and all of a native layout, take the time of plain files.

use std::collections::BTreeMap;

use stripewise_layout::Layout;
use stripewise_model::Call;

use crate::call_costs::CallCosts;
use crate::mapping::Mapped;
use crate::present::Present;
use crate::problem::Problem;
use crate::serving::Serving;
use crate::workload::{Calls, Group};

/// The kinds of calls that a trace counts by file.
const COUNTED: [Call; 5] = [Call::Open, Call::Create, Call::Close, Call::Stat, Call::Unlink];

/// The mean time of each kind of call on the files of a set, in a candidate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CallTimes([f64; COUNTED.len()]);

impl CallTimes {
    /// The times in a candidate; all 0 if they were not measured.
    pub fn of(serving: &Serving<'_>) -> Self {
        let (problem, mut times) = (serving.problem, Self::default());
        let Some(client) = &problem.servers.client else { return times };
        // Files whose copies have the same layouts have as many objects.
        let by_layout: Vec<Vec<Vec<u32>>> = (serving.copies.iter())
            .map(|copy| copy.layouts.iter().map(|layout| objects_of(client, layout)).collect())
            .collect();
        let mut known = BTreeMap::<Vec<u32>, u64>::new();
        for (file, listed) in problem.set.files.iter().enumerate() {
            let layouts = serving.copies.iter().map(|copy| copy.layout_of[file]).collect();
            *known.entry(layouts).or_default() += listed.count();
        }
        let files = problem.set.count().max(1) as f64;
        let managed = is_managed(serving);
        for (layouts, count) in known {
            let mut objects = client.no_objects();
            for (of_copy, layout) in by_layout.iter().zip(layouts) {
                let of_layout = &of_copy[layout as usize];
                objects.iter_mut().zip(of_layout).for_each(|(sum, count)| *sum += count);
            }
            for (time, call) in times.0.iter_mut().zip(COUNTED) {
                let (managed_s, plain_s) = client.seconds(call, &objects);
                *time += if managed { managed_s } else { plain_s } * (count as f64 / files);
            }
        }
        times
    }

    /// Seconds that all these calls take, and the requests that memory serves.
    pub fn seconds(&self, calls: &[Calls]) -> f64 {
        let of_one = |calls: &Calls| {
            let counts = [calls.opens, calls.creates, calls.closes, calls.stats, calls.unlinks];
            let all_s: f64 = counts.iter().zip(self.0).map(|(&count, seconds)| count as f64 * seconds).sum();
            calls.times as f64 * all_s / f64::from(calls.procs.max(1)) + calls.memory_s()
        };
        calls.iter().map(of_one).sum()
    }
}

/// The number of objects of a file in this layout, by tier.
fn objects_of(client: &CallCosts, layout: &Layout) -> Vec<u32> {
    let mut targets: Vec<u32> = layout.targets().collect();
    targets.sort_unstable();
    targets.dedup();
    let mut objects = client.no_objects();
    client.count_objects(targets.into_iter(), &mut objects);
    objects
}

/// Whether stripewise manages the files in a candidate.
fn is_managed(serving: &Serving<'_>) -> bool {
    let Serving { problem, candidate, .. } = serving;
    let is_now = matches!(problem.set.present, Present::Known { managed: true, .. });
    problem.options.native.is_none() && (candidate.scheme != "present" || is_now)
}

/// Seconds that the requests of a group take beyond those of plain files. `mapped` is a sample of
/// them.
pub fn requests_s(serving: &Serving<'_>, group: &Group, mapped: &Mapped) -> f64 {
    match &serving.problem.servers.client {
        Some(client) if is_managed(serving) => mapped.client_s(group, client) / f64::from(group.procs.max(1)),
        _ => 0.0,
    }
}

/// Seconds of all calls and requests in a candidate that is compared with others, `count` in all.
pub fn seconds(problem: &Problem<'_>, serving: &Serving<'_>, count: usize) -> f64 {
    let of_group = |group: &Group| {
        let sample = problem.cost_sample(group, count, &serving.copies);
        requests_s(serving, group, &serving.serve(group, &sample).mapped)
    };
    let requests_s: f64 = problem.set.groups.iter().map(of_group).sum();
    CallTimes::of(serving).seconds(&problem.set.calls) + requests_s
}
