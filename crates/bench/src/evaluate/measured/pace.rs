//! Estimates the duration of runs that have not been made yet.

use std::time::{Duration, Instant};

use stripewise_evaluate::Scheme;

use super::program;
use super::schedule::{Entry, Group, Run};
use crate::shell::{self, words};
use crate::workloads::Workloads;

/// Minimum time limit of a run.
pub const LEAST_LIMIT: Duration = Duration::from_secs(60);

/// Time to start a program: a base, and an amount for each rank.
#[derive(Clone, Copy, Debug)]
pub struct Starting {
    base_s: f64,
    rank_s: f64,
}

/// Numbers of ranks with which the start is measured.
const FEW: u32 = 1;
const MANY: u32 = 16;

impl Starting {
    /// Starts a program that does nothing, with [`FEW`] and with [`MANY`] ranks.
    ///
    /// # Errors
    /// The program cannot be started, so no other could be either.
    pub fn measure(workloads: &Workloads) -> anyhow::Result<Self> {
        let nothing = |ranks: u32| {
            let line = words![&workloads.mpirun, "-n", ranks.to_string(), workloads.program("ior")?, "--help"];
            let begin = Instant::now();
            let root = std::path::Path::new("/");
            shell::output_within(&line, root, &program::VARIABLES, LEAST_LIMIT)?;
            anyhow::Ok(begin.elapsed().as_secs_f64())
        };
        let (few_s, many_s) = (nothing(FEW)?, nothing(MANY)?);
        let rank_s = (many_s - few_s).max(0.0) / f64::from(MANY - FEW);
        Ok(Self { base_s: few_s, rank_s })
    }

    /// Returns the estimated seconds of a run, including the time of the servers.
    pub fn run_s(&self, group: &Group<'_>, run: Run) -> f64 {
        match run {
            Run::Alone(entry) => self.start_s(&group.entries[entry]) + service_s(&group.entries[entry]),
            Run::Both { write, read } => {
                let (write, read) = (&group.entries[write], &group.entries[read]);
                self.start_s(write) + service_s(write) + service_s(read)
            }
        }
    }

    fn start_s(&self, entry: &Entry<'_>) -> f64 {
        let start_s = |part: &stripewise_evaluate::Part| {
            self.base_s + self.rank_s * f64::from(program::ranks(&part.program))
        };
        let all_s: f64 = entry.task.cell.parts.iter().map(start_s).sum();
        let twice = matches!(entry.task.scheme, Scheme::Cache { second_run: true, .. });
        if twice { 2.0 * all_s } else { all_s }
    }
}

fn service_s(entry: &Entry<'_>) -> f64 {
    let planned = entry.planned.as_ref().ok();
    planned.and_then(|planned| planned.details.get("elapsed_s").copied()).unwrap_or(0.0)
}
