//! Background work: the threads of a process for all its files with several copies, the exclusion
//! of their work from the close of a file, and its progress on a file.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use stripewise_policy::background::{POLL_NS, Pace, Pauses, longer_poll_ns};
use stripewise_policy::yielding::Yielding;
use stripewise_sys::{ForkLock, SysRef};

/// A function called around every unit of background work.
pub type Around = fn(&mut dyn FnMut());

/// Number of pauses without any file before the thread ends.
const RESTS_MAX: u32 = 32;

/// Does one unit of background work on a file. Returns the bytes done; `None` once the file is
/// dropped.
pub(crate) type Work = Arc<dyn Fn() -> Option<u64> + Send + Sync>;

/// The background threads of a process.
pub(crate) struct Background {
    /// Copies and evicts.
    pub copying: Arc<Worker>,
    /// Does what other nodes wait for, while a copy takes its time.
    pub serving: Arc<Worker>,
}

impl Background {
    pub fn new(sys: &SysRef, around: Around) -> Self {
        let worker = |name| Arc::new(Worker::new(sys.clone(), name, around));
        Self { copying: worker("stripewise-copy"), serving: worker("stripewise-node") }
    }

    /// For a forked child: it has no threads, and starts them when it uses a file.
    pub fn after_fork_child(&self) {
        [&self.copying, &self.serving].iter().for_each(|worker| worker.running.store(false, Ordering::Release));
    }
}

/// A thread that goes through the works of files, again and again.
pub(crate) struct Worker {
    sys: SysRef,
    /// The name of the thread, at most 15 bytes.
    name: &'static str,
    works: ForkLock<Vec<Work>>,
    running: AtomicBool,
    around: Around,
}

impl Worker {
    fn new(sys: SysRef, name: &'static str, around: Around) -> Self {
        Self { sys, name, works: ForkLock::default(), running: AtomicBool::new(false), around }
    }

    pub fn add(self: &Arc<Self>, work: Work) {
        self.works.lock().push(work);
        self.start();
    }

    /// Starts the thread if it is not running. If the thread cannot be started, only background
    /// work is missing.
    pub fn start(self: &Arc<Self>) {
        if self.running.load(Ordering::Relaxed) || self.running.swap(true, Ordering::AcqRel) {
            return;
        }
        let own = self.clone();
        if stripewise_sys::thread::start(self.name, move || own.run()).is_err() {
            self.running.store(false, Ordering::Release);
        }
    }

    fn run(&self) {
        stripewise_sys::thread::lower_priority();
        let (mut rest_ns, mut rests) = (POLL_NS, 0);
        loop {
            let works = self.works.lock().clone();
            rests = if works.is_empty() { rests + 1 } else { 0 };
            if rests > RESTS_MAX && self.ends() {
                return;
            }
            let mut bytes = 0;
            for work in &works {
                (self.around)(&mut || match work() {
                    Some(done) => bytes += done,
                    None => self.works.lock().retain(|other| !Arc::ptr_eq(work, other)),
                });
            }
            if bytes > 0 {
                rest_ns = POLL_NS;
            } else {
                self.sys.sleep_until_ns(self.sys.now_ns() + rest_ns);
                rest_ns = longer_poll_ns(rest_ns);
            }
        }
    }

    /// Returns whether the thread may end, that is, no file was added since it last looked.
    fn ends(&self) -> bool {
        self.running.store(false, Ordering::SeqCst);
        // A file added earlier is seen here; one added later starts a new thread.
        self.works.lock().is_empty() || self.running.swap(true, Ordering::SeqCst)
    }
}

/// Pause between polls for background work to end, ns.
const LOOK_NS: u64 = 100_000;

/// Shared by a file and the background threads. A thread holds a reference to the file only during
/// its turn, so its reference is never the last one.
///
/// `begin` sets `working` before it reads `paused`, and `pause` sets `paused` before it reads
/// `working`. All four accesses are sequentially consistent, so at least one side sees the other.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    /// Threads whose turn it is.
    working: AtomicU32,
    paused: AtomicBool,
}

/// A background thread's turn, until dropped.
pub(crate) struct Working<'a>(&'a Turn);

impl Turn {
    /// Begins a unit of background work; `None` while the file is paused.
    pub fn begin(&self) -> Option<Working<'_>> {
        self.working.fetch_add(1, Ordering::SeqCst);
        let working = Working(self);
        (!self.paused.load(Ordering::SeqCst)).then_some(working)
    }

    pub fn is_working(&self) -> bool {
        self.working.load(Ordering::SeqCst) > 0
    }

    /// Pauses background work and waits for the current units to end.
    pub fn pause(&self, sys: &SysRef) {
        self.paused.store(true, Ordering::SeqCst);
        while self.is_working() {
            sys.sleep_until_ns(sys.now_ns() + LOOK_NS);
        }
    }

    /// Resumes background work because the file is used again.
    pub fn resume(&self) {
        if self.paused.load(Ordering::Relaxed) {
            self.paused.store(false, Ordering::SeqCst);
        }
    }

    /// For a forked child, which has no background threads.
    pub fn after_fork_child(&self) {
        self.working.store(0, Ordering::SeqCst);
    }
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.0.working.fetch_sub(1, Ordering::SeqCst);
    }
}

#[derive(Debug)]
pub(crate) struct Progress {
    /// Bytes that had been written to caches at the last check.
    pub written: AtomicU64,
    /// Earliest time of the next copy, ns.
    next_ns: AtomicU64,
    /// Earliest time of the next copy while applications use the file's servers, ns.
    pub next_under_load_ns: AtomicU64,
    /// Per copy, the offset at which the next search for missing ranges starts, or
    /// [`Progress::NOWHERE`] before the first one.
    pub at: [AtomicU64; 8],
    /// Yields to other nodes.
    pub yielding: ForkLock<Yielding>,
}

impl Default for Progress {
    fn default() -> Self {
        Self {
            written: AtomicU64::new(0),
            next_ns: AtomicU64::new(0),
            next_under_load_ns: AtomicU64::new(0),
            at: std::array::from_fn(|_| AtomicU64::new(Self::NOWHERE)),
            yielding: ForkLock::default(),
        }
    }
}

impl Progress {
    pub const NOWHERE: u64 = u64::MAX;

    /// Allows no background work before this time.
    pub fn rest(&self, until_ns: u64) {
        self.next_ns.store(until_ns, Ordering::Relaxed);
    }

    pub fn pauses(&self) -> Pauses {
        let load = |time: &AtomicU64| time.load(Ordering::Relaxed);
        Pauses { next_ns: load(&self.next_ns), next_under_load_ns: load(&self.next_under_load_ns) }
    }

    /// Schedules the next copy after `bytes` were copied.
    pub fn copied(&self, pace: Pace, begun_ns: u64, bytes: u64) {
        if let Some(pause_ns) = pace.pause_ns(bytes) {
            self.rest(begun_ns.saturating_add(pause_ns));
        }
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
            let work = || {
                while !done.load(Ordering::Relaxed) {
                    if let Some(_working) = turn.begin() {
                        at_work.fetch_add(1, Ordering::SeqCst);
                        std::thread::yield_now();
                        at_work.fetch_sub(1, Ordering::SeqCst);
                    }
                }
            };
            (0..2).for_each(|_| drop(scope.spawn(work)));
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
