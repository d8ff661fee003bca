//! A lock that survives fork: a child takes it over from a thread that exists only in the parent.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering};

/// A value behind a lock for rare and short critical sections; waiting threads yield the processor.
///
/// The lock word holds the process id of the owner. A forked child that finds the parent's id takes
/// the lock over. The fork may have happened in the middle of a change of the value, so the child
/// leaks the value and starts with a default one.
#[derive(Debug, Default)]
pub(crate) struct PidLock<T> {
    owner: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: only the holder of the lock accesses the value.
unsafe impl<T: Send> Sync for PidLock<T> {}

/// Proof that the lock is held; dropping it releases the lock.
pub(crate) struct Guard<'a, T>(&'a PidLock<T>);

impl<T> PidLock<T> {
    pub const fn new(value: T) -> Self {
        Self { owner: AtomicU32::new(0), value: UnsafeCell::new(value) }
    }
}

impl<T: Default> PidLock<T> {
    pub fn lock(&self) -> Guard<'_, T> {
        let me = stripewise_sys::process::id();
        loop {
            match self.owner.compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Guard(self),
                Err(owner) if owner != 0 && owner != me => {
                    if self.owner.compare_exchange(owner, me, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                        let mut guard = Guard(self);
                        std::mem::forget(std::mem::take(&mut *guard));
                        return guard;
                    }
                }
                Err(_) => std::thread::yield_now(),
            }
        }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the lock is held.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is held, and the guard is borrowed mutably.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        self.0.owner.store(0, Ordering::Release);
    }
}
