//! When a request to emulated servers arrives, and waiting until it ends.
//!
//! A thread that sleeps until a request's end wakes up some tens of µs late, more on a busy machine; a closed loop would
//! lose that on every request. So each thread has a *virtual clock*: a request that comes within 2 ms of the
//! last one's end is taken to have arrived exactly then. A thread that lags behind catches up by not sleeping.

use std::cell::Cell;

use stripewise_sys::Sys;

use crate::ComponentSet;

use super::Server;

/// A request that comes later than this after the last one's end arrives when it comes.
pub const RECENT_NS: u64 = 2_000_000;

thread_local! {
    /// When this thread's last request ended, CLOCK_MONOTONIC ns.
    static LAST_END_NS: Cell<u64> = const { Cell::new(0) };
}

/// The reservations of one request.
#[derive(Debug)]
pub(crate) struct Pace {
    arrival_ns: u64,
    end_ns: u64,
}

impl Pace {
    /// A request of the calling thread arrives; `None` when no component of the set is emulated.
    pub fn begin(set: &ComponentSet, sys: &dyn Sys) -> Option<Self> {
        set.is_emulated().then(|| {
            let arrival_ns = arrival_ns(LAST_END_NS.get(), sys.now_ns());
            Self { arrival_ns, end_ns: arrival_ns }
        })
    }

    /// Reserves the time of one of its sub-requests.
    pub fn reserve(&mut self, server: &Server, write: bool, offset: u64, len: u64) {
        self.end_ns = self.end_ns.max(server.reserve(write, offset, len, self.arrival_ns));
    }

    /// Returns when the last reservation ends.
    pub fn wait(self, sys: &dyn Sys) {
        sys.sleep_until_ns(self.end_ns);
        LAST_END_NS.set(self.end_ns);
    }
}

fn arrival_ns(last_end_ns: u64, now_ns: u64) -> u64 {
    match now_ns.checked_sub(last_end_ns) {
        Some(gap) if gap < RECENT_NS => last_end_ns,
        _ => now_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recent_requests_arrive_when_the_last_one_ended() {
        let (last, recent) = (1_000_000_000, RECENT_NS);
        assert_eq!(arrival_ns(last, last), last);
        assert_eq!(arrival_ns(last, last + recent - 1), last);
        assert_eq!(arrival_ns(last, last + recent), last + recent);
        // A clock from another boot or a thread that never waited.
        assert_eq!(arrival_ns(last, 5), 5);
        assert_eq!(arrival_ns(0, last), last);
    }
}
