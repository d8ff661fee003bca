//! Runs a scheme of a cell in the simulator.

use std::collections::HashMap;
use std::path::Path;

use stripewise_cluster::{Cluster, Plan};
use stripewise_sim::{Options, Outcome, Rounds, SimError, Simulator};

use crate::cell::{Cell, Part, Scheme};
use crate::plans::{self, Planned};
use crate::record::{Place, Record};
use crate::workload;

/// Directory of the simulated files. It is never created.
const BASE: &str = "/data";

/// Simulates the parts one after the other, and returns a record of their times, or of the reason
/// for a failure.
pub fn simulate(cell: &Cell, scheme: &Scheme) -> Record {
    let mut record = Record::of(Place::Simulated, cell, scheme);
    let cluster = cell.storage.cluster(&|tier, index| format!("/servers/{tier}{index}").into(), false);
    let planned = plans::plan(cell, scheme, &cluster, Path::new(BASE));
    let run = planned.map_err(|error| error.to_string()).and_then(|planned| {
        let outcomes = outcomes(cell, scheme, &planned.plan, &cluster).map_err(|error| error.to_string())?;
        Ok((planned, outcomes))
    });
    match run {
        Ok((planned, outcomes)) => fill(&mut record, &planned, &outcomes),
        Err(why) => record.failed = Some(why),
    }
    record
}

/// Returns the outcome of every part in the timed run.
fn outcomes(cell: &Cell, scheme: &Scheme, plan: &Plan, cluster: &Cluster) -> Result<Vec<Outcome>, SimError> {
    let network = cell.storage.network.establish_s > 0.0 || cell.storage.network.per_byte_s > 0.0;
    let mut simulator = Simulator::new(cluster, Options { network, ..Options::default() })?;
    let mut opened = HashMap::new();
    let mut run = |simulator: &mut Simulator| -> Result<Vec<Outcome>, SimError> {
        let of_part = |part: &Part| run_part(simulator, &mut opened, part, cell.waits, plan);
        cell.parts.iter().map(of_part).collect()
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

fn run_part(
    simulator: &mut Simulator,
    opened: &mut HashMap<Vec<String>, u32>,
    part: &Part,
    waits: bool,
    plan: &Plan,
) -> Result<Outcome, SimError> {
    let benchmark = part.program.benchmark();
    let job = benchmark.job();
    let paths = workload::paths(part, Path::new(BASE));
    let first_file = match opened.get(&paths) {
        Some(&first) => first,
        None => {
            let files = simulator.open(plan, &paths, job.processes, job.per_node.min(job.processes))?;
            opened.insert(paths, files.start);
            files.start
        }
    };
    let mut sum = Outcome::default();
    for (_, streams) in Rounds::of(benchmark, first_file) {
        let mut streams = if waits { streams } else { streams.without_waiting() };
        add(&mut sum, simulator.run(&mut streams));
    }
    Ok(sum)
}

fn add(sum: &mut Outcome, next: Outcome) {
    sum.elapsed_s += next.elapsed_s;
    sum.requests += next.requests;
    sum.bytes += next.bytes;
    sum.sub_requests += next.sub_requests;
    let counters = [
        (&mut sum.counters.hits, next.counters.hits),
        (&mut sum.counters.partial_hits, next.counters.partial_hits),
        (&mut sum.counters.critical, next.counters.critical),
        (&mut sum.counters.admitted_bytes, next.counters.admitted_bytes),
        (&mut sum.counters.copied_bytes, next.counters.copied_bytes),
        (&mut sum.counters.fetched_bytes, next.counters.fetched_bytes),
    ];
    for (sum, next) in counters {
        *sum += next;
    }
    sum.servers.resize(next.servers.len().max(sum.servers.len()), Default::default());
    for (sum, next) in sum.servers.iter_mut().zip(&next.servers) {
        sum.busy_s += next.busy_s;
        sum.requests += next.requests;
        sum.bytes += next.bytes;
    }
}

fn fill(record: &mut Record, planned: &Planned, outcomes: &[Outcome]) {
    let mut sum = Outcome::default();
    outcomes.iter().for_each(|outcome| add(&mut sum, outcome.clone()));
    record.seconds = vec![sum.elapsed_s];
    record.bytes = sum.bytes;
    record.layout.clone_from(&planned.layout);
    record.details.extend(planned.details.clone());
    let mut detail = |name: &str, value: f64| record.details.insert(name.to_owned(), value);
    detail("sub_requests", sum.sub_requests as f64);
    if let Some((_, share)) = sum.busiest() {
        detail("busiest_share", share);
    }
    let counters = sum.counters;
    if counters.critical > 0 || counters.hits > 0 || counters.admitted_bytes > 0 {
        detail("hits", counters.hits as f64);
        detail("critical", counters.critical as f64);
        detail("admitted_bytes", counters.admitted_bytes as f64);
    }
}
