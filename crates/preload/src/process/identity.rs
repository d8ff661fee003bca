//! The identity of this process: original, forked or vforked child.
//!
//! Forks wait for guarded calls on managed files and for the heaps, so that a child finds nothing
//! locked.

use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use rustix::mm::{Advice, madvise};

use crate::process::guard::{self, Blocked};
use crate::process::{heap, kernel};

/// A page that the kernel clears in a forked child, and that a vfork child shares with its parent.
static PAGE: AtomicPtr<Page> = AtomicPtr::new(ptr::null_mut());

#[repr(C)]
struct Page {
    /// The id of the process that owns this memory.
    owner: AtomicU32,
    /// Nonzero if the data path is prepared for this process.
    told: AtomicU32,
    /// Nonzero if threads of this library may exist.
    threads: AtomicU32,
}

static FORKS: AtomicU32 = AtomicU32::new(0);

/// Whether the caller runs in a vfork child, a process that borrows its parent's memory. Its
/// descriptors are its own, but every change of memory is also its parent's.
pub fn is_vfork_child() -> bool {
    let Some(page) = page() else { return false };
    match page.owner.load(Ordering::Relaxed) {
        // Cleared: a forked child, which owns its copy of the memory.
        0 => {
            page.owner.store(own_pid(), Ordering::Relaxed);
            false
        }
        pid => pid != own_pid(),
    }
}

/// Whether the data path has to be prepared for a new process. True at most once per process.
pub fn is_new_process() -> bool {
    page()
        .is_some_and(|page| page.told.load(Ordering::Relaxed) == 0 && page.told.swap(1, Ordering::Relaxed) == 0)
}

/// Whether this is a forked child that has not used the data path. The state it inherited is still
/// its parent's, and the parent takes care of it.
pub fn is_idle_child() -> bool {
    page().is_some_and(|page| page.told.load(Ordering::Relaxed) == 0)
}

/// Whether threads that this library started may exist in this process; a forked child has none of
/// its parent's. After this call they may.
pub fn may_have_threads() -> bool {
    page().is_none_or(|page| {
        page.threads.load(Ordering::Acquire) != 0 || page.threads.swap(1, Ordering::AcqRel) != 0
    })
}

/// Number of forks of this process.
pub fn forks() -> u32 {
    FORKS.load(Ordering::Relaxed)
}

#[inline]
fn page() -> Option<&'static Page> {
    let page = PAGE.load(Ordering::Acquire);
    let page = if page.is_null() { make_page()? } else { page };
    // SAFETY: mapped for ever, and contains only atomics.
    Some(unsafe { &*page })
}

#[cold]
fn make_page() -> Option<*mut Page> {
    const LEN: usize = 4096;
    let page = kernel::memory(LEN).ok()?.cast::<Page>();
    // SAFETY: a new mapping of zeros, which are a valid `Page`.
    unsafe {
        // Kernels before 4.14 cannot clear it: a forked child then looks like a vfork child and is
        // not served.
        let _ = madvise(page.cast(), LEN, Advice::LinuxWipeOnFork);
        (*page).owner.store(own_pid(), Ordering::Relaxed);
    }
    match PAGE.compare_exchange(ptr::null_mut(), page, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => Some(page),
        // Another thread was first. This page is leaked.
        Err(first) => Some(first),
    }
}

fn own_pid() -> u32 {
    rustix::process::getpid().as_raw_nonzero().get().cast_unsigned()
}

/// The signal mask that a forking thread restores after the fork. Signals wait meanwhile: a handler
/// that used a managed file would wait for the fork, and the fork for the handler.
struct Forking(UnsafeCell<Option<Blocked>>);

// SAFETY: used only by the thread that has shut the gate.
unsafe impl Sync for Forking {}

static SIGNALS: Forking = Forking(UnsafeCell::new(None));

pub extern "C" fn before_fork() {
    let signals = Blocked::new();
    guard::shut();
    heap::before_fork();
    // SAFETY: this thread has shut the gate.
    unsafe { *SIGNALS.0.get() = Some(signals) };
}

pub extern "C" fn after_fork_in_parent() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: this thread has shut the gate.
    let _signals = unsafe { (*SIGNALS.0.get()).take() };
    heap::after_fork();
    guard::open();
}

/// After a fork, in the child, which has only the forking thread.
pub extern "C" fn after_fork_in_child() {
    // SAFETY: this thread is a copy of the one that has shut the gate.
    let _signals = unsafe { (*SIGNALS.0.get()).take() };
    heap::after_fork();
    guard::open_in_child();
}
