//! `stripewise report` writes an HTML page about traces, plans and measurements.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::bail;
use serde::Serialize;
use stripewise_cluster::{Cluster, Plan, Rule};
use stripewise_console::progress::Progress;
use stripewise_plan::workload::{File, FileSet};
use stripewise_plan::{Candidate, Native, native};
use stripewise_report::compare::{Compared, compare, elapsed_s};
use stripewise_report::{
    Activity, Collector, MissingPart, PlanView, Predictions, Report, Results, Statistics, Workload,
    missing_parts, render, units,
};
use stripewise_trace::{Summary, Trace};

use crate::files;

/// Writes one HTML page: what an application does, how its files are laid out, what was predicted
/// and measured
///
/// The page opens in any browser without a network. A section whose input is not given is left out
/// and replaced by a sentence that says how to get the input.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A trace from `stripewise trace` or `stripewise synth`; may be given several times
    #[arg(short, long = "trace", value_name = "TRACE", env = "STRIPEWISE_TRACE")]
    traces: Vec<PathBuf>,

    /// A trace of the same program from before a change, to compare with the first -t
    #[arg(long, value_name = "TRACE", env = "STRIPEWISE_BEFORE")]
    before: Option<PathBuf>,

    /// A plan from `stripewise plan`; may be given several times
    #[arg(short, long = "plan", value_name = "PLAN.TOML", env = "STRIPEWISE_PLAN")]
    plans: Vec<PathBuf>,

    /// The output of `stripewise plan --json --candidates`: everything the planner compared; may be
    /// given several times
    #[arg(long, value_name = "PLAN.JSON")]
    predictions: Vec<PathBuf>,

    /// Measurements from `stripewise-bench demo`; the traces and plans that they name are used
    /// where -t or -p is not given
    #[arg(short, long, value_name = "RESULTS.JSON", env = "STRIPEWISE_RESULTS")]
    results: Option<PathBuf>,

    /// Statistics from `stripewise run --statistics` on files with several copies; may be given
    /// several times
    #[arg(short, long, value_name = "FILE", env = "STRIPEWISE_STATISTICS")]
    statistics: Vec<PathBuf>,

    /// Where to write the page
    #[arg(short, long, value_name = "REPORT.HTML", default_value = "report.html")]
    output: PathBuf,

    /// Print a summary of what was written as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  stripewise report -t job.trace                             what the application does
  stripewise report -t job.trace -p plan.toml                and its layouts, drawn
  stripewise plan job.trace -c cluster.toml --json --candidates > plan.json
  stripewise report -t job.trace -p plan.toml --predictions plan.json
                                                             and all that the planner compared
  stripewise report -r results.json -o demo.html             predicted against measured
  stripewise report --before before.trace -t after.trace     two runs of a program, phase by phase
  stripewise run -p plan.toml --statistics job.stat -- ./job
  stripewise report -p plan.toml --predictions plan.json -s job.stat
                                                             which copy served what, expected and measured";

/// Summary of the written page for `--json`.
#[derive(Serialize)]
struct Written<'a> {
    report: String,
    size_bytes: u64,
    traces: usize,
    plans: usize,
    /// Number of files with several copies that have statistics.
    counted_files: usize,
    workloads: Vec<Outcome<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compared: Option<Comparison>,
    left_out: Vec<LeftOut>,
}

/// Comparison of the traces before and after a change.
#[derive(Serialize)]
struct Comparison {
    /// Durations of the two runs in seconds.
    before_s: f64,
    after_s: f64,
    phases: Vec<Compared>,
}

/// Numbers of the layout chosen for a workload.
#[derive(Serialize)]
struct Outcome<'a> {
    name: &'a str,
    present: &'a str,
    choice: &'a str,
    speed_up: Option<f64>,
    behind_best: Option<f64>,
}

/// A section that the page lacks.
#[derive(Serialize)]
struct LeftOut {
    part: &'static str,
    remedy: String,
}

/// Runs `stripewise report`.
///
/// # Errors
/// No input is given; an input cannot be read, is damaged or has another version; the page cannot
/// be written.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let nothing = args.traces.is_empty() && args.plans.is_empty() && args.statistics.is_empty();
    if nothing && args.results.is_none() {
        bail!("nothing to report on: give at least one of -t TRACE, -p PLAN.TOML, -r RESULTS.JSON and -s FILE");
    }
    let results = args.results.as_deref().map(read_results).transpose()?;
    let named = Named::of(results.as_ref(), args.results.as_deref());
    let traces = if args.traces.is_empty() { named.traces } else { args.traces };
    let plans = if args.plans.is_empty() { named.plans } else { args.plans };
    if plans.is_empty() && !args.predictions.is_empty() {
        bail!("--predictions needs the plan that was made with them: add -p PLAN.TOML");
    }
    if args.before.is_some() && traces.is_empty() {
        bail!("--before needs a trace from after the change: add -t TRACE");
    }
    let before = args.before.as_deref().map(read_trace).transpose()?;
    let activities: Vec<Activity> = traces.iter().map(|path| read_trace(path)).collect::<Result<_, _>>()?;
    let predictions: Vec<Predictions> =
        args.predictions.iter().map(|path| read_predictions(path)).collect::<Result<_, _>>()?;
    // A single plan matches a single predictions file even if the plan was renamed.
    let only = plans.len() == 1 && predictions.len() == 1;
    let plans: Vec<PlanView> =
        plans.iter().map(|path| read_plan(path, &activities, &predictions, only)).collect::<Result<_, _>>()?;
    let mut statistics = Statistics::default();
    for path in &args.statistics {
        statistics.read(&files::read(path)?, &path.to_string_lossy())?;
    }
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let report = Report {
        date: &units::utc(now.as_secs()),
        command: &command_line(std::env::args_os()),
        version: env!("CARGO_PKG_VERSION"),
        activities: &activities,
        before: before.as_ref(),
        plans: &plans,
        results: results.as_ref(),
        statistics: &statistics.files,
    };
    let html = render(&report);
    files::write_whole(&args.output, &html)?;
    say(&args.output, html.len() as u64, &report, args.json)?;
    Ok(ExitCode::SUCCESS)
}

/// Traces and plans that the results name and that exist.
#[derive(Default)]
struct Named {
    traces: Vec<PathBuf>,
    plans: Vec<PathBuf>,
}

impl Named {
    fn of(results: Option<&Results>, path: Option<&Path>) -> Self {
        let directory = path.and_then(Path::parent).unwrap_or(Path::new(""));
        let workloads = results.map_or(&[][..], |results| &results.workloads);
        let there = |pick: fn(&Workload) -> Option<&String>| {
            let mut paths: Vec<PathBuf> = Vec::new();
            // Results may have been copied without the files next to them, and several workloads
            // may name the same file.
            for path in workloads.iter().filter_map(pick).map(|name| directory.join(name)) {
                if path.exists() && !paths.contains(&path) {
                    paths.push(path);
                }
            }
            paths
        };
        Self { traces: there(|w| w.trace.as_ref()), plans: there(|w| w.plan.as_ref()) }
    }
}

fn read_results(path: &Path) -> anyhow::Result<Results> {
    Ok(Results::parse(&files::read(path)?, &path.to_string_lossy())?)
}

fn read_predictions(path: &Path) -> anyhow::Result<Predictions> {
    Ok(Predictions::parse(&files::read(path)?, &path.to_string_lossy())?)
}

/// Reads the plan and adds file sizes, the predictions made with it (those that name it; if `only`,
/// the first), and the equivalent commands of other file systems.
fn read_plan(
    path: &Path,
    activities: &[Activity],
    predictions: &[Predictions],
    only: bool,
) -> anyhow::Result<PlanView> {
    let plan = Plan::parse(&files::read(path)?, &path.to_string_lossy())?.unfolded();
    let mut view = PlanView::new(&file_name(path), plan, activities);
    let made_with = |p: &&Predictions| file_name(Path::new(&p.plan)) == view.name || only;
    if let Some(predictions) = predictions.iter().find(made_with) {
        view.add_predictions(predictions);
    }
    for (rule, details) in view.plan.rules.iter().zip(&mut view.details) {
        // No other file system keeps several copies with different layouts.
        if !rule.layouts.is_empty() && rule.overlay.is_none() {
            details.native = native_commands(rule, details.file_bytes, &view.plan.cluster);
        }
    }
    Ok(view)
}

/// Returns the native commands for a rule. The files behind the rule are unknown, so the commands
/// are for the path if the pattern has no wildcards, else for the directory.
fn native_commands(rule: &Rule, file_bytes: Option<u64>, cluster: &Cluster) -> Vec<Native> {
    let file = File { name: rule.pattern.clone(), size: file_bytes.unwrap_or(u64::MAX) };
    let one_file = !rule.pattern.contains(['<', '*', '\\']);
    let files = vec![file; if one_file { 1 } else { 2 }];
    let set = FileSet { pattern: rule.pattern.clone(), files, ..FileSet::default() };
    let candidate = Candidate::spread("", rule.scheme.clone(), rule.layouts.clone(), rule.spread);
    native(&candidate, &set, cluster)
}

/// Reads the trace twice: the first pass gives the axis ranges of the plots that the second pass
/// fills.
fn read_trace(path: &Path) -> anyhow::Result<Activity> {
    let trace = Trace::open(path)?;
    let progress = Progress::sharing("reading the trace", false);
    let summary = Summary::of(&trace)?;
    let mut collector = Collector::new(&file_name(path), trace.meta(), trace.processes(), summary);
    let mut requests = trace.requests()?;
    let mut done = 0;
    while let Some(batch) = requests.next_batch()? {
        collector.add(batch.requests);
        done += batch.requests.len() as u64;
        progress.share(done as f64 / trace.len() as f64);
    }
    progress.finish();
    Ok(collector.finish())
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// Formats arguments as one line, with quotes around those that a shell would split or change.
fn command_line(arguments: impl Iterator<Item = OsString>) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    let mut words = Vec::new();
    for (index, argument) in arguments.enumerate() {
        let word = argument.to_string_lossy();
        // The program is shown by its name only, since its installation path carries no
        // information.
        let word = if index == 0 { file_name(Path::new(word.as_ref())) } else { word.into_owned() };
        let quoted = format!("'{}'", word.replace('\'', r"'\''"));
        words.push(if !word.is_empty() && word.chars().all(plain) { word } else { quoted });
    }
    words.join(" ")
}

fn say(path: &Path, size_bytes: u64, report: &Report<'_>, json: bool) -> anyhow::Result<()> {
    let remedy = |part: &MissingPart| format!("{} {} and add {}", part.what, part.command, part.flag);
    let left_out = missing_parts(report).iter().map(|p| LeftOut { part: p.title, remedy: remedy(p) }).collect();
    let workloads = report.results.map_or(&[][..], |results| &results.workloads);
    let written = Written {
        report: path.to_string_lossy().into_owned(),
        size_bytes,
        traces: report.activities.len(),
        plans: report.plans.len(),
        counted_files: report.statistics.len(),
        workloads: workloads.iter().map(outcome).collect(),
        compared: report.before.zip(report.activities.first()).map(|(before, after)| Comparison {
            before_s: elapsed_s(before),
            after_s: elapsed_s(after),
            phases: compare(before, after),
        }),
        left_out,
    };
    if json {
        println!("{}", serde_json::to_string_pretty(&written)?);
        return Ok(());
    }
    println!("{} ({})", path.display(), units::bytes(size_bytes));
    if let Some(runs) = &written.compared {
        let (before, after) = (runs.before_s, runs.after_s);
        println!("before: {}; after: {}", units::seconds(before), units::seconds(after));
    }
    for part in written.left_out {
        println!("left out: {}. {}", part.part, part.remedy);
    }
    Ok(())
}

fn outcome(workload: &Workload) -> Outcome<'_> {
    Outcome {
        name: &workload.name,
        present: &workload.present,
        choice: &workload.choice,
        speed_up: workload.speed_up(),
        behind_best: workload.behind_best().map(|(_, behind)| behind),
    }
}
