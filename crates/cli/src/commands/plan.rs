//! `stripewise plan` decides which layout each file gets, and explains why.

mod args;
mod json;
mod planned;
mod present;
mod table;

use std::path::Path;

use anyhow::{anyhow, ensure};
use stripewise_cluster::Plan;
use stripewise_plan::to_plan;

pub use args::Args;
pub use planned::read_workload;

use crate::{files, output};

/// Plans, writes the plan file, and prints the candidates considered.
pub fn run(args: &Args) -> anyhow::Result<()> {
    check_output(&args.output, args.force)?;
    let planned = planned::make(args)?;
    let plan = to_plan(&planned.decisions, &planned.cluster, &planned.options);
    let plan = plan.folded().map_err(|(pattern, error)| anyhow!("{pattern}: {error}"))?;
    files::write_whole(&args.output, &plan.to_toml())?;
    if args.json {
        return output::json(&json::report(&planned, args));
    }
    table::print(&planned, args);
    Ok(())
}

/// Checks, before any work is done, that the plan replaces no other kind of file.
fn check_output(path: &Path, force: bool) -> anyhow::Result<()> {
    if !files::would_replace(path)? || force {
        return Ok(());
    }
    let text = std::fs::read_to_string(path).unwrap_or_default();
    ensure!(
        text.starts_with("# Written by `stripewise plan`") || Plan::parse(&text, "").is_ok(),
        "{} exists and is no plan; name another file with -o, or overwrite it with --force",
        path.display()
    );
    Ok(())
}
