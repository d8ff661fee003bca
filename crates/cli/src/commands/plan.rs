//! `stripewise plan` decides which layout each file gets, and explains why.

mod args;
mod existing;
mod json;
mod planned;
pub mod present;
mod striped;
mod table;
mod verdict;

use std::path::Path;

use anyhow::{anyhow, ensure};
use stripewise_cluster::Plan;
use stripewise_console::progress;
use stripewise_plan::to_plan;
use stripewise_report::predictions::Moves;

pub use args::Args;
pub use planned::read_workload;

use super::place::find;
use crate::{files, managed, output};

/// Plans, writes the plan file, and prints what it changes and gains.
pub fn run(args: &Args) -> anyhow::Result<()> {
    check_output(&args.output, args.force)?;
    let planned = planned::make(args)?;
    let plan = to_plan(&planned.decisions, &planned.cluster, &planned.options);
    let plan = plan.folded().map_err(|(pattern, error)| anyhow!("{pattern}: {error}"))?;
    let moves = moves(&plan, args)?;
    files::write_whole(&args.output, &plan.to_toml())?;
    if args.json {
        return output::json(&json::report(&planned, moves, args));
    }
    print!("{}", verdict::page(&planned, moves, args));
    if args.candidates {
        println!();
        table::print(&planned);
    }
    Ok(())
}

/// What `place` moves. It is not known for native layouts, which the file system may have already.
///
/// # Errors
/// It is more than the user's limit.
fn moves(plan: &Plan, args: &Args) -> anyhow::Result<Option<Moves>> {
    if args.native {
        return Ok(None);
    }
    let looking = progress::looking(args.quiet);
    let moves = find::moves(&find::find_data(&managed::runtime(Some(plan)), plan)?);
    looking.finish_and_clear();
    let limit = args.dont_move_more_than.unwrap_or(u64::MAX);
    ensure!(
        moves.bytes <= limit,
        "`place` would move {} bytes, and --dont-move-more-than is {limit}: files came or grew while this ran; run it again",
        moves.bytes
    );
    Ok(Some(moves))
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
