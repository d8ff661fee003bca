//! Summary of an application's I/O from its trace: groups of files, sizes, concurrency, order. One
//! pass, bounded memory.

mod broad;
mod contents;
mod extents;
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

use crate::{FileNames, Op, ProcessInfo, Request, Trace, TraceError};
use extents::Extents;
use grouping::{Grouping, Place};
use streams::Streams;

/// Maximum number of files whose uses are kept one by one.
pub const LISTED_FILES_MAX: usize = 1 << 21;

impl Summary {
    /// Reads the names of the files three times and the rows once. Memory: groups and streams
    /// (bounded), 16 bytes for each file, and up to [`LISTED_FILES_MAX`] files with their names; it
    /// does not depend on the number of requests.
    pub fn of(trace: &Trace) -> Result<Summary, TraceError> {
        let mut builder = Builder::new(trace.processes(), trace)?;
        let mut requests = trace.requests()?;
        while let Some(batch) = requests.next_batch()? {
            batch.iter().for_each(|request| builder.add(request));
        }
        Ok(builder.finish())
    }
}

/// Builds a summary from requests that need not be in a trace file.
pub struct Builder {
    grouping: Grouping,
    streams: Streams,
    extents: Extents,
    summary: Summary,
}

impl Builder {
    /// An empty summary for requests of these processes on these files.
    ///
    /// # Errors
    /// The names of the files cannot be read.
    pub fn new<F: FileNames + ?Sized>(processes: &[ProcessInfo], files: &F) -> Result<Builder, F::Error> {
        Builder::listing(processes, files, LISTED_FILES_MAX)
    }

    /// Lists the files if they are no more than `listed_max`.
    fn listing<F: FileNames + ?Sized>(
        processes: &[ProcessInfo],
        files: &F,
        listed_max: usize,
    ) -> Result<Builder, F::Error> {
        let grouping = Grouping::new(processes, files, MAX_GROUPS, true)?;
        let (processes, nodes, count) = (processes.len() as u64, grouping.nodes(), files.count());
        let mut summary = Summary { processes, nodes, file_count: count as u64, ..Summary::default() };
        let mut file = 0;
        files.for_each(&mut |name| {
            let group = grouping.group(file);
            file += 1;
            if count <= listed_max {
                summary.files.push(FileUse { name: name.to_owned(), group, ..FileUse::default() });
            }
            if group as usize >= summary.groups.len() {
                let first_file = name.to_owned();
                summary.groups.push(Group { first_file, start_ns: u64::MAX, ..Group::default() });
            }
            summary.groups[group as usize].files += 1;
        })?;
        let (streams, extents) = (Streams::default(), Extents::new(count));
        Ok(Builder { grouping, streams, extents, summary })
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
        let step = self.streams.step(request);
        self.extents.add(request);
        let group = &mut self.summary.groups[place.group as usize];
        match request.op {
            Op::Read => group.read.add(request, step),
            _ => group.write.add(request, step),
        }
        if let Some(file) = self.summary.files.get_mut(request.file as usize) {
            file.add(request);
        }
    }

    /// The finished summary.
    pub fn finish(self) -> Summary {
        let mut summary = self.summary;
        let (group_of, groups) = self.grouping.finish();
        for (group, (pattern, tracker)) in summary.groups.iter_mut().zip(groups) {
            group.pattern = pattern;
            group.phases = tracker.finish();
        }
        for (file, (extent_bytes, is_shared)) in self.extents.iter().enumerate() {
            let group = &mut summary.groups[group_of[file] as usize];
            group.extent_bytes = group.extent_bytes.saturating_add(extent_bytes);
            group.largest_extent_bytes = group.largest_extent_bytes.max(extent_bytes);
            group.shared_files += u64::from(is_shared);
            if let Some(file) = summary.files.get_mut(file) {
                (file.extent_bytes, file.shared) = (extent_bytes, is_shared);
            }
        }
        summary.group_of = group_of;
        let start_ns = summary.groups.iter().map(|group| group.start_ns).min().unwrap_or(0);
        let end_ns = summary.groups.iter().map(|group| group.end_ns).max().unwrap_or(0);
        // Files without calls begin after they end.
        summary.span_s = end_ns.saturating_sub(start_ns) as f64 * 1e-9;
        summary
    }
}
