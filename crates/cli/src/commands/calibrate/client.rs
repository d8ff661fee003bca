//! Measures what calls on files cost the client: this program makes the calls, once as it is, and
//! once with the preload library over a plan for files with several numbers of objects.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail, ensure};
use stripewise_calibrate::ClientReport;
use stripewise_calibrate::client::{OBJECTS, STRIPE, Trial, run_trials, trial_prefix};
use stripewise_cluster::pattern::escape;
use stripewise_cluster::{Cluster, Driver, Plan, Rule, Spread, Tier};
use stripewise_console::interrupt;
use stripewise_drivers::TRIAL_PREFIX;
use stripewise_layout::constructors;
use stripewise_model::ClassParams;
use stripewise_sys::{Real, SysRef};
use stripewise_target::Target;

use crate::preload;

/// Time for one tier, in that of one size and kind of access of a server.
pub const POINTS: f64 = 4.0;
/// Fraction of the time that goes to plain files.
const PLAIN: f64 = 0.2;
/// Interval at which an interrupt is noticed.
const LOOK: Duration = Duration::from_millis(50);
/// A trial on a slow file system takes longer than its time, because it makes a number of rounds.
/// After so much more it is ended, seconds.
const LIMIT_S: f64 = 300.0;

/// Makes the calls that `calibrate` measures, and prints their times. Started by `calibrate`
#[derive(clap::Args)]
pub struct Args {
    /// Directory of the files
    directory: PathBuf,
    /// About how long to measure
    #[arg(long)]
    seconds: f64,
    /// The files are managed
    #[arg(long)]
    managed: bool,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    Ok(run_trials(&args.directory, args.managed, args.seconds, &mut std::io::stdout().lock())?)
}

/// Measures a tier with these directories, in about so many seconds. Calls `tell` with the fraction
/// that is done, and the current step. Leaves nothing in the directories. Ends the process if a
/// signal asks for it ([`interrupt::asked`]).
pub fn measure(
    tier: &str,
    directories: &[PathBuf],
    seconds: f64,
    tell: &mut dyn FnMut(f64, &str),
) -> anyhow::Result<ClientReport> {
    let library = preload::library()?;
    let result = {
        let scratch = Scratch::create(directories)?;
        trials(&scratch, &library, seconds, tell)
    };
    if interrupt::asked() {
        interrupt::end();
    }
    ClientReport::of(tier, &result?).ok_or_else(|| anyhow!("too few trials came to an end"))
}

fn trials(
    scratch: &Scratch,
    library: &Path,
    seconds: f64,
    tell: &mut dyn FnMut(f64, &str),
) -> anyhow::Result<Vec<Trial>> {
    let files = scratch.files();
    std::fs::create_dir(&files).with_context(|| files.display().to_string())?;
    let plan = scratch.plan()?;
    let mut plain = command(&files, PLAIN * seconds)?;
    let mut trials = lines(&mut plain, PLAIN * seconds, &mut |done| tell(PLAIN * done, "plain files"))?;
    let mut managed = command(&files, (1.0 - PLAIN) * seconds)?;
    managed.arg("--managed").env("LD_PRELOAD", library).env("STRIPEWISE_PLAN", &plan);
    let show = &mut |done| tell(PLAIN + (1.0 - PLAIN) * done, "managed files");
    trials.extend(lines(&mut managed, (1.0 - PLAIN) * seconds, show)?);
    Ok(trials)
}

/// This program as a trial, without anything of stripewise that is loaded or set for this process.
fn command(files: &Path, seconds: f64) -> anyhow::Result<Command> {
    let mut command =
        Command::new(std::env::current_exe().context("the path of this executable is not known")?);
    command.arg("client-trial").arg(files).arg("--seconds").arg(seconds.to_string());
    command.env_remove("LD_PRELOAD");
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"STRIPEWISE_") {
            command.env_remove(name);
        }
    }
    // Ctrl-C is for this process, which ends the trial and then removes its files.
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Ok(command)
}

/// Runs a trial to its end, and returns what it measured.
fn lines(command: &mut Command, seconds: f64, show: &mut dyn FnMut(f64)) -> anyhow::Result<Vec<Trial>> {
    let mut child = Running(command.spawn().context("cannot start the trial")?);
    let out = child.0.stdout.take().context("the trial has no output")?;
    let (send, receive) = channel();
    let reader = std::thread::spawn(move || {
        BufReader::new(out).lines().map_while(Result::ok).try_for_each(|line| send.send(line)).is_ok()
    });
    let received = received(&receive, seconds, show);
    if received.is_err() {
        child.end();
    }
    let _ = reader.join();
    let trials = received?;
    let mut said = String::new();
    let status = child.0.wait()?;
    child.0.stderr.take().map(|mut stderr| stderr.read_to_string(&mut said));
    let said = said.lines().last().unwrap_or("the trial failed").trim_start_matches("stripewise: ");
    ensure!(status.success(), "{said}");
    Ok(trials)
}

fn received(lines: &Receiver<String>, seconds: f64, show: &mut dyn FnMut(f64)) -> anyhow::Result<Vec<Trial>> {
    let (began, mut trials) = (Instant::now(), Vec::new());
    loop {
        let passed_s = began.elapsed().as_secs_f64();
        show((passed_s / seconds).min(1.0));
        ensure!(!interrupt::asked(), "interrupted");
        if passed_s > seconds + LIMIT_S {
            bail!("the trial did not end within {:.0} s", seconds + LIMIT_S);
        }
        match lines.recv_timeout(LOOK) {
            Ok(line) => trials.push(serde_json::from_str(&line).context("the trial")?),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(trials),
        }
    }
}

/// A trial that is ended with this value.
struct Running(Child);

impl Running {
    fn end(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// Directories of a trial in those of the servers, removed with this value.
struct Scratch(Vec<PathBuf>);

impl Scratch {
    /// Creates a directory in each of these, of at most as many as the largest file has objects.
    fn create(directories: &[PathBuf]) -> anyhow::Result<Self> {
        let mut scratch = Self(Vec::new());
        let name = format!("{TRIAL_PREFIX}{}", std::process::id());
        for directory in directories.iter().take(OBJECTS[OBJECTS.len() - 1] as usize) {
            let made = directory.join(&name);
            std::fs::create_dir(&made).with_context(|| format!("cannot make {}", made.display()))?;
            scratch.0.push(made);
        }
        ensure!(!scratch.0.is_empty(), "the tier has no directory");
        Ok(scratch)
    }

    fn files(&self) -> PathBuf {
        self.0[0].join("files")
    }

    /// Prepares a target for each object of the largest file, in the directories in turn, and
    /// writes the plan for the files.
    fn plan(&self) -> anyhow::Result<PathBuf> {
        let sys: SysRef = Arc::new(Real);
        let count = OBJECTS[OBJECTS.len() - 1] as usize;
        let mut servers = Vec::with_capacity(count);
        for index in 0..count {
            let path = self.0[index % self.0.len()].join(format!("target-{index}"));
            std::fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
            Target::prepare(&sys, &path, &format!("trial/{index}"))?;
            servers.push(path);
        }
        let name = "trial".to_owned();
        let tier = Tier {
            name: name.clone(),
            class: name.clone(),
            driver: Driver::Dirs { servers },
            capacity_per_server: 1 << 30,
            emulate: false,
        };
        let classes = [(name.clone(), ClassParams::default())].into();
        let cluster = Cluster { classes, tiers: vec![tier], ..Cluster::default() };
        let targets: Vec<u32> = (0..count as u32).collect();
        let rule = |objects: u64| {
            let prefix = trial_prefix(&self.files(), objects);
            let prefix = prefix.to_str().with_context(|| format!("{} is not UTF-8", prefix.display()))?;
            Ok::<_, anyhow::Error>(Rule {
                pattern: escape(prefix) + "<n>",
                scheme: name.clone(),
                reason: name.clone(),
                predicted_s: 0.0,
                elapsed_s: 0.0,
                layouts: vec![constructors::striped(&targets[..objects as usize], STRIPE)?],
                spread: Spread::default(),
                overlay: None,
            })
        };
        let rules = OBJECTS.into_iter().map(rule).collect::<Result<_, _>>()?;
        let path = self.0[0].join("plan.toml");
        let text = Plan { scheme: name.clone(), cluster, rules }.to_toml();
        std::fs::write(&path, text).with_context(|| path.display().to_string())?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        for directory in &self.0 {
            if let Err(error) = std::fs::remove_dir_all(directory) {
                eprintln!("stripewise: {} is left and may be removed: {error}", directory.display());
            }
        }
    }
}
