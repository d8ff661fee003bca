//! Statistics of the marks of collective calls.

use serde::Serialize;

use crate::{MpiCall, Request};

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
