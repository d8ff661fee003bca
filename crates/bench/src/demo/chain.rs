//! The steps that the demo performs with each program, and their result.

use anyhow::{Context, ensure};
use stripewise_report::{Candidate, Workload};

use super::candidates::{self, Forced, Planned};
use super::experiment::{Experiment, OPS};
use super::servers;
use super::workspace::Workspace;
use crate::output::Output;
use crate::shell::{self, arguments};

/// Layout of a hybrid file system without a plan: 64 KiB stripes over all servers. It is the
/// baseline of all speedups.
const PRESENT: &str = "DEF";

/// Traces, plans and places the program's file, runs the program under every candidate, and
/// returns one result per direction.
pub fn run(experiment: &Experiment, work: &Workspace) -> anyhow::Result<Vec<Workload>> {
    let cluster = format!("{}.cluster.toml", experiment.slug());
    servers::write_cluster(work, &cluster, experiment.ssd_bytes())?;
    trace(experiment, work)?;
    let mut planned = Vec::new();
    for op in OPS {
        let forced = candidates::plan(work, &cluster, &experiment.row_slug(op), &work.path(experiment.file()))?;
        work.say(&format!("plan {}: {} of {} candidates", experiment.row(op), forced.choice, forced.all.len()));
        planned.push(forced);
    }
    let measured = measure(work, experiment, &planned)?;
    let of_op = |(op, planned)| workload(experiment, work, op, planned, &measured);
    planned.iter().enumerate().map(of_op).collect()
}

/// Records the program on a plain file, first writing and then reading.
fn trace(experiment: &Experiment, work: &Workspace) -> anyhow::Result<()> {
    for op in ["write", "read"] {
        let command = experiment.command(work, op)?;
        work.say(&format!("trace {}: {}", experiment.row(op), shell::shown(&command, &work.path(""))));
        let mut words = arguments!["trace", "-o", format!("{}.trace", experiment.row_slug(op)), "--"];
        words.extend(command);
        work.stripewise(words)?;
    }
    let file = work.path(experiment.file());
    std::fs::remove_file(&file).with_context(|| format!("cannot remove '{}'", file.display()))
}

/// Returns the result of one direction, an index of [`OPS`].
fn workload(
    experiment: &Experiment,
    work: &Workspace,
    op: usize,
    planned: &Planned,
    measured: &[Measured],
) -> anyhow::Result<Workload> {
    let candidate = |forced: &Forced| {
        let layout = measured.iter().find(|it| it.forced.same_layout(forced));
        let runs = layout.map_or(Vec::new(), |it| it.runs[op].clone());
        Candidate {
            name: forced.name.clone(),
            layout: forced.layout_text.clone(),
            predicted_s: Some(forced.rule.predicted_s),
            elapsed_s: Some(forced.rule.elapsed_s),
            verified: (!runs.is_empty()).then_some(true),
            measured_s: runs,
        }
    };
    let op = OPS[op];
    let slug = experiment.row_slug(op);
    Ok(Workload {
        name: experiment.row(op),
        description: experiment.description(op),
        command: shell::shown(&experiment.command(work, op)?, &work.path("")),
        processes: experiment.processes(),
        bytes: experiment.file_bytes,
        trace_incomplete: None,
        trace: Some(format!("{slug}.trace")),
        plan: Some(format!("{slug}.plan.toml")),
        present: PRESENT.to_string(),
        choice: planned.choice.clone(),
        reason: planned.reason.clone(),
        candidates: planned.all.iter().map(candidate).collect(),
    })
}

/// A layout whose time is within this factor of the row's best is measured again, so that chance
/// does not decide the ranking.
const CLOSE: f64 = 1.1;

/// One distinct layout and its measured times.
struct Measured {
    forced: Forced,
    /// Seconds of every run, by direction in the order of [`OPS`].
    runs: [Vec<f64>; OPS.len()],
}

/// Runs the program under every layout once, and repeats the runs that decide the ranking.
/// Candidates with equal layouts share one measurement. So do the two directions of a layout: the
/// program writes the file and reads it back. `planned` is in the order
/// of [`OPS`].
fn measure(work: &Workspace, experiment: &Experiment, planned: &[Planned]) -> anyhow::Result<Vec<Measured>> {
    let mut layouts: Vec<Measured> = Vec::new();
    for forced in planned.iter().flat_map(|planned| &planned.all) {
        if !layouts.iter().any(|measured| measured.forced.same_layout(forced)) {
            layouts.push(Measured { forced: forced.clone(), runs: Default::default() });
        }
    }
    for round in 0..experiment.repeats {
        for index in 0..layouts.len() {
            if round == 0 || matters(&layouts, index, planned) {
                layouts[index].run(work, experiment, round)?;
            }
        }
    }
    Ok(layouts)
}

/// Returns whether the layout is a choice or close to the best of a direction.
fn matters(layouts: &[Measured], index: usize, planned: &[Planned]) -> bool {
    let layout = &layouts[index];
    planned.iter().enumerate().any(|(op, planned)| {
        let best = layouts.iter().filter_map(|l| fastest(&l.runs[op])).fold(f64::INFINITY, f64::min);
        planned.chosen().is_some_and(|choice| choice.same_layout(&layout.forced))
            || fastest(&layout.runs[op]).is_some_and(|seconds| seconds <= best * CLOSE)
    })
}

fn fastest(runs: &[f64]) -> Option<f64> {
    runs.iter().copied().min_by(f64::total_cmp)
}

impl Measured {
    /// Places the layout, runs the program over it, checks that all bytes were verified, and
    /// removes the file.
    fn run(&mut self, work: &Workspace, experiment: &Experiment, round: usize) -> anyhow::Result<()> {
        let plan = &self.forced.plan;
        if round == 0 {
            work.stripewise(arguments!["place", plan])?;
        }
        let mut words = arguments!["run", "-p", plan, "--"];
        words.extend(experiment.command(work, "both")?);
        words.push("--verify".into());
        let text = work.stripewise(words)?;
        let name = &self.forced.name;
        let output = Output::parse(&text).with_context(|| name.clone())?;
        for (op, runs) in OPS.iter().zip(&mut self.runs) {
            let phase = output.phase(op).with_context(|| name.clone())?;
            ensure!(output.verified_bytes == phase.bytes, "{name}: not all bytes were verified");
            runs.push(phase.elapsed_s);
        }
        let times = OPS.iter().zip(&self.runs);
        let times = times.map(|(op, runs)| format!("{op} {:.2} s", runs[runs.len() - 1]));
        let times = times.collect::<Vec<_>>().join(", ");
        work.say(&format!("run {} under {name}: {times}, every byte right", experiment.name()));
        work.stripewise(arguments!["rm", work.path(experiment.file())])?;
        Ok(())
    }
}
