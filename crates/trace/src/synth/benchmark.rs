//! What a benchmark is: processes, files, and steps of calls.

use crate::{Flags, Op, ProcessInfo};

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The process.
    pub rank: u32,
    /// Index into [`Job::files`].
    pub file: u32,
    /// Bytes.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
}

/// Requests that are made at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Read or write.
    pub op: Op,
    /// How.
    pub flags: Flags,
    /// At most one per process, in order of rank.
    pub calls: Vec<Call>,
}

/// Which of the two directions a benchmark does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Only writes.
    Write,
    /// Only reads.
    Read,
    /// Writes everything, then reads everything.
    Both,
}

impl Direction {
    pub(super) fn ops(self) -> &'static [Op] {
        match self {
            Direction::Write => &[Op::Write],
            Direction::Read => &[Op::Read],
            Direction::Both => &[Op::Write, Op::Read],
        }
    }
}

/// The processes and files of a benchmark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Name of the program.
    pub program: String,
    /// How many processes.
    pub processes: u32,
    /// How many of them run on each node.
    pub per_node: u32,
    /// Absolute paths.
    pub files: Vec<String>,
}

/// A benchmark.
pub trait Benchmark {
    /// Its processes and files.
    fn job(&self) -> Job;

    /// What each direction does, in the order of [`Direction::ops`]: an operation and its steps.
    /// All processes open the files that they use before, and close them after.
    fn rounds(&self) -> Vec<(Op, Box<dyn Iterator<Item = Step> + '_>)>;
}

/// Parameters that contradict each other: what, and the remedy, in one line.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0}")]
pub struct BadParameters(pub String);

impl Job {
    /// A process of the job, as a trace has it.
    pub fn process(&self, rank: u32) -> ProcessInfo {
        ProcessInfo {
            node: format!("node{}", rank / self.per_node),
            pid: 1000 + rank,
            rank: rank as i32,
            program: self.program.clone(),
        }
    }
}
