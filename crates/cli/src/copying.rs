//! Migrates files between layouts and reports progress.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use serde_json::{Value, json};
use stripewise_console::progress;
use stripewise_datapath::Runtime;
use stripewise_datapath::migrate::{Goal, Migration, Phase, Progress, SHORT_BYTES_MAX, migrate};
use stripewise_datapath::parallel::{in_parallel, jobs_usual};

use crate::output::human;

/// Above this number of files, progress is reported for all files together instead of per file.
const NAMED_MAX: usize = 100;
/// Interval between two progress lines when files are not listed individually.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// One file to migrate.
pub struct Move<'a> {
    pub path: &'a Path,
    /// Size when the file was found. Decides whether the file counts as short or long.
    pub size_bytes: u64,
    pub goal: Goal<'a>,
    /// Name of the chosen scheme, if the move has one.
    pub scheme: Option<&'a str>,
}

/// Flags of the commands that migrate files.
#[derive(clap::Args)]
pub struct Flags {
    /// Number of short files (up to 64 MiB) to copy concurrently [default: eight per core, at most
    /// 32]
    #[arg(short, long, env = "STRIPEWISE_JOBS", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Print what was done, or would be, as JSON
    #[arg(long)]
    pub json: bool,
    /// Print only errors
    #[arg(short, long)]
    pub quiet: bool,
}

/// Migrates files of `total_bytes` in all: short files concurrently, then long files one at a time.
/// A file that fails does not stop the rest. `verb` is a past participle, for progress lines and as
/// the key of each result.
///
/// Returns one JSON object per file, in the order of `moves`, and whether a file failed.
pub fn migrate_all(
    runtime: &Arc<Runtime>,
    moves: &[Move<'_>],
    total_bytes: u64,
    verb: &str,
    flags: &Flags,
) -> (Vec<Value>, bool) {
    let told = CopyProgress::new(total_bytes, moves.len(), flags.quiet);
    let is_long = |&index: &usize| moves[index].size_bytes > SHORT_BYTES_MAX;
    let (long, short): (Vec<usize>, Vec<usize>) = (0..moves.len()).partition(is_long);
    let work = |&index: &usize| (index, migrate_one(runtime, &moves[index], verb, &told));
    let mut done = in_parallel(&short, flags.jobs.map_or_else(jobs_usual, usize::from), work);
    done.extend(in_parallel(&long, 1, work));
    done.sort_by_key(|(index, _)| *index);
    let done: Vec<Value> = done.into_iter().map(|(_, entry)| entry).collect();
    let failed = done.iter().any(|entry| entry.get("error").is_some());
    (done, failed)
}

fn migrate_one(runtime: &Runtime, file: &Move<'_>, verb: &str, told: &CopyProgress) -> Value {
    let path = file.path.display().to_string();
    let mut entry = json!({ "path": path });
    if let Some(scheme) = file.scheme {
        entry["scheme"] = scheme.into();
    }
    match migrate(runtime, file.path, file.goal, &mut told.file(file.path)) {
        Ok(Migration::Done(bytes)) => {
            told.done(&format!("{verb} {path}"), bytes);
            entry[verb] = true.into();
            entry["bytes"] = bytes.into();
        }
        Ok(Migration::AlreadyThere) => entry[verb] = false.into(),
        Err(error) => {
            let error = error.to_string();
            // Some errors name only a target.
            let error = if error.starts_with(&path) { error } else { format!("{path}: {error}") };
            told.say(&format!("stripewise: {error}"));
            entry["error"] = error.into();
        }
    }
    entry
}

/// Reports the progress of copying: a bar on a terminal, lines elsewhere, nothing if quiet. Threads
/// share it.
pub struct CopyProgress {
    bar: ProgressBar,
    quiet: bool,
    files: usize,
    total_bytes: u64,
    counts: Mutex<Counts>,
}

/// Amounts done so far, and the time of the last progress line.
struct Counts {
    files: usize,
    bytes: u64,
    /// Bytes that an earlier, interrupted run had already copied. They do not count in the rate.
    found_bytes: u64,
    started: Instant,
    said: Instant,
}

impl CopyProgress {
    /// Starts reporting for `files` files of `total_bytes` in all. Every byte counts twice: once
    /// when it is copied and once when it is verified.
    pub fn new(total_bytes: u64, files: usize, quiet: bool) -> Self {
        let template = "{bar:30} {percent:>3} % {binary_bytes_per_sec:>12} {eta:>4} left  {wide_msg}";
        let bar = progress::bar(Some(total_bytes * 2), template, quiet);
        let now = Instant::now();
        let counts = Mutex::new(Counts { files: 0, bytes: 0, found_bytes: 0, started: now, said: now });
        Self { bar, quiet, files, total_bytes, counts }
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Returns a callback that adds one file's progress to the bar.
    pub fn file(&self, path: &Path) -> impl FnMut(Progress) + use<'_> {
        let (bar, path, mut before) = (&self.bar, path.display().to_string(), 0);
        move |progress| {
            let (past, what) = match progress.phase {
                Phase::Found => {
                    self.found(&path, progress);
                    before = progress.done;
                    return;
                }
                Phase::Copy => (0, "copying"),
                Phase::Verify => (progress.total, "verifying"),
            };
            bar.set_message(format!("{what} {path}"));
            let now = past + progress.done;
            bar.inc(now.saturating_sub(before));
            before = before.max(now);
        }
    }

    /// Accounts for what an earlier run copied of a file: it counts as done, but does not count in
    /// the rate of this run.
    fn found(&self, path: &str, progress: Progress) {
        self.counts().found_bytes += progress.done;
        self.bar.inc(progress.done);
        self.bar.reset_eta();
        if !self.quiet {
            let (done, total) = (human(progress.done), human(progress.total));
            self.say(&format!("{path}: goes on where an earlier run was, at {done} of {total}"));
        }
    }

    /// Records that a file is done. Up to [`NAMED_MAX`] files get a line each; larger sets get a
    /// summary line every [`LINE_EVERY`].
    pub fn done(&self, line: &str, bytes: u64) {
        if self.quiet {
            return;
        }
        let mut counts = self.counts();
        counts.files += 1;
        counts.bytes += bytes;
        let rate = counts.bytes.saturating_sub(counts.found_bytes) as f64
            / counts.started.elapsed().as_secs_f64().max(1e-9);
        let rate = human(rate as u64);
        let line = if self.files <= NAMED_MAX {
            format!("{line} ({}, {rate}/s)", human(bytes))
        } else if self.bar.is_hidden() && (counts.said.elapsed() >= LINE_EVERY || counts.files == self.files) {
            let (done, total) = (human(counts.bytes), human(self.total_bytes));
            format!("{} of {} files, {done} of {total}, {rate}/s", counts.files, self.files)
        } else {
            return;
        };
        counts.said = Instant::now();
        self.say(&line);
    }

    /// Prints a line to stderr without disturbing the bar.
    pub fn say(&self, line: &str) {
        self.bar.suspend(|| eprintln!("{line}"));
    }
}

impl Drop for CopyProgress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
