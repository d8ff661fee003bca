//! `stripewise plan` decides which layout each file gets, and explains why.

mod json;
mod present;
mod table;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail, ensure};
use stripewise_cluster::pattern::match_path;
use stripewise_cluster::{CacheAdmission, CacheMode, Cluster, Durability, Plan};
use stripewise_console::progress;
use stripewise_plan::{
    Collector, CopyOptions, Decision, Objective, OnlyNative, Options, Present, Scheme, Workload, plan,
    planners, to_plan,
};
use stripewise_trace::{Summary, Trace};

use crate::flags::{ClusterFlags, one_of, positive_size};
use crate::{files, output};

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
  stripewise plan app.trace -c cluster.toml --only '/scratch/run7/**' --present 1-DH:64K")]
pub struct Args {
    /// The trace, from `stripewise trace` or `stripewise synth`
    trace: PathBuf,
    #[command(flatten)]
    cluster: ClusterFlags,
    /// auto (the best of all schemes except replicas and cache), overall (1-DH, 1-DV, 2-D, every
    /// stripe size), psa, pa, def, replicas (several copies with different layouts), cache (ranges
    /// of the files on the fastest servers), or the name of one candidate
    #[arg(long, env = "STRIPEWISE_SCHEME", default_value = "auto")]
    scheme: String,
    /// What the planner minimizes: the expected elapsed time, or the papers' overall cost
    #[arg(long, env = "STRIPEWISE_OBJECTIVE", value_parser = one_of([("elapsed", Objective::Elapsed), ("cost", Objective::Cost)]), default_value = "elapsed")]
    objective: Objective,
    /// Step of the search for PSA's stripe sizes
    #[arg(long, env = "STRIPEWISE_STEP", value_parser = positive_size, default_value = "4K")]
    step: u64,
    /// Stripe sizes to try in addition to fractions of the request size [default: 4K, 8K, ... 64M]
    #[arg(long, env = "STRIPEWISE_STRIPES", value_delimiter = ',', value_parser = positive_size, value_name = "SIZES")]
    stripes: Option<Vec<u64>>,
    /// Recommend a change only if it saves at least this fraction of the present layout's time;
    /// `none` accepts any saving
    #[arg(long, env = "STRIPEWISE_MIN_GAIN", value_parser = gain, default_value = "5%", allow_hyphen_values = true)]
    min_gain: f64,
    /// Present layout of files that stripewise does not manage: plain (one file on a server of the
    /// slowest tier), def (stripes of 64K over all servers, as far as the fast ones have space),
    /// one:hdd/0, 1-DH:64K, 1-DH:64K@hdd, or cycle:"hdd/0-3:64K ssd/0-3:8K"
    #[arg(long, env = "STRIPEWISE_PRESENT", default_value = "plain", value_name = "LAYOUT")]
    present: String,
    /// Consider only native layouts of the cluster's file system, one per directory, so that
    /// `place --native` can place the whole plan and programs run without stripewise
    #[arg(long, env = "STRIPEWISE_NATIVE", conflicts_with = "with")]
    native: bool,
    /// Let auto consider these schemes, too: replicas, cache. They copy in the background and keep
    /// a map of the valid copies of each range
    #[arg(long, env = "STRIPEWISE_WITH", value_delimiter = ',', value_parser = ["replicas", "cache"], value_name = "SCHEMES")]
    with: Vec<String>,
    /// replicas: maximum number of copies of every file, including the original
    #[arg(long, env = "STRIPEWISE_COPIES", default_value_t = 2, value_parser = clap::value_parser!(u8).range(2..=8), value_name = "K")]
    copies: u8,
    /// cache: limit on the cached data on each of the fastest servers [default: their
    /// capacity_per_server]
    #[arg(long, env = "STRIPEWISE_CACHE_CAPACITY", value_parser = positive_size, value_name = "SIZE")]
    cache_capacity: Option<u64>,
    /// cache: what is admitted: sla (requests that gain, in the layout where they gain most), sca
    /// (requests that gain in 1-DH), nsca (everything), off (nothing)
    #[arg(long, env = "STRIPEWISE_CACHE_MODE", value_parser = one_of(CacheMode::ALL.map(|mode| (mode.name(), mode))), default_value = "sla", value_name = "MODE")]
    cache_mode: CacheMode,
    /// cache: which critical writes are admitted while there is space: balanced (those that keep
    /// both tiers equally busy), as-printed (all, as in the paper's Algorithm 1)
    #[arg(long, env = "STRIPEWISE_CACHE_ADMISSION", value_parser = one_of(CacheAdmission::ALL.map(|which| (which.name(), which))), default_value = "balanced", value_name = "WHICH")]
    cache_admission: CacheAdmission,
    /// replicas, cache: do not let close wait until the copies are in sync; the next process or
    /// `stripewise drain` completes the work
    #[arg(long, env = "STRIPEWISE_LAZY_CLOSE")]
    lazy_close: bool,
    /// replicas, cache: when the map of valid copies becomes durable: at fsync and close (sync), or
    /// with every write (each-write)
    #[arg(long, env = "STRIPEWISE_DURABILITY", value_parser = one_of(Durability::ALL.map(|when| (when.name(), when))), default_value = "sync")]
    durability: Durability,
    /// replicas, cache: limit on background copying in bytes per second [default: no limit]
    #[arg(long, env = "STRIPEWISE_BACKGROUND", value_parser = positive_size, value_name = "SIZE")]
    background: Option<u64>,
    /// Plan only for files that match this pattern (`*`, `**`, `<n>`); may be repeated
    #[arg(long, env = "STRIPEWISE_ONLY", value_delimiter = ':', value_name = "PATTERN")]
    only: Vec<String>,
    /// Plan from a trace that is known to lack calls
    #[arg(long, env = "STRIPEWISE_ACCEPT_INCOMPLETE")]
    accept_incomplete: bool,
    /// Plan from a trace of a program that failed and may have done only some of its I/O
    #[arg(long, env = "STRIPEWISE_ACCEPT_FAILED")]
    accept_failed: bool,
    /// Show every candidate that was tried
    #[arg(long)]
    candidates: bool,
    /// Write the plan here
    #[arg(short, long, env = "STRIPEWISE_PLAN_OUTPUT", default_value = "plan.toml", value_name = "FILE")]
    output: PathBuf,
    /// Overwrite the output even if it is not a plan
    #[arg(long)]
    force: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Show no progress bar
    #[arg(short, long, env = "STRIPEWISE_QUIET")]
    quiet: bool,
}

impl Args {
    fn options(&self, cluster: &Cluster) -> anyhow::Result<Options> {
        let scheme = match self.scheme.as_str() {
            "auto" => Scheme::Auto,
            name if planners::by_name(name).is_some() => Scheme::Planner(name.to_owned()),
            name => Scheme::Named(name.to_owned()),
        };
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

/// Plans, writes the plan file, and prints the candidates considered.
pub fn run(args: &Args) -> anyhow::Result<()> {
    check_output(&args.output, args.force)?;
    let planned = make(args)?;
    let plan = to_plan(&planned.decisions, &planned.cluster, &planned.options);
    let plan = plan.folded().map_err(|(pattern, error)| anyhow!("{pattern}: {error}"))?;
    files::write_whole(&args.output, &plan.to_toml())?;
    if args.json {
        return output::json(&json::report(&planned, args));
    }
    table::print(&planned, args);
    Ok(())
}

/// Checks, before any work is done, that the plan replaces no other kind of file.
fn check_output(path: &Path, force: bool) -> anyhow::Result<()> {
    if !files::would_replace(path)? || force {
        return Ok(());
    }
    let text = std::fs::read_to_string(path).unwrap_or_default();
    ensure!(
        text.starts_with("# Written by `stripewise plan`") || Plan::parse(&text, "").is_ok(),
        "{} exists and is no plan; name another file with -o, or overwrite it with --force",
        path.display()
    );
    Ok(())
}

/// Everything the command prints.
struct Planned {
    trace: Trace,
    cluster: Cluster,
    profile: Option<PathBuf>,
    options: Options,
    workload: Workload,
    decisions: Vec<Decision>,
    /// Warnings about executables, by the pattern of their set.
    executables: HashMap<String, String>,
}

fn make(args: &Args) -> anyhow::Result<Planned> {
    let trace = files::trace(&args.trace, args.accept_incomplete, "plan")?;
    if let (Some(failure), false) = (trace.meta().failure(), args.accept_failed) {
        bail!(
            "{}: the traced program failed ({failure}), and may have done a part of its I/O only; trace a run that \
             succeeds, or plan with --accept-failed",
            args.trace.display()
        );
    }
    let (cluster, profile) = args.cluster.read()?;
    let (options, present) = (args.options(&cluster)?, Present::parse(&args.present, &cluster)?);
    let mut workload = read_workload(&trace, args.quiet)?;
    keep_only(&mut workload, &args.only)?;
    present::find(&mut workload, &cluster, &present)?;
    let decisions = plan(&workload, &cluster, &options)?;
    let executables = if args.native { HashMap::new() } else { present::executables(&workload) };
    Ok(Planned { trace, cluster, profile, options, workload, decisions, executables })
}

/// Reads the trace twice: first for its summary, then to group the requests by kind.
pub fn read_workload(trace: &Trace, quiet: bool) -> anyhow::Result<Workload> {
    let bar = progress::bar(Some(trace.len()), "{msg} [{bar:40}] {human_pos}/{human_len} {eta}", quiet);
    bar.set_message("summarising");
    let summary = Summary::of(trace)?;
    bar.set_message("grouping");
    let mut collector = Collector::new(&summary, trace.processes());
    let mut requests = trace.requests()?;
    while let Some(batch) = requests.next_batch()? {
        batch.requests.iter().for_each(|request| collector.add(request));
        bar.inc(batch.requests.len() as u64);
    }
    bar.finish_and_clear();
    Ok(collector.finish())
}

/// If there are patterns, keeps only the files that match one of them.
fn keep_only(workload: &mut Workload, patterns: &[String]) -> anyhow::Result<()> {
    if patterns.is_empty() {
        return Ok(());
    }
    let wanted = |name: &str| {
        patterns.iter().any(|pattern| match_path(pattern.as_bytes(), name.as_bytes(), None).is_some())
    };
    workload.file_sets.retain(|set| set.files.iter().any(|file| wanted(&file.name)));
    ensure!(!workload.file_sets.is_empty(), "no file of the trace matches --only {}", patterns.join(" "));
    Ok(())
}
