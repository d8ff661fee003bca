//! What a benchmark is: processes, files, and steps of calls.

use crate::{Flags, Op, ProcessInfo};

/// One request of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The issuing process.
    pub rank: u32,
    /// Index into [`Job::files`].
    pub file: u32,
    /// File offset, bytes.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
}

/// Concurrent requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Read or write.
    pub op: Op,
    /// Whether the calls are collective, and more that holds for all of them.
    pub flags: Flags,
    /// At most one per process, in order of rank.
    pub calls: Vec<Call>,
}

/// The directions that a benchmark runs.
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
    /// The value of a workload's `--op`; for one direction also the name of its phase.
    pub fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Read => "read",
            Self::Both => "both",
        }
    }

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
    /// The number of processes.
    pub processes: u32,
    /// The number of processes on each node.
    pub per_node: u32,
    /// Absolute paths of the files.
    pub files: Vec<String>,
}

/// A benchmark with fixed parameters.
pub trait Benchmark {
    /// Its processes and files.
    fn job(&self) -> Job;

    /// The operation and the steps of each direction, in the order of [`Direction::ops`]. All
    /// processes open the files that they use before each round, and close them after it.
    fn rounds(&self) -> Vec<(Op, Box<dyn Iterator<Item = Step> + '_>)>;
}

/// Parameters that contradict each other: the problem and the remedy, in one line.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0}")]
pub struct BadParameters(pub String);

impl Job {
    /// The description of a process, as in a recorded trace.
    pub fn process(&self, rank: u32) -> ProcessInfo {
        ProcessInfo {
            node: format!("node{}", rank / self.per_node),
            pid: 1000 + rank,
            rank: rank as i32,
            program: self.program.clone(),
        }
    }
}
