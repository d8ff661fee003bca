//! Assigns every request to a file group and a phase, and classifies it in a second pass by the
//! concurrency that the first pass found for its phase.

use indexmap::{IndexMap, IndexSet};

use super::contents::Summary;
use super::past::{Past, Pasts};
use super::phases::PhaseTracker;
use crate::{ProcessInfo, Request, pattern_of};

/// Number of file-name patterns that get a group of their own; the files of all further patterns
/// share one group.
const MAX_GROUPS: usize = 1 << 16;

/// The pattern of the group for files beyond [`MAX_GROUPS`] patterns.
const OTHER_FILES: &str = "**";

/// The group and phase of a read or write.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) group: u32,
    pub(super) phase: u32,
}

/// The state that every pass over a trace needs. It is deterministic: two passes give the same
/// numbers.
pub(super) struct Grouping {
    /// Per process: the number of its node.
    nodes: Vec<u32>,
    /// Per file: the number of its group.
    group_of_file: Vec<u32>,
    /// By number: the groups' patterns and phases.
    groups: IndexMap<String, PhaseTracker>,
}

impl Grouping {
    pub(super) fn new(processes: &[ProcessInfo]) -> Grouping {
        let mut nodes = IndexSet::new();
        let number = |process: &ProcessInfo| nodes.insert_full(process.node.clone()).0 as u32;
        let nodes = processes.iter().map(number).collect();
        Grouping { nodes, group_of_file: Vec::new(), groups: IndexMap::new() }
    }

    /// Adds the files that are new since the last call.
    pub(super) fn files(&mut self, names: &[String]) {
        for name in &names[self.group_of_file.len()..] {
            let group = self.group_of_pattern(pattern_of(name));
            self.group_of_file.push(group);
        }
    }

    fn group_of_pattern(&mut self, mut pattern: String) -> u32 {
        if self.groups.len() >= MAX_GROUPS && !self.groups.contains_key(&pattern) {
            pattern = OTHER_FILES.to_string();
        }
        let group = self.groups.entry(pattern);
        let number = group.index() as u32;
        group.or_default();
        number
    }

    /// Number of nodes.
    pub(super) fn nodes(&self) -> u64 {
        self.nodes.iter().max().map_or(0, |last| u64::from(*last) + 1)
    }

    /// The group of a file.
    pub(super) fn group(&self, file: u32) -> u32 {
        self.group_of_file[file as usize]
    }

    /// The place of a read or write that moved at least one byte; `None` for all other calls.
    pub(super) fn place(&mut self, request: &Request) -> Option<Place> {
        if request.bytes() == 0 {
            return None;
        }
        let group = self.group(request.file);
        let node = self.nodes[request.process as usize];
        Some(Place { group, phase: self.groups[group as usize].visit(request, node) })
    }

    /// The patterns and phase trackers of all groups.
    pub(super) fn finish(self) -> impl Iterator<Item = (String, PhaseTracker)> {
        self.groups.into_iter()
    }
}

/// The class of a read or write within the whole trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Class {
    /// Index into [`Summary::groups`].
    pub group: u32,
    /// The phase's number in its group.
    pub phase: u32,
    /// `p`: number of processes in the phase.
    pub processes: u32,
    /// `c`: the largest number of them on one node.
    pub per_node: u32,
    /// The process's preceding accesses to the file.
    pub past: Past,
}

/// Classifies the requests of a trace in a second pass over it:
///
/// ```text
/// let mut classifier = Classifier::new(&summary, trace.processes());
/// while let Some(batch) = requests.next_batch()? {
///     for request in batch.requests {
///         if let Some(class) = classifier.classify(request) { .. }
///     }
/// }
/// ```
pub struct Classifier<'a> {
    summary: &'a Summary,
    grouping: Grouping,
    pasts: Pasts,
}

impl<'a> Classifier<'a> {
    /// A classifier for the trace that `summary` was made from, and for its processes.
    pub fn new(summary: &'a Summary, processes: &[ProcessInfo]) -> Classifier<'a> {
        let mut grouping = Grouping::new(processes);
        let names: Vec<String> = summary.files.iter().map(|file| file.name.clone()).collect();
        grouping.files(&names);
        Classifier { summary, grouping, pasts: Pasts::default() }
    }

    /// The class of a read or write that moved at least one byte; `None` for all other calls. The
    /// caller passes all requests of the trace, in its order.
    pub fn classify(&mut self, request: &Request) -> Option<Class> {
        let place = self.grouping.place(request)?;
        let phases = &self.summary.groups[place.group as usize].phases;
        let concurrency = phases.concurrency(place.phase);
        Some(Class {
            group: place.group,
            phase: place.phase,
            processes: concurrency.processes,
            per_node: concurrency.per_node,
            past: self.pasts.next(request.process, request.file, request.offset, request.bytes()),
        })
    }
}
