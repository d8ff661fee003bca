//! One run of a cell under a scheme.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use stripewise_cluster::{Overlay, OverlayKind, Plan};
use stripewise_evaluate::cell::direction;
use stripewise_evaluate::{Cell, Part, Scheme};
use stripewise_model::Op;
use stripewise_trace::synth::Direction;

use super::bed::{self, Bed, Pace};
use super::data::{self, Holding};
use crate::output::{Output, Phase};
use crate::workloads::Workloads;

/// Result of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timing {
    /// Seconds, summed over all parts.
    pub seconds: f64,
    /// Bytes, summed over all parts.
    pub bytes: u64,
    pub details: BTreeMap<String, f64>,
}

/// A workload, the servers and the plan to run it on.
pub struct Trial<'a> {
    pub workloads: &'a Workloads,
    /// An empty directory for the servers and files.
    pub root: &'a Path,
    pub cell: &'a Cell,
    pub scheme: &'a Scheme,
    /// The scheme's plan for files below [`bed::data`].
    pub plan: &'a Plan,
    /// Time limit of each program.
    pub limit: Duration,
}

impl Trial<'_> {
    /// Runs the parts one after the other. The programs check what they read, and this process
    /// checks what they wrote.
    pub fn run(&self) -> anyhow::Result<Timing> {
        let bed = Bed::make(self.workloads, self.root, self.plan, self.limit)?;
        self.prepare(&bed)?;
        if let Scheme::Cache { second_run: true, .. } = self.scheme {
            self.first_run(&bed)?;
        }
        let mut timing = Timing::default();
        for part in &self.cell.parts {
            let output = bed.run(&part.program, direction(part.op), Pace::Emulated)?;
            self.add(&mut timing, output.phase(direction(part.op).name())?, part.op);
            for (name, count) in bed::statistics(&bed.statistics())? {
                *timing.details.entry(name).or_insert(0.0) += count;
            }
            if part.op == Op::Write {
                self.check(&bed, part)?;
            }
        }
        timing.details.insert("busy_s".into(), bed.busy_s()?);
        Ok(timing)
    }

    /// Runs a cell of one part and the same cell in the other direction as one job, first writing
    /// and then reading, and returns the timing of each. Not for files with several copies, because
    /// the first direction changes the state of the copies for the second.
    pub fn run_both(&self) -> anyhow::Result<[Timing; 2]> {
        let bed = Bed::make(self.workloads, self.root, self.plan, self.limit)?;
        let part = self.cell.parts.first().context("a cell without a part")?;
        let output: Output = bed.run(&part.program, Direction::Both, Pace::Emulated)?;
        self.check(&bed, part)?;
        bed.busy_s()?;
        let of = |op| {
            let mut timing = Timing::default();
            self.add(&mut timing, output.phase(direction(op).name())?, op);
            anyhow::Ok(timing)
        };
        Ok([of(Op::Write)?, of(Op::Read)?])
    }

    /// Creates the files that are read before they are written.
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

    /// Performs the run that fills a cache. What a cache learns is the same at any speed of the
    /// servers, so this run is not paced. The work it leaves is completed before the next run.
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

    fn check(&self, bed: &Bed<'_>, part: &Part) -> anyhow::Result<()> {
        data::of(&part.program, &bed::data(self.root)).iter().try_for_each(|it| it.check(&bed.runtime))
    }

    fn add(&self, timing: &mut Timing, phase: &Phase, op: Op) {
        timing.seconds += phase.elapsed_s;
        timing.bytes += phase.bytes;
        // If close waits for all copies, the write ends when all of them have the data.
        let waits = |overlay: &Overlay| overlay.kind == OverlayKind::Replicas && !overlay.lazy_close;
        let mut overlays = self.plan.rules.iter().filter_map(|rule| rule.overlay.as_ref());
        if op == Op::Write && overlays.any(waits) {
            timing.seconds += phase.close_s;
        }
        *timing.details.entry("close_s".into()).or_insert(0.0) += phase.close_s;
    }
}
