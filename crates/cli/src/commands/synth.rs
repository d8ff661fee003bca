//! `stripewise synth` generates the trace of a benchmark without running it.

mod args;

use std::process::ExitCode;

use anyhow::Context;
use serde::Serialize;
use stripewise_console::progress::Progress;
use stripewise_trace::synth;
use stripewise_trace::{Meta, TraceWriter};

pub use args::Args;

/// Summary of the written trace.
#[derive(Serialize)]
struct Written {
    trace: String,
    benchmark: String,
    processes: u32,
    files: usize,
    calls: u64,
    trace_bytes: u64,
}

/// Runs `stripewise synth`: writes the trace and prints a summary.
///
/// # Errors
/// Parameters contradict each other, or the file cannot be written.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let benchmark = args.benchmark()?;
    let output = &args.common().output;
    let failed = || format!("trace {} cannot be written", output.display());
    let mut writer = TraceWriter::create(output).with_context(failed)?;
    let progress = Progress::counting("requests", false);
    synth::write(benchmark.as_ref(), &mut writer, &mut |calls| progress.count(calls)).with_context(failed)?;
    progress.finish();
    let job = benchmark.job();
    let meta =
        Meta { origin: "synthetic".into(), command: std::env::args().skip(1).collect(), ..Meta::default() };
    let calls = writer.requests();
    let trace_bytes = writer.finish(&meta).with_context(failed)?;
    let written = Written {
        trace: output.display().to_string(),
        benchmark: job.program.clone(),
        processes: job.processes,
        files: job.files.len(),
        calls,
        trace_bytes,
    };
    print(&written, args.common().json)?;
    Ok(ExitCode::SUCCESS)
}

fn print(written: &Written, json: bool) -> anyhow::Result<()> {
    if json {
        println!("{}", serde_json::to_string_pretty(written)?);
        return Ok(());
    }
    let Written { trace, benchmark, processes, files, calls, trace_bytes } = written;
    println!("{trace}: {calls} calls of {processes} processes on {files} file(s), as {benchmark} makes them");
    println!("({trace_bytes} bytes; `stripewise trace --summary {trace}` shows what is in it)");
    Ok(())
}
