//! Simulates one plan.

use stripewise_cluster::Plan;
use stripewise_sim::{Options, Outcome, Simulator};
use stripewise_trace::Trace;

use super::args::Args;
use super::replay::Recorded;

/// A simulated plan.
pub struct Simulated {
    pub name: String,
    /// Time in seconds that the planner expects for one run: the sum over the rules that were used.
    pub expected_s: f64,
    pub runs: Vec<Outcome>,
    /// Names of the plan's servers.
    pub servers: Vec<String>,
}

/// Simulates all runs of the traced application on a plan.
///
/// # Errors
/// The trace cannot be read, or the plan has no layout for a file.
pub fn simulate(
    args: &Args,
    trace: &Trace,
    recorded: &Recorded,
    name: &str,
    plan: &Plan,
) -> anyhow::Result<Simulated> {
    let options = Options { network: args.network, seed: args.seed, ..Options::default() };
    let mut simulator = Simulator::new(&plan.cluster, options)?;
    let (procs, per_node) = recorded.concurrency();
    simulator.open(plan, recorded.files(), procs, per_node)?;
    let mut runs = Vec::with_capacity(args.runs as usize);
    for run in 0..args.runs {
        if run > 0 && args.settle {
            simulator.drain();
            simulator.warm();
        }
        runs.push(recorded.replay(trace, args.compute, |streams| simulator.run(streams))?);
    }
    let used =
        |rule: &&stripewise_cluster::Rule| recorded.files().iter().any(|file| rule.matches(file.as_ref()));
    Ok(Simulated {
        name: name.to_owned(),
        expected_s: plan.rules.iter().filter(used).map(|rule| rule.elapsed_s).sum(),
        runs,
        servers: plan.cluster.targets().into_iter().map(|target| target.name).collect(),
    })
}
