//! Assigns every request to a file group and a phase.

use std::collections::HashMap;

use super::phases::{PhaseTracker, Visit};
use crate::{Op, ProcessInfo, Request, pattern_of};

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
    group_ids: HashMap<String, u32>,
    patterns: Vec<String>,
    trackers: Vec<PhaseTracker>,
}

impl Grouping {
    pub(super) fn new(processes: &[ProcessInfo]) -> Grouping {
        let mut ids = HashMap::new();
        let nodes = processes
            .iter()
            .map(|process| {
                let next = ids.len() as u32;
                *ids.entry(process.node.as_str()).or_insert(next)
            })
            .collect();
        Grouping {
            nodes,
            group_of_file: Vec::new(),
            group_ids: HashMap::new(),
            patterns: Vec::new(),
            trackers: Vec::new(),
        }
    }

    /// Adds the files that are new since the last call.
    pub(super) fn files(&mut self, names: &[String]) {
        for name in &names[self.group_of_file.len()..] {
            let group = self.group_of_pattern(pattern_of(name));
            self.group_of_file.push(group);
        }
    }

    fn group_of_pattern(&mut self, mut pattern: String) -> u32 {
        if self.patterns.len() >= MAX_GROUPS && !self.group_ids.contains_key(&pattern) {
            pattern = OTHER_FILES.to_string();
        }
        if let Some(group) = self.group_ids.get(&pattern) {
            return *group;
        }
        let group = self.patterns.len() as u32;
        self.patterns.push(pattern.clone());
        self.trackers.push(PhaseTracker::default());
        self.group_ids.insert(pattern, group);
        group
    }

    /// The group of a file.
    pub(super) fn group(&self, file: u32) -> u32 {
        self.group_of_file[file as usize]
    }

    /// The place of a read or write that moved at least one byte; `None` for all other calls.
    pub(super) fn place(&mut self, request: &Request) -> Option<Place> {
        let bytes = request.bytes();
        if bytes == 0 {
            return None;
        }
        debug_assert!(matches!(request.op, Op::Read | Op::Write));
        let group = self.group(request.file);
        let phase = self.trackers[group as usize].visit(&Visit {
            process: request.process,
            node: self.nodes[request.process as usize],
            op: request.op,
            bytes,
            start_ns: request.start_ns,
            end_ns: request.end_ns,
        });
        Some(Place { group, phase })
    }

    /// The patterns and phase trackers of all groups.
    pub(super) fn finish(self) -> (Vec<String>, Vec<PhaseTracker>) {
        (self.patterns, self.trackers)
    }
}
