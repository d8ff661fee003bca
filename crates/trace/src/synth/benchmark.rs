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

impl Step {
    /// A request of `size` bytes by every process on file 0, at an offset that is passed to it.
    pub(super) fn of_all(op: Op, processes: u32, size: u64, offset: impl Fn(u32) -> u64) -> Step {
        let calls = (0..processes).map(|rank| Call { rank, file: 0, offset: offset(rank), size });
        Step { op, flags: Flags::POSITIONAL, calls: calls.collect() }
    }

    /// The steps of `rounds` rounds in which every process makes a list of calls of its own, one
    /// per step. `call` makes a call from the round, the rank and the position in the list, and
    /// `None` beyond the end of the list; the longest has `longest` calls.
    pub(super) fn of_lists(
        (op, flags): (Op, Flags),
        rounds: u64,
        longest: u64,
        processes: u32,
        call: impl Fn(u64, u32, u64) -> Option<Call>,
    ) -> impl Iterator<Item = Step> {
        let all = (0..rounds).flat_map(move |round| (0..longest).map(move |i| (round, i)));
        all.map(move |(round, i)| {
            let calls = (0..processes).filter_map(|rank| call(round, rank, i)).collect();
            Step { op, flags, calls }
        })
    }
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

/// What a benchmark runs: processes, files and directions.
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
    /// The directions that the processes run.
    pub direction: Direction,
}

/// The steps of a round.
pub type Steps<'a> = Box<dyn Iterator<Item = Step> + 'a>;

/// A benchmark with fixed parameters.
pub trait Benchmark {
    /// Its processes, files and directions.
    fn job(&self) -> Job;

    /// The steps of one direction.
    fn steps(&self, op: Op) -> Steps<'_>;

    /// The operation and the steps of each direction, in the order of [`Direction::ops`]. All
    /// processes open the files that they use before each round, and close them after it.
    fn rounds(&self) -> Vec<(Op, Steps<'_>)> {
        self.job().direction.ops().iter().map(|op| (*op, self.steps(*op))).collect()
    }
}

/// Parameters that contradict each other: the problem and the remedy, in one line.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0}")]
pub struct BadParameters(pub String);

impl Job {
    /// A program that uses one file.
    pub(super) fn of(program: &str, processes: u32, per_node: u32, file: &str, direction: Direction) -> Job {
        Job { program: program.into(), processes, per_node, files: vec![file.into()], direction }
    }

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
