//! The shared implementation of `drain` and `warm`: walks files with several copies and reports
//! progress.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use indicatif::ProgressBar;
use serde_json::{Value, json};
use stripewise_cluster::OverlayKind;
use stripewise_console::{interrupt, progress};
use stripewise_datapath::check::walk;
use stripewise_datapath::inspect::{CopyState, inspect, manifest_of};
use stripewise_datapath::{Drained, LogicalFile, Runtime};

use crate::managed::{self, human};

/// Flags of both commands.
#[derive(clap::Args)]
pub struct Flags {
    /// Files, and directories with managed files
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The plan with the costs of the servers, which decide from which copy each range is read.
    /// Requests to emulated servers are delayed as with `run`; without a plan they are not
    #[arg(short, long, value_name = "PLAN")]
    plan: Option<PathBuf>,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
    /// Print only errors
    #[arg(short, long)]
    quiet: bool,
}

/// The command to perform.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Work {
    Drain,
    Warm,
}

impl Work {
    fn done(self) -> &'static str {
        match self {
            Self::Drain => "drained",
            Self::Warm => "warmed",
        }
    }
}

/// Result for one file.
struct Outcome {
    path: PathBuf,
    copied: Drained,
    /// Why bytes are left over, or why the file could not be processed.
    problem: Option<String>,
    /// The file has a single copy, so there was nothing to do.
    single: bool,
}

/// Performs `work` on all files. A file that fails does not stop the rest.
///
/// # Errors
/// The plan cannot be read, or a file does not exist.
pub fn run(flags: &Flags, work: Work) -> anyhow::Result<ExitCode> {
    let plan = flags.plan.as_deref().map(managed::plan).transpose()?;
    let runtime = Runtime::new(Arc::new(stripewise_sys::Real), plan.as_ref());
    let roots = flags.paths.iter().map(|path| managed::existing(path)).collect::<anyhow::Result<Vec<_>>>()?;
    let listing = walk(&runtime, &roots);
    managed::act_for_owner(&runtime, &listing.anchors)?;
    for (path, errno) in &listing.unreadable {
        eprintln!("stripewise: {} is left out: {errno}", path.display());
    }
    interrupt::ask();
    interrupt::stop_when_told();
    let teller = Teller::new(flags.quiet);
    let named_plain = listing.plain.iter().filter(|path| roots.contains(path));
    let mut outcomes: Vec<_> = named_plain.map(|path| Outcome::single(path)).collect();
    outcomes.iter().for_each(|outcome| teller.file(outcome, work, true));
    for path in &listing.anchors {
        interrupt::stop_if_asked();
        if interrupt::asked() {
            break;
        }
        let outcome = settle(&runtime, path, work, &teller);
        teller.file(&outcome, work, roots.contains(path));
        outcomes.push(outcome);
    }
    teller.bar.finish_and_clear();
    let failed = !listing.unreadable.is_empty() || outcomes.iter().any(|outcome| outcome.problem.is_some());
    if flags.json {
        let files: Vec<_> = outcomes.iter().filter(|outcome| !outcome.single).map(Outcome::json).collect();
        let interrupted = interrupt::asked();
        println!("{}", serde_json::to_string_pretty(&json!({ "files": files, "interrupted": interrupted }))?);
    }
    if interrupt::asked() {
        eprintln!("stripewise: interrupted; what was done stays done, and the same command goes on");
    }
    Ok(if failed || interrupt::asked() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn settle(runtime: &Arc<Runtime>, path: &Path, work: Work, teller: &Teller) -> Outcome {
    let mut outcome =
        Outcome { path: path.to_owned(), copied: Drained::default(), problem: None, single: false };
    let done = (|| {
        match manifest_of(runtime, path).map_err(|error| error.to_string())? {
            Some((manifest, _)) if manifest.copies.is_some() => {}
            _ => {
                outcome.single = true;
                return Ok(());
            }
        }
        let Some(file) = runtime.open_file(path).map_err(|error| error.to_string())? else { return Ok(()) };
        if !file.is_writable() {
            return Err("you may not write to it".to_owned());
        }
        outcome.copied = teller.watch(path, &file, work).map_err(|errno| errno.to_string())?;
        // This also brings the size that `ls` shows up to date.
        file.closing();
        drop(file);
        if interrupt::asked() { Ok(()) } else { left(runtime, path, work, outcome.copied.left_bytes) }
    })();
    if let Err(problem) = done {
        let name = path.display().to_string();
        outcome.problem = Some(problem.strip_prefix(&format!("{name}: ")).unwrap_or(&problem).to_owned());
    }
    outcome
}

/// Returns an error if `work` left something undone: how much, and why.
fn left(runtime: &Runtime, path: &Path, work: Work, left_bytes: u64) -> Result<(), String> {
    let found = manifest_of(runtime, path).map_err(|error| error.to_string())?;
    let Some(found) = found else { return Ok(()) };
    let found = inspect(runtime, path, found).map_err(|error| error.to_string())?;
    let Some(copies) = &found.manifest.copies else { return Ok(()) };
    let replicas = copies.kind == OverlayKind::Replicas;
    let lost: Vec<_> = found.copies.iter().filter(|copy| copy.lost.is_some()).collect();
    let needed = |copy: &&&CopyState| replicas || copy.bytes.is_some_and(|bytes| bytes.alone > 0);
    if work == Work::Drain
        && let Some(copy) = lost.iter().find(needed)
    {
        let alone = copy.bytes.map_or(0, |bytes| bytes.alone);
        let (name, why) = (&copy.name, copy.lost.as_ref().map_or_else(String::new, ToString::to_string));
        let what = if alone > 0 {
            format!("{} are only in copy {name}", human(alone))
        } else {
            format!("copy {name} is not in sync")
        };
        return Err(format!("{what}, which is lost: {why}; bring it back, or see `stripewise fsck`"));
    }
    // A full cache is as warm as it can get.
    if left_bytes == 0 || work == Work::Warm {
        return Ok(());
    }
    let used = matches!(&found.map, Some(Ok(map)) if map.processes > 0);
    let why = if used {
        "programs write there just now; run it again when they have ended"
    } else {
        "it was in use meanwhile; run it again"
    };
    Err(format!("{} are left: {why}", human(left_bytes)))
}

impl Outcome {
    fn single(path: &Path) -> Self {
        Self { path: path.to_owned(), copied: Drained::default(), problem: None, single: true }
    }

    fn json(&self) -> Value {
        let Drained { bytes, left_bytes } = self.copied;
        let mut entry =
            json!({ "path": self.path.display().to_string(), "bytes": bytes, "left_bytes": left_bytes });
        if let Some(problem) = &self.problem {
            entry["problem"] = problem.as_str().into();
        }
        entry
    }
}

/// Reports progress: a bar on a terminal, a line per file elsewhere, only problems if quiet.
struct Teller {
    bar: ProgressBar,
    quiet: bool,
}

impl Teller {
    fn new(quiet: bool) -> Self {
        let template =
            "{bar:30} {binary_bytes:>10} of {binary_total_bytes} {binary_bytes_per_sec:>12}  {wide_msg}";
        Self { bar: progress::bar(Some(0), template, quiet), quiet }
    }

    fn watch(&self, path: &Path, file: &LogicalFile, work: Work) -> stripewise_datapath::Result<Drained> {
        self.bar.set_position(0);
        self.bar.set_length(0);
        self.bar.set_message(path.display().to_string());
        let mut tell = |done: u64, total: u64| {
            self.bar.set_length(total);
            self.bar.set_position(done);
            interrupt::stop_if_asked();
            if interrupt::asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        match work {
            Work::Drain => file.drain(&mut tell),
            Work::Warm => file.warm(&mut tell),
        }
    }

    fn file(&self, outcome: &Outcome, work: Work, named: bool) {
        let (path, done) = (outcome.path.display(), work.done());
        let line = match &outcome.problem {
            Some(problem) => format!("stripewise: {path}: {problem}"),
            None if self.quiet => return,
            None if outcome.single && named => format!("{path}: has one copy, nothing to do"),
            None if outcome.single => return,
            None if outcome.copied.left_bytes > 0 => {
                let Drained { bytes, left_bytes } = outcome.copied;
                format!("{done} {path} ({} copied, {} more did not fit)", human(bytes), human(left_bytes))
            }
            None => format!("{done} {path} ({} copied)", human(outcome.copied.bytes)),
        };
        self.bar.suspend(|| eprintln!("{line}"));
    }
}
