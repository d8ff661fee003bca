//! Whether the page cache does requests, or they wait for a device: told by the time they take, where the kernel does
//! not tell.

use std::sync::atomic::{AtomicU32, Ordering};

use stripewise_sys::Sys;

use super::jobs::Job;

/// A page cache takes or gives bytes at more than 0.5 GB/s and with less than 0.2 ms of trouble; a device, a full page
/// cache, or a network file system does not.
const CACHE_NS: u64 = 200_000;
const CACHE_NS_PER_BYTE: u64 = 2;

/// Requests after a slow one that go at once without asking.
const REMEMBERED: u32 = 16;

/// What the last requests of one direction were like. Wrong guesses only cost time.
#[derive(Debug, Default)]
pub(super) struct Blocking {
    left: AtomicU32,
}

impl Blocking {
    /// Does jobs one after the other until they prove slow; how many. None when the last requests were slow.
    ///
    /// # Safety
    /// As [`Job::run`], for every job.
    pub unsafe fn run_until_slow(&self, sys: &dyn Sys, jobs: &mut [Job<'_>]) -> usize {
        let left = self.left.load(Ordering::Relaxed);
        if left > 0 {
            self.left.store(left - 1, Ordering::Relaxed);
            return 0;
        }
        let began_ns = sys.now_ns();
        let mut bytes = 0;
        for (index, job) in jobs.iter_mut().enumerate() {
            // SAFETY: as promised by the caller.
            unsafe { job.run(sys) };
            bytes += job.done;
            if sys.now_ns() - began_ns > CACHE_NS + CACHE_NS_PER_BYTE * bytes {
                self.left.store(REMEMBERED, Ordering::Relaxed);
                return index + 1;
            }
        }
        jobs.len()
    }
}
