//! A lock that stays usable in a forked child.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering};

/// A value behind a spin lock, for short critical sections without system calls.
///
/// The lock holds the process id of its owner. A forked child that finds it held under its parent's
/// process id takes it over. The value may have been half changed at the fork, so the child leaks
/// it and starts with an empty one.
#[derive(Debug, Default)]
pub(crate) struct ForkSafe<T> {
    owner: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: only the holder of the lock reaches the value.
unsafe impl<T: Send> Sync for ForkSafe<T> {}

pub(crate) struct Guard<'a, T>(&'a ForkSafe<T>);

impl<T: Default> ForkSafe<T> {
    pub fn lock(&self) -> Guard<'_, T> {
        let me = stripewise_sys::process::id();
        loop {
            match self.owner.compare_exchange_weak(0, me, Ordering::Acquire, Ordering::Relaxed) {
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
        let count = ForkSafe::<u64>::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..10_000).for_each(|_| *count.lock() += 1));
            }
        });
        assert_eq!(*count.lock(), 40_000);
    }

    #[test]
    fn a_lock_of_another_process_is_taken_over_with_an_empty_value() {
        let list = ForkSafe::<Vec<u64>>::default();
        list.lock().push(1);
        list.owner.store(u32::MAX, Ordering::Relaxed);
        assert!(list.lock().is_empty());
        list.lock().push(2);
        assert_eq!(*list.lock(), [2]);
    }
}
