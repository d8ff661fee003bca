//! The model of the present layouts held against the trace, kind of request by kind of request.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use stripewise_cluster::Cluster;
use stripewise_model::{Access, Op};

use crate::choose::Decision;
use crate::error::PlanError;
use crate::evaluate::by_group;
use crate::options::Options;
use crate::problem::Problem;
use crate::servers::Servers;
use crate::workload::{Calls, FileSet, Group, Workload};

/// The requests of one kind on the files of a set, in one run, without those that memory served.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct KindTimes {
    /// Read or write.
    pub op: Op,
    /// Whether most of them continue where their process's previous one ended.
    pub access: Access,
    /// Whether they are made in collective calls.
    pub collective: bool,
    /// Number of requests.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// p: number of processes that issue them at a time.
    pub procs: u32,
    /// Seconds that a process waited for them according to the trace: the mean of the p processes,
    /// from the sampled requests. A request of more than 4.29 s counts as 4.29 s.
    pub traced_s: f64,
    /// The same according to the model, if nothing else uses the servers meanwhile. Writes include
    /// what a later sync or close waits for.
    pub model_s: f64,
}

/// What the trace shows of the files of a set, and what the model says of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// By kind of request, in the order of the set's groups.
    pub kinds: Vec<KindTimes>,
    /// Seconds that a process waited for syncs and closes in one run of each application: the mean
    /// of the processes that use the files at a time.
    pub flush_s: f64,
}

/// Compares the sets of a workload whose durations are those of real runs. One entry per set.
///
/// # Errors
/// The cluster is unusable.
pub fn compare_kinds(
    workload: &Workload,
    decisions: &[Decision],
    cluster: &Cluster,
    options: &Options,
) -> Result<Vec<Compared>, PlanError> {
    let servers = Servers::of(cluster)?;
    let of_set = |(set, decision): (&FileSet, &Decision)| {
        let problem = Problem::new(set, cluster, &servers, options, set.total_size());
        let predicted = by_group(&problem, &decision.present.candidate, decision.candidates.len() + 1);
        let kinds = set.groups.iter().zip(predicted).map(|(group, (all_runs_s, _))| group.times_of(all_runs_s));
        Compared { kinds: kinds.collect(), flush_s: set.calls.iter().map(Calls::flush_s).sum() }
    };
    Ok(workload.file_sets.par_iter().zip(decisions).map(of_set).collect())
}

impl Group {
    fn times_of(&self, all_runs_s: f64) -> KindTimes {
        let &Self { op, access, collective, count: requests, bytes, procs, .. } = self;
        let sampled_s: f64 = self.sample.iter().map(|request| f64::from(request.took_ns) * 1e-9).sum();
        let weight = requests as f64 / self.sample.len().max(1) as f64;
        let traced_s = weight * sampled_s / f64::from(procs.max(1));
        let model_s = all_runs_s / self.times.max(1) as f64;
        KindTimes { op, access, collective, requests, bytes, procs, traced_s, model_s }
    }
}

impl Calls {
    fn flush_s(&self) -> f64 {
        self.flush_ns as f64 * 1e-9 / f64::from(self.procs.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Pattern, cluster, ior};
    use crate::{Options, plan};

    const BYTES: u64 = 64 << 10;

    /// Four processes read and one writes.
    #[test]
    fn each_kind_has_its_traced_time_and_the_models() {
        let cluster = cluster((4, 5e-3, 8e-9), (2, 5e-4, 2e-9), ("1G", "1G"), (0.0, 0.0));
        let mut workload = ior(Pattern::Random, Op::Read, 4, BYTES, 25);
        let set = &mut workload.file_sets[0];
        set.groups.extend(ior(Pattern::Random, Op::Write, 1, BYTES, 10).file_sets.remove(0).groups);
        for (group, took_ns) in set.groups.iter_mut().zip([6_000_000, 1_000_000]) {
            group.times = 3;
            group.sample.iter_mut().for_each(|request| request.took_ns = took_ns);
        }
        // Half of the reads are sampled.
        (set.groups[0].count, set.groups[0].bytes) = (200, 200 * BYTES);
        set.calls = vec![Calls { times: 3, procs: 2, flush_ns: 90_000_000, ..Calls::default() }];
        let options = Options::default();
        let decisions = plan(&workload, &cluster, &options).unwrap().decisions;
        let compared = compare_kinds(&workload, &decisions, &cluster, &options).unwrap().remove(0);
        let [reads, writes] = compared.kinds[..] else { panic!("{compared:?}") };
        let near = |seconds: f64, expected_s: f64| (seconds / expected_s - 1.0).abs() < 1e-9;
        assert!(near(compared.flush_s, 0.045));
        assert!(near(reads.traced_s, 50.0 * 6e-3) && near(writes.traced_s, 10.0 * 1e-3), "{compared:?}");
        // The file is on one server.
        let [reads_s, writes_s] = [200.0, 10.0].map(|requests| requests * (5e-3 + 8e-9 * BYTES as f64));
        let about = |seconds: f64, expected_s: f64| (seconds / expected_s - 1.0).abs() < 1e-2;
        assert!(about(reads.model_s, reads_s) && about(writes.model_s, writes_s), "{compared:?}");
        assert_eq!((reads.op, reads.requests, reads.bytes, reads.procs), (Op::Read, 200, 200 * BYTES, 4));
        let sum_s = 3.0 * (reads.model_s + writes.model_s);
        assert!(near(decisions[0].present.elapsed_s, sum_s), "{sum_s} {}", decisions[0].present.elapsed_s);
    }
}
