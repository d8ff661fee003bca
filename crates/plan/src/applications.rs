//! Several applications that use the same servers: their traces as one workload, and the time of
//! each.

use std::collections::HashMap;
use std::sync::Arc;

use stripewise_cluster::Cluster;

use crate::candidate::Judged;
use crate::choose::Decision;
use crate::client;
use crate::error::PlanError;
use crate::evaluate::judge_among;
use crate::joint::Stage;
use crate::options::{Objective, Options};
use crate::problem::Problem;
use crate::servers::Servers;
use crate::serving::Serving;
use crate::workload::{FileSet, Group, Workload};

/// The times (or costs) of one application.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ApplicationTimes {
    /// In the present layouts, seconds of all its runs.
    pub now_s: f64,
    /// In the planned layouts, seconds of all its runs.
    pub planned_s: f64,
}

impl Workload {
    /// The workload of several applications, each with the number of times that it runs. Their
    /// groups get the indices of the applications.
    pub fn of_applications(applications: impl IntoIterator<Item = (Workload, u64)>) -> Self {
        let mut all = Self::default();
        let mut known: HashMap<String, usize> = HashMap::new();
        for (application, (workload, times)) in (0..).zip(applications) {
            for mut set in workload.file_sets {
                for group in &mut set.groups {
                    group.application = application;
                    group.times = times;
                }
                for calls in &mut set.calls {
                    (calls.application, calls.times) = (application, times);
                }
                set.uses.iter_mut().for_each(|used| *used = used.of_runs(times));
                let next = all.file_sets.len();
                let place = *known.entry(set.pattern.clone()).or_insert(next);
                if place == next { all.file_sets.push(set) } else { all.file_sets[place].join(set) }
            }
        }
        all.file_sets.sort_by_key(|set| std::cmp::Reverse(set.bytes()));
        all
    }
}

impl FileSet {
    /// Adds the files and requests of another application with the same pattern.
    fn join(&mut self, other: Self) {
        let mut known: HashMap<Arc<str>, u32> =
            (0..).zip(&self.files).map(|(index, file)| (file.name.clone(), index)).collect();
        let mut index_of = Vec::with_capacity(other.files.len());
        let has_uses = !self.uses.is_empty() && !other.uses.is_empty();
        let mut uses = other.uses.into_iter();
        for of_other in other.files {
            let used = uses.next().unwrap_or_default();
            let next = self.files.len() as u32;
            let index = *known.entry(of_other.name.clone()).or_insert(next);
            if index == next {
                self.files.push(of_other);
                self.uses.push(used);
            } else {
                if let Some(of_both) = self.uses.get_mut(index as usize) {
                    of_both.join(&used);
                }
                let file = &mut self.files[index as usize];
                file.size = file.size.max(of_other.size);
                file.others = file.others.max(of_other.others);
            }
            index_of.push(index);
        }
        if !has_uses {
            self.uses.clear();
        }
        for mut group in other.groups {
            group.sample.iter_mut().for_each(|request| request.file = index_of[request.file as usize]);
            self.groups.push(group);
        }
        self.calls.extend(other.calls);
        self.memory.add(&other.memory);
        self.private = self.private && other.private && self.count() > 1;
        self.mapped |= other.mapped;
    }

    /// The files with the requests of one application that are in none of these stages.
    fn outside(&self, application: u32, stages: &[Stage]) -> Self {
        let is_outside =
            |group: &&Group| group.application == application && !stages.iter().any(|stage| stage.has(group));
        let groups = self.groups.iter().filter(is_outside).cloned().collect();
        Self { groups, ..self.clone_without_groups() }
    }

    /// The files with all requests and calls of one application.
    fn of_application(&self, application: u32) -> Self {
        let calls = self.calls.iter().filter(|calls| calls.application == application).copied().collect();
        Self { calls, ..self.outside(application, &[]) }
    }
}

/// The times of each application, by index, up to the last one that has requests.
///
/// # Errors
/// The cluster is unusable.
pub fn times_of(
    workload: &Workload,
    decisions: &[Decision],
    cluster: &Cluster,
    options: &Options,
) -> Result<Vec<ApplicationTimes>, PlanError> {
    let servers = Servers::of(cluster)?;
    let groups = || workload.file_sets.iter().flat_map(|set| &set.groups);
    let count = groups().map(|group: &Group| group.application + 1).max().unwrap_or(0);
    let mut times = vec![ApplicationTimes::default(); count as usize];
    let stages = Stage::all_of(&workload.file_sets, options.objective);
    for (set, decision) in workload.file_sets.iter().zip(decisions) {
        for (application, times) in (0..).zip(&mut times) {
            let has_client_time = servers.client.is_some() || set.has_memory_time();
            if options.objective == Objective::Elapsed && has_client_time {
                let of_one = set.of_application(application);
                let problem = Problem::new(&of_one, cluster, &servers, options, of_one.total_size());
                let seconds = |judged: &Judged| {
                    let serving = Serving::new(&problem, &judged.candidate);
                    client::seconds(&problem, &serving, decision.candidates.len() + 1)
                };
                times.now_s += seconds(&decision.present);
                times.planned_s += seconds(decision.chosen());
            }
            let of_one = set.outside(application, &stages);
            if of_one.groups.is_empty() {
                continue;
            }
            let problem = Problem::new(&of_one, cluster, &servers, options, of_one.total_size());
            let candidates = [&decision.present, decision.chosen()].map(|judged| judged.candidate.clone());
            let judged = judge_among(&problem, candidates.to_vec(), decision.candidates.len() + 1);
            // The client's time was added above, for the groups in stages too.
            let seconds = |judged: &Judged| match options.objective {
                Objective::Elapsed => judged.elapsed_s - judged.client_s.unwrap_or(0.0),
                Objective::Cost => judged.predicted_s(),
            };
            times.now_s += seconds(&judged[0]);
            times.planned_s += seconds(&judged[1]);
        }
    }
    let problem = |set| Problem::new(set, cluster, &servers, options, FileSet::total_size(set));
    let problems: Vec<Problem<'_>> = workload.file_sets.iter().map(problem).collect();
    for stage in &stages {
        let seconds = |of: fn(&Decision) -> &Judged| {
            stage.elapsed_s(|set| decisions[set].placed(&problems[set], of(&decisions[set])))
        };
        let times = &mut times[stage.application as usize];
        times.now_s += seconds(|decision| &decision.present);
        times.planned_s += seconds(Decision::chosen);
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Pattern, cluster, ior};
    use crate::{Present, plan};
    use stripewise_model::Op;

    fn renamed(mut workload: Workload, name: &str) -> Workload {
        let set = &mut workload.file_sets[0];
        set.pattern = name.into();
        set.files.iter_mut().for_each(|file| file.name = name.into());
        workload
    }

    #[test]
    fn applications_are_one_workload() {
        let writer = ior(Pattern::Segmented, Op::Write, 4, 1 << 20, 8);
        let reader = ior(Pattern::Random, Op::Read, 2, 4096, 100);
        let other = renamed(ior(Pattern::Random, Op::Read, 2, 4096, 10), "/data/other");
        let both = Workload::of_applications([(writer.clone(), 1), (reader.clone(), 10), (other, 1)]);
        assert_eq!(both.file_sets.len(), 2, "two of them use the same file");
        let set = &both.file_sets[0];
        assert_eq!(set.files, writer.file_sets[0].files, "the larger size counts");
        assert_eq!(set.bytes(), writer.file_sets[0].bytes() + 10 * reader.file_sets[0].bytes());
        let applications: Vec<u32> = set.groups.iter().map(|group| group.application).collect();
        assert_eq!(applications, [0, 1]);
    }

    #[test]
    fn files_are_joined_by_name() {
        let (one, mut two) = (
            ior(Pattern::FilePerProcess, Op::Write, 4, 4096, 8),
            ior(Pattern::FilePerProcess, Op::Read, 8, 4096, 8),
        );
        two.file_sets[0].files.reverse();
        let both = Workload::of_applications([(one, 1), (two.clone(), 1)]);
        let set = &both.file_sets[0];
        assert_eq!(set.files.len(), 8);
        for (request, joined) in two.file_sets[0].groups[0].sample.iter().zip(&set.groups[1].sample) {
            let name = &two.file_sets[0].files[request.file as usize].name;
            assert_eq!(&set.files[joined.file as usize].name, name);
        }
        assert!(set.private);
    }

    #[test]
    fn many_runs_take_many_times_as_long() {
        let cluster = cluster((4, 5e-3, 8e-9), (2, 5e-5, 2e-9), ("1G", "1G"), (0.0, 0.0));
        for (procs, per_process) in [(64, 2), (4, 525)] {
            let seconds = |times| {
                let once = ior(Pattern::Random, Op::Read, procs, 4096, per_process);
                let workload = Workload::of_applications([(once, times)]);
                let decision = plan(&workload, &cluster, &Options::default()).unwrap().decisions.remove(0);
                (decision.present.elapsed_s, decision.present.predicted_s())
            };
            let (once, often) = (seconds(1), seconds(10));
            assert!((often.0 / once.0 / 10.0 - 1.0).abs() < 1e-9, "{once:?} {often:?}");
            assert!((often.1 / once.1 / 10.0 - 1.0).abs() < 1e-9, "{once:?} {often:?}");
        }
    }

    #[test]
    fn an_application_that_runs_often_counts_as_often() {
        let cluster = cluster((4, 5e-3, 8e-9), (2, 5e-5, 2e-9), ("1G", "4M"), (0.0, 0.0));
        // Each of two applications would fill the fast servers.
        let of = |name: &str| renamed(ior(Pattern::Random, Op::Read, 4, 64 << 10, 32), name);
        let options = Options::default();
        for (times, wins) in [([1, 10], "/data/two"), ([10, 1], "/data/one")] {
            let workload =
                Workload::of_applications([(of("/data/one"), times[0]), (of("/data/two"), times[1])]);
            let workload = Workload {
                file_sets: workload
                    .file_sets
                    .into_iter()
                    .map(|set| FileSet { present: Present::Plain, ..set })
                    .collect(),
            };
            let planned = plan(&workload, &cluster, &options).unwrap();
            let on_ssd =
                |decision: &&Decision| decision.chosen().candidate.layouts.targets().all(|target| target >= 4);
            let winners: Vec<&str> =
                planned.decisions.iter().filter(on_ssd).map(|decision| decision.pattern.as_str()).collect();
            assert_eq!(winners, [wins]);
            let of_each = times_of(&workload, &planned.decisions, &cluster, &options).unwrap();
            let joint = planned.joint.unwrap();
            let sum = |of: fn(&ApplicationTimes) -> f64| of_each.iter().map(of).sum::<f64>();
            assert!((sum(|times| times.now_s) / joint.now_s - 1.0).abs() < 0.01);
            assert!((sum(|times| times.planned_s) / joint.planned_s - 1.0).abs() < 0.01);
        }
    }
}
