//! Plans for the files of a trace.

use std::collections::HashMap;
use std::path::PathBuf;

use anyhow::{bail, ensure};
use stripewise_cluster::Cluster;
use stripewise_cluster::pattern::match_path;
use stripewise_console::progress;
use stripewise_plan::{
    ApplicationTimes, Busiest, Collector, Compared, Decision, IoSeconds, Joint, LeftOut, Objective, Options,
    Promise, ServerLoad, Workload, compare_kinds, loads_of, plan, times_of,
};
use stripewise_trace::summary::MAX_GROUPS;
use stripewise_trace::{ORIGIN_DXT, Trace};

use super::args::{Args, Traced};
use super::{existing, present};
use crate::files;

/// The origins of traces of real runs in which the time of every call is true.
const RECORDED: [&str; 2] = ["recorded", ORIGIN_DXT];

/// Everything the command prints.
pub struct Planned {
    pub applications: Vec<Application>,
    pub cluster: Cluster,
    pub profile: Option<PathBuf>,
    pub options: Options,
    pub workload: Workload,
    /// What the plan does not concern.
    pub left_out: LeftOut,
    pub decisions: Vec<Decision>,
    /// All file sets together, if they were planned jointly.
    pub joint: Option<Joint>,
    /// The planned times, held against those of the traces; `None` if there are no such times.
    pub promise: Option<Promise>,
    /// What the traces and the model say of each set's present layout. Empty if the traces do not
    /// have true times, or if sets are planned by what they have in common.
    pub compared: Vec<Compared>,
    /// What every server has to do.
    pub loads: Vec<ServerLoad>,
    /// Warnings about executables, by the pattern of their set.
    pub executables: HashMap<String, String>,
}

/// A traced application.
pub struct Application {
    /// The path of its trace.
    pub path: String,
    /// How often it runs.
    pub times: u64,
    pub trace: Trace,
    /// How long its busiest process reads and writes.
    pub busiest: Busiest,
    /// The time of all its runs, if there are several applications.
    pub seconds: Option<ApplicationTimes>,
}

pub fn make(args: &Args) -> anyhow::Result<Planned> {
    let mut applications: Vec<Application> =
        args.traces.iter().map(|traced| application(traced, args)).collect::<Result<_, _>>()?;
    let (cluster, profile) = args.cluster.read()?;
    let (options, present) = (args.options(&cluster)?, args.present(&cluster)?);
    // The times of each of several applications are those of every set.
    let sets_max = if applications.len() > 1 { MAX_GROUPS } else { options.sets_max() };
    let (workload, left_out) = workload(&mut applications, args, sets_max)?;
    let mut workload = workload.divided(&cluster, &options)?;
    present::find(&mut workload, &cluster, present.as_ref(), args.quiet)?;
    if are_recorded(&applications) {
        workload = workload.without_memory(&cluster, &options)?;
    }
    if args.dont_move_more_than.is_some() {
        existing::find(&mut workload, &cluster, args.quiet)?;
    }
    let stripewise_plan::Planned { mut decisions, joint } = plan(&workload, &cluster, &options)?;
    if applications.len() > 1 {
        let times = times_of(&workload, &decisions, &cluster, &options)?;
        // Those at the end may have no requests.
        let times = times.into_iter().chain(std::iter::repeat_with(ApplicationTimes::default));
        applications.iter_mut().zip(times).for_each(|(of, times)| of.seconds = Some(times));
    }
    let model = times(&decisions, joint.as_ref(), options.objective);
    let promise = promise(&applications, model, workload.in_memory_s(), &options);
    if promise.is_some_and(|promise| promise.saves.is_none()) {
        decisions.iter_mut().for_each(|decision| decision.withdraw_promise(options.objective));
    }
    let compared = match are_recorded(&applications) && decisions.len() <= MAX_GROUPS {
        true => compare_kinds(&workload, &decisions, &cluster, &options)?,
        false => Vec::new(),
    };
    let loads = loads_of(&workload, &decisions, &cluster, &options)?;
    let executables = if args.native { HashMap::new() } else { present::executables(&workload) };
    Ok(Planned {
        applications,
        cluster,
        profile,
        options,
        workload,
        left_out,
        decisions,
        joint,
        promise,
        compared,
        loads,
        executables,
    })
}

/// The time (or cost) of all files in their present and in their planned layouts, seconds.
pub fn times(decisions: &[Decision], joint: Option<&Joint>, objective: Objective) -> (f64, f64) {
    match joint {
        Some(joint) => (joint.now_s, joint.planned_s),
        None => decisions.iter().fold((0.0, 0.0), |(now_s, planned_s), decision| {
            (now_s + objective.of(&decision.present), planned_s + objective.of(decision.chosen()))
        }),
    }
}

/// Whether the durations of all calls are those of real runs.
fn are_recorded(applications: &[Application]) -> bool {
    applications.iter().all(|of| RECORDED.contains(&of.trace.meta().origin.as_str()))
}

/// Holds the model's times, now and planned, against those of the traces and of memory, if all
/// traces have true times.
fn promise(
    applications: &[Application],
    (model_s, planned_s): (f64, f64),
    memory_s: f64,
    options: &Options,
) -> Option<Promise> {
    let traced_s = applications.iter().map(|of| of.times as f64 * of.busiest.planned_ns as f64 * 1e-9).sum();
    let is_compared = are_recorded(applications) && options.objective == Objective::Elapsed;
    is_compared.then(|| Promise::of(IoSeconds { model_s, planned_s, memory_s, traced_s })).flatten()
}

fn application(traced: &Traced, args: &Args) -> anyhow::Result<Application> {
    let trace = files::trace(&traced.path, args.accept_incomplete, "plan")?;
    if let (Some(failure), false) = (trace.meta().failure(), args.accept_failed) {
        bail!(
            "{}: the traced program failed ({failure}), and may have done a part of its I/O only; trace a run that \
             succeeds, or plan with --accept-failed",
            traced.path.display()
        );
    }
    let path = traced.path.display().to_string();
    Ok(Application { path, times: traced.times, trace, busiest: Busiest::default(), seconds: None })
}

/// The requests of all applications, grouped by kind, and those that are left out.
fn workload(
    applications: &mut [Application],
    args: &Args,
    sets_max: usize,
) -> anyhow::Result<(Workload, LeftOut)> {
    let mut left_out = LeftOut::default();
    let read = |of: &mut Application| {
        let collector = match args.only.is_empty() {
            true => Collector::of_data(of.trace.processes(), &of.trace, sets_max)?,
            false => only(&of.trace, &args.only, sets_max)?,
        };
        let (workload, others, busiest) = collect(&of.trace, collector, args.quiet)?;
        left_out.join(others, of.times);
        of.busiest = busiest;
        Ok((workload, of.times))
    };
    let workload =
        Workload::of_applications(applications.iter_mut().map(read).collect::<anyhow::Result<Vec<_>>>()?);
    let only = args.only.join(" ");
    let is_empty = workload.file_sets.is_empty();
    ensure!(args.only.is_empty() || !is_empty, "no file of the trace matches --only {only}");
    ensure!(
        left_out.files == 0 || !is_empty,
        "all {} files of the trace are logs, programs, sources or settings, or were written as a program's output; name \
         those to plan for with --only",
        left_out.files
    );
    Ok((workload, left_out))
}

/// Reads the trace and groups the requests of all files by kind, in at most `sets_max` file sets.
pub fn read_workload(trace: &Trace, sets_max: usize, quiet: bool) -> anyhow::Result<Workload> {
    let collector = Collector::new(trace.processes(), trace, sets_max)?;
    Ok(collect(trace, collector, quiet)?.0)
}

/// For the files that match one of the patterns. The others take no part in forming sets: a trace
/// of many files may have one set for a whole directory.
fn only(trace: &Trace, patterns: &[String], sets_max: usize) -> anyhow::Result<Collector> {
    let is_wanted = |name: &str| {
        patterns.iter().any(|pattern| match_path(pattern.as_bytes(), name.as_bytes(), None).is_some())
    };
    Ok(Collector::only(trace.processes(), trace, is_wanted, sets_max)?)
}

fn collect(
    trace: &Trace,
    mut collector: Collector,
    quiet: bool,
) -> anyhow::Result<(Workload, LeftOut, Busiest)> {
    let bar = progress::bar(Some(trace.len()), "{msg} [{bar:40}] {human_pos}/{human_len} {eta}", quiet);
    bar.set_message("grouping");
    let mut requests = trace.requests()?;
    while let Some(batch) = requests.next_batch()? {
        batch.iter().for_each(|request| collector.add(request));
        bar.inc(batch.len() as u64);
    }
    bar.finish_and_clear();
    let (left_out, busiest) = (collector.left_out(), collector.busiest());
    Ok((collector.finish(), left_out, busiest))
}
