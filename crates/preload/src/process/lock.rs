//! A lock for short critical sections, which needs neither memory nor libc.

use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::futex;

const FREE: u32 = 0;
const TAKEN: u32 = 1;
const WAITED_FOR: u32 = 2;

/// A mutual-exclusion lock. Signals whose handlers could take the same lock must be blocked while a
/// thread holds it.
pub struct Lock(AtomicU32);

pub struct Locked<'a>(&'a Lock);

impl Lock {
    pub const fn new() -> Self {
        Self(AtomicU32::new(FREE))
    }

    #[inline]
    pub fn try_lock(&self) -> Option<Locked<'_>> {
        let taken = self.0.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed);
        taken.is_ok().then(|| Locked(self))
    }

    #[inline]
    pub fn lock(&self) -> Locked<'_> {
        self.try_lock().unwrap_or_else(|| self.wait())
    }

    #[cold]
    fn wait(&self) -> Locked<'_> {
        const SPINS: u32 = 100;
        for _ in 0..SPINS {
            std::hint::spin_loop();
            if self.0.load(Ordering::Relaxed) == FREE
                && let Some(locked) = self.try_lock()
            {
                return locked;
            }
        }
        while self.0.swap(WAITED_FOR, Ordering::Acquire) != FREE {
            let _ = futex::wait(&self.0, futex::Flags::PRIVATE, WAITED_FOR, None);
        }
        Locked(self)
    }

    /// Releases the lock.
    /// Safety: the caller holds the lock and has forgotten its [`Locked`].
    pub unsafe fn unlock(&self) {
        drop(Locked(self));
    }
}

impl Drop for Locked<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.0.0.swap(FREE, Ordering::Release) == WAITED_FOR {
            let _ = futex::wake(&self.0.0, futex::Flags::PRIVATE, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_at_a_time() {
        static LOCK: Lock = Lock::new();
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = || {
            for _ in 0..20_000 {
                let _locked = LOCK.lock();
                COUNT.store(COUNT.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            }
        };
        std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(count))));
        assert_eq!(COUNT.load(Ordering::Relaxed), 80_000);
        let locked = LOCK.try_lock();
        assert!(locked.is_some() && LOCK.try_lock().is_none());
    }
}
