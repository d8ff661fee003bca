//! What a summary says.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use super::phases::Phases;
use super::streams::Step;
use crate::{Flags, MpiCall, Op, Request};

/// Number of distinct values that are counted exactly: those that appear first.
const EXACT_VALUES: usize = 64;

/// Number of requests by size.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sizes {
    /// Requests by size in bytes, for the first 64 distinct sizes.
    pub exact: BTreeMap<u64, u64>,
    /// Requests of other sizes, by size rounded down to a power of two, bytes.
    pub rounded: BTreeMap<u64, u64>,
}

impl Sizes {
    pub(super) fn add(&mut self, size: u64) {
        if let Some(count) = self.exact.get_mut(&size) {
            *count += 1;
        } else if self.exact.len() < EXACT_VALUES {
            self.exact.insert(size, 1);
        } else {
            let rounded = if size == 0 { 0 } else { 1 << size.ilog2() };
            *self.rounded.entry(rounded).or_default() += 1;
        }
    }

    /// Sizes in bytes and their counts, most frequent first; the sizes of `rounded` are rounded
    /// down.
    pub fn by_count(&self) -> Vec<(u64, u64)> {
        let mut all: BTreeMap<u64, u64> = self.exact.clone();
        for (size, count) in &self.rounded {
            *all.entry(*size).or_default() += count;
        }
        let mut all: Vec<_> = all.into_iter().collect();
        all.sort_by_key(|(size, count)| (Reverse(*count), *size));
        all
    }
}

/// Number of requests by distance to the previous one, bytes, for the first 64 distinct distances.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Distances(pub BTreeMap<i64, u64>);

impl Distances {
    pub(super) fn add(&mut self, distance: i64) {
        if self.0.len() < EXACT_VALUES || self.0.contains_key(&distance) {
            *self.0.entry(distance).or_default() += 1;
        }
    }

    /// The most frequent distance and its count.
    pub fn most_frequent(&self) -> Option<(i64, u64)> {
        self.0.iter().max_by_key(|(_, count)| **count).map(|(distance, count)| (*distance, *count))
    }
}

/// Statistics of one direction, reads or writes, of a file group.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Direction {
    /// Calls that moved at least a byte.
    pub requests: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Number of requests by the bytes that they moved.
    pub sizes: Sizes,
    /// Number of streams (one process's reads, or writes, of one file), and so of first requests.
    pub streams: u64,
    /// Requests that start where the previous one of their stream ended.
    pub sequential: u64,
    /// Requests at the same distance from their predecessor as that has from its own.
    pub strided: u64,
    /// The distances of the strided requests, bytes.
    pub strides: Distances,
    /// Time spent in the calls, seconds, summed over processes.
    pub busy_s: f64,
    /// Requests made during a collective call of MPI-IO.
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
    /// there are none.
    pub fn sequential_share(&self) -> f64 {
        share(self.sequential, self.requests - self.streams)
    }

    /// The fraction of strided requests among those with a predecessor in their stream; 0 if there
    /// are none.
    pub fn strided_share(&self) -> f64 {
        share(self.strided, self.requests - self.streams)
    }

    /// The fraction of the bytes that moved during collective calls; 0 if none moved.
    pub fn collective_share(&self) -> f64 {
        share(self.collective_bytes, self.bytes)
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Numbers of calls that move no data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OtherCalls {
    /// Opens.
    pub open: u64,
    /// Closes.
    pub close: u64,
    /// Syncs.
    pub sync: u64,
    /// Calls that set the size.
    pub resize: u64,
    /// Calls that set the offset.
    pub seek: u64,
    /// Calls that query attributes.
    pub stat: u64,
    /// Mappings; accesses through them are not in the trace.
    pub map: u64,
    /// Removals of a name.
    pub unlink: u64,
    /// Reads and writes that moved nothing: end of file, errors.
    pub empty: u64,
    /// Failed calls of any kind.
    pub failed: u64,
}

/// The use of one file.
#[derive(Clone, Debug, Default, Serialize)]
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
}

impl FileUse {
    /// Counts a read or write.
    pub(super) fn add(&mut self, request: &Request) {
        let bytes = request.bytes();
        self.requests += 1;
        if request.flags.has(Flags::COLLECTIVE) {
            self.collective_bytes = self.collective_bytes.saturating_add(bytes);
        }
        let moved = if request.op == Op::Read { &mut self.read_bytes } else { &mut self.written_bytes };
        *moved = moved.saturating_add(bytes);
    }
}

/// The files of one pattern.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Group {
    /// The files' path with every run of digits replaced by `<n>` (see [`crate::pattern_of`]).
    pub pattern: String,
    /// The path of the group's first file.
    pub first_file: String,
    /// Number of files.
    pub files: u64,
    /// Number of files that several processes accessed.
    pub shared_files: u64,
    /// Sum over the files of the end of the farthest byte accessed.
    pub extent_bytes: u64,
    /// The largest of these ends.
    #[serde(skip)]
    pub largest_extent_bytes: u64,
    /// Reads.
    pub read: Direction,
    /// Writes.
    pub write: Direction,
    /// Everything else.
    pub other: OtherCalls,
    /// The collective calls of MPI-IO.
    pub marks: Marks,
    /// The phases, with the concurrency `p` and the processes per node `c`.
    pub phases: Phases,
    /// Start of the group's first call.
    pub start_ns: u64,
    /// End of the group's last call.
    pub end_ns: u64,
}

/// The I/O of an application.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Summary {
    /// Groups of files, in order of first appearance.
    pub groups: Vec<Group>,
    /// Number of files.
    pub file_count: u64,
    /// All files, indexed by [`Request::file`]; empty if there are more than
    /// [`LISTED_FILES_MAX`](super::LISTED_FILES_MAX).
    pub files: Vec<FileUse>,
    /// Index into `groups`, by [`Request::file`].
    #[serde(skip)]
    pub group_of: Vec<u32>,
    /// Processes in the trace.
    pub processes: u64,
    /// Number of nodes on which they ran.
    pub nodes: u64,
    /// All calls.
    pub calls: u64,
    /// Time from the start of the first call to the end of the last, seconds.
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
            Op::Unlink => &mut self.unlink,
            Op::Read | Op::Write => &mut self.empty,
            Op::Mark => return, // They have a place of their own.
        };
        *count += 1;
    }
}

/// The collective calls of MPI-IO on the files of a group. A call counts once per process that
/// makes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Marks {
    /// Number of calls of each kind, in order of first appearance.
    pub calls: Vec<Count>,
    /// The largest number of processes that had a file open together.
    pub processes: u64,
    /// Bytes that the processes requested in collective reads and writes.
    pub bytes: u64,
    /// Time in collective calls, including the wait for each other, seconds, summed over processes.
    pub busy_s: f64,
}

/// The number of calls of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Count {
    /// The kind of call.
    pub call: MpiCall,
    /// Number of calls, summed over processes.
    pub calls: u64,
}

impl Marks {
    /// Whether there are no marks.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Counts a mark. Marks of unknown kind are ignored.
    pub(super) fn add(&mut self, mark: &Request) {
        let Some(call) = MpiCall::from_code(mark.offset) else { return };
        match self.calls.iter_mut().find(|count| count.call == call) {
            Some(count) => count.calls += 1,
            None => self.calls.push(Count { call, calls: 1 }),
        }
        self.processes = self.processes.max(mark.size);
        self.bytes = self.bytes.saturating_add(u64::try_from(mark.result).unwrap_or(0));
        self.busy_s += (mark.end_ns - mark.start_ns) as f64 * 1e-9;
    }
}
