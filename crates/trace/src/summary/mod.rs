//! Summary of an application's I/O from its trace: groups of files, sizes, concurrency, order. One
//! pass, bounded memory.

mod broad;
mod contents;
mod grouping;
mod past;
mod phases;
mod streams;

#[cfg(test)]
mod tests;

pub use broad::{Breadth, MAX_GROUPS};
pub use contents::{Direction, Distances, FileUse, Group, Marks, OtherCalls, Sizes, Summary};
pub use grouping::{Class, Classifier};
pub use past::{Past, Pasts};
pub use phases::{Concurrency, GAP_NS, Phase, Phases};

use crate::{Flags, Op, ProcessInfo, Request, Trace, TraceError};
use grouping::{Grouping, Place};
use streams::Streams;

impl Summary {
    /// Reads the whole trace once. Memory: the files, groups and streams (bounded); it does not
    /// depend on the number of requests.
    pub fn of(trace: &Trace) -> Result<Summary, TraceError> {
        let mut builder = Builder::new(trace.processes(), trace.files());
        let mut requests = trace.requests()?;
        while let Some(batch) = requests.next_batch()? {
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
}

impl Builder {
    /// An empty summary for requests of these processes on these files.
    pub fn new<S: AsRef<str>>(processes: &[ProcessInfo], files: &[S]) -> Builder {
        let grouping = Grouping::new(processes, files, MAX_GROUPS, true);
        let (processes, nodes) = (processes.len() as u64, grouping.nodes());
        let mut summary = Summary { processes, nodes, ..Summary::default() };
        for (name, file) in files.iter().zip(0..) {
            let (name, group) = (name.as_ref().to_owned(), grouping.group(file));
            summary.files.push(FileUse { name: name.clone(), group, ..FileUse::default() });
            if group as usize >= summary.groups.len() {
                summary.groups.push(Group { first_file: name, start_ns: u64::MAX, ..Group::default() });
            }
            summary.groups[group as usize].files += 1;
        }
        Builder { grouping, streams: Streams::default(), summary }
    }

    /// Adds the next request, in order of start.
    pub fn add(&mut self, request: &Request) {
        self.summary.calls += 1;
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
        for (group, (pattern, tracker)) in summary.groups.iter_mut().zip(self.grouping.finish()) {
            group.pattern = pattern;
            group.phases = tracker.finish();
        }
        for file in &summary.files {
            let group = &mut summary.groups[file.group as usize];
            group.extent_bytes = group.extent_bytes.saturating_add(file.extent_bytes);
            group.shared_files += u64::from(file.shared);
        }
        let start_ns = summary.groups.iter().map(|group| group.start_ns).min().unwrap_or(0);
        let end_ns = summary.groups.iter().map(|group| group.end_ns).max().unwrap_or(0);
        // Files without calls begin after they end.
        summary.span_s = end_ns.saturating_sub(start_ns) as f64 * 1e-9;
        summary
    }
}
