//! `stripewise report` writes an HTML page about traces, plans and measurements.

use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::ensure;
use serde_json::{Value, json};
use stripewise_cluster::{Cluster, Rule};
use stripewise_console::{progress, quoted};
use stripewise_plan::workload::{File, FileSet};
use stripewise_plan::{Candidate, Native, native};
use stripewise_report::compare::{compare, elapsed_s};
use stripewise_report::{
    Activity, Collector, MissingPart, PlanView, Predictions, Report, Results, Statistics, Workload,
    missing_parts, render, span_of, units,
};
use stripewise_trace::Summary;

use crate::darshan::open_trace;
use crate::{files, output};

/// Writes one HTML page: what an application does, how its files are laid out, what was predicted
/// and measured
///
/// The page opens in any browser without a network. A section whose input is not given is left out
/// and replaced by a sentence that says how to get the input.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  stripewise report -t job.trace                             what the application does
  stripewise report -t job.trace --time ..2                  its first two seconds, larger
  stripewise report -t job.trace -p plan.toml                and its layouts, drawn
  stripewise plan job.trace -c cluster.toml --json --candidates > plan.json
  stripewise report -t job.trace -p plan.toml --predictions plan.json
                                                             and all that the planner compared
  stripewise report -r results.json -o demo.html             predicted against measured
  stripewise report --before before.trace -t after.trace     two runs of a program, phase by phase
  stripewise run -p plan.toml --statistics job.stat -- ./job
  stripewise report -p plan.toml --predictions plan.json -s job.stat
                                                             which copy served what, expected and measured")]
pub struct Args {
    /// A trace from `stripewise trace` or `stripewise synth`; may be given several times
    #[arg(short, long = "trace", value_name = "TRACE", env = "STRIPEWISE_TRACE")]
    traces: Vec<PathBuf>,

    /// A trace of the same program from before a change, to compare with the first -t
    #[arg(long, value_name = "TRACE", env = "STRIPEWISE_BEFORE")]
    before: Option<PathBuf>,

    /// Zoom: charts of traces show this part of the time, in seconds from the start of the trace:
    /// `12..14.5`, `12..`, `..14.5`
    #[arg(long, value_name = "FROM..TO", value_parser = window)]
    time: Option<Window>,

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

pub fn run(args: Args) -> anyhow::Result<()> {
    let nothing = args.traces.is_empty() && args.plans.is_empty() && args.statistics.is_empty();
    ensure!(
        !nothing || args.results.is_some(),
        "nothing to report on: give at least one of -t TRACE, -p PLAN.TOML, -r RESULTS.JSON and -s FILE"
    );
    let results = args.results.as_deref().map(|path| files::parsed(path, Results::parse)).transpose()?;
    let named = |pick| named(results.as_ref(), args.results.as_deref(), pick);
    let traces = if args.traces.is_empty() { named(|workload| workload.trace.as_ref()) } else { args.traces };
    let plans = if args.plans.is_empty() { named(|workload| workload.plan.as_ref()) } else { args.plans };
    let no_plan = plans.is_empty() && !args.predictions.is_empty();
    ensure!(!no_plan, "--predictions needs the plan that was made with them: add -p PLAN.TOML");
    let only_before = args.before.is_some() && traces.is_empty();
    ensure!(!only_before, "--before needs a trace from after the change: add -t TRACE");
    ensure!(args.time.is_none() || !traces.is_empty(), "--time is a part of a trace: add -t TRACE");
    let before = args.before.as_deref().map(|path| read_trace(path, None)).transpose()?;
    let activities: Vec<Activity> =
        traces.iter().map(|path| read_trace(path, args.time.as_ref())).collect::<Result<_, _>>()?;
    let read = |path: &PathBuf| files::parsed(path, Predictions::parse);
    let predictions: Vec<Predictions> = args.predictions.iter().map(read).collect::<Result<_, _>>()?;
    // A single plan matches a single predictions file even if the plan was renamed.
    let only = plans.len() == 1 && predictions.len() == 1;
    let plans: Vec<PlanView> =
        plans.iter().map(|path| read_plan(path, &activities, &predictions, only)).collect::<Result<_, _>>()?;
    let mut statistics = Statistics::default();
    for path in &args.statistics {
        files::parsed(path, |text, name| statistics.read(text, name))?;
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
    print(&args.output, html.len() as u64, &report, args.json)
}

/// Returns the files that the results at `path` name, as far as they exist: results may have been
/// copied without the files next to them, and several workloads may name the same file.
fn named(
    results: Option<&Results>,
    path: Option<&Path>,
    pick: fn(&Workload) -> Option<&String>,
) -> Vec<PathBuf> {
    let directory = path.and_then(Path::parent).unwrap_or(Path::new(""));
    let mut paths: Vec<PathBuf> = Vec::new();
    for name in results.iter().flat_map(|results| &results.workloads).filter_map(pick) {
        let path = directory.join(name);
        if path.exists() && !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

/// Reads the plan and adds file sizes, the predictions made with it (those that name it; if `only`,
/// the first), and the equivalent commands of other file systems.
fn read_plan(
    path: &Path,
    activities: &[Activity],
    predictions: &[Predictions],
    only: bool,
) -> anyhow::Result<PlanView> {
    let plan = files::plan(path)?.unfolded();
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
    let file = File::new(rule.pattern.as_str(), file_bytes.unwrap_or(u64::MAX));
    let one_file = !rule.pattern.contains(['<', '*', '\\']);
    let files = vec![file; if one_file { 1 } else { 2 }];
    let set = FileSet { pattern: rule.pattern.clone(), files, ..FileSet::default() };
    let candidate = Candidate::spread("", rule.scheme.clone(), rule.layouts.clone(), rule.spread);
    native(&candidate, &set, cluster)
}

/// Reads the trace twice: the first pass gives the axis ranges of the plots that the second pass
/// fills.
fn read_trace(path: &Path, shown: Option<&Window>) -> anyhow::Result<Activity> {
    let trace = open_trace(path)?;
    let bar = progress::sharing("reading the trace", false);
    let summary = Summary::of(&trace)?;
    let shown = shown.map(|shown| shown.of(path, &span_of(&summary))).transpose()?;
    let shown = shown.unwrap_or(0..u64::MAX);
    let mut collector = Collector::new(&file_name(path), trace.meta(), trace.processes(), summary, shown);
    let mut requests = trace.requests()?;
    let mut done = 0;
    while let Some(batch) = requests.next_batch()? {
        collector.add(batch);
        done += batch.len() as u64;
        progress::share(&bar, done as f64 / trace.len() as f64);
    }
    bar.finish_and_clear();
    Ok(collector.finish())
}

/// A part of the time, seconds from the start of a trace.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Window {
    from_s: f64,
    to_s: f64,
}

fn window(text: &str) -> Result<Window, String> {
    let (from, to) = text.split_once("..").ok_or("a part of the time is FROM..TO, in seconds: 12..14.5")?;
    let seconds = |text: &str, open: f64| match text.trim() {
        "" => Ok(open),
        text => match text.parse() {
            Ok(seconds) if seconds >= 0.0 => Ok(seconds),
            _ => Err(format!("`{text}` is not a number of seconds")),
        },
    };
    let window = Window { from_s: seconds(from, 0.0)?, to_s: seconds(to, f64::INFINITY)? };
    if window.from_s >= window.to_s {
        return Err(format!("it ends at {} s and begins at {} s", window.to_s, window.from_s));
    }
    Ok(window)
}

impl Window {
    /// Returns the nanoseconds; an error if a trace over the times `span_ns` has none of them.
    fn of(self, path: &Path, span_ns: &Range<u64>) -> anyhow::Result<Range<u64>> {
        let window_ns = (self.from_s * 1e9) as u64..(self.to_s * 1e9) as u64;
        let [start_s, end_s] = [span_ns.start, span_ns.end].map(|ns| ns as f64 * 1e-9);
        ensure!(
            window_ns.start <= span_ns.end && window_ns.end >= span_ns.start,
            "{}: --time {}..{}: the calls of the trace are from {start_s:.3} s to {end_s:.3} s",
            path.display(),
            self.from_s,
            self.to_s
        );
        Ok(window_ns)
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// Formats arguments as one line. The program is shown by its name only, since its installation
/// path carries no information.
fn command_line(mut arguments: impl Iterator<Item = OsString>) -> String {
    let program = arguments.next().map(|program| file_name(Path::new(&program)));
    let others = arguments.map(|argument| argument.to_string_lossy().into_owned());
    program.into_iter().chain(others).map(|word| quoted(&word)).collect::<Vec<_>>().join(" ")
}

fn print(path: &Path, size_bytes: u64, report: &Report<'_>, as_json: bool) -> anyhow::Result<()> {
    let compared = report.before.zip(report.activities.first());
    let durations_s = compared.map(|(before, after)| (elapsed_s(before), elapsed_s(after)));
    let remedy = |part: &MissingPart| format!("{} {} and add {}", part.what, part.command, part.flag);
    let missing = missing_parts(report);
    if !as_json {
        println!("{} ({})", path.display(), units::bytes(size_bytes));
        if let Some((before_s, after_s)) = durations_s {
            println!("before: {}; after: {}", units::seconds(before_s), units::seconds(after_s));
        }
        missing.iter().for_each(|part| println!("left out: {}. {}", part.title, remedy(part)));
        return Ok(());
    }
    let workloads = report.results.map_or(&[][..], |results| &results.workloads);
    let left_out = missing.iter().map(|part| json!({ "part": part.title, "remedy": remedy(part) }));
    let mut written = json!({
        "report": path.to_string_lossy(),
        "size_bytes": size_bytes,
        "traces": report.activities.len(),
        "plans": report.plans.len(),
        // Files with several copies that have statistics.
        "counted_files": report.statistics.len(),
        "workloads": workloads.iter().map(workload_json).collect::<Vec<_>>(),
        "left_out": left_out.collect::<Vec<_>>(),
    });
    if let (Some((before, after)), Some((before_s, after_s))) = (compared, durations_s) {
        let phases = compare(before, after);
        written["compared"] = json!({ "before_s": before_s, "after_s": after_s, "phases": phases });
    }
    output::json(&written)
}

/// Returns the numbers of the layout chosen for a workload.
fn workload_json(workload: &Workload) -> Value {
    json!({
        "name": workload.name,
        "present": workload.present,
        "choice": workload.choice,
        "speed_up": workload.speed_up(),
        "behind_best": workload.behind_best().map(|(_, behind)| behind),
    })
}
