//! How long a process is in calls.

use crate::Request;

/// The time that a process is in the calls added, which come in order of their start: calls of
/// several threads at once, and a call that another one contains, count once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Busy {
    ns: u64,
    until_ns: u64,
}

impl Busy {
    /// Adds a call of the process.
    #[inline]
    pub fn add(&mut self, call: &Request) {
        self.ns = self.ns.saturating_add(call.end_ns.saturating_sub(call.start_ns.max(self.until_ns)));
        self.until_ns = self.until_ns.max(call.end_ns);
    }

    /// Returns the time, ns.
    pub fn ns(&self) -> u64 {
        self.ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Flags, Op};

    #[test]
    fn what_happens_at_once_counts_once() {
        let mut busy = Busy::default();
        for (start_ns, end_ns, sum) in [(10, 20, 10), (12, 18, 10), (15, 25, 15), (25, 25, 15), (30, 40, 25)] {
            busy.add(&Request {
                process: 0,
                tid: 0,
                file: 0,
                op: Op::Read,
                flags: Flags::NONE,
                offset: 0,
                size: 0,
                result: 0,
                start_ns,
                end_ns,
            });
            assert_eq!(busy.ns(), sum);
        }
    }
}
