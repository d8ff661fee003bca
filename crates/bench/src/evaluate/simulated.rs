//! `evaluate --simulated`: runs every cell in the simulator.

use std::sync::mpsc;

use rayon::prelude::*;
use stripewise_console::interrupt;
use stripewise_evaluate::{Place, Record, simulate};

use super::job::Job;
use super::store::Task;

/// Runs the missing tasks, as many concurrently as there are processors. Returns the number of
/// failed tasks.
///
/// # Errors
/// The records cannot be written.
pub fn run(job: &Job<'_>) -> anyhow::Result<usize> {
    job.run_missing(Place::Simulated, |tasks, add| {
        let (sender, receiver) = mpsc::sync_channel::<Record>(0);
        std::thread::scope(|scope| {
            scope.spawn(move || all(tasks, sender));
            receiver.iter().try_for_each(|record| add(record).map(drop))
        })
    })
}

/// Sends every task's record. Ends early on an interrupt, or if the receiver is gone.
fn all(tasks: &[Task], sender: mpsc::SyncSender<Record>) {
    let _ = tasks.par_iter().try_for_each_with(sender, |sender, task| {
        if interrupt::asked() {
            return None;
        }
        sender.send(simulate::simulate(&task.cell, &task.scheme)).ok()
    });
}
