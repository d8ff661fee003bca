//! Prints what is in a trace.

use std::path::Path;

use serde::Serialize;
use stripewise_trace::{Summary, Trace};

use super::tables;

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
pub fn print_summary(path: &Path, json: bool, groups: usize) -> anyhow::Result<()> {
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
