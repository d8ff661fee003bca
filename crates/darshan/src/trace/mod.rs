//! Makes a trace of a log. With DXT, its segments are the reads and writes. All else is made of
//! counters: sums are those of the log, single calls are guessed.

mod calls;
mod clock;
mod covered;
mod extended;
mod files;
mod processes;
mod sizes;
mod transfers;
mod usage;

use std::io::{Read, Seek};
use std::path::Path;

use stripewise_trace::{Meta, ORIGIN_COUNTERS, ORIGIN_DXT, Request, Sorter, TraceError, TraceWriter};

use crate::{Counters, Error, Job, Layer, Log, Module};
use clock::Clock;
use covered::Covered;
use files::Files;
use processes::Processes;

/// A trace cannot be made of a log.
#[derive(Debug, thiserror::Error)]
pub enum TraceFromLogError {
    /// The log cannot be read. The message does not name it.
    #[error(transparent)]
    Log(#[from] Error),
    /// The trace cannot be written. The message names it.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

/// The number of calls that programs allow [`trace_from_log`] to make of counters.
pub const CALLS_MAX: u64 = 1 << 24;

/// Makes a trace at `output` of a log. Returns the number of calls in it. Memory: 300 MB, and some
/// 50 bytes for each of up to 4 million files; further data go through temporary files next to
/// `output`. `progress` receives the fraction done, 0 to 1.
///
/// If more than `calls_max` calls are to be made of counters, one of several stands for all of
/// them, but every record gives one of every kind.
///
/// A log that is cut off or damaged gives an incomplete trace.
///
/// # Errors
/// The log's header or job cannot be read, or the trace cannot be written.
pub fn trace_from_log<R: Read + Seek>(
    log: &mut Log<R>,
    output: &Path,
    calls_max: u64,
    progress: &mut dyn FnMut(f64),
) -> Result<u64, TraceFromLogError> {
    let mut making = Making::new(log.job()?, output, calls_max)?;
    making.take(log, progress)?;
    let Making { sorter, mut writer, mut meta, .. } = making;
    meta.start_unix_ns =
        sorter.write_to(&mut writer, output, &mut |fraction| progress(0.5 + 0.5 * fraction))?;
    let calls = writer.requests();
    writer.finish(&meta)?;
    Ok(calls)
}

/// A trace that is being made.
struct Making<'a> {
    output: &'a Path,
    calls_max: u64,
    writer: TraceWriter,
    sorter: Sorter,
    meta: Meta,
    clock: Clock,
    files: Files,
    processes: Processes,
}

impl Making<'_> {
    fn new(job: Job, output: &Path, calls_max: u64) -> Result<Making<'_>, TraceError> {
        let mut meta = Meta {
            command: job.command.split_whitespace().map(str::to_owned).collect(),
            wall_s: job.runtime_s(),
            ..Meta::default()
        };
        if meta.wall_s.is_none() {
            let (start, end) = (job.start.0, job.end.0);
            meta.notes.push(format!(
                "the job ends ({end} s since 1970) before it starts ({start}): its clock was set back, and its run time \
                 is not known"
            ));
        }
        let (writer, sorter) = (TraceWriter::create(output)?, Sorter::next_to(output));
        let (clock, processes) = (Clock::new(&job), Processes::new(&job));
        Ok(Making { output, calls_max, writer, sorter, meta, clock, files: Files::default(), processes })
    }

    fn take<R: Read + Seek>(
        &mut self,
        log: &mut Log<R>,
        progress: &mut dyn FnMut(f64),
    ) -> Result<(), TraceFromLogError> {
        self.say_what_is_partial(log);
        let names = self.learn_names(log);
        self.tolerate(names)?;
        let mut covered = Covered::default();
        for layer in [Layer::Posix, Layer::MpiIo] {
            let taken = self.take_segments(log, layer, &mut covered);
            self.tolerate(taken)?;
        }
        progress(0.3);
        let is_extended = covered.has_segments();
        self.meta.origin = if is_extended { ORIGIN_DXT } else { ORIGIN_COUNTERS }.into();
        self.take_counters(log, &mut covered)?;
        progress(0.5);
        self.say_what_was_odd(is_extended);
        Ok(())
    }

    fn push(&mut self, request: Request) -> Result<(), TraceFromLogError> {
        self.sorter
            .push(request)
            .map_err(|error| TraceError { path: self.output.into(), what: error.to_string() })?;
        Ok(())
    }

    /// Makes of an error of a region a reason why the trace is incomplete.
    fn tolerate(&mut self, result: Result<(), TraceFromLogError>) -> Result<(), TraceFromLogError> {
        match result {
            Err(TraceFromLogError::Log(error)) if error.is_of_region() => {
                let reason = error.to_string();
                if !self.meta.incomplete.contains(&reason) {
                    self.meta.incomplete.push(reason);
                }
                Ok(())
            }
            other => other,
        }
    }

    fn learn_names<R: Read + Seek>(&mut self, log: &mut Log<R>) -> Result<(), TraceFromLogError> {
        let mut names = log.names()?;
        while let Some((id, name)) = names.next_name()? {
            self.files.learn(id, name, &mut self.writer);
        }
        Ok(())
    }

    fn say_what_is_partial<R: Read + Seek>(&mut self, log: &Log<R>) {
        let modules = &log.header().modules;
        for info in modules.iter().filter(|info| info.is_partial) {
            self.meta.incomplete.push(format!(
                "Darshan ran out of memory for records of module {}: what the program did later is missing (run it with \
                 a larger DARSHAN_MODMEM)",
                info.name()
            ));
        }
        // Heat maps repeat what other modules have.
        let is_unread = |module: Option<Module>| module.is_none_or(|m| !m.is_read() && m != Module::Heatmap);
        let unread: Vec<String> =
            modules.iter().filter(|info| is_unread(info.module())).map(|info| info.name()).collect();
        if !unread.is_empty() {
            self.meta.notes.push(format!("modules that are not read: {}", unread.join(", ")));
        }
    }

    fn say_what_was_odd(&mut self, is_extended: bool) {
        let Making { meta, clock, files, processes, .. } = self;
        let guessed = match is_extended {
            true => {
                "guessed, since an extended trace (DXT) has reads and writes only, and not of C streams: when files were \
                 opened and closed, and every other single call"
            }
            false => {
                "guessed, since the log has no extended trace (DXT): the time, offset and size of every single call; \
                 run with DXT_ENABLE_IO_TRACE=1 or `stripewise trace` to record them"
            }
        };
        meta.notes.push(guessed.into());
        meta.notes.extend(clock.odd());
        meta.notes.extend(files.odd());
        meta.notes.extend(processes.odd());
    }

    /// The modules whose records become calls, the lowest layer first.
    const COUNTERS: [Counters; 3] = [Counters::Posix, Counters::MpiIo, Counters::Stdio];
}
