//! Whether a request goes on where an earlier one of its process ended, as the policy is told.

use stripewise_model::Access;

/// Streams that are told apart.
const STREAMS: usize = 16;

/// Where the last requests of a process on a file ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ordered {
    ends: [u64; STREAMS],
    next: usize,
}

impl Ordered {
    /// The order of a request, which is noted.
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
