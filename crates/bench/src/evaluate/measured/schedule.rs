//! Groups the tasks into runs and orders them.

use std::path::Path;

use stripewise_evaluate::plans::{self, Planned};
use stripewise_evaluate::{Cell, Labels};
use stripewise_model::Op;

use super::bed;
use super::program;
use super::trial::Timing;
use crate::evaluate::store::Task;

/// A scheme of a cell with its plan and its measurements.
pub struct Entry<'a> {
    /// The task to measure.
    pub task: &'a Task,
    /// The plan for its files, or why there is none.
    pub planned: Result<Planned, String>,
    /// Timings of every run so far.
    pub timings: Vec<Timing>,
    /// Error of a run, if one failed.
    pub failed: Option<String>,
}

/// One run. The numbers are indices of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    /// One scheme of a cell.
    Alone(usize),
    /// The same program in both directions on the same layout.
    Both { write: usize, read: usize },
}

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
    let mut runs = Vec::new();
    let mut taken = vec![false; entries.len()];
    for (index, entry) in entries.iter().enumerate() {
        if taken[index] {
            continue;
        }
        let other = (index + 1..entries.len()).find(|&other| !taken[other] && entry.is_pair(&entries[other]));
        runs.push(match other {
            Some(other) if op(entry) == Some(Op::Write) => Run::Both { write: index, read: other },
            Some(other) => Run::Both { write: other, read: index },
            None => Run::Alone(index),
        });
        if let Some(other) = other {
            taken[other] = true;
        }
    }
    runs
}

fn op(entry: &Entry<'_>) -> Option<Op> {
    entry.task.cell.parts.first().map(|part| part.op)
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
