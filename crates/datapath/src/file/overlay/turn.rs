//! Mutual exclusion between background work on a file and its closing.

use std::sync::atomic::{AtomicBool, Ordering};

use stripewise_sys::SysRef;

/// Pause between polls for background work to end, ns.
const LOOK_NS: u64 = 100_000;

/// Shared by a file and the background thread. The thread holds a reference to the file only during
/// its turn, so its reference is never the last one.
///
/// `begin` sets `working` before it reads `paused`, and `pause` sets `paused` before it reads
/// `working`. All four accesses are sequentially consistent, so at least one side sees the other.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    working: AtomicBool,
    paused: AtomicBool,
}

/// The background thread's turn, until dropped.
pub(crate) struct Working<'a>(&'a Turn);

impl Turn {
    /// Begins a unit of background work; `None` while the file is paused.
    pub fn begin(&self) -> Option<Working<'_>> {
        self.working.store(true, Ordering::SeqCst);
        let working = Working(self);
        (!self.paused.load(Ordering::SeqCst)).then_some(working)
    }

    /// Whether the background thread is at work right now.
    pub fn is_working(&self) -> bool {
        self.working.load(Ordering::SeqCst)
    }

    /// Pauses background work and waits for the current unit to end.
    pub fn pause(&self, sys: &SysRef) {
        self.paused.store(true, Ordering::SeqCst);
        while self.working.load(Ordering::SeqCst) {
            sys.sleep_until_ns(sys.now_ns() + LOOK_NS);
        }
    }

    /// Resumes background work because the file is used again.
    pub fn resume(&self) {
        if self.paused.load(Ordering::Relaxed) {
            self.paused.store(false, Ordering::SeqCst);
        }
    }

    /// For a forked child, which has no background thread.
    pub fn after_fork_child(&self) {
        self.working.store(false, Ordering::SeqCst);
    }
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.0.working.store(false, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    use stripewise_sys::Real;

    use super::*;

    #[test]
    fn work_and_the_end_never_meet() {
        let (turn, sys): (Turn, SysRef) = (Turn::default(), Arc::new(Real));
        let (done, at_work) = (AtomicBool::new(false), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    if let Some(_working) = turn.begin() {
                        at_work.fetch_add(1, Ordering::SeqCst);
                        std::thread::yield_now();
                        at_work.fetch_sub(1, Ordering::SeqCst);
                    }
                }
            });
            for _ in 0..200 {
                turn.pause(&sys);
                for _ in 0..20 {
                    assert_eq!(at_work.load(Ordering::SeqCst), 0);
                }
                turn.resume();
                std::thread::yield_now();
            }
            done.store(true, Ordering::Relaxed);
        });
    }
}
