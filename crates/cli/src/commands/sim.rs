//! `stripewise sim` simulates a traced application on plans in virtual time.

mod replay;

use std::collections::HashSet;
use std::path::PathBuf;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use stripewise_cluster::{Plan, Rule, RuleIndex};
use stripewise_console::progress;
use stripewise_plan::{Judged, plan, to_plan};
use stripewise_sim::{Options, Outcome, Simulator};
use stripewise_trace::Trace;
use stripewise_trace::summary::MAX_GROUPS;

use super::plan::read_workload;
use crate::flags::ClusterFlags;
use crate::{files, output};
use replay::Recorded;

/// Simulates a traced application on plans: how long it would take, and which server would be
/// busiest
///
/// Every traced process issues its requests one after the other, as fast as the plan's servers
/// serve them. A server serves requests in order of arrival, and each takes the time that the
/// parameters of the server's class give. Files with several copies are served by the same
/// decisions as at run time. None of the application's files is read or written, and the servers
/// need not exist.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  stripewise sim app.trace -c cluster.toml                       the planner's best candidates
  stripewise sim app.trace -p now.toml -p new.toml --network     two plans
  stripewise sim app.trace -p cache.toml --runs 2 --settle       what a second run gains from a cache
  stripewise synth ior --procs 4096 --transfer 1M --total 64G --shared -o big.trace && stripewise sim big.trace -c big.toml --json")]
pub struct Args {
    /// The trace, from `stripewise trace` or `stripewise synth`
    trace: PathBuf,
    /// A plan to simulate; may be given several times [default: the best candidates of
    /// `stripewise plan`]
    #[arg(short, long = "plan", value_name = "PLAN.TOML", env = "STRIPEWISE_PLAN", value_delimiter = ':')]
    plans: Vec<PathBuf>,
    #[command(flatten)]
    cluster: ClusterFlags,
    /// Without plans: number of candidates to simulate, starting with those that the planner
    /// expects to be fastest
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    top: u32,
    /// Simulate the network, too: connections (e) and bytes (t), at the nodes of the processes and
    /// at the servers
    #[arg(long)]
    network: bool,
    /// Treat the time between a process's requests as computation, which takes as long as in the
    /// trace
    #[arg(long)]
    compute: bool,
    /// Number of runs of the application, one after the other; caches keep their content between
    /// runs
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Between runs, write back caches, synchronize replicas and fetch what the prefetch queue
    /// holds, as `stripewise drain` and `stripewise warm` do
    #[arg(long)]
    settle: bool,
    /// Random seed for the service times, which vary by 1 %
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Simulate a trace that is known to lack calls
    #[arg(long, env = "STRIPEWISE_ACCEPT_INCOMPLETE")]
    accept_incomplete: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Show no progress bar
    #[arg(short, long, env = "STRIPEWISE_QUIET")]
    quiet: bool,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let trace = files::trace(&args.trace, args.accept_incomplete, "simulate")?;
    let plans = if args.plans.is_empty() { candidates(args, &trace)? } else { read(&args.plans)? };
    let recorded = Recorded::of(&trace)?;
    ensure!(recorded.requests() > 0, "{}: the trace has no reads and no writes", args.trace.display());
    let bar = progress::sharing("simulating", args.quiet);
    let mut results = Vec::with_capacity(plans.len());
    for (index, (name, plan)) in plans.iter().enumerate() {
        bar.set_message(name.clone());
        results.push(simulate(args, &trace, &recorded, name, plan).with_context(|| name.clone())?);
        progress::share(&bar, (index + 1) as f64 / plans.len() as f64);
    }
    bar.finish_and_clear();
    if args.json {
        return output::json(&to_json(&recorded, &results));
    }
    print(&recorded, &results, args.network);
    Ok(())
}

fn read(paths: &[PathBuf]) -> anyhow::Result<Vec<(String, Plan)>> {
    let plan = |path: &PathBuf| Ok((path.display().to_string(), files::plan(path)?.unfolded()));
    paths.iter().map(plan).collect()
}

/// Returns the candidates that the planner expects to be fastest, by name. If groups of files have
/// different candidates, each group gets the candidate of that name, or else its best one.
fn candidates(args: &Args, trace: &Trace) -> anyhow::Result<Vec<(String, Plan)>> {
    let (cluster, _) = args.cluster.read()?;
    let options = stripewise_plan::Options::default();
    let workload = read_workload(trace, MAX_GROUPS, args.quiet)?.divided(&cluster, &options)?;
    let decisions = plan(&workload, &cluster, &options)?.decisions;
    let Some(largest) = decisions.iter().max_by_key(|decision| decision.requests) else {
        return Ok(Vec::new());
    };
    let mut order: Vec<&Judged> = largest.candidates.iter().collect();
    order.sort_by(|a, b| a.elapsed_s.total_cmp(&b.elapsed_s));
    order.truncate(args.top as usize);
    let named = |name: &str| {
        let mut decisions = decisions.clone();
        for decision in &mut decisions {
            let of_name = decision.candidates.iter().position(|judged| judged.candidate.name == name);
            (decision.best, decision.keep) = (of_name.unwrap_or(decision.best), false);
        }
        (name.to_owned(), to_plan(&decisions, &cluster, &options))
    };
    Ok(order.iter().map(|judged| named(&judged.candidate.name)).collect())
}

struct Simulated {
    name: String,
    /// Time in seconds that the planner expects for one run: the sum over the rules that were used.
    expected_s: f64,
    runs: Vec<Outcome>,
    /// Names of the plan's servers.
    servers: Vec<String>,
}

/// Simulates all runs of the traced application on a plan.
fn simulate(
    args: &Args,
    trace: &Trace,
    recorded: &Recorded,
    name: &str,
    plan: &Plan,
) -> anyhow::Result<Simulated> {
    let options = Options { network: args.network, seed: args.seed, ..Options::default() };
    let mut simulator = Simulator::new(&plan.cluster, options)?;
    let (procs, per_node) = recorded.concurrency();
    simulator.open(plan, &recorded.files, procs, per_node)?;
    let mut runs = Vec::with_capacity(args.runs as usize);
    for run in 0..args.runs {
        if run > 0 && args.settle {
            simulator.drain();
            simulator.warm();
        }
        runs.push(recorded.replay(trace, args.compute, |streams| simulator.run(streams))?);
    }
    let index = RuleIndex::of(plan);
    let rules = recorded.files.iter().filter_map(|file| index.rule_for(plan, file.as_ref()));
    let used: HashSet<*const Rule> = rules.map(std::ptr::from_ref).collect();
    let used = |rule: &&Rule| used.contains(&std::ptr::from_ref(*rule));
    Ok(Simulated {
        name: name.to_owned(),
        expected_s: plan.rules.iter().filter(used).map(|rule| rule.elapsed_s).sum(),
        runs,
        servers: plan.cluster.targets().into_iter().map(|target| target.name).collect(),
    })
}

const MIB: f64 = (1u64 << 20) as f64;

/// Prints a table, with the fastest plan first.
fn print(recorded: &Recorded, results: &[Simulated], network: bool) {
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

fn to_json(recorded: &Recorded, results: &[Simulated]) -> Value {
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
