//! Runs jobs through io_uring.

use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use stripewise_sys::{Entry, Ring};

use super::jobs::Job;

/// Maximum number of idle rings kept for reuse; further threads create rings and drop them after
/// use.
const RINGS: usize = 16;
/// Maximum number of jobs in flight; a request with more runs in several batches.
const ENTRIES: u32 = 64;

/// The rings of this process.
#[derive(Debug, Default)]
pub(super) struct Rings {
    /// Each from `Box::into_raw`. A thread takes a ring by swapping in null, so one thread at a
    /// time has it and nothing blocks.
    idle: [AtomicPtr<Owned>; RINGS],
    refused: AtomicBool,
}

#[derive(Debug)]
struct Owned {
    /// A forked child inherits the memory, but must not use the ring.
    process: u32,
    ring: Ring,
}

impl Rings {
    /// Runs all jobs in parallel. Returns true when all are finished, and false when the kernel
    /// does not permit io_uring: then some may be unfinished, and none is running.
    ///
    /// # Safety
    /// As [`Job::run`], for every job.
    pub unsafe fn run(&self, jobs: &mut [Job<'_>]) -> bool {
        let Some(mut owned) = self.take() else { return false };
        while jobs.iter().any(|job| !job.finished) {
            // SAFETY: as promised by the caller.
            if !unsafe { batch(&mut owned.ring, jobs) } {
                self.refused.store(true, Ordering::Relaxed);
                return false;
            }
        }
        self.give_back(owned);
        true
    }

    fn take(&self) -> Option<Box<Owned>> {
        if self.refused.load(Ordering::Relaxed) {
            return None;
        }
        let process = std::process::id();
        for slot in &self.idle {
            let pointer = slot.swap(std::ptr::null_mut(), Ordering::AcqRel);
            if !pointer.is_null() {
                // SAFETY: from `Box::into_raw`, and swapped out, so this thread owns it. A parent's
                // ring is dropped here.
                let owned = unsafe { Box::from_raw(pointer) };
                if owned.process == process {
                    return Some(owned);
                }
            }
        }
        match Ring::new(ENTRIES) {
            Ok(ring) => Some(Box::new(Owned { process, ring })),
            Err(_) => {
                self.refused.store(true, Ordering::Relaxed);
                None
            }
        }
    }

    fn give_back(&self, owned: Box<Owned>) {
        let pointer = Box::into_raw(owned);
        for slot in &self.idle {
            let empty = std::ptr::null_mut();
            if slot.compare_exchange(empty, pointer, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                return;
            }
        }
        // SAFETY: just made by `into_raw`, and in no slot.
        drop(unsafe { Box::from_raw(pointer) });
    }
}

impl Drop for Rings {
    fn drop(&mut self) {
        for slot in &mut self.idle {
            let pointer = *slot.get_mut();
            if !pointer.is_null() {
                // SAFETY: from `Box::into_raw`; `&mut self` excludes other references.
                drop(unsafe { Box::from_raw(pointer) });
            }
        }
    }
}

/// One system call for every unfinished job, as many as fit the ring.
///
/// # Safety
/// As [`Job::run`], for every job.
unsafe fn batch(ring: &mut Ring, jobs: &mut [Job<'_>]) -> bool {
    let chosen: Vec<usize> =
        (0..jobs.len()).filter(|&index| !jobs[index].finished).take(ring.capacity()).collect();
    let entry = |&index: &usize| {
        let job = &jobs[index];
        Entry { action: job.action, fd: job.fd, vectors: job.next_vectors(), offset: job.next_offset() }
    };
    let entries: Vec<Entry<'_>> = chosen.iter().map(entry).collect();
    let mut completions = vec![Ok(0); entries.len()];
    // SAFETY: as promised by the caller.
    let begun = unsafe { ring.run(&entries, &mut completions) };
    for (&index, &completion) in chosen.iter().zip(&completions).take(begun) {
        jobs[index].advance(completion);
    }
    begun == chosen.len()
}
