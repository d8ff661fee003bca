//! Forks: they wait for calls on managed files and for the heaps, so that a child finds nothing
//! locked.

use std::cell::UnsafeCell;

use crate::process::guard::{self, Blocked};
use crate::process::{heap, identity};

/// The signal mask that a forking thread restores after the fork. Signals wait meanwhile: a handler
/// that used a managed file would wait for the fork, and the fork for the handler.
struct Forking(UnsafeCell<Option<Blocked>>);

// SAFETY: used only by the thread that has shut the gate.
unsafe impl Sync for Forking {}

static SIGNALS: Forking = Forking(UnsafeCell::new(None));

/// Before a fork.
pub extern "C" fn before() {
    let signals = Blocked::new();
    guard::shut();
    heap::before_fork();
    // SAFETY: this thread has shut the gate.
    unsafe { *SIGNALS.0.get() = Some(signals) };
}

/// After a fork, in the parent.
pub extern "C" fn after_in_parent() {
    identity::forked();
    // SAFETY: this thread has shut the gate.
    let _signals = unsafe { (*SIGNALS.0.get()).take() };
    heap::after_fork();
    guard::open();
}

/// After a fork, in the child, which has only the forking thread.
pub extern "C" fn after_in_child() {
    // SAFETY: this thread is a copy of the one that has shut the gate.
    let _signals = unsafe { (*SIGNALS.0.get()).take() };
    heap::after_fork();
    guard::open_in_child();
}
