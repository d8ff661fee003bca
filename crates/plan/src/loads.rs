//! What the requests of a workload ask of each server, in the present layouts and in the planned
//! ones.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use stripewise_cluster::Cluster;

use crate::candidate::Judged;
use crate::choose::Decision;
use crate::error::PlanError;
use crate::options::Options;
use crate::problem::Problem;
use crate::servers::Servers;
use crate::serving::Serving;
use crate::workload::Workload;

/// What requests ask of one server, without the copying in the background.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Demand {
    /// Bytes that it reads or writes.
    pub bytes: f64,
    /// Seconds that this keeps it busy.
    pub busy_s: f64,
}

/// The load of one server in all runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerLoad {
    /// `TIER/INDEX`.
    pub server: String,
    /// With the present layouts.
    pub now: Demand,
    /// With the planned ones.
    pub planned: Demand,
}

/// The load of every server, in the order of the targets.
///
/// # Errors
/// The cluster is unusable.
pub fn loads_of(
    workload: &Workload,
    decisions: &[Decision],
    cluster: &Cluster,
    options: &Options,
) -> Result<Vec<ServerLoad>, PlanError> {
    let servers = Servers::of(cluster)?;
    let plan_bytes = workload.total_size();
    let of_set = |(set, decision): (_, &Decision)| {
        let problem = Problem::new(set, cluster, &servers, options, plan_bytes);
        let of = |judged| demands(&problem, judged, decision.candidates.len() + 1);
        let now = of(&decision.present);
        let planned = if decision.keep { now.clone() } else { of(decision.chosen()) };
        (now, planned)
    };
    let of_sets: Vec<_> = workload.file_sets.par_iter().zip(decisions).map(of_set).collect();
    let unused = |target| ServerLoad {
        server: cluster.name_of(target),
        now: Demand::default(),
        planned: Demand::default(),
    };
    let mut all: Vec<ServerLoad> = (0..servers.count() as u32).map(unused).collect();
    for (now, planned) in of_sets {
        for (all, (now, planned)) in all.iter_mut().zip(now.into_iter().zip(planned)) {
            all.now.add(now);
            all.planned.add(planned);
        }
    }
    Ok(all)
}

/// What the requests of one set ask of every server in a layout that was judged with the sample
/// for `count` candidates.
fn demands(problem: &Problem<'_>, judged: &Judged, count: usize) -> Vec<Demand> {
    let serving = Serving::new(problem, &judged.candidate);
    let mut bytes = vec![0.0; problem.servers.count()];
    let mut busy_s = bytes.clone();
    for group in &problem.set.groups {
        let sample = problem.cost_sample(group, count, &serving.copies);
        let mapped = serving.serve(group, &sample).mapped;
        mapped.add_bytes(group, &mut bytes);
        mapped.add_busy(group, problem.servers, &mut busy_s);
    }
    bytes.into_iter().zip(busy_s).map(|(bytes, busy_s)| Demand { bytes, busy_s }).collect()
}

impl Demand {
    fn add(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.busy_s += other.busy_s;
    }
}
