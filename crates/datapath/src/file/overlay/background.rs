//! The background thread: one per process, for all its files with several copies.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use stripewise_policy::background::{POLL_NS, longer_poll_ns};
use stripewise_sys::SysRef;

use super::super::LogicalFile;
use super::Turn;
use crate::forked::ForkSafe;

/// A function called around every unit of background work.
pub type Around = fn(&mut dyn FnMut());

/// Number of pauses without any file before the thread ends.
const RESTS_MAX: u32 = 32;
/// Pause of a file after its background work failed.
const AFTER_ERROR_NS: u64 = 1_000_000_000;

/// The files with background work, and the thread.
pub(crate) struct Background {
    sys: SysRef,
    files: ForkSafe<Vec<(Weak<LogicalFile>, Arc<Turn>)>>,
    /// The thread is running in this process.
    running: AtomicBool,
    around: Around,
}

impl Background {
    pub fn new(sys: SysRef, around: Around) -> Arc<Self> {
        Arc::new(Self { sys, files: ForkSafe::default(), running: AtomicBool::new(false), around })
    }

    /// Adds a file to the background work, until its last `Arc` is dropped.
    pub fn add(self: &Arc<Self>, file: &Arc<LogicalFile>) {
        let Some(overlay) = file.overlay() else { return };
        self.files.lock().push((Arc::downgrade(file), overlay.turn().clone()));
        self.start();
    }

    /// Starts the thread if it is not running. If the thread cannot be started, only background
    /// work is missing.
    pub fn start(self: &Arc<Self>) {
        if self.running.load(Ordering::Relaxed) || self.running.swap(true, Ordering::AcqRel) {
            return;
        }
        let own = self.clone();
        if stripewise_sys::thread::start("stripewise-copy", move || own.run()).is_err() {
            self.running.store(false, Ordering::Release);
        }
    }

    /// For a forked child: it has no thread, and starts one when it uses a file.
    pub fn after_fork_child(&self) {
        self.running.store(false, Ordering::Release);
    }

    fn run(&self) {
        stripewise_sys::thread::lower_priority();
        let (mut rest_ns, mut rests) = (POLL_NS, 0);
        loop {
            let files = self.alive();
            rests = if files.is_empty() { rests + 1 } else { 0 };
            if rests > RESTS_MAX && self.ends() {
                return;
            }
            let mut bytes = 0;
            for (file, turn) in &files {
                (self.around)(&mut || bytes += work(file, turn));
            }
            if bytes > 0 {
                rest_ns = POLL_NS;
            } else {
                self.sys.sleep_until_ns(self.sys.now_ns() + rest_ns);
                rest_ns = longer_poll_ns(rest_ns);
            }
        }
    }

    fn alive(&self) -> Vec<(Weak<LogicalFile>, Arc<Turn>)> {
        let mut files = self.files.lock();
        files.retain(|(file, _)| file.strong_count() > 0);
        files.clone()
    }

    /// Returns whether the thread may end, that is, no file was added since it last looked.
    fn ends(&self) -> bool {
        self.running.store(false, Ordering::SeqCst);
        // A file added earlier is seen here; one added later starts a new thread.
        self.files.lock().is_empty() || self.running.swap(true, Ordering::SeqCst)
    }
}

/// Does one unit of background work on a file. Returns the bytes done.
fn work(file: &Weak<LogicalFile>, turn: &Turn) -> u64 {
    let Some(_turn) = turn.begin() else { return 0 };
    let Some(file) = file.upgrade() else { return 0 };
    let Some(copies) = file.copies_if_joined() else { return 0 };
    copies.work().unwrap_or_else(|_| {
        copies.overlay.progress.rest(file.sys().now_ns() + AFTER_ERROR_NS);
        0
    })
}
