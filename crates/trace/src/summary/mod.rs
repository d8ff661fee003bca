//! Summary of an application's I/O from its trace: groups of files, sizes, concurrency, order. One
//! pass, bounded memory.

mod classifier;
mod grouping;
mod hash;
mod histogram;
mod marks;
mod past;
mod phases;
mod streams;

#[cfg(test)]
mod tests;

use serde::Serialize;

pub use classifier::{Class, Classifier};
pub use histogram::{Distances, Sizes};
pub use marks::Marks;
pub use past::{Past, Pasts};
pub use phases::{Concurrency, GAP_NS, Phase, Phases};

use crate::{Flags, Op, ProcessInfo, Request, Trace, TraceError};
use grouping::{Grouping, Place};
use streams::{Step, Streams};

/// Statistics of one direction, reads or writes, of a file group.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Direction {
    /// Calls that moved at least one byte.
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
    /// Bytes of these requests.
    pub collective_bytes: u64,
}

impl Direction {
    fn add(&mut self, request: &Request, step: Step) {
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
    /// Reads and writes that moved nothing: end of file, errors.
    pub empty: u64,
    /// Failed calls of any kind.
    pub failed: u64,
}

/// The use of one file.
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
    /// End of the farthest byte that was read or written, as a file offset.
    pub extent_bytes: u64,
    /// Bytes read and written during collective calls of MPI-IO.
    pub collective_bytes: u64,
    /// Whether more than one process moved data.
    pub shared: bool,
    #[serde(skip)]
    first_process: Option<u32>,
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
    /// Sum over the files of `extent_bytes`.
    pub extent_bytes: u64,
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
    /// Start of the group's first call, nanoseconds since the start of the trace.
    pub start_ns: u64,
    /// End of the group's last call, nanoseconds since the start of the trace.
    pub end_ns: u64,
}

/// The I/O of an application.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Summary {
    /// Groups of files, in order of first appearance.
    pub groups: Vec<Group>,
    /// All files, indexed by [`Request::file`].
    pub files: Vec<FileUse>,
    /// Number of processes in the trace.
    pub processes: u64,
    /// Number of nodes on which they ran.
    pub nodes: u64,
    /// Number of calls.
    pub calls: u64,
    /// Time from the start of the first call to the end of the last, seconds.
    pub span_s: f64,
}

impl Summary {
    /// Reads the whole trace once. Memory: the files, groups and streams (bounded); it does not
    /// depend on the number of requests.
    pub fn of(trace: &Trace) -> Result<Summary, TraceError> {
        let mut builder = Builder::new(trace.processes());
        let mut requests = trace.requests()?;
        while let Some(batch) = requests.next_batch()? {
            builder.files(batch.files);
            batch.requests.iter().for_each(|request| builder.add(request));
        }
        Ok(builder.finish())
    }
}

/// Builds a summary from requests that need not be in a trace file.
pub struct Builder {
    grouping: Grouping,
    streams: Streams,
    summary: Summary,
    end_ns: u64,
    start_ns: Option<u64>,
}

impl Builder {
    /// An empty summary for requests of these processes.
    pub fn new(processes: &[ProcessInfo]) -> Builder {
        let mut nodes: Vec<_> = processes.iter().map(|process| &process.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let summary =
            Summary { processes: processes.len() as u64, nodes: nodes.len() as u64, ..Summary::default() };
        Builder {
            grouping: Grouping::new(processes),
            streams: Streams::default(),
            summary,
            end_ns: 0,
            start_ns: None,
        }
    }

    /// Adds the files that are new since the last call. `names` has all files so far.
    pub fn files(&mut self, names: &[String]) {
        self.grouping.files(names);
        for name in &names[self.summary.files.len()..] {
            let group = self.grouping.group(self.summary.files.len() as u32);
            self.summary.files.push(FileUse {
                name: name.clone(),
                group,
                read_bytes: 0,
                written_bytes: 0,
                requests: 0,
                extent_bytes: 0,
                collective_bytes: 0,
                shared: false,
                first_process: None,
            });
            let groups = &mut self.summary.groups;
            if group as usize >= groups.len() {
                groups.push(Group { first_file: name.clone(), start_ns: u64::MAX, ..Group::default() });
            }
            groups[group as usize].files += 1;
        }
    }

    /// Adds the next request, in order of start. [`Builder::files`] must have added its file.
    pub fn add(&mut self, request: &Request) {
        self.summary.calls += 1;
        self.start_ns.get_or_insert(request.start_ns);
        self.end_ns = self.end_ns.max(request.end_ns);
        let group = &mut self.summary.groups[self.grouping.group(request.file) as usize];
        group.start_ns = group.start_ns.min(request.start_ns);
        group.end_ns = group.end_ns.max(request.end_ns);
        match self.grouping.place(request) {
            Some(place) => self.add_data(request, place),
            None if request.op == Op::Mark => group.marks.add(request),
            None => group.other.add(request),
        }
    }

    fn add_data(&mut self, request: &Request, place: Place) {
        let (bytes, step) = (request.bytes(), self.streams.step(request));
        let file = &mut self.summary.files[request.file as usize];
        let group = &mut self.summary.groups[place.group as usize];
        file.requests += 1;
        file.extent_bytes = file.extent_bytes.max(request.offset.saturating_add(bytes));
        if request.flags.has(Flags::COLLECTIVE) {
            file.collective_bytes = file.collective_bytes.saturating_add(bytes);
        }
        file.shared |= *file.first_process.get_or_insert(request.process) != request.process;
        if request.op == Op::Read {
            file.read_bytes = file.read_bytes.saturating_add(bytes);
            group.read.add(request, step);
        } else {
            file.written_bytes = file.written_bytes.saturating_add(bytes);
            group.write.add(request, step);
        }
    }

    /// The finished summary.
    pub fn finish(self) -> Summary {
        let mut summary = self.summary;
        let (patterns, trackers) = self.grouping.finish();
        for ((group, pattern), tracker) in summary.groups.iter_mut().zip(patterns).zip(trackers) {
            group.pattern = pattern;
            group.phases = tracker.finish();
        }
        for file in &summary.files {
            let group = &mut summary.groups[file.group as usize];
            group.extent_bytes = group.extent_bytes.saturating_add(file.extent_bytes);
            group.shared_files += u64::from(file.shared);
        }
        summary.span_s = (self.end_ns - self.start_ns.unwrap_or(self.end_ns)) as f64 * 1e-9;
        summary
    }
}

impl OtherCalls {
    fn add(&mut self, request: &Request) {
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
            Op::Mark => return, // Counted in `Group::marks`.
        };
        *count += 1;
    }
}
