//! Assigns every request to a file group and a phase.

use indexmap::IndexSet;

use super::broad::{Breadth, Groups};
use super::past::{Past, Pasts};
use super::phases::{Concurrency, PhaseTracker};
use crate::{FileNames, ProcessInfo, Request};

/// The group and phase of a read or write.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) group: u32,
    pub(super) phase: u32,
}

/// The file groups and their phases. It is deterministic: two passes give the same numbers.
pub(super) struct Grouping {
    /// Per process: the number of its node.
    nodes: Vec<u32>,
    groups: Groups,
    /// Per group: its phases.
    phases: Vec<PhaseTracker>,
}

impl Grouping {
    /// At most `limit` groups of these files. Only if the phases are `detailed` their times and
    /// bytes are kept.
    pub(super) fn new<F: FileNames + ?Sized>(
        processes: &[ProcessInfo],
        files: &F,
        limit: usize,
        detailed: bool,
    ) -> Result<Grouping, F::Error> {
        let mut nodes = IndexSet::new();
        let names = processes.iter().map(|process| process.node.as_str());
        let nodes = names.map(|node| nodes.insert_full(node).0 as u32).collect();
        let groups = Groups::of(files, limit)?;
        let count = groups.groups.len();
        let phases = (0..count).map(|_| PhaseTracker::new(count, detailed)).collect();
        Ok(Grouping { nodes, groups, phases })
    }

    /// Number of nodes.
    pub(super) fn nodes(&self) -> u64 {
        self.nodes.iter().max().map_or(0, |last| u64::from(*last) + 1)
    }

    /// The group of a file.
    pub(super) fn group(&self, file: u32) -> u32 {
        self.groups.of_file[file as usize]
    }

    /// The place of a read or write that moved at least one byte; `None` for all other calls.
    #[inline]
    pub(super) fn place(&mut self, request: &Request) -> Option<Place> {
        if request.bytes() == 0 {
            return None;
        }
        let group = self.group(request.file);
        let node = self.nodes[request.process as usize];
        Some(Place { group, phase: self.phases[group as usize].visit(request, node) })
    }

    /// The group of each file, and the patterns and phase trackers of all groups.
    pub(super) fn finish(self) -> (Vec<u32>, impl Iterator<Item = (String, PhaseTracker)>) {
        (self.groups.of_file, self.groups.groups.into_keys().zip(self.phases))
    }
}

/// The class of a read or write.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Class {
    /// The number of the file's group: that in [`Summary::groups`](super::Summary::groups).
    pub group: u32,
    /// The phase's number in its group.
    pub phase: u32,
    /// The process's preceding accesses to the file.
    pub past: Past,
}

/// Classifies the requests of a trace in one pass. The concurrency of a phase is known when it is
/// [closed](Classifier::closed):
///
/// ```text
/// let mut classifier = Classifier::new(trace.processes(), &trace, MAX_GROUPS)?;
/// while let Some(batch) = requests.next_batch()? {
///     for request in batch {
///         if let Some(class) = classifier.classify(request) { .. }
///     }
/// }
/// classifier.close();
/// ```
pub struct Classifier {
    grouping: Grouping,
    pasts: Pasts,
}

impl Classifier {
    /// A classifier for a trace with these processes and files, in at most `limit` groups. Memory:
    /// 4 bytes for each file, and what the groups take.
    ///
    /// # Errors
    /// The names of the files cannot be read.
    pub fn new<F: FileNames + ?Sized>(
        processes: &[ProcessInfo],
        files: &F,
        limit: usize,
    ) -> Result<Classifier, F::Error> {
        let grouping = Grouping::new(processes, files, limit, false)?;
        Ok(Classifier { grouping, pasts: Pasts::default() })
    }

    /// The class of a read or write that moved at least one byte; `None` for all other calls. The
    /// caller passes all requests of the trace, in its order.
    #[inline]
    pub fn classify(&mut self, request: &Request) -> Option<Class> {
        let Place { group, phase } = self.grouping.place(request)?;
        let past = self.pasts.next(request.process, request.file, request.offset, request.bytes());
        Some(Class { group, phase, past })
    }

    /// The number of the node of each process.
    pub fn nodes(&self) -> &[u32] {
        &self.grouping.nodes
    }

    /// The group of a file.
    pub fn group(&self, file: u32) -> u32 {
        self.grouping.group(file)
    }

    /// How much of their names the files of each group share, by number of the group.
    pub fn groups(&self) -> impl ExactSizeIterator<Item = Breadth> {
        self.grouping.groups.groups.values().copied()
    }

    /// The number of closed phases of a group: the first ones. No request joins a closed phase.
    #[inline]
    pub fn closed(&self, group: u32) -> u32 {
        self.grouping.phases[group as usize].closed()
    }

    /// The concurrency of a closed phase.
    pub fn concurrency(&self, group: u32, phase: u32) -> &Concurrency {
        self.grouping.phases[group as usize].concurrency(phase)
    }

    /// Closes the `count` oldest open phases of a group, so that the caller need not keep anything
    /// for them. Processes that lag that far behind join the oldest of the others.
    pub fn close_oldest(&mut self, group: u32, count: usize) {
        self.grouping.phases[group as usize].close_oldest(count);
    }

    /// Closes all phases, after the last request.
    pub fn close(&mut self) {
        self.grouping.phases.iter_mut().for_each(PhaseTracker::close_all);
    }
}
