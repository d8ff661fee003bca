//! Darshan logs as traces: wherever a command takes a trace, it takes a log.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use anyhow::Context;
use stripewise_console::{interrupt, progress};
use stripewise_darshan::{CALLS_MAX, Log, TraceFromLogError, is_darshan, trace_from_log};
use stripewise_trace::{Trace, TraceWriter};

/// Opens a trace, or makes a temporary one of a Darshan log. What a file is, its first bytes tell.
pub fn open_trace(path: &Path) -> anyhow::Result<Trace> {
    if !is_log(path) {
        return Ok(Trace::open(path)?);
    }
    let place = tempfile::Builder::new().prefix("stripewise-darshan-").tempdir();
    let place = place.context("no directory for a temporary trace: name one with TMPDIR")?;
    let temporary = place.path().join("trace");
    make_trace(path, &temporary, false)?;
    // The open file remains readable without a name.
    Ok(Trace::open(&temporary)?.named(path))
}

/// Makes a trace at `output` of a Darshan log.
///
/// # Errors
/// The log is none or cannot be read, or the trace cannot be written. The message names the file.
pub fn make_trace(path: &Path, output: &Path, quiet: bool) -> anyhow::Result<()> {
    interrupt::remove(&TraceWriter::temporary(output));
    let file = File::open(path).with_context(|| path.display().to_string())?;
    let bar = progress::sharing("reading the Darshan log", quiet);
    let opened = Log::open(BufReader::new(file)).map_err(TraceFromLogError::Log);
    let made = opened.and_then(|mut log| {
        trace_from_log(&mut log, output, CALLS_MAX, &mut |done| progress::share(&bar, done))
    });
    bar.finish_and_clear();
    match made {
        Ok(_) => Ok(()),
        Err(TraceFromLogError::Log(error)) => Err(anyhow::anyhow!("{}: {error}", path.display())),
        Err(TraceFromLogError::Trace(error)) => Err(error).with_context(|| {
            format!("making a trace of {} (TMPDIR names the directory of temporary ones)", path.display())
        }),
    }
}

/// Opens a Darshan log.
///
/// # Errors
/// The log is none or cannot be read. The message names the file.
pub fn open_log(path: &Path) -> anyhow::Result<Log<BufReader<File>>> {
    let file = File::open(path).with_context(|| path.display().to_string())?;
    Log::open(BufReader::new(file)).with_context(|| path.display().to_string())
}

/// Whether the file is a Darshan log. One that cannot be read is no log.
pub fn is_log(path: &Path) -> bool {
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(16).read_to_end(&mut start));
    read.is_ok() && is_darshan(&start)
}
