//! Detects sequential requests for the policy: those that continue where an earlier request of the
//! process ended.

use stripewise_model::Access;

/// Number of streams distinguished.
const STREAMS: usize = 16;

/// The ends of a process's last requests on a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ordered {
    ends: [u64; STREAMS],
    next: usize,
}

impl Ordered {
    /// Classifies a request and records its end.
    pub fn access(&mut self, start: u64, end: u64) -> Access {
        if let Some(known) = self.ends.iter_mut().find(|known| **known == start && start > 0) {
            *known = end;
            return Access::Sequential;
        }
        self.ends[self.next % STREAMS] = end;
        self.next += 1;
        Access::Random
    }
}
