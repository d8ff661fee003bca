//! The marks of collective calls, counted.

use serde::Serialize;

use crate::{MpiCall, Request};

/// The collective calls of MPI-IO on the files of a group, each by the number of processes that
/// made it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Marks {
    /// Calls of each kind, in order of first appearance.
    pub calls: Vec<Count>,
    /// The most processes that had a file open together.
    pub processes: u64,
    /// Bytes that the processes asked for in collective reads and writes.
    pub bytes: u64,
    /// Time spent in collective calls, seconds, summed over processes: with waiting for each other.
    pub busy_s: f64,
}

/// How often one of them was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Count {
    /// Which.
    pub call: MpiCall,
    /// By all processes together.
    pub calls: u64,
}

impl Marks {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Counts a mark; one of a kind that this version does not know is left out.
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
