//! `evaluate --measured`: runs real programs on emulated servers.
//!
//! The servers are directories whose requests take the time that their class specifies. The
//! programs are those of `workloads/`, under an MPI on this node. The bytes are real and all
//! checked. Every run gets new servers.

mod bed;
mod data;
mod program;
mod schedule;
mod scratch;
mod trial;

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use stripewise_cluster::Plan;
use stripewise_console::interrupt;
use stripewise_evaluate::{Place, Record};

use super::job::Job;
use crate::workloads::Workloads;
use bed::Bed;
use schedule::{Entry, Group, LEAST_LIMIT, Run, Starting};
use scratch::Scratch;
use trial::{Timing, Trial};

/// Runs the missing tasks, one after the other. Returns the number of failed tasks.
pub fn run(job: &Job<'_>) -> anyhow::Result<usize> {
    let workloads = Workloads::find(job.args.workloads.as_deref())?;
    let scratch = Scratch::create(&job.args.scratch)?;
    let begin = Instant::now();
    job.run_missing(Place::Emulated, |tasks, add| {
        if tasks.is_empty() {
            return Ok(());
        }
        let groups = schedule::groups(tasks, scratch.path());
        let starting = Starting::measure(&workloads)?;
        let runner = Runner { job, workloads: &workloads, scratch: &scratch, starting };
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

/// A run that takes this many times the expected time is considered hung.
const LIMIT_FACTOR: f64 = 20.0;
/// Number of runs of every scheme; with `--quick`, one.
const REPEATS: usize = 3;
/// Experiment in which a model is judged by whether it finds the fastest layout. Chance must not
/// decide which layout that is.
const RANKED: &str = "C1";
/// The two fastest schemes are measured again if their times differ by less than this fraction.
const CLOSE: f64 = 0.05;

struct Runner<'a> {
    job: &'a Job<'a>,
    workloads: &'a Workloads,
    scratch: &'a Scratch,
    starting: Starting,
}

/// Takes a record and returns whether to continue.
type Add<'a> = &'a mut dyn FnMut(Record) -> anyhow::Result<bool>;

impl<'a> Runner<'a> {
    /// Returns the estimated seconds of all runs, without repetitions of close results.
    fn estimate_s(&self, groups: &[Group<'_>]) -> f64 {
        let of_group =
            |group: &Group<'_>| group.runs.iter().map(|run| self.starting.run_s(group, run)).sum::<f64>();
        groups.iter().map(of_group).sum::<f64>() * self.repeats() as f64
    }

    fn repeats(&self) -> usize {
        if self.job.args.quick { 1 } else { REPEATS }
    }

    /// Measures group by group, and passes on the records when a group is done. A run that fails
    /// becomes a failed record.
    fn all(&self, groups: Vec<Group<'_>>, add: Add<'_>) -> anyhow::Result<()> {
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
        for run in runs {
            if interrupt::asked() {
                return;
            }
            let limit = LEAST_LIMIT + Duration::from_secs_f64(LIMIT_FACTOR * self.starting.run_s(group, run));
            let timings = self.trial(&group.entries[run[0]], limit, run.len() > 1);
            for (position, &index) in run.iter().enumerate() {
                let entry = &mut group.entries[index];
                match &timings {
                    Ok(timings) => entry.timings.push(timings[position].clone()),
                    Err(why) => entry.failed = Some(why.clone()),
                }
            }
        }
    }

    /// Executes a run on new servers, in both directions if `both`.
    fn trial(&self, entry: &Entry<'_>, limit: Duration, both: bool) -> Result<Vec<Timing>, String> {
        let plan: &Plan = &entry.planned.as_ref().map_err(Clone::clone)?.plan;
        let (cell, scheme) = (&entry.task.cell, &entry.task.scheme);
        let run = || {
            self.scratch.clear()?;
            let bed = Bed::make(self.workloads, self.scratch.path(), plan, limit)?;
            let trial = Trial { bed, cell, scheme, plan };
            if both { trial.run_both().map(Vec::from) } else { trial.run().map(|timing| vec![timing]) }
        };
        run().map_err(|error| format!("{error:#}"))
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
    group.runs.iter().filter(|run| run.iter().any(|index| close.contains(index))).cloned().collect()
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
