//! `stripewise plan` decides which layout each file gets, and explains why.

mod args;
mod copies;
mod executables;
mod json;
mod output;
mod planned;
mod present;
mod table;
mod text;

use std::process::ExitCode;

use stripewise_plan::to_plan;

pub use args::Args;

use crate::files;

/// Runs `stripewise plan`: plans, writes the plan file, and prints the candidates considered.
///
/// # Errors
/// A file cannot be read or is invalid, the trace is incomplete or of a failed program and this was
/// not accepted, the planner cannot plan for the cluster, or the output path holds a file that is
/// not a plan.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    output::check(&args.output, args.force)?;
    let planned = planned::make(&args)?;
    let plan = to_plan(&planned.decisions, &planned.cluster, &planned.options);
    let plan = plan.folded().map_err(|(pattern, error)| anyhow::anyhow!("{pattern}: {error}"))?;
    files::write_whole(&args.output, &plan.to_toml())?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&json::report(&planned, &args))?);
    } else {
        print!("{}", table::report(&planned, &args));
    }
    Ok(ExitCode::SUCCESS)
}
