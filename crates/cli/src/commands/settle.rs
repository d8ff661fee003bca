//! `stripewise drain` writes caches back and synchronizes replicas; `stripewise warm` fetches
//! prefetch hints into caches.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{bail, ensure};
use indicatif::ProgressBar;
use serde_json::{Value, json};
use stripewise_cluster::OverlayKind;
use stripewise_console::{interrupt, progress};
use stripewise_datapath::inspect::{CopyState, inspect, manifest_of};
use stripewise_datapath::{Drained, LogicalFile, Runtime};
use stripewise_sys::Real;

use crate::output::{self, human};
use crate::{files, managed};

/// Writes cached data back to the originals and brings replicas in sync
///
/// For a file with caches, data that only a cache holds is written back, so that the original
/// becomes complete. For a file with replicas, all copies become equal. Cached data stays cached.
/// Programs may keep using the files meanwhile; ranges they are writing at that moment are left
/// over and reported. The command can be interrupted at any time: the work done is kept, and the
/// next run continues.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  stripewise drain out.dat                    what only a cache or one replica has, to where it belongs
  stripewise drain -p plan.toml /scratch      all files below a directory, from the copies that read fastest
  stripewise drain out.dat && stripewise export out.dat    a plain file again

Exits with 1 if something is left anywhere, and says of which file, how much and why.")]
pub struct Drain {
    #[command(flatten)]
    pub flags: Flags,
}

/// Fetches into the caches the data that earlier runs queued for them
///
/// While programs run, reads that would gain from a cache are added to the file's prefetch queue,
/// which is worked off when the servers are idle. This command fetches the rest between two runs,
/// as far as there is space, so that the next run finds the data in the cache. It can be
/// interrupted at any time; the next run continues.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  stripewise warm out.dat                    before the run that reads it again
  stripewise warm -p plan.toml /scratch      all files below a directory
  stripewise status out.dat                  what is cached, and what is wanted

Exits with 1 if something could not be fetched; what does not fit into the cache is said, and no failure.")]
pub struct Warm {
    #[command(flatten)]
    pub flags: Flags,
}

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

/// Result for one file.
#[derive(Default)]
struct Outcome {
    copied: Drained,
    /// Why bytes are left over, or why the file could not be processed.
    problem: Option<String>,
    /// The file has a single copy, so there was nothing to do.
    single: bool,
}

/// Performs `work` on all files. A file that fails does not stop the rest.
pub fn run(flags: &Flags, work: Work) -> anyhow::Result<ExitCode> {
    let plan = flags.plan.as_deref().map(files::plan).transpose()?;
    let runtime = Runtime::new(Arc::new(Real), plan.as_ref());
    let roots = managed::all_existing(&flags.paths)?;
    let listing = managed::listing(&runtime, &roots);
    managed::act_for_owner(&runtime, &listing.anchors)?;
    interrupt::ask();
    interrupt::stop_when_told();
    let teller = Teller::new(flags.quiet, work);
    for path in listing.plain.iter().filter(|path| roots.contains(path)) {
        teller.tell(path, &Outcome { single: true, ..Outcome::default() }, true);
    }
    let (mut done, mut failed) = (Vec::new(), !listing.unreadable.is_empty());
    for path in &listing.anchors {
        interrupt::stop_if_asked();
        if interrupt::asked() {
            break;
        }
        let outcome = settle(&runtime, path, &teller);
        teller.tell(path, &outcome, roots.contains(path));
        failed |= outcome.problem.is_some();
        done.extend((!outcome.single).then(|| outcome.json(path)));
    }
    teller.bar.finish_and_clear();
    let interrupted = interrupt::asked();
    if flags.json {
        output::json(&json!({ "files": done, "interrupted": interrupted }))?;
    }
    if interrupted {
        eprintln!("stripewise: interrupted; what was done stays done, and the same command goes on");
    }
    Ok(output::code(failed || interrupted))
}

fn settle(runtime: &Arc<Runtime>, path: &Path, teller: &Teller) -> Outcome {
    let mut outcome = Outcome::default();
    let mut settle = || -> anyhow::Result<()> {
        outcome.single = manifest_of(runtime, path)?.is_none_or(|(manifest, _)| manifest.copies.is_none());
        if outcome.single {
            return Ok(());
        }
        let Some(file) = runtime.open_file(path)? else { return Ok(()) };
        ensure!(file.is_writable(), "you may not write to it");
        outcome.copied = teller.watch(path, &file)?;
        // This also brings the size that `ls` shows up to date.
        file.closing();
        drop(file);
        if interrupt::asked() { Ok(()) } else { left(runtime, path, teller.work, outcome.copied.left_bytes) }
    };
    if let Err(problem) = settle() {
        outcome.problem = Some(output::without_path(&problem.to_string(), path).to_owned());
    }
    outcome
}

/// Returns an error if `work` left something undone: how much, and why.
fn left(runtime: &Runtime, path: &Path, work: Work, left_bytes: u64) -> anyhow::Result<()> {
    let Some(found) = manifest_of(runtime, path)? else { return Ok(()) };
    let found = inspect(runtime, path, found)?;
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
        bail!("{what}, which is lost: {why}; bring it back, or see `stripewise fsck`");
    }
    // A full cache is as warm as it can get.
    if left_bytes == 0 || work == Work::Warm {
        return Ok(());
    }
    let why = match &found.map {
        Some(Ok(map)) if map.processes > 0 => {
            "programs write there just now; run it again when they have ended"
        }
        _ => "it was in use meanwhile; run it again",
    };
    bail!("{} are left: {why}", human(left_bytes))
}

impl Outcome {
    fn json(&self, path: &Path) -> Value {
        let Drained { bytes, left_bytes } = self.copied;
        let mut entry = json!({ "path": path.display().to_string(), "bytes": bytes, "left_bytes": left_bytes });
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
    work: Work,
}

impl Teller {
    fn new(quiet: bool, work: Work) -> Self {
        let template =
            "{bar:30} {binary_bytes:>10} of {binary_total_bytes} {binary_bytes_per_sec:>12}  {wide_msg}";
        Self { bar: progress::bar(Some(0), template, quiet), quiet, work }
    }

    fn watch(&self, path: &Path, file: &LogicalFile) -> stripewise_datapath::Result<Drained> {
        self.bar.set_position(0);
        self.bar.set_length(0);
        self.bar.set_message(path.display().to_string());
        let mut tell = |done: u64, total: u64| {
            self.bar.set_length(total);
            self.bar.set_position(done);
            interrupt::stop_if_asked();
            if interrupt::asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        match self.work {
            Work::Drain => file.drain(&mut tell),
            Work::Warm => file.warm(&mut tell),
        }
    }

    fn tell(&self, path: &Path, outcome: &Outcome, named: bool) {
        let path = path.display();
        let done = if self.work == Work::Drain { "drained" } else { "warmed" };
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
