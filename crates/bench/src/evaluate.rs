//! `stripewise-bench evaluate` runs the papers' experiments, simulated and measured.

mod args;
mod job;
mod list;
mod measured;
mod render;
mod simulated;
mod store;

use std::process::ExitCode;

use anyhow::Context;
use stripewise_console::interrupt;
use stripewise_evaluate::experiments;

pub use args::Args;
use job::Job;

/// Runs `stripewise-bench evaluate`: executes the tasks that have no record yet and stores each
/// record as it is made.
///
/// # Errors
/// An experiment name is unknown, the directory cannot be written, or a place cannot run anything.
/// A single cell that fails is stored as a failed record and makes the exit status 1.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let job = Job { args, experiments: args.chosen(experiments::all())? };
    if args.list {
        list::print(&job)?;
        return Ok(ExitCode::SUCCESS);
    }
    std::fs::create_dir_all(&args.dir).with_context(|| format!("cannot make {}", args.dir.display()))?;
    interrupt::ask();
    let mut failed = 0;
    if args.simulated() {
        failed += simulated::run(&job)?;
    }
    if args.measured {
        failed += measured::run(&job)?;
    }
    if let Some(pages) = &args.render {
        render::run(&job, pages)?;
    }
    Ok(if failed == 0 && !interrupt::asked() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
