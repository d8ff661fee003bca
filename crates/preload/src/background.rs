//! The background work on files with several copies: a thread of the data path's, which goes on between calls of the application.
//!
//! Signals never come to it (they are blocked when it is started), and it is never in the trace: it calls the data path, not the
//! functions that the application calls.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::errno;

/// A piece of work is being done.
static WORKING: AtomicBool = AtomicBool::new(false);
/// The process ends.
static STOPPED: AtomicBool = AtomicBool::new(false);

const LOOK: Duration = Duration::from_micros(100);

struct Working;

impl Drop for Working {
    fn drop(&mut self) {
        WORKING.store(false, Ordering::SeqCst);
    }
}

/// Does a piece of the work, as a call on a managed file would be done: forks wait for it, and what our own libraries call is the
/// kernel's.
pub fn around(work: &mut dyn FnMut()) {
    let _ = errno::guarded(|| {
        WORKING.store(true, Ordering::SeqCst);
        let _working = Working;
        if !STOPPED.load(Ordering::SeqCst) {
            work();
        }
        Ok(())
    });
}

/// At the end of the process: returns when the piece that is being done is done. No further one begins.
pub fn stop() {
    STOPPED.store(true, Ordering::SeqCst);
    while WORKING.load(Ordering::SeqCst) {
        std::thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;
    use crate::inside;

    #[test]
    fn the_end_waits_for_the_work_and_ends_it() {
        let _alone = inside::TESTED.lock();
        static DONE: AtomicU32 = AtomicU32::new(0);
        around(&mut || panic!("a defect in a piece of work"));
        assert!(!WORKING.load(Ordering::SeqCst));
        let worker = std::thread::spawn(|| {
            while !STOPPED.load(Ordering::SeqCst) {
                around(&mut || {
                    assert!(inside::active());
                    DONE.fetch_add(1, Ordering::SeqCst);
                    std::thread::sleep(Duration::from_millis(2));
                    DONE.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        while DONE.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        stop();
        let done = DONE.load(Ordering::SeqCst);
        assert!(done.is_multiple_of(2), "stopped in the middle");
        around(&mut || unreachable!());
        worker.join().unwrap();
        assert_eq!(DONE.load(Ordering::SeqCst), done);
    }
}
