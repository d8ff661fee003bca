//! Virtual arrival times of requests to emulated servers, and waiting until the requests end.
//!
//! A thread that sleeps until a request's end wakes up some tens of µs late, and ms late on a busy
//! machine; a closed loop would lose that time on every request. Each thread therefore has a
//! *virtual clock*. It lags the real clock by the time the thread overslept, and it stands still
//! while the thread prepares its next request, if that takes less than 1 ms. A lagging thread
//! catches up by not sleeping.

use std::cell::Cell;

use stripewise_sys::Sys;

use super::Server;

/// Longest time between two requests of a thread during which its virtual clock stands still.
pub const PREPARE_NS_MAX: u64 = 1_000_000;
/// Longest lag of a virtual clock: longer than any thread waits for a CPU, much shorter than any
/// measurement.
pub const LAG_NS_MAX: u64 = 20_000_000;

/// The last request of a thread; times are CLOCK_MONOTONIC, ns.
#[derive(Clone, Copy, Debug)]
struct Last {
    /// When the request ended at the servers.
    end_ns: u64,
    /// When the thread continued.
    returned_ns: u64,
}

thread_local! {
    static LAST: Cell<Last> = const { Cell::new(Last { end_ns: 0, returned_ns: 0 }) };
}

/// One request to one emulated server without an object: runs `io` and returns its result when the
/// server would have finished.
pub fn paced<T>(
    sys: &dyn Sys,
    server: &Server,
    write: bool,
    offset: u64,
    len: u64,
    io: impl FnOnce() -> T,
) -> T {
    let mut pace = Pace::begin(sys);
    pace.reserve(server, write, offset, len);
    let result = io();
    pace.wait(sys);
    result
}

/// Sets the calling thread's virtual clock to the real one, so that the thread does not catch up on
/// time overslept so far. Call it before a measurement.
pub fn settle(sys: &dyn Sys) {
    let now_ns = sys.now_ns();
    LAST.set(Last { end_ns: now_ns, returned_ns: now_ns });
}

/// The reservations of one request.
#[derive(Debug)]
pub(crate) struct Pace {
    arrival_ns: u64,
    end_ns: u64,
}

impl Pace {
    /// Starts a request of the calling thread; its arrival time is the thread's virtual clock.
    pub fn begin(sys: &dyn Sys) -> Self {
        let arrival_ns = LAST.get().next_arrival_ns(sys.now_ns());
        Self { arrival_ns, end_ns: arrival_ns }
    }

    /// Reserves the time of one sub-request.
    pub fn reserve(&mut self, server: &Server, write: bool, offset: u64, len: u64) {
        self.end_ns = self.end_ns.max(server.reserve(write, offset, len, self.arrival_ns));
    }

    /// Waits until the last reservation ends.
    pub fn wait(self, sys: &dyn Sys) {
        sys.sleep_until_ns(self.end_ns);
        LAST.set(Last { end_ns: self.end_ns, returned_ns: sys.now_ns() });
    }
}

impl Last {
    fn next_arrival_ns(self, now_ns: u64) -> u64 {
        let between_ns = now_ns.saturating_sub(self.returned_ns);
        let counted_ns = if between_ns < PREPARE_NS_MAX { 0 } else { between_ns };
        (self.end_ns + counted_ns).clamp(now_ns.saturating_sub(LAG_NS_MAX), now_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn the_virtual_clock_is_behind_by_what_was_overslept() {
        let last = Last { end_ns: 1000 * MS, returned_ns: 1003 * MS };
        assert_eq!(last.next_arrival_ns(1003 * MS), 1000 * MS);
        assert_eq!(last.next_arrival_ns(1003 * MS + PREPARE_NS_MAX - 1), 1000 * MS);
        assert_eq!(last.next_arrival_ns(1010 * MS), 1007 * MS);
        let prompt = Last { end_ns: 1000 * MS, returned_ns: 1000 * MS };
        assert_eq!(prompt.next_arrival_ns(1010 * MS), 1010 * MS);
    }

    #[test]
    fn it_is_never_far_behind_and_never_ahead() {
        let late = Last { end_ns: 1000 * MS, returned_ns: 2000 * MS };
        assert_eq!(late.next_arrival_ns(2000 * MS), 2000 * MS - LAG_NS_MAX);
        let never = Last { end_ns: 0, returned_ns: 0 };
        assert_eq!(never.next_arrival_ns(5000 * MS), 5000 * MS);
        // A forked child inherits this from a thread that was waiting.
        let ahead = Last { end_ns: 3000 * MS, returned_ns: 3000 * MS };
        assert_eq!(ahead.next_arrival_ns(2000 * MS), 2000 * MS);
    }
}
