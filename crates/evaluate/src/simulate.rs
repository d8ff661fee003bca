//! Runs a scheme of a cell in the simulator.

use std::collections::HashMap;
use std::path::Path;

use stripewise_cluster::{Cluster, Plan};
use stripewise_plan::Judged;
use stripewise_sim::{Options, Outcome, Rounds, SimError, Simulator};

use crate::cell::{Cell, Part, Scheme};
use crate::plans::{self, Candidates, Planned};
use crate::record::{Place, Record};
use crate::workload;

/// Directory of the simulated files. It is never created.
const BASE: &str = "/data";

/// Simulates the parts one after the other, and returns a record of their times, or of the reason
/// for a failure.
pub fn simulate(cell: &Cell, scheme: &Scheme) -> Record {
    let mut record = Record::of(Place::Simulated, cell, scheme);
    let cluster =
        cell.storage_of(scheme).cluster(&|tier, index| format!("/servers/{tier}{index}").into(), false);
    let planned = match scheme {
        Scheme::FastestCandidate => fastest(cell, &cluster),
        _ => plans::plan(cell, scheme, &cluster, Path::new(BASE)).map_err(|error| error.to_string()),
    };
    let run = planned.and_then(|planned| {
        let outcomes = outcomes(cell, scheme, &planned.plan, &cluster).map_err(|error| error.to_string())?;
        Ok((planned, outcomes))
    });
    match run {
        Ok((planned, outcomes)) => fill(&mut record, &planned, &outcomes),
        Err(why) => record.failed = Some(why),
    }
    record
}

/// Returns the plan with the fastest candidate for every set of files. Parts run one after the
/// other and each uses files of one set, so the fastest candidates of all sets are the fastest
/// together.
fn fastest(cell: &Cell, cluster: &Cluster) -> Result<Planned, String> {
    let scheme = Scheme::FastestCandidate;
    let sets = plans::candidates(cell, cluster, Path::new(BASE)).map_err(|error| error.to_string())?;
    let mut chosen = Vec::new();
    for Candidates { parts, pattern, judged } in sets {
        let part = Cell { parts, ..cell.clone() };
        let elapsed_s = |judged: &Judged| -> Result<f64, String> {
            let planned = plans::planned(&scheme, cluster, vec![(pattern.clone(), judged.clone())]);
            let outcomes =
                outcomes(&part, &scheme, &planned.plan, cluster).map_err(|error| error.to_string())?;
            Ok(outcomes.iter().map(|outcome| outcome.elapsed_s).sum::<f64>())
        };
        let timed = judged.into_iter().map(|judged| Ok::<_, String>((elapsed_s(&judged)?, judged)));
        let timed = timed.collect::<Result<Vec<_>, String>>()?;
        let first = timed.into_iter().min_by(|a, b| a.0.total_cmp(&b.0));
        let (_, judged) = first.ok_or_else(|| format!("no candidate for {pattern}"))?;
        chosen.push((pattern, judged));
    }
    Ok(plans::planned(&scheme, cluster, chosen))
}

/// Returns the outcomes of all parts in the timed run, one after the other.
fn outcomes(cell: &Cell, scheme: &Scheme, plan: &Plan, cluster: &Cluster) -> Result<Vec<Outcome>, SimError> {
    let network = cell.storage.network.establish_s > 0.0 || cell.storage.network.per_byte_s > 0.0;
    let mut simulator = Simulator::new(cluster, Options { network, ..Options::default() })?;
    let mut opened = HashMap::new();
    let mut run = |simulator: &mut Simulator| -> Result<Vec<Outcome>, SimError> {
        let mut outcomes = Vec::new();
        for part in &cell.parts {
            let first_file = open(simulator, &mut opened, part, plan)?;
            for mut round in Rounds::of(part.program.benchmark(), first_file, cell.waits) {
                outcomes.push(simulator.run(&mut round));
            }
        }
        Ok(outcomes)
    };
    let first = run(&mut simulator)?;
    if !matches!(scheme, Scheme::Cache { second_run: true, .. }) {
        return Ok(first);
    }
    // The write-backs and fetches that the first run left over are completed before the second run.
    simulator.drain();
    simulator.warm();
    run(&mut simulator)
}

/// Returns the simulator's number of the first file of a part, and opens the files if no part has
/// done so.
fn open(
    simulator: &mut Simulator,
    opened: &mut HashMap<Vec<String>, u32>,
    part: &Part,
    plan: &Plan,
) -> Result<u32, SimError> {
    let job = part.program.benchmark().job();
    let paths = workload::paths(part, Path::new(BASE));
    if let Some(&first) = opened.get(&paths) {
        return Ok(first);
    }
    let files = simulator.open(plan, &paths, job.processes, job.per_node.min(job.processes))?;
    opened.insert(paths, files.start);
    Ok(files.start)
}

fn fill(record: &mut Record, planned: &Planned, outcomes: &[Outcome]) {
    let sum = |of: fn(&Outcome) -> u64| outcomes.iter().map(of).sum::<u64>();
    let elapsed_s = outcomes.iter().fold(0.0, |sum, outcome| sum + outcome.elapsed_s);
    record.seconds = vec![elapsed_s];
    record.bytes = sum(|outcome| outcome.bytes);
    record.layout.clone_from(&planned.layout);
    record.details.extend(planned.details.clone());
    let mut detail = |name: &str, value: f64| record.details.insert(name.to_owned(), value);
    detail("sub_requests", sum(|outcome| outcome.sub_requests) as f64);
    let servers = outcomes.iter().map(|outcome| outcome.servers.len()).max().unwrap_or(0);
    let busy_s = |server: usize| {
        let of_server = outcomes.iter().filter_map(|outcome| outcome.servers.get(server));
        of_server.fold(0.0, |sum, used| sum + used.busy_s)
    };
    if let Some(busiest_s) = (0..servers).map(busy_s).max_by(f64::total_cmp) {
        detail("busiest_share", if elapsed_s > 0.0 { busiest_s / elapsed_s } else { 0.0 });
    }
    let [hits, critical, admitted_bytes] = [
        sum(|outcome| outcome.counters.hits),
        sum(|outcome| outcome.counters.critical),
        sum(|outcome| outcome.counters.admitted_bytes),
    ];
    if critical > 0 || hits > 0 || admitted_bytes > 0 {
        detail("hits", hits as f64);
        detail("critical", critical as f64);
        detail("admitted_bytes", admitted_bytes as f64);
    }
}
