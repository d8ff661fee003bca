//! `stripewise trace` records what a command does to its files.

mod args;
mod record;
mod tables;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use serde::Serialize;
use stripewise_console::progress::Progress;
use stripewise_trace::{Meta, Summary, Trace, merge};

pub use args::Args;

/// Runs `stripewise trace`.
///
/// # Errors
/// The command cannot be run or was not recorded, or a file cannot be read or written.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.mode()? {
        args::Mode::Summary(path) => {
            print_summary(&path, args.json, usize::MAX)?;
            Ok(ExitCode::SUCCESS)
        }
        args::Mode::Merge { spool, output } => {
            merge_spool(&spool, &output, &Meta::default(), args.quiet)?;
            if args.json || !args.quiet {
                print_summary(&output, args.json, usize::MAX)?;
            }
            Ok(ExitCode::SUCCESS)
        }
        args::Mode::Record { output } => record::run(&args, &output),
    }
}

/// Output of `--json`.
#[derive(Serialize)]
struct Report<'a> {
    trace: String,
    origin: &'a str,
    command: &'a [String],
    complete: bool,
    incomplete: &'a [String],
    wall_s: Option<f64>,
    exit_code: Option<u8>,
    start_unix_ns: u64,
    #[serde(flatten)]
    summary: &'a Summary,
}

/// Prints the statistics of a trace, for the first `groups` groups of files.
fn print_summary(path: &Path, json: bool, groups: usize) -> anyhow::Result<()> {
    let trace = Trace::open(path)?;
    let summary = Summary::of(&trace)?;
    if !json {
        print!("{}", tables::text(&trace, &summary, groups));
        return Ok(());
    }
    let meta = trace.meta();
    let report = Report {
        trace: path.display().to_string(),
        origin: &meta.origin,
        command: &meta.command,
        complete: meta.incomplete.is_empty(),
        incomplete: &meta.incomplete,
        wall_s: meta.wall_s,
        exit_code: meta.exit_code,
        start_unix_ns: meta.start_unix_ns,
        summary: &summary,
    };
    println!("{}", serde_json::to_string_pretty(&report)?);
    Ok(())
}

/// Merges a spool into a trace, and warns if calls are missing.
fn merge_spool(
    spool: &Path,
    output: &Path,
    meta: &Meta,
    quiet: bool,
) -> anyhow::Result<stripewise_trace::Merged> {
    let progress = Progress::sharing("merging the spool", quiet);
    let merged = merge(spool, output, meta, &mut |share| progress.share(share))
        .with_context(|| format!("merging spool {} to {}", spool.display(), output.display()))?;
    progress.finish();
    Ok(merged)
}
