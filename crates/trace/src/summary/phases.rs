//! Phases: which processes access a group of files together, and so the concurrency `p` and the
//! processes per node `c`.
//!
//! Overlap in time is a poor criterion: on a fast page cache, 16 ranks that write concurrently
//! hardly ever overlap. So phases follow the processes' order instead of the clock. The rules apply
//! per file group, and only to its reads and writes:
//!
//! - Each process is in one phase at a time and only moves on to later phases. A phase has one
//!   operation.
//! - A request with the operation of its process's phase stays in that phase. Otherwise the process
//!   joins the *first* later phase with the request's operation that another process has already
//!   opened; if there is none, it opens a new phase. (So the first writes of all ranks form one
//!   phase, all their first reads after that the next, and so on, however the ranks are scheduled.)
//! - A *gap* closes all phases: a pause in the group that is longer than [`GAP_NS`] and longer than
//!   the time from the last gap to the pause.
//!
//! `p` of a phase is the number of its processes, `c` the largest number of them on one node.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::broad::MAX_GROUPS;
use crate::{Op, Request};

/// A pause must be longer than this to end a phase, nanoseconds.
pub const GAP_NS: u64 = 100_000_000;

/// Number of phases that can still be joined; a process that lags further behind joins the oldest
/// of them.
const OPEN_PHASES: usize = 1024;

/// Maximum number of phases of a group, if there are no more than [`MAX_GROUPS`] groups; else that
/// many fewer. After that, processes stay in their phase whatever they do.
const MAX_PHASES: usize = 1 << 20;

/// Number of phases of a group that are kept with times and bytes.
const DETAILED_PHASES: usize = 1024;

/// A phase of a file group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Phase {
    /// The operation of its requests: read or write.
    pub op: Op,
    /// `p`: number of processes.
    pub processes: u32,
    /// `c`: the largest number of them on one node.
    pub per_node: u32,
    /// Number of requests.
    pub requests: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Start of its first request, nanoseconds since the start of the trace.
    pub start_ns: u64,
    /// End of its last request, nanoseconds since the start of the trace.
    pub end_ns: u64,
}

/// The finished phases of a file group, by number.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Phases {
    /// The first phases with all details (up to 1024).
    pub first: Vec<Phase>,
    /// All phases, summed up by operation and (p, c).
    pub by_concurrency: Vec<Concurrency>,
    /// Per phase: index into `by_concurrency`.
    #[serde(skip)]
    concurrency_of: Vec<u32>,
}

/// All phases of one operation with the same concurrency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Concurrency {
    /// Read or write.
    pub op: Op,
    /// `p`.
    pub processes: u32,
    /// `c`.
    pub per_node: u32,
    /// Number of phases.
    pub phases: u64,
    /// Number of requests in these phases.
    pub requests: u64,
    /// Bytes moved in these phases.
    pub bytes: u64,
}

impl Phases {
    /// Number of phases.
    pub fn len(&self) -> usize {
        self.concurrency_of.len()
    }

    /// Whether there are no phases.
    pub fn is_empty(&self) -> bool {
        self.concurrency_of.is_empty()
    }

    /// The concurrency of a phase.
    pub fn concurrency(&self, phase: u32) -> &Concurrency {
        &self.by_concurrency[self.concurrency_of[phase as usize] as usize]
    }

    /// Adds a phase, with its details if fewer than `details` phases have them.
    fn add(&mut self, phase: Phase, details: usize) {
        let same =
            |c: &Concurrency| (c.op, c.processes, c.per_node) == (phase.op, phase.processes, phase.per_node);
        // Searched from the end, because consecutive phases are often alike.
        let index = self.by_concurrency.iter().rposition(same).unwrap_or_else(|| {
            let Phase { op, processes, per_node, .. } = phase;
            let empty = Concurrency { op, processes, per_node, phases: 0, requests: 0, bytes: 0 };
            self.by_concurrency.push(empty);
            self.by_concurrency.len() - 1
        });
        let class = &mut self.by_concurrency[index];
        class.phases += 1;
        class.requests += phase.requests;
        class.bytes = class.bytes.saturating_add(phase.bytes);
        self.concurrency_of.push(index as u32);
        if self.first.len() < details {
            self.first.push(phase);
        }
    }
}

/// No phase.
const NONE: u32 = u32::MAX;

/// The phase that each process of a group entered last. Memory: proportional to the number of these
/// processes, because a trace may have a million processes and hundreds of groups.
///
/// Processes with low numbers are in a vector, which is as fast as it gets. It may be longer than
/// the number of processes, but only by a constant factor. All other processes are in a map, until
/// the vector may be long enough for all of them. A group that most processes use is all vector.
#[derive(Default)]
struct Entered {
    low: Vec<u32>,
    high: FxHashMap<u32, u32>,
    /// Number of processes.
    processes: usize,
    /// The highest number of a process.
    last: usize,
}

/// Length of the vector in [`Entered`] that is allowed for any number of processes.
const ENTERED_MIN: usize = 64;
/// Length of that vector that is allowed for each process. It then takes about as much memory as
/// the map would.
const ENTERED_PER_PROCESS: usize = 4;

impl Entered {
    #[inline]
    fn get(&self, process: u32) -> Option<u32> {
        match self.low.get(process as usize) {
            Some(number) => Some(*number).filter(|number| *number != NONE),
            None => self.high.get(&process).copied(),
        }
    }

    /// Notes the number of the process's phase. Returns the number before.
    fn replace(&mut self, process: u32, number: u32) -> Option<u32> {
        let before = self.get(process);
        if before.is_none() {
            self.processes += 1;
            self.last = self.last.max(process as usize);
            self.grow(process as usize);
        }
        match self.low.get_mut(process as usize) {
            Some(low) => *low = number,
            None => _ = self.high.insert(process, number),
        }
        before
    }

    /// Lengthens the vector for all processes, or else for this one, if it may be that long. Its
    /// length is a power of two, so the map is searched for processes to move only a few times.
    fn grow(&mut self, process: usize) {
        let allowed = ENTERED_MIN + ENTERED_PER_PROCESS * self.processes;
        let mut lengths = [self.last, process].into_iter().map(|last| (last + 1).next_power_of_two());
        let end = lengths.find(|end| *end <= allowed).unwrap_or(0);
        if end <= self.low.len() {
            return;
        }
        self.low.resize(end, NONE);
        let low = &mut self.low;
        self.high.retain(|process, number| match low.get_mut(*process as usize) {
            Some(place) => {
                *place = *number;
                false
            }
            None => true,
        });
    }
}

/// A phase that can still be joined.
struct OpenPhase {
    phase: Phase,
    /// Processes per node.
    nodes: FxHashMap<u32, u32>,
}

/// Finds the phases of one file group. It is deterministic: the same requests give the same
/// numbers.
pub(super) struct PhaseTracker {
    open: VecDeque<OpenPhase>,
    /// The number of `open[0]`.
    first_open: usize,
    entered: Entered,
    /// Start of the first request after the last gap, and end of the last request, nanoseconds.
    span_ns: Option<(u64, u64)>,
    done: Phases,
    /// Maximum number of phases.
    most: usize,
    /// Maximum number of phases that are kept with times and bytes.
    details: usize,
}

impl PhaseTracker {
    /// A tracker for one of `groups` groups, without any phases yet. Only if the phases are
    /// `detailed` it keeps times and bytes of the first ones.
    pub(super) fn new(groups: usize, detailed: bool) -> Self {
        Self {
            open: VecDeque::new(),
            first_open: 0,
            entered: Entered::default(),
            span_ns: None,
            done: Phases::default(),
            most: MAX_PHASES / groups.div_ceil(MAX_GROUPS).max(1),
            details: if detailed { DETAILED_PHASES } else { 0 },
        }
    }

    /// The number of the phase of a read or write, made on this node. Requests must come in order
    /// of start.
    #[inline]
    pub(super) fn visit(&mut self, request: &Request, node: u32) -> u32 {
        self.close_at_gap(request);
        let number = match self.entered.get(request.process).map(|number| number as usize) {
            Some(number) if number >= self.first_open && self.at(number).op == request.op => number,
            present => {
                let number = self.next_phase(present, request);
                self.enter(number, request.process, node);
                number
            }
        };
        let phase = &mut self.open[number - self.first_open].phase;
        phase.requests += 1;
        // Only a damaged trace comes near 2^64.
        phase.bytes = phase.bytes.saturating_add(request.bytes());
        phase.end_ns = phase.end_ns.max(request.end_ns);
        number as u32
    }

    /// Number of closed phases: the first ones.
    pub(super) fn closed(&self) -> u32 {
        self.first_open as u32
    }

    /// The concurrency of a closed phase.
    pub(super) fn concurrency(&self, phase: u32) -> &Concurrency {
        self.done.concurrency(phase)
    }

    /// All phases, including the open ones.
    pub(super) fn finish(mut self) -> Phases {
        self.close_all();
        self.done
    }

    fn at(&self, number: usize) -> &Phase {
        &self.open[number - self.first_open].phase
    }

    #[inline]
    fn close_at_gap(&mut self, request: &Request) {
        match &mut self.span_ns {
            Some((start_ns, end_ns)) => {
                let longest_ns = (*end_ns - *start_ns).max(GAP_NS);
                if request.start_ns.saturating_sub(*end_ns) > longest_ns {
                    self.span_ns = Some((request.start_ns, request.end_ns));
                    self.close_all();
                } else {
                    *end_ns = request.end_ns.max(*end_ns);
                }
            }
            None => self.span_ns = Some((request.start_ns, request.end_ns)),
        }
    }

    /// The first open phase with the request's operation after the process's current one, or a new
    /// phase.
    fn next_phase(&mut self, present: Option<usize>, request: &Request) -> usize {
        let from = present.map_or(0, |number| (number + 1).saturating_sub(self.first_open));
        let found = (from..self.open.len()).find(|i| self.open[*i].phase.op == request.op);
        if let Some(i) = found {
            return self.first_open + i;
        }
        let end = self.first_open + self.open.len();
        if end >= self.most && !self.open.is_empty() {
            return present.filter(|number| *number >= self.first_open).unwrap_or(end - 1);
        }
        if self.open.len() == OPEN_PHASES {
            self.close_first();
        }
        let phase = Phase {
            op: request.op,
            processes: 0,
            per_node: 0,
            requests: 0,
            bytes: 0,
            start_ns: request.start_ns,
            end_ns: request.end_ns,
        };
        if self.open.is_empty() {
            // Most of many groups have one phase at a time, and a queue starts with room for 4.
            self.open.reserve_exact(1);
        }
        self.open.push_back(OpenPhase { phase, nodes: FxHashMap::default() });
        end
    }

    fn enter(&mut self, number: usize, process: u32, node: u32) {
        if self.entered.replace(process, number as u32) == Some(number as u32) {
            return;
        }
        let open = &mut self.open[number - self.first_open];
        let on_node = open.nodes.entry(node).or_default();
        *on_node += 1;
        open.phase.processes += 1;
        open.phase.per_node = open.phase.per_node.max(*on_node);
    }

    fn close_first(&mut self) {
        if let Some(open) = self.open.pop_front() {
            self.first_open += 1;
            self.done.add(open.phase, self.details);
        }
    }

    /// Closes the `count` oldest open phases. A process that lags behind then joins the oldest of
    /// the others, as it does beyond [`OPEN_PHASES`].
    pub(super) fn close_oldest(&mut self, count: usize) {
        (0..count).for_each(|_| self.close_first());
    }

    /// Closes all phases.
    pub(super) fn close_all(&mut self) {
        self.close_oldest(self.open.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every process enters a phase that all of them enter, then one of its own.
    fn entered(processes: impl Iterator<Item = u32> + Clone) -> Entered {
        let mut entered = Entered::default();
        for (number, process) in (0..).zip(processes.clone()) {
            assert_eq!(entered.get(process), None);
            assert_eq!(entered.replace(process, NONE - 1), None);
            assert_eq!(entered.replace(process, number), Some(NONE - 1));
        }
        for (number, process) in (0..).zip(processes) {
            assert_eq!(entered.get(process), Some(number));
            assert_eq!(entered.get(process + 1_000_000), None);
        }
        entered
    }

    #[test]
    fn memory_is_proportional_to_the_processes_that_use_the_group() {
        for first in [0, 1, 499] {
            let Entered { low, high, processes, .. } = entered((first..1_000_000).step_by(500));
            assert_eq!(processes, 2000);
            assert!(low.len() + high.len() <= ENTERED_MIN + (ENTERED_PER_PROCESS + 1) * processes);
        }
    }

    #[test]
    fn a_group_that_all_processes_use_is_all_vector() {
        assert!(entered(0..5000).high.is_empty());
        assert!(entered((0..5000).rev()).high.is_empty());
    }
}
