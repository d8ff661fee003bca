//! A thread pool that runs jobs, in the process that started it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use stripewise_sys::Sys;
use stripewise_sys::thread::Countdown;

use super::jobs::Job;

/// More threads than this do not wait for disks any faster.
const THREADS_MAX: usize = 32;

/// The pool of this process, started on first use.
#[derive(Debug, Default)]
pub(super) struct Threads {
    /// From `Arc::into_raw`. A forked child leaves its parent's pool alone (its lock may be held)
    /// and leaks it.
    pool: AtomicPtr<Pool>,
}

#[derive(Debug)]
struct Pool {
    process: u32,
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct State {
    tasks: VecDeque<Task>,
    threads: usize,
    idle: usize,
    closed: bool,
}

/// A job for any thread of the pool; its request's frame waits until it is done.
#[derive(Debug)]
struct Task {
    job: *mut Job<'static>,
    sys: *const dyn Sys,
    /// Number of tasks of the request that are not done.
    left: *const Countdown,
}

// SAFETY: the request's frame outlives the task, and hands every job to one task only.
unsafe impl Send for Task {}

impl Threads {
    /// Runs all jobs, one of them in the calling thread, and returns when all are done. Returns
    /// false, with no job run, when no thread could be started.
    ///
    /// # Safety
    /// As [`Job::run`], for every job.
    pub unsafe fn run(&self, sys: &dyn Sys, jobs: &mut [Job<'_>]) -> bool {
        let Some((first, others)) = jobs.split_first_mut() else { return true };
        let Some(pool) = self.pool() else { return false };
        let left = Countdown::new(others.len() as u32);
        // SAFETY: only lifetimes are forgotten; this frame does not return before every task is
        // done.
        let sys_pointer = unsafe { std::mem::transmute::<*const dyn Sys, *const (dyn Sys + 'static)>(sys) };
        let tasks = others.iter_mut().map(|job| Task {
            job: std::ptr::from_mut(job).cast(),
            sys: sys_pointer,
            left: &raw const left,
        });
        pool.submit(tasks);
        // SAFETY: as promised by the caller; this job is not a task.
        unsafe { first.run(sys) };
        while let Some(task) = pool.take_back(&left) {
            // SAFETY: a task of this request.
            unsafe { task.run() };
        }
        left.wait();
        true
    }

    /// Whether no thread was ever started.
    #[cfg(test)]
    pub fn is_unused(&self) -> bool {
        self.pool.load(Ordering::Acquire).is_null()
    }

    fn pool(&self) -> Option<Arc<Pool>> {
        let process = std::process::id();
        loop {
            let current = self.pool.load(Ordering::Acquire);
            if !current.is_null() {
                // SAFETY: from `Arc::into_raw`; that reference is kept until drop, or leaked.
                let pool = unsafe {
                    Arc::increment_strong_count(current);
                    Arc::from_raw(current)
                };
                if pool.process == process {
                    return Some(pool);
                }
                // The parent's pool: its memory stays as it is, and only this process's reference
                // goes.
            }
            let pool = Arc::new(Pool { process, state: Mutex::default(), wake: Condvar::new() });
            if !Pool::start_thread(&pool) {
                return None;
            }
            let new = Arc::into_raw(pool).cast_mut();
            if self.pool.compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire).is_err() {
                // Another thread was faster.
                // SAFETY: just made of an Arc, and shared only with its own threads.
                unsafe { close(new) };
            }
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        let pool = *self.pool.get_mut();
        // SAFETY: from `Arc::into_raw`; in a forked child it is leaked.
        unsafe {
            if pool.as_ref().is_some_and(|pool| pool.process == std::process::id()) {
                close(pool);
            }
        }
    }
}

/// Ends the threads of a pool and releases the reference.
///
/// # Safety
/// `pool` is from `Arc::into_raw` and not used after this.
unsafe fn close(pool: *mut Pool) {
    // SAFETY: as promised.
    let pool = unsafe { Arc::from_raw(pool) };
    pool.lock().closed = true;
    pool.wake.notify_all();
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Adds a thread that blocks all signals, so that the application's handlers never run in it.
    fn start_thread(pool: &Arc<Self>) -> bool {
        let shared = Arc::clone(pool);
        // Counted before the thread exists, so that no other thread starts one for the same need.
        pool.lock().threads += 1;
        let started = stripewise_sys::thread::start("stripewise-io", move || shared.work()).is_ok();
        if !started {
            pool.lock().threads -= 1;
        }
        started
    }

    /// Queues tasks and ensures that there are threads for them.
    fn submit(self: &Arc<Self>, tasks: impl ExactSizeIterator<Item = Task>) {
        let count = tasks.len();
        let mut state = self.lock();
        state.tasks.extend(tasks);
        let missing = state.tasks.len().saturating_sub(state.idle);
        let missing = missing.min(THREADS_MAX.saturating_sub(state.threads));
        drop(state);
        for _ in 0..missing {
            // The pool has at least one thread, so a failure only makes it slower.
            Self::start_thread(self);
        }
        for _ in 0..count {
            self.wake.notify_one();
        }
    }

    /// A task of the request that `left` counts, which no thread has begun.
    fn take_back(&self, left: &Countdown) -> Option<Task> {
        let mut state = self.lock();
        let index = state.tasks.iter().position(|task| std::ptr::eq(task.left, left))?;
        state.tasks.remove(index)
    }

    fn work(&self) {
        let mut state = self.lock();
        loop {
            if let Some(task) = state.tasks.pop_front() {
                drop(state);
                // SAFETY: its request waits for it.
                unsafe { task.run() };
                state = self.lock();
            } else if state.closed {
                return;
            } else {
                state.idle += 1;
                state = self.wake.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
                state.idle -= 1;
            }
        }
    }
}

impl Task {
    /// # Safety
    /// The request still waits for this task.
    unsafe fn run(self) {
        // SAFETY: the job is this task's alone, and lives until `left` is counted down.
        unsafe {
            (*self.job).run(&*self.sys);
            Countdown::count(self.left);
        }
    }
}
