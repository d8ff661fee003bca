//! What a context (`io_context_t`) has of ours: completions to hand out, requests under way.

use std::collections::{HashMap, VecDeque};
use std::ffi::c_long;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use super::Event;

/// One context. Contexts are not inherited by fork.
#[derive(Default)]
pub struct Context {
    done: Mutex<VecDeque<Event>>,
    under_way: AtomicI64,
    completed: AtomicI64,
    /// Requests that the kernel has, as far as they were submitted since this context is known.
    kernel: AtomicI64,
}

/// Whether any context is known: most programs that use libaio have none.
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

/// The context, known from now on.
pub fn find_or_make(context: usize) -> Arc<Context> {
    ANY.store(true, Ordering::Release);
    contexts().get_or_insert_default().entry(context).or_default().clone()
}

/// It was destroyed.
pub fn forget(context: usize) {
    if let Some(contexts) = contexts().as_mut() {
        contexts.remove(&context);
    }
}

impl Context {
    fn done(&self) -> MutexGuard<'_, VecDeque<Event>> {
        self.done.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// One more request of ours.
    pub fn start(&self) {
        self.under_way.fetch_add(1, Ordering::AcqRel);
    }

    /// It could not be started after all.
    pub fn withdraw(&self) {
        self.under_way.fetch_sub(1, Ordering::AcqRel);
    }

    /// It has ended.
    pub fn complete(&self, event: Event) {
        self.done().push_back(event);
        self.under_way.fetch_sub(1, Ordering::AcqRel);
        self.completed.fetch_add(1, Ordering::AcqRel);
    }

    /// Requests of ours that have not ended.
    pub fn under_way(&self) -> i64 {
        self.under_way.load(Ordering::Acquire)
    }

    /// How many have ended so far.
    pub fn completed(&self) -> i64 {
        self.completed.load(Ordering::Acquire)
    }

    /// Requests went to the kernel, or came back.
    pub fn note_kernel(&self, count: i64) {
        self.kernel.fetch_add(count, Ordering::Relaxed);
    }

    /// How many the kernel has; an estimate.
    pub fn kernel_under_way(&self) -> i64 {
        self.kernel.load(Ordering::Relaxed)
    }

    /// Hands out up to `most` completions.
    ///
    /// # Safety
    /// There is room for them.
    pub unsafe fn take(&self, events: *mut Event, most: c_long) -> c_long {
        let mut done = self.done();
        let count = done.len().min(most.max(0) as usize);
        for (at, event) in done.drain(..count).enumerate() {
            unsafe { events.add(at).write(event) };
        }
        count as c_long
    }
}
