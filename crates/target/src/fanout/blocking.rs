//! Guesses from elapsed time whether the page cache serves requests or they wait for a device,
//! where the kernel does not report it.

use std::sync::atomic::{AtomicU32, Ordering};

use stripewise_sys::Sys;

use super::jobs::Job;

/// A page cache transfers bytes at more than 0.5 GB/s with less than 0.2 ms of overhead; a device,
/// a full page cache, or a network file system does not.
const CACHE_NS: u64 = 200_000;
const CACHE_NS_PER_BYTE: u64 = 2;

/// Number of requests after a slow one that are fanned out at once without testing.
const REMEMBERED: u32 = 16;

/// Whether the last requests of one direction were slow. A wrong guess only costs time.
#[derive(Debug, Default)]
pub(super) struct Blocking {
    left: AtomicU32,
}

impl Blocking {
    /// Runs jobs one after the other until they prove slow. Returns the number done: 0 when the
    /// last requests were slow.
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
