//! Copying files between layouts, and telling how far it is.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use indicatif::ProgressBar;
use serde_json::{Value, json};
use stripewise_datapath::Runtime;
use stripewise_datapath::migrate::{Goal, Migration, Phase, Progress, migrate};

use crate::managed::human;
use crate::progress;

/// One file to migrate.
pub struct Move<'a> {
    pub path: &'a Path,
    pub goal: Goal<'a>,
    /// The chosen scheme, if it has one.
    pub scheme: Option<&'a str>,
}

/// Migrates files, `total_bytes` in all; goes on after one that fails. `verb`: "placed" or "exported". What was done to
/// each, as JSON, and the exit code.
pub fn migrate_all<'a>(
    runtime: &Arc<Runtime>,
    moves: impl Iterator<Item = Move<'a>>,
    total_bytes: u64,
    verb: &str,
    quiet: bool,
) -> (Vec<Value>, ExitCode) {
    let mut progress = CopyProgress::new(total_bytes, quiet);
    let (mut done, mut code) = (Vec::new(), ExitCode::SUCCESS);
    for Move { path, goal, scheme } in moves {
        let outcome = migrate(runtime, path, goal, &mut progress.file(path));
        let path = path.display().to_string();
        let mut entry = json!({ "path": path });
        if let Some(scheme) = scheme {
            entry["scheme"] = scheme.into();
        }
        match outcome {
            Ok(Migration::Done(bytes)) => {
                progress.done(&format!("{verb} {path}"), bytes);
                entry[verb] = true.into();
                entry["bytes"] = bytes.into();
            }
            Ok(Migration::AlreadyThere) => entry[verb] = false.into(),
            Err(error) => {
                let error = error.to_string();
                // Some name a target only.
                let error = if error.starts_with(&path) { error } else { format!("{path}: {error}") };
                progress.say(&format!("stripewise: {error}"));
                entry["error"] = error.into();
                code = ExitCode::FAILURE;
            }
        }
        done.push(entry);
    }
    (done, code)
}

/// Tells how far a copy is: a bar on a terminal, a line per file elsewhere, nothing if quiet.
pub struct CopyProgress {
    bar: ProgressBar,
    lines: bool,
    started: Instant,
}

impl CopyProgress {
    /// For copies of `total_bytes` in all; every byte is copied and verified.
    pub fn new(total_bytes: u64, quiet: bool) -> Self {
        let template = "{bar:30} {percent:>3} % {binary_bytes_per_sec:>12} {eta:>4} left  {wide_msg}";
        let bar = progress::bar(Some(total_bytes * 2), template, quiet);
        let lines = !quiet && bar.is_hidden();
        Self { bar, lines, started: Instant::now() }
    }

    /// A function that takes a file's progress to the bar.
    pub fn file(&self, path: &Path) -> impl FnMut(Progress) + use<> {
        let (bar, start, path) = (self.bar.clone(), self.bar.position(), path.display().to_string());
        move |progress| {
            let (before, what) = match progress.phase {
                Phase::Copy => (0, "copying"),
                Phase::Verify => (progress.total, "verifying"),
            };
            bar.set_message(format!("{what} {path}"));
            bar.set_position(start + before + progress.done);
        }
    }

    /// A file is done.
    pub fn done(&mut self, line: &str, bytes: u64) {
        let rate = bytes as f64 / self.started.elapsed().as_secs_f64().max(1e-9);
        let line = format!("{line} ({}, {}/s)", human(bytes), human(rate as u64));
        if self.lines {
            eprintln!("{line}");
        } else {
            self.bar.println(line);
        }
        self.started = Instant::now();
    }

    /// Says a line between.
    pub fn say(&self, line: &str) {
        self.bar.suspend(|| eprintln!("{line}"));
    }
}

impl Drop for CopyProgress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
