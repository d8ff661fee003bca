//! Second pass: classifies every request by the concurrency that the first pass found for its
//! phase.

use super::contents::Summary;
use super::grouping::Grouping;
use super::past::{Past, Pasts};
use crate::{ProcessInfo, Request};

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
