//! A lock that a forked child never finds held by a thread that it does not have.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering};

/// A value behind a lock for rare and short critical sections: waiting is yielding.
///
/// The lock holds the process id of its owner. A forked child that finds it taken in its parent's name takes it over; the value
/// may have been half changed at the fork, so the child leaks it and starts with an empty one.
#[derive(Debug, Default)]
pub(crate) struct PidLock<T> {
    owner: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: only the holder of the lock reaches the value.
unsafe impl<T: Send> Sync for PidLock<T> {}

/// The lock is given back on drop.
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
        // SAFETY: the lock is held, and the guard is borrowed alone.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        self.0.owner.store(0, Ordering::Release);
    }
}
