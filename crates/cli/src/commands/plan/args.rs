//! Flags of `plan`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::ensure;
use clap::builder::{OsStringValueParser, TypedValueParser};
use stripewise_cluster::{CacheAdmission, CacheMode, Cluster, Durability, size};
use stripewise_plan::{CopyOptions, Objective, OnlyNative, Options, Present, Scheme, planners};

use crate::flags::{ClusterFlags, one_of, positive_size};

/// Chooses the layout that makes the traced I/O fastest, and writes it as a plan
///
/// Reads a trace, groups its requests by file-name pattern, size, operation and concurrency,
/// predicts the papers' overall cost and the expected elapsed time for every candidate layout, and
/// writes plan.toml for `place` and `run`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  stripewise plan app.trace -c cluster.toml
  stripewise plan app.trace -c cluster.toml --scheme psa --candidates --json
  stripewise plan app.trace -c cluster.toml --scheme \"2-D g=2\" -o two-d.toml
  stripewise plan app.trace -c cluster.toml --scheme replicas --copies 3 --lazy-close
  stripewise plan app.trace -c cluster.toml --scheme cache --cache-capacity 1G --cache-mode sla
  stripewise plan app.trace -c cluster.toml --with replicas,cache          auto, with these
  stripewise plan app.trace -c cluster.toml --native                       for place --native
  stripewise plan nightly.trace hourly.trace=24 -c cluster.toml            several applications
  stripewise plan app.trace -c cluster.toml --dont-move-more-than 1T       the best moves only
  stripewise plan app.trace -c cluster.toml --only '/scratch/run7/**' --present 1-DH:64K")]
pub struct Args {
    /// The trace, from `stripewise trace` or `stripewise synth`. Several traces are planned
    /// together; nightly.trace=10 counts ten times, for an application that runs ten times as often
    #[arg(required = true, value_name = "TRACE[=TIMES]", value_parser = OsStringValueParser::new().try_map(traced))]
    pub traces: Vec<Traced>,
    #[command(flatten)]
    pub cluster: ClusterFlags,
    /// auto (the best of all schemes except replicas, cache and regions; several patterns of files
    /// share the space of the servers by what it saves), overall (1-DH, 1-DV, 2-D, every
    /// stripe size), psa, pa, def, replicas (several copies with different layouts), cache (ranges
    /// of the files on the fastest servers), regions (stripes of their own for regions with
    /// requests of different sizes, for comparison), or the name of one candidate
    #[arg(long, env = "STRIPEWISE_SCHEME", default_value = "auto")]
    pub scheme: String,
    /// What the planner minimizes: the expected elapsed time, or the papers' overall cost
    #[arg(long, env = "STRIPEWISE_OBJECTIVE", value_parser = one_of([("elapsed", Objective::Elapsed), ("cost", Objective::Cost)]), default_value = "elapsed")]
    pub objective: Objective,
    /// Step of the search for PSA's stripe sizes
    #[arg(long, env = "STRIPEWISE_STEP", value_parser = positive_size, default_value = "4K")]
    pub step: u64,
    /// Stripe sizes to try in addition to fractions of the request size [default: 4K, 8K, ... 64M]
    #[arg(long, env = "STRIPEWISE_STRIPES", value_delimiter = ',', value_parser = positive_size, value_name = "SIZES")]
    pub stripes: Option<Vec<u64>>,
    /// Recommend a change only if it saves at least this fraction of the present layout's time;
    /// `none` accepts any saving
    #[arg(long, env = "STRIPEWISE_MIN_GAIN", value_parser = gain, default_value = "5%", allow_hyphen_values = true)]
    pub min_gain: f64,
    /// Change the layouts of existing files of at most this many bytes in all, those where it saves
    /// the most. Files that a program is going to create anew cost nothing: remove them first. Only
    /// for the scheme auto
    #[arg(long, env = "STRIPEWISE_DONT_MOVE_MORE_THAN", value_parser = size::parse, value_name = "SIZE", conflicts_with = "native")]
    pub dont_move_more_than: Option<u64>,
    /// Present layout of files that stripewise does not manage: plain (one file on a server of the
    /// slowest tier), def (stripes of 64K over all servers, as far as the fast ones have space),
    /// one:hdd/0, 1-DH:64K, 1-DH:64K@hdd, or cycle:"hdd/0-3:64K ssd/0-3:8K"; by default what the
    /// cluster's parallel file system says, else plain
    #[arg(long, env = "STRIPEWISE_PRESENT", value_name = "LAYOUT")]
    pub present: Option<String>,
    /// Consider only native layouts of the cluster's file system, one per directory, so that
    /// `place --native` can place the whole plan and programs run without stripewise
    #[arg(long, env = "STRIPEWISE_NATIVE", conflicts_with = "with")]
    pub native: bool,
    /// Let auto consider these schemes, too: replicas, cache, regions. The first two copy in the
    /// background and keep a map of the valid copies of each range
    #[arg(long, env = "STRIPEWISE_WITH", value_delimiter = ',', value_parser = ["replicas", "cache", "regions"], value_name = "SCHEMES")]
    pub with: Vec<String>,
    /// replicas: maximum number of copies of every file, including the original
    #[arg(long, env = "STRIPEWISE_COPIES", default_value_t = 2, value_parser = clap::value_parser!(u8).range(2..=8), value_name = "K")]
    pub copies: u8,
    /// cache: limit on the cached data on each of the fastest servers [default: their
    /// capacity_per_server]
    #[arg(long, env = "STRIPEWISE_CACHE_CAPACITY", value_parser = positive_size, value_name = "SIZE")]
    pub cache_capacity: Option<u64>,
    /// cache: what is admitted: sla (requests that gain, in the layout where they gain most), sca
    /// (requests that gain in 1-DH), nsca (everything), off (nothing)
    #[arg(long, env = "STRIPEWISE_CACHE_MODE", value_parser = one_of(CacheMode::ALL.map(|mode| (mode.name(), mode))), default_value = "sla", value_name = "MODE")]
    pub cache_mode: CacheMode,
    /// cache: which critical writes are admitted while there is space: balanced (those that keep
    /// both tiers equally busy), as-printed (all, as in the paper's Algorithm 1)
    #[arg(long, env = "STRIPEWISE_CACHE_ADMISSION", value_parser = one_of(CacheAdmission::ALL.map(|which| (which.name(), which))), default_value = "balanced", value_name = "WHICH")]
    pub cache_admission: CacheAdmission,
    /// replicas, cache: do not let close wait until the copies are in sync; the next process or
    /// `stripewise drain` completes the work
    #[arg(long, env = "STRIPEWISE_LAZY_CLOSE")]
    pub lazy_close: bool,
    /// replicas, cache: when the map of valid copies becomes durable: at fsync and close (sync), or
    /// with every write (each-write)
    #[arg(long, env = "STRIPEWISE_DURABILITY", value_parser = one_of(Durability::ALL.map(|when| (when.name(), when))), default_value = "sync")]
    pub durability: Durability,
    /// replicas, cache: limit on background copying in bytes per second [default: no limit]
    #[arg(long, env = "STRIPEWISE_BACKGROUND", value_parser = positive_size, value_name = "SIZE")]
    pub background: Option<u64>,
    /// Plan only for files that match this pattern (`*`, `**`, `<n>`); may be repeated. The plan's
    /// rules are by name pattern as always: one for files of run7 applies to those of run8, too
    #[arg(long, env = "STRIPEWISE_ONLY", value_delimiter = ':', value_name = "PATTERN")]
    pub only: Vec<String>,
    /// Plan from a trace that is known to lack calls
    #[arg(long, env = "STRIPEWISE_ACCEPT_INCOMPLETE")]
    pub accept_incomplete: bool,
    /// Plan from a trace of a program that failed and may have done only some of its I/O
    #[arg(long, env = "STRIPEWISE_ACCEPT_FAILED")]
    pub accept_failed: bool,
    /// Show for each pattern of files what is done with them, every candidate that was tried, and
    /// the commands that set the same layout on parallel file systems
    #[arg(long)]
    pub candidates: bool,
    /// Write the plan here
    #[arg(short, long, env = "STRIPEWISE_PLAN_OUTPUT", default_value = "plan.toml", value_name = "FILE")]
    pub output: PathBuf,
    /// Overwrite the output even if it is not a plan
    #[arg(long)]
    pub force: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Show no progress bar
    #[arg(short, long, env = "STRIPEWISE_QUIET")]
    pub quiet: bool,
}

/// Maximum number of runs of an application.
const TIMES_MAX: u64 = 1_000_000;

/// A trace, and how often its application runs.
#[derive(Clone, Debug)]
pub struct Traced {
    pub path: PathBuf,
    pub times: u64,
}

/// Parses `FILE` or `FILE=TIMES`. A file whose name ends like that is taken as it is.
fn traced(text: OsString) -> Result<Traced, String> {
    let named = text.to_str().and_then(|text| text.rsplit_once('='));
    let Some((path, times)) = named.filter(|_| !Path::new(&text).exists()) else {
        return Ok(Traced { path: text.into(), times: 1 });
    };
    match times.parse::<u64>() {
        Ok(times) if (1..=TIMES_MAX).contains(&times) => Ok(Traced { path: path.into(), times }),
        _ => Err(format!("there is no such file, and {times:?} is no number of runs from 1 to {TIMES_MAX}")),
    }
}

impl Args {
    /// The present layout of files without a manifest, if it is given.
    pub fn present(&self, cluster: &Cluster) -> anyhow::Result<Option<Present>> {
        Ok(self.present.as_deref().map(|text| Present::parse(text, cluster)).transpose()?)
    }

    pub fn options(&self, cluster: &Cluster) -> anyhow::Result<Options> {
        let scheme = match self.scheme.as_str() {
            "auto" => Scheme::Auto,
            name if planners::by_name(name).is_some() => Scheme::Planner(name.to_owned()),
            name => Scheme::Named(name.to_owned()),
        };
        ensure!(
            self.dont_move_more_than.is_none() || scheme == Scheme::Auto,
            "--dont-move-more-than cannot be kept with --scheme {}, which is asked for whatever it moves; leave out one \
             of them",
            self.scheme
        );
        Ok(Options {
            scheme,
            objective: self.objective,
            step: self.step,
            min_gain: self.min_gain,
            stripes: self.stripes.clone().unwrap_or(Options::default().stripes),
            with: self.with.clone(),
            copies: CopyOptions {
                most: self.copies.into(),
                cache_capacity: self.cache_capacity,
                cache_mode: self.cache_mode,
                cache_admission: self.cache_admission,
                lazy_close: self.lazy_close,
                durability: self.durability,
                background: self.background,
            },
            native: self.native.then(|| OnlyNative::of(cluster)).transpose()?,
            move_at_most: self.dont_move_more_than,
        })
    }
}

/// Parses `5%`, `0.05` or `none`.
fn gain(text: &str) -> Result<f64, String> {
    if text == "none" {
        return Ok(f64::NEG_INFINITY);
    }
    let (number, unit) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 0.01));
    match number.trim().parse::<f64>() {
        Ok(part) if part.is_finite() && part * unit < 1.0 => Ok(part * unit),
        _ => Err("must be a part below 1, like 5% or 0.05, or none".to_owned()),
    }
}
