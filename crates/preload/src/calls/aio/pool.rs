//! The threads that run asynchronous requests on managed files.
//!
//! A request that a thread has taken runs to its end; a waiting one can be cancelled. Threads are
//! started on demand, and end when there was no request for a second. A forked child starts with a
//! pool of its own: asynchronous requests are not inherited.

use std::collections::VecDeque;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use rustix::thread::futex;
use stripewise_datapath::FileKey;
use stripewise_sys::thread::with_signals_blocked;
use stripewise_sys::{Errno, Result, Timespec};

use crate::process::{SignalForkGuard, errno, identity};

/// Largest number of requests of a process that run at the same time.
const THREADS_MAX: usize = 16;
const IDLE: Duration = Duration::from_secs(1);

pub struct Task {
    /// The address of the application's control block.
    pub id: usize,
    pub fd: i32,
    pub key: FileKey,
    /// The request waits for all earlier requests on the same file (`aio_fsync`).
    pub after_all: bool,
    /// Runs the request and reports its end to the application.
    pub run: Box<dyn FnOnce() + Send>,
    /// Reports to the application that the request was cancelled.
    pub cancel: Box<dyn FnOnce() + Send>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<(u64, Task)>,
    /// Sequence number, file, id and descriptor of the requests that run.
    running: Vec<(u64, FileKey, usize, i32)>,
    next: u64,
    threads: usize,
    idle: usize,
}

#[derive(Default)]
struct Pool {
    state: Mutex<State>,
    changed: Condvar,
}

static POOL: AtomicPtr<Pool> = AtomicPtr::new(ptr::null_mut());

/// Count of finished and cancelled requests, for threads that wait.
static ENDED: AtomicU32 = AtomicU32::new(0);

impl Pool {
    fn of_process() -> &'static Self {
        let known = POOL.load(Ordering::Acquire);
        if identity::may_have_threads() && !known.is_null() {
            // SAFETY: never freed.
            return unsafe { &*known };
        }
        // The first call in this process. A parent's pool is leaked: its lock may be held for ever.
        let new = Box::into_raw(Box::<Self>::default());
        match POOL.compare_exchange(known, new, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: as above.
            Ok(_) => unsafe { &*new },
            Err(first) => {
                drop(unsafe { Box::from_raw(new) });
                unsafe { &*first }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic in a task is caught, so the state is always consistent.
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Errors: EAGAIN if no thread can be started and none runs.
pub fn submit(task: Task) -> Result<()> {
    let _guard = SignalForkGuard::new();
    let pool = Pool::of_process();
    let mut state = pool.lock();
    if state.idle <= state.waiting.len() && state.threads < THREADS_MAX {
        match start_thread("stripewise-aio", move || work(pool)) {
            Ok(()) => state.threads += 1,
            Err(error) if state.threads == 0 => return Err(error),
            Err(_) => {}
        }
    }
    let number = state.next;
    state.next += 1;
    state.waiting.push_back((number, task));
    drop(state);
    pool.changed.notify_all();
    Ok(())
}

/// Starts a thread with all signals blocked.
pub fn start_thread(name: &str, body: impl FnOnce() + Send + 'static) -> Result<()> {
    let start = || std::thread::Builder::new().name(name.into()).spawn(body);
    with_signals_blocked(start).map(drop).map_err(|_| Errno::AGAIN)
}

fn work(pool: &'static Pool) {
    let mut state = pool.lock();
    loop {
        let ready = state.waiting.iter().position(|(number, task)| state.may_run(*number, task));
        if let Some((number, task)) = ready.and_then(|at| state.waiting.remove(at)) {
            state.running.push((number, task.key, task.id, task.fd));
            drop(state);
            let guard = SignalForkGuard::new();
            errno::quietly(task.run);
            drop(guard);
            state = pool.lock();
            state.running.retain(|running| running.0 != number);
            pool.changed.notify_all();
            announce();
            continue;
        }
        state.idle += 1;
        let (woken, timeout) =
            pool.changed.wait_timeout(state, IDLE).unwrap_or_else(|poisoned| poisoned.into_inner());
        state = woken;
        state.idle -= 1;
        if timeout.timed_out() && state.waiting.is_empty() {
            state.threads -= 1;
            return;
        }
    }
}

impl State {
    fn may_run(&self, number: u64, task: &Task) -> bool {
        let earlier = |&(other, key): &(u64, FileKey)| other < number && key == task.key;
        let running = self.running.iter().map(|running| (running.0, running.1));
        let waiting = self.waiting.iter().map(|(number, task)| (*number, task.key));
        !task.after_all || !running.chain(waiting).any(|other| earlier(&other))
    }
}

/// Whether the request is waiting or running.
pub fn is_under_way(id: usize) -> bool {
    // aio_suspend may be called in a signal handler, so signals wait while the lock is held.
    let _guard = SignalForkGuard::new();
    let state = Pool::of_process().lock();
    state.running.iter().any(|running| running.2 == id) || state.waiting.iter().any(|(_, task)| task.id == id)
}

/// Removes and cancels the waiting requests for which `which(id, descriptor)` is true. Returns
/// their number, and whether a running request matches.
pub fn cancel(which: impl Fn(usize, i32) -> bool) -> (usize, bool) {
    let _guard = SignalForkGuard::new();
    let mut state = Pool::of_process().lock();
    let mut taken = Vec::new();
    let mut at = 0;
    while at < state.waiting.len() {
        let (_, task) = &state.waiting[at];
        if which(task.id, task.fd) { taken.extend(state.waiting.remove(at)) } else { at += 1 }
    }
    let runs = state.running.iter().any(|running| which(running.2, running.3));
    drop(state);
    let count = taken.len();
    taken.into_iter().for_each(|(_, task)| (task.cancel)());
    announce();
    (count, runs)
}

/// Wakes threads that [`wait`] for the end of a request.
fn announce() {
    ENDED.fetch_add(1, Ordering::AcqRel);
    let _ = futex::wake(&ENDED, futex::Flags::PRIVATE, i32::MAX as u32);
}

/// Waits until `done` or the deadline. `done` is called again after each request that ended, and at
/// least every `most`.
/// Errors: EAGAIN: the deadline has passed. EINTR: a signal handler ran.
pub fn wait(deadline: Option<Instant>, most: Option<Duration>, mut done: impl FnMut() -> bool) -> Result<()> {
    loop {
        let seen = ENDED.load(Ordering::Acquire);
        if done() {
            return Ok(());
        }
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            return Err(Errno::AGAIN);
        }
        let pause = [left, most].into_iter().flatten().min();
        let pause = pause.and_then(|pause| Timespec::try_from(pause).ok());
        match futex::wait(&ENDED, futex::Flags::PRIVATE, seen, pause.as_ref()) {
            Ok(()) | Err(Errno::AGAIN | Errno::TIMEDOUT) => {}
            Err(error) => return Err(error),
        }
    }
}
