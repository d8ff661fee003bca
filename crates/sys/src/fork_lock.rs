//! A lock that survives fork: a child takes it over from a thread that exists only in the parent.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering};

/// A value behind a lock, for short critical sections; waiting threads yield the processor.
///
/// The lock word holds the process id of the owner. A forked child that finds the parent's id takes
/// the lock over. The fork may have happened in the middle of a change of the value, so the child
/// leaks the value and starts with a default one.
#[derive(Debug, Default)]
pub struct ForkLock<T> {
    owner: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: only the holder of the lock reaches the value.
unsafe impl<T: Send> Sync for ForkLock<T> {}

/// Proof that the lock is held; dropping it releases the lock.
pub struct Guard<'a, T>(&'a ForkLock<T>);

impl<T> ForkLock<T> {
    /// Makes a free lock.
    pub const fn new(value: T) -> Self {
        Self { owner: AtomicU32::new(0), value: UnsafeCell::new(value) }
    }
}

impl<T: Default> ForkLock<T> {
    /// Waits for the lock and takes it.
    pub fn lock(&self) -> Guard<'_, T> {
        let me = crate::process::id();
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
        // SAFETY: the lock is held, and the guard is borrowed exclusively.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        self.0.owner.store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_exclude_one_another() {
        let count = ForkLock::<u64>::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..10_000).for_each(|_| *count.lock() += 1));
            }
        });
        assert_eq!(*count.lock(), 40_000);
    }

    #[test]
    fn a_lock_of_another_process_is_taken_over_with_an_empty_value() {
        let list = ForkLock::<Vec<u64>>::default();
        list.lock().push(1);
        list.owner.store(u32::MAX, Ordering::Relaxed);
        assert!(list.lock().is_empty());
        list.lock().push(2);
        assert_eq!(*list.lock(), [2]);
    }
}
