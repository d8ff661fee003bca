//! Runs a program under every candidate layout. Candidates with equal layouts share one
//! measurement. So do the two directions of a layout: the program writes the file and reads it
//! back.

use std::collections::HashMap;

use anyhow::{Context, ensure};

use super::candidates::{Forced, Planned};
use super::experiment::{Experiment, OPS};
use super::workspace::Workspace;
use crate::output::Output;
use crate::shell::words;

/// A layout whose time is within this factor of the row's best is measured again, so that chance
/// does not decide the ranking.
const CLOSE: f64 = 1.1;

/// One distinct layout and its measured times.
struct Measured {
    forced: Forced,
    /// Seconds of every run, by direction in the order of [`OPS`].
    runs: [Vec<f64>; OPS.len()],
}

/// The measured times of all layouts.
pub struct Measurements {
    layouts: Vec<Measured>,
}

impl Measurements {
    /// Returns the seconds of every run of this candidate's layout in one direction.
    pub fn of(&self, forced: &Forced, op: &str) -> &[f64] {
        let op = OPS.iter().position(|&o| o == op);
        let layout = self.layouts.iter().find(|measured| measured.forced.same_layout(forced));
        op.zip(layout).map_or(&[], |(op, layout)| &layout.runs[op])
    }
}

/// Measures every layout once, and repeats those that decide the ranking.
///
/// # Errors
/// A run fails or reads a wrong byte.
pub fn all(
    work: &Workspace,
    experiment: &Experiment,
    planned: &HashMap<&str, Planned>,
) -> anyhow::Result<Measurements> {
    let mut layouts: Vec<Measured> = Vec::new();
    for forced in OPS.iter().flat_map(|op| &planned[op].all) {
        if !layouts.iter().any(|measured| measured.forced.same_layout(forced)) {
            layouts.push(Measured { forced: forced.clone(), runs: Default::default() });
        }
    }
    let mut measurements = Measurements { layouts };
    for round in 0..experiment.repeats {
        for index in 0..measurements.layouts.len() {
            if round == 0 || measurements.matters(index, planned) {
                measurements.layouts[index].run(work, experiment, round)?;
            }
        }
    }
    Ok(measurements)
}

impl Measurements {
    /// Returns whether the layout is a choice or close to the best of a direction.
    fn matters(&self, index: usize, planned: &HashMap<&str, Planned>) -> bool {
        let layout = &self.layouts[index];
        OPS.iter().enumerate().any(|(op, name)| {
            let best = self.layouts.iter().filter_map(|l| fastest(&l.runs[op])).fold(f64::INFINITY, f64::min);
            let choice = planned[name].chosen();
            choice.is_some_and(|choice| choice.same_layout(&layout.forced))
                || fastest(&layout.runs[op]).is_some_and(|seconds| seconds <= best * CLOSE)
        })
    }
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
            work.stripewise(words!["place", plan])?;
        }
        let mut words = words!["run", "-p", plan, "--"];
        words.extend(experiment.command(work, "both"));
        words.push("--verify".into());
        let text = work.stripewise(words)?;
        let name = &self.forced.name;
        let output = Output::parse(&text).with_context(|| name.clone())?;
        for (op, runs) in OPS.iter().zip(&mut self.runs) {
            let phase = output.phase(op).with_context(|| name.clone())?;
            ensure!(output.verified_bytes == phase.bytes, "{name}: not all bytes were verified");
            runs.push(phase.elapsed_s);
        }
        let times: Vec<String> = OPS
            .iter()
            .zip(&self.runs)
            .map(|(op, runs)| format!("{op} {:.2} s", runs[runs.len() - 1]))
            .collect();
        work.say(&format!("run {} under {name}: {}, every byte right", experiment.name(), times.join(", ")));
        work.stripewise(words!["rm", work.path(experiment.file())])?;
        Ok(())
    }
}
