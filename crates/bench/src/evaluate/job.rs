//! One run of the command: the selected experiments, and the tasks without a record.

use std::sync::mpsc;

use rayon::prelude::*;
use stripewise_console::{interrupt, progress};
use stripewise_evaluate::{Cell, Experiment, Place, Record, Scale, simulate};

use super::args::Args;
use super::store::{Store, Task};

/// A run of the command: its flags, and the experiments that they select.
pub struct Job<'a> {
    pub args: &'a Args,
    /// The selected experiments, at least one.
    pub experiments: Vec<Experiment>,
}

impl Job<'_> {
    /// Returns all cells of the experiments at a place.
    pub fn cells(&self, place: Place) -> Vec<Cell> {
        let scale = Scale { place, quick: self.args.quick };
        self.experiments.iter().flat_map(|experiment| experiment.cells(scale)).collect()
    }

    /// Runs the tasks that the store of `place` has no record of, and writes the document. Returns
    /// the number of failed tasks.
    ///
    /// `run_some` gets the tasks and a function to which it passes every record, from this thread.
    /// The function returns whether to continue.
    pub fn run_missing(
        &self,
        place: Place,
        run_some: impl FnOnce(&[Task], &mut dyn FnMut(Record) -> anyhow::Result<bool>) -> anyhow::Result<()>,
    ) -> anyhow::Result<usize> {
        let mut store = Store::open(&self.args.dir, place)?;
        let cells = self.cells(place);
        let mut wanted = cells.clone();
        for cell in &mut wanted {
            cell.schemes.retain(|scheme| self.args.wants(&cell.labels, scheme));
        }
        let tasks = store.missing(&wanted, self.args.again);
        let all = wanted.iter().map(|cell| cell.schemes.len()).sum::<usize>();
        self.say(&format!("{}: {} of {all} runs to do", place.name(), tasks.len()));
        let bar = progress::bar(Some(tasks.len() as u64), BAR, self.args.quiet);
        let mut add = |record: Record| {
            bar.set_message(format!("{} {}", record.experiment, record.scheme));
            store.add(record)?;
            bar.inc(1);
            Ok(!interrupt::asked())
        };
        let outcome = run_some(&tasks, &mut add);
        bar.finish_and_clear();
        let failed = store.finish(&cells, self.args)?;
        outcome?;
        if interrupt::asked() {
            self.say("interrupted: everything that was finished is kept; the same command goes on from there");
        }
        Ok(failed)
    }

    /// Simulates the missing tasks, as many concurrently as there are processors. Returns the
    /// number of failed tasks.
    pub fn simulate(&self) -> anyhow::Result<usize> {
        self.run_missing(Place::Simulated, |tasks, add| {
            let (sender, receiver) = mpsc::sync_channel::<Record>(0);
            std::thread::scope(|scope| {
                scope.spawn(move || all(tasks, sender));
                receiver.iter().try_for_each(|record| add(record).map(drop))
            })
        })
    }

    /// Prints a line on stderr unless `--quiet` is given.
    pub fn say(&self, line: &str) {
        if !self.args.quiet {
            eprintln!("stripewise-bench: {line}");
        }
    }
}

const BAR: &str = "{msg:24!} [{bar:40}] {human_pos}/{human_len} {elapsed} ({eta} left)";

/// Sends every task's record. Ends early on an interrupt, or if the receiver is gone.
fn all(tasks: &[Task], sender: mpsc::SyncSender<Record>) {
    let _ = tasks.par_iter().try_for_each_with(sender, |sender, task| {
        if interrupt::asked() {
            return None;
        }
        sender.send(simulate::simulate(&task.cell, &task.scheme)).ok()
    });
}
