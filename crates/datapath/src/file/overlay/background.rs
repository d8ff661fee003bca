//! The thread that does the background work of a process: one for all its files, while it has any with several copies.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use stripewise_sys::SysRef;

use super::super::LogicalFile;
use super::Turn;
use crate::forked::ForkSafe;

/// Called around every piece of work.
pub type Around = fn(&mut dyn FnMut());

/// Between looks at files that have nothing to do: at first, and at most.
const REST_NS: u64 = 1_000_000;
const REST_NS_MAX: u64 = 32_000_000;
/// Rests without a file before the thread ends.
const RESTS_MAX: u32 = 32;
/// A file on which the work failed rests so long.
const AFTER_ERROR_NS: u64 = 1_000_000_000;

/// The files that are worked on.
pub(crate) struct Background {
    sys: SysRef,
    files: ForkSafe<Vec<(Weak<LogicalFile>, Arc<Turn>)>>,
    /// This process has the thread.
    running: AtomicBool,
    around: Around,
}

impl Background {
    pub fn new(sys: SysRef, around: Around) -> Arc<Self> {
        Arc::new(Self { sys, files: ForkSafe::default(), running: AtomicBool::new(false), around })
    }

    /// From now on the file is worked on, until nobody has it any more.
    pub fn add(self: &Arc<Self>, file: &Arc<LogicalFile>) {
        let Some(overlay) = file.overlay() else { return };
        self.files.lock().push((Arc::downgrade(file), overlay.turn().clone()));
        self.start();
    }

    /// Sees to it that there is a thread. Without one everything goes on, but for the background work.
    pub fn start(self: &Arc<Self>) {
        if self.running.load(Ordering::Relaxed) || self.running.swap(true, Ordering::AcqRel) {
            return;
        }
        let own = self.clone();
        if stripewise_sys::thread::start("stripewise-copy", move || own.run()).is_err() {
            self.running.store(false, Ordering::Release);
        }
    }

    /// In a forked child: it has no thread, and starts one when it uses a file.
    pub fn after_fork_child(&self) {
        self.running.store(false, Ordering::Release);
    }

    fn run(&self) {
        stripewise_sys::thread::lower_priority();
        let (mut rest_ns, mut rests) = (REST_NS, 0);
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
                rest_ns = REST_NS;
            } else {
                self.sys.sleep_until_ns(self.sys.now_ns() + rest_ns);
                rest_ns = (rest_ns * 2).min(REST_NS_MAX);
            }
        }
    }

    fn alive(&self) -> Vec<(Weak<LogicalFile>, Arc<Turn>)> {
        let mut files = self.files.lock();
        files.retain(|(file, _)| file.strong_count() > 0);
        files.clone()
    }

    /// Whether the thread may end: nothing has come since it looked.
    fn ends(&self) -> bool {
        self.running.store(false, Ordering::SeqCst);
        // A file that was added before is seen here; one that comes later starts a thread.
        self.files.lock().is_empty() || self.running.swap(true, Ordering::SeqCst)
    }
}

/// One piece of work on a file. Bytes done.
fn work(file: &Weak<LogicalFile>, turn: &Turn) -> u64 {
    let Some(_turn) = turn.begin() else { return 0 };
    let Some(file) = file.upgrade() else { return 0 };
    let Some(overlay) = file.overlay() else { return 0 };
    file.work(overlay).unwrap_or_else(|_| {
        overlay.progress.rest(file.sys().now_ns() + AFTER_ERROR_NS);
        0
    })
}
