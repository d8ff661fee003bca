//! One run of a cell under a scheme.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use stripewise_cluster::{Overlay, OverlayKind, Plan};
use stripewise_evaluate::{Cell, Part, Scheme};
use stripewise_model::Op;

use super::bed::{self, Bed, Pace};
use super::data::{self, Holding};
use super::program::{Direction, Output, Phase};
use super::usage;
use crate::workloads::Workloads;

/// What one run took.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timing {
    /// Of all parts.
    pub seconds: f64,
    /// Of all parts.
    pub bytes: u64,
    /// Other numbers.
    pub details: BTreeMap<String, f64>,
}

/// What is run on what.
pub struct Trial<'a> {
    /// What to run.
    pub workloads: &'a Workloads,
    /// An empty directory.
    pub root: &'a Path,
    /// The workload.
    pub cell: &'a Cell,
    /// How it is laid out.
    pub scheme: &'a Scheme,
    /// The same for files below [`bed::data`].
    pub plan: &'a Plan,
    /// No program takes longer.
    pub limit: Duration,
}

impl Trial<'_> {
    /// Runs the parts one after the other. What they read was checked by them, what they wrote by this process.
    ///
    /// # Errors
    /// A program fails; a byte is wrong.
    pub fn run(&self) -> anyhow::Result<Timing> {
        let bed = Bed::make(self.workloads, self.root, self.plan, self.limit)?;
        self.prepare(&bed)?;
        if let Scheme::Cache { second_run: true, .. } = self.scheme {
            self.first_run(&bed)?;
        }
        let mut timing = Timing::default();
        let mut busy_s = vec![0.0; bed.watch.busy_s().len()];
        for part in &self.cell.parts {
            let before_s = bed.watch.busy_s();
            let output = bed.run(&part.program, direction(part.op), Pace::Emulated)?;
            let after_s = bed.watch.busy_s();
            for (sum_s, (after_s, before_s)) in busy_s.iter_mut().zip(after_s.iter().zip(&before_s)) {
                *sum_s += after_s - before_s;
            }
            self.add(&mut timing, output.phase(direction(part.op))?, part.op);
            for (name, count) in usage::statistics(&bed.statistics())? {
                *timing.details.entry(name).or_insert(0.0) += count;
            }
            if part.op == Op::Write {
                check(&bed, part)?;
            }
        }
        let busy_s = busy_s.into_iter().fold(0.0, f64::max);
        ensure!(busy_s > 0.0, "no emulated server did anything");
        timing.details.insert("busy_s".into(), busy_s);
        Ok(timing)
    }

    /// Runs a cell of one part and the same with the other direction as one job: writing, then reading; what each took. Not for files with several
    /// copies, which the first changes for the second.
    ///
    /// # Errors
    /// As [`Trial::run`].
    pub fn run_both(&self) -> anyhow::Result<(Timing, Timing)> {
        let bed = Bed::make(self.workloads, self.root, self.plan, self.limit)?;
        let part = self.cell.parts.first().context("a cell without a part")?;
        let output: Output = bed.run(&part.program, Direction::Both, Pace::Emulated)?;
        check(&bed, part)?;
        ensure!(bed.watch.busy_s().into_iter().any(|busy_s| busy_s > 0.0), "no emulated server did anything");
        let of = |op| {
            let mut timing = Timing::default();
            self.add(&mut timing, output.phase(direction(op))?, op);
            anyhow::Ok(timing)
        };
        Ok((of(Op::Write)?, of(Op::Read)?))
    }

    /// Makes the files that are read before they are written.
    fn prepare(&self, bed: &Bed<'_>) -> anyhow::Result<()> {
        let mut there: Vec<Holding> = Vec::new();
        for part in &self.cell.parts {
            for holding in data::of(&part.program, &bed::data(self.root)) {
                if there.iter().all(|known| known.path != holding.path) {
                    if part.op == Op::Read {
                        holding.make(&bed.runtime)?;
                    }
                    there.push(holding);
                }
            }
        }
        Ok(())
    }

    /// What a cache learns in a first run is the same at any pace; what is left to be done is done before the next.
    fn first_run(&self, bed: &Bed<'_>) -> anyhow::Result<()> {
        for part in &self.cell.parts {
            bed.run(&part.program, direction(part.op), Pace::None)?;
        }
        for part in &self.cell.parts {
            for holding in data::of(&part.program, &bed::data(self.root)) {
                bed.settle(&holding.path)?;
            }
        }
        Ok(())
    }

    fn add(&self, timing: &mut Timing, phase: &Phase, op: Op) {
        timing.seconds += phase.elapsed_s;
        timing.bytes += phase.bytes;
        // Where closing waits for all copies, written is what they all have.
        let mut overlays = self.plan.rules.iter().filter_map(|rule| rule.overlay.as_ref());
        if op == Op::Write && overlays.any(waits) {
            timing.seconds += phase.close_s;
        }
        *timing.details.entry("close_s".into()).or_insert(0.0) += phase.close_s;
    }
}

/// Whether closing waits for all copies.
fn waits(overlay: &Overlay) -> bool {
    overlay.kind == OverlayKind::Replicas && !overlay.lazy_close
}

fn direction(op: Op) -> Direction {
    match op {
        Op::Read => Direction::Read,
        Op::Write => Direction::Write,
    }
}

fn check(bed: &Bed<'_>, part: &Part) -> anyhow::Result<()> {
    for holding in data::of(&part.program, &bed.data()) {
        holding.check(&bed.runtime)?;
    }
    Ok(())
}
