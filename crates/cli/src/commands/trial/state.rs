//! What a try has done so far, in its directory.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use stripewise_console::quoted;

use super::args::Args;
use crate::files;

/// The format that this version reads and writes.
const VERSION: u64 = 1;
/// File name of the state.
const STATE: &str = "try.json";

/// How far a try has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Nothing was changed.
    Before,
    /// Files may be in the layouts of the plan.
    Changed,
    /// The files stay in the layouts of the plan.
    Kept,
    /// The files were given back their layouts.
    Undone,
    /// The plan changes nothing.
    Unchanged,
}

/// The layouts from before the change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Former {
    /// Files that were in the plan's layouts already. They stay there.
    pub placed: Vec<PathBuf>,
    /// Files that were in other layouts, which `former.toml` describes.
    pub managed: Vec<PathBuf>,
}

/// The state of a try.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    version: u64,
    /// How far it has come.
    pub phase: Phase,
    /// The command, and the flags on which the result depends. Another try has others.
    pub what: Vec<String>,
    /// Placed by the file system.
    pub native: bool,
    /// The command ran over a plan before, of which `over.toml` is a copy.
    pub over: bool,
    /// Known as soon as something may have changed.
    pub former: Former,
}

/// The directory of a try, with its state.
pub struct Trial {
    /// An absolute path.
    pub dir: PathBuf,
    /// How far the try has come, as noted on disk.
    pub state: State,
    /// Only one process at a time works on a try. Others find the directory locked.
    _lock: File,
}

impl Trial {
    /// Continues the try of the directory if it is the same and was interrupted, else begins one.
    ///
    /// # Errors
    /// The directory holds another try that may have changed something, or cannot be used.
    pub fn begin(args: &Args) -> anyhow::Result<Self> {
        let what = what(args)?;
        match fs::create_dir(&args.dir) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(error).with_context(|| {
                    format!("the directory of the try, {}, cannot be made", args.dir.display())
                });
            }
            _ => {}
        }
        let dir = args.dir.canonicalize().with_context(|| format!("--dir {}", args.dir.display()))?;
        let lock = lock(&dir)?;
        if let Some(state) = read(&dir)? {
            let trial = Self { dir, state, _lock: lock };
            let is_same = trial.state.what == what && trial.has(args)?;
            match trial.state.phase {
                Phase::Before | Phase::Changed if is_same => return Ok(trial),
                Phase::Changed | Phase::Kept => bail!(
                    "{} has what undoes an earlier try ({}): undo it with `{}`, or name another directory with --dir",
                    trial.dir.display(),
                    if trial.state.phase == Phase::Kept {
                        "its layouts were kept"
                    } else {
                        "it was not finished"
                    },
                    trial.undo_command()
                ),
                _ => return trial.anew(what, args),
            }
        }
        let is_empty = fs::read_dir(&dir).with_context(|| dir.display().to_string())?.next().is_none();
        ensure!(is_empty, "{} is not empty and holds no try; name another directory with --dir", dir.display());
        let state = State {
            version: VERSION,
            phase: Phase::Before,
            what: Vec::new(),
            native: false,
            over: false,
            former: Former::default(),
        };
        Self { dir, state, _lock: lock }.anew(what, args)
    }

    /// Whether the plans that are given are still those of the try.
    fn has(&self, args: &Args) -> anyhow::Result<bool> {
        for (given, copy) in [(&args.plan, self.plan()), (&args.over, self.over())] {
            if let Some(given) = given
                && (!copy.exists() || files::read(given)? != files::read(&copy)?)
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Forgets what the directory has of an earlier try.
    fn anew(mut self, what: Vec<String>, args: &Args) -> anyhow::Result<Self> {
        for entry in fs::read_dir(&self.dir).with_context(|| self.dir.display().to_string())?.flatten() {
            if is_of_try(&entry.file_name().to_string_lossy()) {
                let path = entry.path();
                let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
                removed.with_context(|| format!("{} cannot be removed", path.display()))?;
            }
        }
        let (native, over) = (args.native, args.over.is_some());
        let former = Former::default();
        self.state = State { version: VERSION, phase: Phase::Before, what, native, over, former };
        if let Some(over) = &args.over {
            files::plan(over)?;
            files::write_whole(&self.over(), &files::read(over)?)?;
        }
        if let Some(plan) = &args.plan {
            files::plan(plan)?;
            files::write_whole(&self.plan(), &files::read(plan)?)?;
        }
        self.save()?;
        Ok(self)
    }

    /// The try of a directory.
    ///
    /// # Errors
    /// There is none.
    pub fn open(dir: &Path) -> anyhow::Result<Self> {
        let found = dir.canonicalize().ok().and_then(|dir| Some((read(&dir).transpose()?, dir)));
        let Some((state, dir)) = found else {
            bail!("{} holds no try; name its directory with --dir", dir.display());
        };
        let _lock = lock(&dir)?;
        Ok(Self { state: state?, dir, _lock })
    }

    /// Notes on disk how far the try has come.
    pub fn reach(&mut self, phase: Phase) -> anyhow::Result<()> {
        self.state.phase = phase;
        self.save()
    }

    fn save(&self) -> anyhow::Result<()> {
        files::write_whole(&self.dir.join(STATE), &(serde_json::to_string_pretty(&self.state)? + "\n"))
    }

    /// The plan that is tried.
    pub fn plan(&self) -> PathBuf {
        self.dir.join("plan.toml")
    }

    /// What `plan --json` said of it.
    pub fn predictions(&self) -> PathBuf {
        self.dir.join("plan.json")
    }

    /// The plan that the command ran over before.
    pub fn over(&self) -> PathBuf {
        self.dir.join("over.toml")
    }

    /// A plan with the former layouts of files that were in others than the plan's.
    pub fn former(&self) -> PathBuf {
        self.dir.join("former.toml")
    }

    /// The trace of a run, numbered from 1.
    pub fn trace(&self, side: Side, number: u32) -> PathBuf {
        self.dir.join(format!("{}-{number}.trace", side.name()))
    }

    /// The command that undoes the try.
    pub fn undo_command(&self) -> String {
        format!("stripewise try --undo --dir {}", quoted(&self.dir.to_string_lossy()))
    }
}

/// Runs in the layouts from before the change, or in those of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// In the layouts that the files had.
    Before,
    /// In the layouts of the plan.
    After,
}

impl Side {
    /// For people, and in names of files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
        }
    }
}

/// Whether a try makes files of this name.
fn is_of_try(name: &str) -> bool {
    let is_trace = |side: &str| name.starts_with(side) && name.contains(".trace");
    let others = [STATE, "plan.toml", "plan.json", "over.toml", "former.toml"];
    others.contains(&name) || is_trace("before-") || is_trace("after-")
}

/// Locks the directory until the file is closed.
fn lock(dir: &Path) -> anyhow::Result<File> {
    let file = File::open(dir).with_context(|| format!("--dir {}", dir.display()))?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => bail!(
            "another process works on the try in {}; wait until it has ended, or name another directory with --dir",
            dir.display()
        ),
        // Some file systems have no locks.
        _ => Ok(file),
    }
}

fn read(dir: &Path) -> anyhow::Result<Option<State>> {
    let path = dir.join(STATE);
    if !path.exists() {
        return Ok(None);
    }
    let context = || {
        format!("{} is no state of a try; remove the directory, or name another one with --dir", path.display())
    };
    let state: State = serde_json::from_str(&files::read(&path)?).with_context(context)?;
    ensure!(
        state.version == VERSION,
        "{} is of version {}, and this is version {VERSION}; use the program that wrote it",
        path.display(),
        state.version
    );
    Ok(Some(state))
}

/// What a try depends on: a continued one has the same.
fn what(args: &Args) -> anyhow::Result<Vec<String>> {
    let path = |path: &Path| std::path::absolute(path).map(|path| path.display().to_string());
    let mut what = Vec::new();
    for (flag, value) in [("--plan", &args.plan), ("--over", &args.over)] {
        if let Some(value) = value {
            what.push(format!("{flag} {}", path(value)?));
        }
    }
    if args.plan.is_none() {
        what.push(format!("--cluster {}", path(&args.cluster.path)?));
    }
    what.extend(args.scheme.iter().map(|scheme| format!("--scheme {scheme}")));
    what.extend(args.min_gain.iter().map(|gain| format!("--min-gain {gain}")));
    what.extend(args.only.iter().map(|only| format!("--only {only}")));
    what.extend(args.native.then(|| "--native".to_owned()));
    what.extend(args.cold.then(|| "--cold".to_owned()));
    what.push(format!(
        "in {}",
        std::env::current_dir().context("the current directory is not known")?.display()
    ));
    what.extend(args.command.iter().map(|word| word.to_string_lossy().into_owned()));
    Ok(what)
}
