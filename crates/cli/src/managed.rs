//! What the commands that look after managed files share.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use indicatif::{BinaryBytes, ProgressBar, ProgressStyle};
use stripewise_cluster::{Cluster, Plan, size};
use stripewise_datapath::Runtime;
use stripewise_datapath::manifest::Manifest;
use stripewise_datapath::migrate::{Phase, Progress};
use stripewise_layout::Stripe;
use stripewise_sys::Real;

/// A plan file.
///
/// # Errors
/// It cannot be read, or is wrong; names the file.
pub fn plan(path: &Path) -> anyhow::Result<Plan> {
    Ok(Plan::parse(&crate::files::read(path)?, &path.display().to_string())?)
}

/// The data path of a command. Emulated servers are not waited for: they stand for an application's run.
pub fn runtime(plan: Option<&Plan>) -> Arc<Runtime> {
    let unpaced = plan.cloned().map(|mut plan| {
        plan.cluster.tiers.iter_mut().for_each(|tier| tier.emulate = false);
        plan
    });
    Runtime::new(Arc::new(Real), unpaced.as_ref())
}

/// The absolute path of a file that exists, with the links in its directory followed, and those at its end.
///
/// # Errors
/// It does not exist, or a directory on the way may not be searched.
pub fn existing(path: &Path) -> anyhow::Result<PathBuf> {
    path.canonicalize().with_context(|| format!("{} cannot be used", path.display()))
}

/// An existing file that is to be read or moved: no directory.
///
/// # Errors
/// As [`existing`].
pub fn existing_file(path: &Path) -> anyhow::Result<PathBuf> {
    let found = existing(path)?;
    if found.is_dir() {
        bail!("{} is a directory; name files", path.display());
    }
    Ok(found)
}

/// A target's directory, and whether it is emulated.
pub struct TargetDirectory {
    pub path: PathBuf,
    pub emulated: bool,
}

/// The targets of a cluster or a plan, whichever is given.
///
/// # Errors
/// The file cannot be read, or is wrong.
pub fn targets(cluster: Option<&Path>, plan_path: Option<&Path>) -> anyhow::Result<Vec<TargetDirectory>> {
    let cluster = match (cluster, plan_path) {
        (Some(path), _) => {
            Cluster::parse_uncalibrated(&crate::files::read(path)?, &path.display().to_string())?
        }
        (None, Some(path)) => plan(path)?.cluster,
        (None, None) => return Ok(Vec::new()),
    };
    let emulated = |tier: usize| cluster.tiers[tier].emulate;
    let targets = cluster.targets().into_iter();
    Ok(targets.map(|target| TargetDirectory { emulated: emulated(target.tier), path: target.path }).collect())
}

/// Bytes for people.
pub fn human(bytes: u64) -> String {
    BinaryBytes(bytes).to_string()
}

/// A region's cycle as a plan writes it: `hdd/0-3:64K ssd/0:8K`.
pub fn cycle(stripes: &[Stripe], manifest: &Manifest) -> String {
    let name = |stripe: &Stripe| manifest.targets[stripe.target as usize].name.as_str();
    let mut words: Vec<String> = Vec::new();
    let mut rest = stripes;
    while let Some(first) = rest.first() {
        let numbered = name(first).rsplit_once('/').and_then(|(tier, n)| Some((tier, n.parse::<u64>().ok()?)));
        let follows = |(index, stripe): (usize, &Stripe)| {
            let expected = numbered.map(|(tier, number)| format!("{tier}/{}", number + index as u64));
            stripe.width == first.width && (index == 0 || expected.as_deref() == Some(name(stripe)))
        };
        let run = rest.iter().enumerate().take_while(|&pair| follows(pair)).count();
        let last = match numbered {
            Some((_, number)) if run > 1 => format!("-{}", number + run as u64 - 1),
            _ => String::new(),
        };
        words.push(format!("{}{last}:{}", name(first), size::format(first.width)));
        rest = &rest[run..];
    }
    words.join(" ")
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
        let terminal = std::io::stderr().is_terminal();
        let bar = if quiet || !terminal { ProgressBar::hidden() } else { ProgressBar::new(total_bytes * 2) };
        if let Ok(style) = ProgressStyle::with_template(
            "{bar:30} {percent:>3} % {binary_bytes_per_sec:>12} {eta:>4} left  {wide_msg}",
        ) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar, lines: !quiet && !terminal, started: Instant::now() }
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
