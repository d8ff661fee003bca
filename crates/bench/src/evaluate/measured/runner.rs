//! Runs the groups of tasks in turn, with repetitions, and collects the results.

use std::io::IsTerminal;
use std::time::Duration;

use stripewise_cluster::Plan;
use stripewise_console::interrupt;
use stripewise_evaluate::{Place, Record};

use super::pace::{LEAST_LIMIT, Starting};
use super::schedule::{Entry, Group, Run};
use super::scratch::Scratch;
use super::trial::{Timing, Trial};
use crate::evaluate::job::Job;
use crate::workloads::Workloads;

/// A run that takes this many times the expected time is considered hung.
const LIMIT_FACTOR: f64 = 20.0;
/// Number of runs of every scheme; with `--quick`, one.
const REPEATS: usize = 3;
/// Experiment in which a model is judged by whether it finds the fastest layout. Chance must not
/// decide which layout that is.
const RANKED: &str = "C1";
/// The two fastest schemes are measured again if their times differ by less than this fraction.
const CLOSE: f64 = 0.05;

/// Executes the measured runs.
pub struct Runner<'a> {
    job: &'a Job<'a>,
    workloads: &'a Workloads,
    scratch: &'a Scratch,
    starting: Starting,
}

/// Takes a record and returns whether to continue.
pub type Add<'a> = &'a mut dyn FnMut(Record) -> anyhow::Result<bool>;

impl<'a> Runner<'a> {
    /// Measures how long programs take to start.
    ///
    /// # Errors
    /// No program can be started.
    pub fn new(job: &'a Job<'a>, workloads: &'a Workloads, scratch: &'a Scratch) -> anyhow::Result<Self> {
        Ok(Self { job, workloads, scratch, starting: Starting::measure(workloads)? })
    }

    /// Returns the estimated seconds of all runs, without repetitions of close results.
    pub fn estimate_s(&self, groups: &[Group<'_>]) -> f64 {
        let of_group =
            |group: &Group<'_>| group.runs.iter().map(|&run| self.starting.run_s(group, run)).sum::<f64>();
        groups.iter().map(of_group).sum::<f64>() * self.repeats() as f64
    }

    fn repeats(&self) -> usize {
        if self.job.args.quick { 1 } else { REPEATS }
    }

    /// Measures group by group, and passes on the records when a group is done. A run that fails
    /// becomes a failed record.
    ///
    /// # Errors
    /// A record cannot be written.
    pub fn all(&self, groups: Vec<Group<'_>>, add: Add<'_>) -> anyhow::Result<()> {
        for mut group in groups {
            for repeat in 0..self.repeats() {
                // Every run is first once, so that drift affects all runs alike.
                let mut runs = group.runs.clone();
                let begin = repeat % runs.len();
                runs.rotate_left(begin);
                self.run(&mut group, &runs);
            }
            if self.job.args.quick && group.entries[0].task.cell.experiment == RANKED {
                let close = close(&group);
                self.run(&mut group, &close);
            }
            if interrupt::asked() {
                return Ok(());
            }
            self.tell(&group);
            for entry in group.entries {
                if !add(record(entry))? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn run(&self, group: &mut Group<'_>, runs: &[Run]) {
        for &run in runs {
            if interrupt::asked() {
                return;
            }
            let limit = LEAST_LIMIT + Duration::from_secs_f64(LIMIT_FACTOR * self.starting.run_s(group, run));
            let outcomes: Vec<(usize, Result<Timing, String>)> = match run {
                Run::Alone(index) => {
                    let timing = self.trial(&group.entries[index], limit, |trial| trial.run());
                    vec![(index, timing)]
                }
                Run::Both { write, read } => {
                    match self.trial(&group.entries[write], limit, |trial| trial.run_both()) {
                        Ok((of_write, of_read)) => vec![(write, Ok(of_write)), (read, Ok(of_read))],
                        Err(why) => vec![(write, Err(why.clone())), (read, Err(why))],
                    }
                }
            };
            for (index, outcome) in outcomes {
                let entry = &mut group.entries[index];
                match outcome {
                    Ok(timing) => entry.timings.push(timing),
                    Err(why) => entry.failed = Some(why),
                }
            }
        }
    }

    /// Executes a run on new servers.
    fn trial<T>(
        &self,
        entry: &Entry<'_>,
        limit: Duration,
        run: impl FnOnce(&Trial<'_>) -> anyhow::Result<T>,
    ) -> Result<T, String> {
        let plan: &Plan = &entry.planned.as_ref().map_err(Clone::clone)?.plan;
        self.scratch.clear().map_err(|error| format!("{error:#}"))?;
        let (workloads, root) = (self.workloads, self.scratch.path());
        let (cell, scheme) = (&entry.task.cell, &entry.task.scheme);
        run(&Trial { workloads, root, cell, scheme, plan, limit }).map_err(|error| format!("{error:#}"))
    }

    /// Prints the group's results if stderr is not a terminal with a progress bar.
    fn tell(&self, group: &Group<'_>) {
        if std::io::stderr().is_terminal() {
            return;
        }
        for of_cell in group.entries.chunk_by(|a, b| a.task.cell.labels == b.task.cell.labels) {
            let found = of_cell.iter().map(|entry| {
                let times = entry.timings.iter().map(|timing| format!("{:.3}", timing.seconds));
                let times = times.collect::<Vec<_>>().join(" ");
                format!(
                    "{} {}",
                    entry.task.scheme.name(),
                    if entry.failed.is_some() { "failed" } else { &times }
                )
            });
            let cell = &of_cell[0].task.cell;
            let found: Vec<String> = found.collect();
            self.job.say(&format!("{} {}: {} s", cell.experiment, cell.title(), found.join(", ")));
        }
    }
}

/// Returns the runs of the two fastest schemes of each cell, if chance may have decided their
/// ranking.
fn close(group: &Group<'_>) -> Vec<Run> {
    let mut close: Vec<usize> = Vec::new();
    let indices: Vec<usize> = (0..group.entries.len()).collect();
    let labels = |index: usize| &group.entries[index].task.cell.labels;
    for of_cell in indices.chunk_by(|&a, &b| labels(a) == labels(b)) {
        let seconds = |index: usize| Some((group.entries[index].timings.first()?.seconds, index));
        let mut ranked: Vec<(f64, usize)> = of_cell.iter().filter_map(|&index| seconds(index)).collect();
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
        if let [(first_s, first), (second_s, second), ..] = ranked[..]
            && second_s <= first_s * (1.0 + CLOSE)
        {
            close.extend([first, second]);
        }
    }
    let has = |run: &Run| match *run {
        Run::Alone(index) => close.contains(&index),
        Run::Both { write, read } => close.contains(&write) || close.contains(&read),
    };
    group.runs.iter().copied().filter(has).collect()
}

fn record(entry: Entry<'_>) -> Record {
    let mut record = Record::of(Place::Emulated, &entry.task.cell, &entry.task.scheme);
    match entry.planned {
        Ok(planned) => {
            record.layout = planned.layout;
            record.details.extend(planned.details);
        }
        Err(why) => record.failed = Some(why),
    }
    if entry.failed.is_some() {
        record.failed = entry.failed;
        return record;
    }
    record.seconds = entry.timings.iter().map(|timing| timing.seconds).collect();
    if let Some(last) = entry.timings.into_iter().last() {
        record.verified = Some(true);
        record.bytes = last.bytes;
        record.details.extend(last.details);
    }
    record
}
