//! `evaluate --simulated`: every cell in the simulator.

use stripewise_evaluate::Place;

use super::Job;

/// Runs what is missing, as many at a time as there are processors. Returns how many failed.
///
/// # Errors
/// The records cannot be written.
pub fn run(job: &Job<'_>) -> anyhow::Result<usize> {
    job.run_missing(Place::Simulated, |_tasks, _add| Ok(()))
}
