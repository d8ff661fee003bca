//! The steps that the demo performs with each program, and their result.

use std::collections::HashMap;

use anyhow::Context;
use stripewise_report::{Candidate, Workload};

use super::candidates::{self, Forced};
use super::experiment::{Experiment, OPS};
use super::measure::{self, Measurements};
use super::servers;
use super::workspace::Workspace;
use crate::shell::{self, words};

/// Layout of a hybrid file system without a plan: 64 KiB stripes over all servers. It is the
/// baseline of all speedups.
const PRESENT: &str = "DEF";

/// Traces, plans and places the program's file, runs the program under every candidate, and
/// returns one result per direction.
///
/// # Errors
/// A step fails, or a byte is wrong.
pub fn run(experiment: &Experiment, work: &Workspace) -> anyhow::Result<Vec<Workload>> {
    let cluster = format!("{}.cluster.toml", experiment.slug());
    servers::write_cluster(work, &cluster, experiment.ssd_bytes())?;
    trace(experiment, work)?;
    let mut planned = HashMap::new();
    for op in OPS {
        let forced = candidates::plan(work, &cluster, &experiment.row_slug(op), &work.path(experiment.file()))?;
        work.say(&format!("plan {}: {} of {} candidates", experiment.row(op), forced.choice, forced.all.len()));
        planned.insert(op, forced);
    }
    let measurements = measure::all(work, experiment, &planned)?;
    OPS.iter().map(|&op| workload(experiment, work, op, &planned[op], &measurements)).collect()
}

/// Records the program on a plain file, first writing and then reading.
fn trace(experiment: &Experiment, work: &Workspace) -> anyhow::Result<()> {
    for op in ["write", "read"] {
        let command = experiment.command(work, op);
        work.say(&format!("trace {}: {}", experiment.row(op), shell::shown(&command, &work.path(""))));
        let mut words = words!["trace", "-o", format!("{}.trace", experiment.row_slug(op)), "--"];
        words.extend(command);
        work.stripewise(words)?;
    }
    let file = work.path(experiment.file());
    std::fs::remove_file(&file).with_context(|| format!("cannot remove '{}'", file.display()))
}

fn workload(
    experiment: &Experiment,
    work: &Workspace,
    op: &str,
    planned: &candidates::Planned,
    measurements: &Measurements,
) -> anyhow::Result<Workload> {
    let slug = experiment.row_slug(op);
    let candidate = |forced: &Forced| {
        let runs = measurements.of(forced, op);
        Candidate {
            name: forced.name.clone(),
            layout: forced.layout_text.clone(),
            predicted_s: Some(forced.rule.predicted_s),
            elapsed_s: Some(forced.rule.elapsed_s),
            measured_s: runs.to_vec(),
            verified: (!runs.is_empty()).then_some(true),
        }
    };
    Ok(Workload {
        name: experiment.row(op),
        description: experiment.description(op),
        command: shell::shown(&experiment.command(work, op), &work.path("")),
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
