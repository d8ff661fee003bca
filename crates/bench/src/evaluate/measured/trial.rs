//! One run of a cell under a scheme.

use std::collections::BTreeMap;

use anyhow::Context;
use stripewise_cluster::{Overlay, OverlayKind, Plan};
use stripewise_evaluate::cell::direction;
use stripewise_evaluate::{Cell, Part, Scheme};
use stripewise_model::Op;
use stripewise_trace::synth::Direction;

use super::bed::{self, Bed, Pace};
use super::data::{self, Holding};
use crate::output::Phase;

#[derive(Clone, Default)]
pub struct Timing {
    /// Seconds, summed over all parts.
    pub seconds: f64,
    /// Bytes, summed over all parts.
    pub bytes: u64,
    pub details: BTreeMap<String, f64>,
}

/// A workload, the servers and the plan to run it on.
pub struct Trial<'a> {
    pub bed: Bed<'a>,
    pub cell: &'a Cell,
    pub scheme: &'a Scheme,
    /// The scheme's plan for files below [`bed::data`].
    pub plan: &'a Plan,
}

impl Trial<'_> {
    /// Runs the parts one after the other. The programs check what they read, and this process
    /// checks what they wrote.
    pub fn run(&self) -> anyhow::Result<Timing> {
        self.prepare()?;
        if let Scheme::Cache { second_run: true, .. } = self.scheme {
            self.first_run()?;
        }
        let mut timing = Timing::default();
        for part in &self.cell.parts {
            let output = self.bed.run(&part.program, direction(part.op), Pace::Emulated)?;
            self.add(&mut timing, output.phase(direction(part.op).name())?, part.op);
            for (name, count) in bed::statistics(&self.bed.statistics())? {
                *timing.details.entry(name).or_insert(0.0) += count;
            }
            if part.op == Op::Write {
                self.check(part)?;
            }
        }
        timing.details.insert("busy_s".into(), self.bed.busy_s()?);
        Ok(timing)
    }

    /// Runs a cell of one part and the same cell in the other direction as one job, first writing
    /// and then reading, and returns the timing of each. Not for files with several copies, because
    /// the first direction changes the state of the copies for the second.
    pub fn run_both(&self) -> anyhow::Result<[Timing; 2]> {
        let part = self.cell.parts.first().context("a cell without a part")?;
        let output = self.bed.run(&part.program, Direction::Both, Pace::Emulated)?;
        self.check(part)?;
        self.bed.busy_s()?;
        let of = |op| {
            let mut timing = Timing::default();
            self.add(&mut timing, output.phase(direction(op).name())?, op);
            anyhow::Ok(timing)
        };
        Ok([of(Op::Write)?, of(Op::Read)?])
    }

    /// Creates the files that are read before they are written.
    fn prepare(&self) -> anyhow::Result<()> {
        let mut there: Vec<Holding> = Vec::new();
        for part in &self.cell.parts {
            for holding in self.holdings(part) {
                if there.iter().all(|known| known.path != holding.path) {
                    if part.op == Op::Read {
                        holding.make(&self.bed.runtime)?;
                    }
                    there.push(holding);
                }
            }
        }
        Ok(())
    }

    /// Performs the run that fills a cache. What a cache learns is the same at any speed of the
    /// servers, so this run is not paced. The work it leaves is completed before the next run.
    fn first_run(&self) -> anyhow::Result<()> {
        for part in &self.cell.parts {
            self.bed.run(&part.program, direction(part.op), Pace::None)?;
        }
        let mut holdings = self.cell.parts.iter().flat_map(|part| self.holdings(part));
        holdings.try_for_each(|holding| self.bed.settle(&holding.path))
    }

    fn check(&self, part: &Part) -> anyhow::Result<()> {
        self.holdings(part).iter().try_for_each(|holding| holding.check(&self.bed.runtime))
    }

    fn holdings(&self, part: &Part) -> Vec<Holding> {
        data::of(&part.program, &bed::data(self.bed.root))
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
