//! The background work on files with several copies. It is done by a thread of the data path,
//! between and during calls of the application.
//!
//! All signals are blocked in that thread. Its calls are not recorded: it calls the data path
//! directly, not the functions that the application calls.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::process::{SignalForkGuard, errno};

static WORKING: AtomicBool = AtomicBool::new(false);
static STOPPED: AtomicBool = AtomicBool::new(false);

const LOOK: Duration = Duration::from_micros(100);

/// Does a piece of work like a call on a managed file: forks wait for it, and calls of the
/// library's dependencies go to the kernel.
pub fn around(work: &mut dyn FnMut()) {
    let _guard = SignalForkGuard::new();
    WORKING.store(true, Ordering::SeqCst);
    if !STOPPED.load(Ordering::SeqCst) {
        errno::quietly(work);
    }
    WORKING.store(false, Ordering::SeqCst);
}

/// Called at the end of the process: waits for the piece in progress. No further one begins.
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
    use crate::process::guard;

    #[test]
    fn the_end_waits_for_the_work_and_ends_it() {
        let _alone = guard::TESTED.lock();
        static DONE: AtomicU32 = AtomicU32::new(0);
        around(&mut || panic!("a defect in a piece of work"));
        assert!(!WORKING.load(Ordering::SeqCst));
        let worker = std::thread::spawn(|| {
            while !STOPPED.load(Ordering::SeqCst) {
                around(&mut || {
                    assert!(guard::active());
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
