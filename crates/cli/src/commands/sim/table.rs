//! Output of `sim`.

use serde_json::{Value, json};
use stripewise_sim::Outcome;

use super::Simulated;
use super::replay::Recorded;
use crate::output;

const MIB: f64 = (1u64 << 20) as f64;

/// Prints a table, with the fastest plan first.
pub fn print(recorded: &Recorded, results: &[Simulated], network: bool) {
    let mut order: Vec<&Simulated> = results.iter().collect();
    order.sort_by(|a, b| last(a).elapsed_s.total_cmp(&last(b).elapsed_s));
    let header = "plan|run|simulated s|MiB/s|planner s|busiest server|busy|servers busy|cached".split('|');
    let mut table = output::table(header.collect::<Vec<_>>(), [1, 2, 3, 4, 6, 7, 8]);
    for simulated in order {
        for (number, outcome) in simulated.runs.iter().enumerate() {
            let (busiest, fraction) =
                outcome.busiest().map_or(("", 0.0), |(server, busy)| (&simulated.servers[server], busy));
            table.add_row([
                simulated.name.clone(),
                (number + 1).to_string(),
                format!("{:.4}", outcome.elapsed_s),
                format!("{:.1}", outcome.bytes_per_s() / MIB),
                format!("{:.4}", simulated.expected_s),
                busiest.to_owned(),
                format!("{:.0} %", 100.0 * fraction),
                format!("{:.0} %", 100.0 * mean_busy(outcome)),
                cached(outcome),
            ]);
        }
    }
    println!("{table}");
    let (procs, per_node) = recorded.concurrency();
    println!(
        "{} requests of {procs} processes, {per_node} per node at most, on {} files; {}.",
        recorded.requests(),
        recorded.files.len(),
        if network { "with the network" } else { "without the network" }
    );
}

/// Formats the fraction of requests that a cache served, if there is a cache.
fn cached(outcome: &Outcome) -> String {
    let counters = &outcome.counters;
    match counters.hits + counters.critical {
        0 => String::new(),
        _ => format!("{:.0} %", 100.0 * counters.hits as f64 / outcome.requests.max(1) as f64),
    }
}

/// Returns the fraction of the run for which a server is busy, averaged over all servers.
fn mean_busy(outcome: &Outcome) -> f64 {
    let busy_s: f64 = outcome.servers.iter().map(|server| server.busy_s).sum();
    let all_s = outcome.elapsed_s * outcome.servers.len() as f64;
    if all_s > 0.0 { busy_s / all_s } else { 0.0 }
}

fn last(simulated: &Simulated) -> &Outcome {
    simulated.runs.last().expect("at least one run")
}

/// Returns the complete JSON output.
pub fn json(recorded: &Recorded, results: &[Simulated]) -> Value {
    let (procs, procs_per_node) = recorded.concurrency();
    let run = |outcome: &Outcome| {
        let mut value = json!(outcome);
        value["bytes_per_s"] = json!(outcome.bytes_per_s());
        value["busiest"] = json!(outcome.busiest().map(|busiest| busiest.0));
        value
    };
    let plan = |simulated: &Simulated| {
        let runs: Vec<Value> = simulated.runs.iter().map(run).collect();
        json!({ "plan": simulated.name, "expected_s": simulated.expected_s, "servers": simulated.servers, "runs": runs })
    };
    json!({
        "requests": recorded.requests(),
        "files": recorded.files.len(),
        "procs": procs,
        "procs_per_node": procs_per_node,
        "plans": results.iter().map(plan).collect::<Vec<_>>(),
    })
}
