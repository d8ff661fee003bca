//! `evaluate --measured`: runs real programs on emulated servers.
//!
//! The servers are directories whose requests take the time that their class specifies. The
//! programs are those of `workloads/`, under an MPI on this node. The bytes are real and all
//! checked. Every run gets new servers.

mod bed;
mod data;
mod pace;
mod program;
mod runner;
mod schedule;
mod scratch;
mod trial;
mod usage;

use std::time::Instant;

use stripewise_evaluate::Place;

use super::job::Job;
use crate::workloads::Workloads;
use runner::Runner;
use scratch::Scratch;

/// Runs the missing tasks, one after the other. Returns the number of failed tasks.
///
/// # Errors
/// Something that the programs need does not exist, or the records cannot be written.
pub fn run(job: &Job<'_>) -> anyhow::Result<usize> {
    let flags = &job.args.servers;
    let workloads = Workloads::find(flags.workloads.as_deref())?;
    let scratch = Scratch::create(&flags.scratch)?;
    let begin = Instant::now();
    job.run_missing(Place::Emulated, |tasks, add| {
        if tasks.is_empty() {
            return Ok(());
        }
        let groups = schedule::groups(tasks, scratch.path());
        let runner = Runner::new(job, &workloads, &scratch)?;
        let estimate_s = runner.estimate_s(&groups);
        job.say(&format!("measuring takes about {}", minutes(estimate_s)));
        runner.all(groups, add)?;
        let took_s = begin.elapsed().as_secs_f64();
        job.say(&format!("measured in {} ({} expected)", minutes(took_s), minutes(estimate_s)));
        Ok(())
    })
}

/// Formats a duration: `12:34 min`.
fn minutes(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    format!("{}:{:02} min", seconds / 60, seconds % 60)
}
