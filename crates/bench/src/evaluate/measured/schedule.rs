//! Groups the tasks into runs, and estimates their duration.

use std::path::Path;
use std::time::{Duration, Instant};

use stripewise_evaluate::plans::{self, Planned};
use stripewise_evaluate::{Cell, Labels, Part, Scheme};
use stripewise_model::Op;

use super::bed;
use super::program;
use super::trial::Timing;
use crate::evaluate::store::Task;
use crate::shell::{self, arguments};
use crate::workloads::Workloads;

/// A scheme of a cell with its plan and its measurements.
pub struct Entry<'a> {
    pub task: &'a Task,
    /// The plan for its files, or why there is none.
    pub planned: Result<Planned, String>,
    pub timings: Vec<Timing>,
    pub failed: Option<String>,
}

/// One run, as indices of entries: one scheme of a cell, or the same program on the same layout in
/// both directions, of which the writing one is first.
pub type Run = Vec<usize>;

/// Runs that are compared with each other: the schemes of a cell, and those of the cell with the
/// other direction, if there is one.
pub struct Group<'a> {
    /// The entries, in the order of the tasks.
    pub entries: Vec<Entry<'a>>,
    /// The runs. Every entry is in exactly one.
    pub runs: Vec<Run>,
}

/// Plans all tasks for files below `root`, and combines those that can be executed as one run.
pub fn groups<'a>(tasks: &'a [Task], root: &Path) -> Vec<Group<'a>> {
    let mut groups: Vec<(Key, Vec<Entry<'a>>)> = Vec::new();
    for of_cell in tasks.chunk_by(|a, b| a.cell == b.cell) {
        let key = key(&of_cell[0].cell);
        let entries = plan(of_cell, root);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, known)) => known.extend(entries),
            None => groups.push((key, entries)),
        }
    }
    groups.into_iter().map(|(_, entries)| Group { runs: runs(&entries), entries }).collect()
}

type Key = (&'static str, Labels);

/// The label with the direction. Cells that differ only in it are measured together.
const OP: &str = "op";

fn key(cell: &Cell) -> Key {
    let mut labels = cell.labels.clone();
    labels.remove(OP);
    (cell.experiment, labels)
}

/// Plans all schemes of one cell.
fn plan<'a>(tasks: &'a [Task], root: &Path) -> Vec<Entry<'a>> {
    let cluster = bed::cluster(&tasks[0].cell.storage, root);
    let data = bed::data(root);
    let entry = |task: &'a Task| {
        let planned = plans::plan(&task.cell, &task.scheme, &cluster, &data);
        Entry { planned: planned.map_err(|error| error.to_string()), task, timings: Vec::new(), failed: None }
    };
    tasks.iter().map(entry).collect()
}

fn runs(entries: &[Entry<'_>]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let partner = runs.iter_mut().find(|run| run.len() == 1 && entries[run[0]].is_pair(entry));
        match partner {
            Some(run) if entry.task.cell.parts[0].op == Op::Write => run.insert(0, index),
            Some(run) => run.push(index),
            None => runs.push(vec![index]),
        }
    }
    runs
}

impl Entry<'_> {
    /// Returns whether both entries are the same program on the same storage, in two directions, on
    /// equal layouts with a single copy.
    fn is_pair(&self, other: &Self) -> bool {
        let ([ours], [theirs]) = (&self.task.cell.parts[..], &other.task.cell.parts[..]) else { return false };
        ours.op != theirs.op
            && program::undirected(&ours.program) == program::undirected(&theirs.program)
            && self.task.cell.storage == other.task.cell.storage
            && self.task.scheme.name() == other.task.scheme.name()
            && same_layouts(&self.planned, &other.planned)
    }
}

fn same_layouts(ours: &Result<Planned, String>, theirs: &Result<Planned, String>) -> bool {
    let (Ok(ours), Ok(theirs)) = (ours, theirs) else { return false };
    let (ours, theirs) = (&ours.plan.rules, &theirs.plan.rules);
    let same = |(a, b): (&stripewise_cluster::Rule, &stripewise_cluster::Rule)| {
        let single = a.overlay.is_none() && b.overlay.is_none();
        single && (&a.pattern, &a.layouts, &a.spread) == (&b.pattern, &b.layouts, &b.spread)
    };
    ours.len() == theirs.len() && ours.iter().zip(theirs).all(same)
}

/// Minimum time limit of a run.
pub const LEAST_LIMIT: Duration = Duration::from_secs(60);

/// Time to start a program: a base, and an amount for each rank.
pub struct Starting {
    base_s: f64,
    rank_s: f64,
}

/// Numbers of ranks with which the start is measured.
const FEW: u32 = 1;
const MANY: u32 = 16;

impl Starting {
    /// Starts a program that does nothing, with [`FEW`] and with [`MANY`] ranks.
    pub fn measure(workloads: &Workloads) -> anyhow::Result<Self> {
        let nothing = |ranks: u32| {
            let line =
                arguments![&workloads.mpirun, "-n", ranks.to_string(), workloads.program("ior")?, "--help"];
            let begin = Instant::now();
            let root = Path::new("/");
            shell::output_within(&line, root, &program::VARIABLES, LEAST_LIMIT)?;
            anyhow::Ok(begin.elapsed().as_secs_f64())
        };
        let (few_s, many_s) = (nothing(FEW)?, nothing(MANY)?);
        let rank_s = (many_s - few_s).max(0.0) / f64::from(MANY - FEW);
        Ok(Self { base_s: few_s, rank_s })
    }

    /// Returns the estimated seconds of a run, including the time of the servers.
    pub fn run_s(&self, group: &Group<'_>, run: &Run) -> f64 {
        let service_s: f64 = run.iter().map(|&entry| service_s(&group.entries[entry])).sum();
        self.start_s(&group.entries[run[0]]) + service_s
    }

    fn start_s(&self, entry: &Entry<'_>) -> f64 {
        let start_s = |part: &Part| self.base_s + self.rank_s * f64::from(program::ranks(&part.program));
        let all_s: f64 = entry.task.cell.parts.iter().map(start_s).sum();
        let twice = matches!(entry.task.scheme, Scheme::Cache { second_run: true, .. });
        if twice { 2.0 * all_s } else { all_s }
    }
}

fn service_s(entry: &Entry<'_>) -> f64 {
    let planned = entry.planned.as_ref().ok();
    planned.and_then(|planned| planned.details.get("elapsed_s").copied()).unwrap_or(0.0)
}
