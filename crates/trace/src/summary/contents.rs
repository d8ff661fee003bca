//! What a summary says.

use serde::Serialize;

use super::histogram::{Distances, Sizes};
use super::marks::Marks;
use super::phases::Phases;
use super::streams::Step;
use crate::{Flags, Op, Request};

/// What is known of one direction, reads or writes, of a file group.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Direction {
    /// Calls that moved at least a byte.
    pub requests: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Bytes moved per request.
    pub sizes: Sizes,
    /// First requests of a stream (a process's reads, or writes, of one file).
    pub streams: u64,
    /// Requests that start where their stream's last one ended.
    pub sequential: u64,
    /// Requests that follow their predecessor at the same distance as that did its own.
    pub strided: u64,
    /// The distances of the strided ones, bytes.
    pub strides: Distances,
    /// Time spent in the calls, seconds, summed over processes.
    pub busy_s: f64,
    /// Requests made inside a collective call of MPI-IO.
    pub collective: u64,
    /// Their bytes.
    pub collective_bytes: u64,
}

impl Direction {
    pub(super) fn add(&mut self, request: &Request, step: Step) {
        self.requests += 1;
        self.bytes = self.bytes.saturating_add(request.bytes());
        if request.flags.has(Flags::COLLECTIVE) {
            self.collective += 1;
            self.collective_bytes = self.collective_bytes.saturating_add(request.bytes());
        }
        self.sizes.add(request.bytes());
        self.busy_s += (request.end_ns - request.start_ns) as f64 * 1e-9;
        match step {
            Step::First => self.streams += 1,
            Step::Sequential => self.sequential += 1,
            Step::Strided(distance) => {
                self.strided += 1;
                self.strides.add(distance);
            }
            Step::Random => {}
        }
    }

    /// The fraction of sequential requests among those with a predecessor in their stream; 0 if
    /// none has one.
    pub fn sequential_share(&self) -> f64 {
        share(self.sequential, self.requests - self.streams)
    }

    /// The fraction of strided requests among those with a predecessor in their stream; 0 if none
    /// has one.
    pub fn strided_share(&self) -> f64 {
        share(self.strided, self.requests - self.streams)
    }

    /// The part of the bytes that moved inside collective calls; 0 if none moved.
    pub fn collective_share(&self) -> f64 {
        share(self.collective_bytes, self.bytes)
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Calls that move no data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OtherCalls {
    /// Opened.
    pub open: u64,
    /// Closed.
    pub close: u64,
    /// Synced.
    pub sync: u64,
    /// Size set.
    pub resize: u64,
    /// Offset set.
    pub seek: u64,
    /// Attributes asked.
    pub stat: u64,
    /// Mapped: what was accessed through the mapping is not in the trace.
    pub map: u64,
    /// Reads and writes that moved nothing: end of file, errors.
    pub empty: u64,
    /// Calls of any kind that failed.
    pub failed: u64,
}

/// One file.
#[derive(Clone, Debug, Serialize)]
pub struct FileUse {
    /// Its path.
    pub name: String,
    /// Index into [`Summary::groups`].
    pub group: u32,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Reads and writes that moved data.
    pub requests: u64,
    /// End of the farthest byte that was read or written.
    pub extent_bytes: u64,
    /// Bytes read and written inside collective calls of MPI-IO.
    pub collective_bytes: u64,
    /// Whether more than one process moved data.
    pub shared: bool,
    #[serde(skip)]
    pub(super) first_process: Option<u32>,
}

/// The files of one pattern.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Group {
    /// The files' path with every run of digits as `<n>` (see [`crate::pattern_of`]).
    pub pattern: String,
    /// The first file's path: the very name, when there is only one.
    pub first_file: String,
    /// How many.
    pub files: u64,
    /// How many of them were accessed by several processes.
    pub shared_files: u64,
    /// Sum over the files of the end of the farthest byte accessed.
    pub extent_bytes: u64,
    /// Reads.
    pub read: Direction,
    /// Writes.
    pub write: Direction,
    /// Everything else.
    pub other: OtherCalls,
    /// The collective calls of MPI-IO.
    pub marks: Marks,
    /// The concurrency `p`, processes per node `c`, and when.
    pub phases: Phases,
    /// Start of the group's first call.
    pub start_ns: u64,
    /// End of the group's last call.
    pub end_ns: u64,
}

/// What an application does.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Summary {
    /// Groups of files, in order of first appearance.
    pub groups: Vec<Group>,
    /// All files, as [`Request::file`] numbers them.
    pub files: Vec<FileUse>,
    /// Processes in the trace.
    pub processes: u64,
    /// Nodes they ran on.
    pub nodes: u64,
    /// All calls.
    pub calls: u64,
    /// From the first call's start to the last one's end, seconds.
    pub span_s: f64,
}

impl OtherCalls {
    pub(super) fn add(&mut self, request: &Request) {
        self.failed += u64::from(request.result < 0);
        let count = match request.op {
            Op::Open => &mut self.open,
            Op::Close => &mut self.close,
            Op::Sync => &mut self.sync,
            Op::Resize => &mut self.resize,
            Op::Seek => &mut self.seek,
            Op::Stat => &mut self.stat,
            Op::Map => &mut self.map,
            Op::Read | Op::Write => &mut self.empty,
            Op::Mark => return, // They have a place of their own.
        };
        *count += 1;
    }
}
