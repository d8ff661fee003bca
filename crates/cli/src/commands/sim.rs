//! `stripewise sim` simulates a traced application on plans in virtual time.

mod args;
mod candidates;
mod replay;
mod simulated;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use stripewise_cluster::Plan;
use stripewise_console::progress::Progress;
use stripewise_trace::Trace;

pub use args::Args;

use crate::files;
use replay::Recorded;
use simulated::simulate;

/// Runs `stripewise sim`: simulates all plans and prints the outcomes.
///
/// # Errors
/// A file cannot be read or is invalid, the trace is incomplete and this was not accepted, or a
/// plan has no layout for a file.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let trace = Trace::open(&args.trace)?;
    if let (Some(reason), false) = (trace.incomplete(), args.accept_incomplete) {
        bail!(
            "{}: the trace is incomplete: {reason}; trace the program again, or simulate with --accept-incomplete",
            args.trace.display()
        );
    }
    let plans = if args.plans.is_empty() { candidates::plans(args, &trace)? } else { read(&args.plans)? };
    let recorded = Recorded::of(&trace)?;
    ensure!(recorded.requests() > 0, "{}: the trace has no reads and no writes", args.trace.display());
    let progress = Progress::sharing("simulating", args.quiet);
    let mut results = Vec::with_capacity(plans.len());
    for (index, (name, plan)) in plans.iter().enumerate() {
        progress.now(name);
        results.push(simulate(args, &trace, &recorded, name, plan).with_context(|| name.clone())?);
        progress.share((index + 1) as f64 / plans.len() as f64);
    }
    progress.finish();
    if args.json {
        println!("{}", serde_json::to_string_pretty(&table::json(&recorded, &results))?);
    } else {
        print!("{}", table::text(&recorded, &results, args.network));
    }
    Ok(ExitCode::SUCCESS)
}

fn read(paths: &[PathBuf]) -> anyhow::Result<Vec<(String, Plan)>> {
    let plan = |path: &PathBuf| {
        let name = path.display().to_string();
        Ok((name.clone(), Plan::parse(&files::read(path)?, &name)?.unfolded()))
    };
    paths.iter().map(plan).collect()
}
