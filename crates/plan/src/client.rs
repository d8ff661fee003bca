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
//! Files that are plain now, and all of a native layout, take the time of plain files.

use std::collections::BTreeMap;

use stripewise_cluster::Cluster;
use stripewise_layout::Layout;
use stripewise_model::{ByCall, Call, CallCost};

use crate::mapping::Mapped;
use crate::present::Present;
use crate::problem::Problem;
use crate::serving::Serving;
use crate::workload::{Calls, Group};

/// The kinds of calls that a trace counts by file.
const COUNTED: [Call; 4] = [Call::Open, Call::Create, Call::Close, Call::Stat];

/// The measured costs by tier.
#[derive(Clone, Debug)]
pub struct Client {
    costs: Vec<ByCall<CallCost>>,
    tier_of: Vec<u32>,
    is_pool: Vec<bool>,
}

impl Client {
    /// The costs of a cluster's tiers; `None` if one of them was not measured. It would seem better
    /// than the others.
    pub fn of(cluster: &Cluster) -> Option<Self> {
        let costs = cluster.tiers.iter().map(|tier| cluster.client.get(&tier.name).copied());
        let tiers = (0..).zip(&cluster.tiers);
        Some(Self {
            costs: costs.collect::<Option<_>>()?,
            tier_of: tiers.flat_map(|(index, tier)| vec![index; tier.driver.servers()]).collect(),
            is_pool: cluster.tiers.iter().map(|tier| tier.driver.is_pool()).collect(),
        })
    }

    /// Number of objects by tier on these distinct targets.
    pub fn count_objects(&self, targets: impl Iterator<Item = u32>, objects: &mut [u32]) {
        objects.fill(0);
        targets.for_each(|target| objects[self.tier_of[target as usize] as usize] += 1);
        for (count, _) in objects.iter_mut().zip(&self.is_pool).filter(|(_, is_pool)| **is_pool) {
            *count = (*count).min(1);
        }
    }

    /// A number of objects for each tier, all 0.
    pub fn no_objects(&self) -> Vec<u32> {
        vec![0; self.costs.len()]
    }

    /// Seconds of a call on so many objects of each tier, and on a plain file.
    pub fn seconds(&self, call: Call, objects: &[u32]) -> (f64, f64) {
        let used = || self.costs.iter().zip(objects).filter(|(_, count)| **count > 0);
        let used = || used().map(|(costs, &count)| (costs.of_call(call), f64::from(count)));
        let objects_s: f64 = used().map(|(cost, count)| count * cost.per_object_s).sum();
        let most = used().map(|(cost, _)| *cost).max_by(|one, other| one.base_s.total_cmp(&other.base_s));
        let CallCost { base_s, plain_s, .. } = most.unwrap_or_default();
        (base_s + objects_s, plain_s)
    }
}

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

    /// Seconds that all these calls take.
    pub fn seconds(&self, calls: &[Calls]) -> f64 {
        let of_one = |calls: &Calls| {
            let counts = [calls.opens, calls.creates, calls.closes, calls.stats];
            let all_s: f64 = counts.iter().zip(self.0).map(|(&count, seconds)| count as f64 * seconds).sum();
            calls.times as f64 * all_s / f64::from(calls.procs.max(1))
        };
        calls.iter().map(of_one).sum()
    }
}

/// The number of objects of a file in this layout, by tier.
fn objects_of(client: &Client, layout: &Layout) -> Vec<u32> {
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
    let is_found = matches!(problem.set.present, Present::Known { layout_of: Some(_), .. });
    problem.options.native.is_none() && (candidate.scheme != "present" || is_found)
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
