//! State per context (`io_context_t`): this library's unfinished requests, and completions to
//! return.

use std::collections::{HashMap, VecDeque};
use std::ffi::c_long;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use super::Event;

/// A context. Contexts are not inherited by fork.
#[derive(Default)]
pub struct Context {
    done: Mutex<VecDeque<Event>>,
    under_way: AtomicI64,
    completed: AtomicI64,
    /// Number of requests in the kernel that were submitted since this context is known.
    kernel: AtomicI64,
}

/// Whether any context is known. Most programs that use libaio have none with managed files.
static ANY: AtomicBool = AtomicBool::new(false);
static CONTEXTS: Mutex<Option<HashMap<usize, Arc<Context>>>> = Mutex::new(None);

fn contexts() -> MutexGuard<'static, Option<HashMap<usize, Arc<Context>>>> {
    CONTEXTS.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The context, if it ever had a request on a managed file.
pub fn find(context: usize) -> Option<Arc<Context>> {
    if !ANY.load(Ordering::Acquire) {
        return None;
    }
    contexts().as_ref()?.get(&context).cloned()
}

/// The context; it is known from now on.
pub fn find_or_make(context: usize) -> Arc<Context> {
    ANY.store(true, Ordering::Release);
    contexts().get_or_insert_default().entry(context).or_default().clone()
}

/// Forgets a context that was destroyed.
pub fn forget(context: usize) {
    if let Some(contexts) = contexts().as_mut() {
        contexts.remove(&context);
    }
}

impl Context {
    fn done(&self) -> MutexGuard<'_, VecDeque<Event>> {
        self.done.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Counts a new request of this library.
    pub fn start(&self) {
        self.under_way.fetch_add(1, Ordering::AcqRel);
    }

    /// Uncounts a request that could not be started.
    pub fn withdraw(&self) {
        self.under_way.fetch_sub(1, Ordering::AcqRel);
    }

    /// Stores the completion of a request.
    pub fn complete(&self, event: Event) {
        self.done().push_back(event);
        self.under_way.fetch_sub(1, Ordering::AcqRel);
        self.completed.fetch_add(1, Ordering::AcqRel);
    }

    /// Number of this library's requests that have not ended.
    pub fn under_way(&self) -> i64 {
        self.under_way.load(Ordering::Acquire)
    }

    /// Number of this library's requests that have ended so far.
    pub fn completed(&self) -> i64 {
        self.completed.load(Ordering::Acquire)
    }

    /// Adds to the number of requests in the kernel; `count` is negative for completions.
    pub fn note_kernel(&self, count: i64) {
        self.kernel.fetch_add(count, Ordering::Relaxed);
    }

    /// Estimated number of requests in the kernel.
    pub fn kernel_under_way(&self) -> i64 {
        self.kernel.load(Ordering::Relaxed)
    }

    /// Moves up to `most` completions to `events`, and returns their number.
    ///
    /// # Safety
    /// `events` has space for `most` completions.
    pub unsafe fn take(&self, events: *mut Event, most: c_long) -> c_long {
        let mut done = self.done();
        let count = done.len().min(most.max(0) as usize);
        for (at, event) in done.drain(..count).enumerate() {
            unsafe { events.add(at).write(event) };
        }
        count as c_long
    }
}
