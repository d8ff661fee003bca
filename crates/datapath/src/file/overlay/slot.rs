//! The slot for a file's extent map in this process: joined at first use, left when no call uses
//! it.

use std::ops::Deref;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use stripewise_extents::Map;
use stripewise_sys::SysRef;

/// Number of polls before giving up on remaining users when leaving, and the pause between polls,
/// ns.
const LOOKS: u32 = 5000;
const LOOK_NS: u64 = 1_000_000;

/// The map, if it is joined, with a count of its users.
///
/// A call increments `users` before it reads `leaving` and `map`; a thread that takes the map out
/// sets `leaving` before it reads `users`. So a map in use is never taken out.
#[derive(Default)]
pub(crate) struct MapSlot {
    /// Null, or from `Box::into_raw`.
    map: AtomicPtr<Map>,
    /// Number of calls that use the map or are about to.
    users: AtomicU32,
    /// A thread is taking the map out.
    leaving: AtomicBool,
}

/// A map in use. It stays joined until this is dropped.
pub(crate) struct MapRef<'a> {
    slot: &'a MapSlot,
    map: &'a Map,
}

impl Deref for MapRef<'_> {
    type Target = Map;

    fn deref(&self) -> &Map {
        self.map
    }
}

impl Drop for MapRef<'_> {
    fn drop(&mut self) {
        self.slot.users.fetch_sub(1, Ordering::Release);
    }
}

impl MapSlot {
    /// The map; joined with `join` if necessary.
    pub fn get<E>(&self, join: impl FnOnce() -> Result<Map, E>) -> Result<MapRef<'_>, E> {
        let map = self.enter();
        if !map.is_null() {
            // SAFETY: from `Box::into_raw`, and not taken out while there are users.
            return Ok(MapRef { slot: self, map: unsafe { &*map } });
        }
        let joined = join().inspect_err(|_| {
            self.users.fetch_sub(1, Ordering::Release);
        })?;
        let new = Box::into_raw(Box::new(joined));
        let kept = match self.map.compare_exchange(ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => new,
            Err(earlier) => {
                // Another thread was faster.
                // SAFETY: just made by `into_raw`, and not shared with other threads.
                drop(unsafe { Box::from_raw(new) });
                earlier
            }
        };
        // SAFETY: as above.
        Ok(MapRef { slot: self, map: unsafe { &*kept } })
    }

    pub fn known(&self) -> Option<MapRef<'_>> {
        let map = self.enter();
        // SAFETY: as in `get`.
        match unsafe { map.as_ref() } {
            Some(map) => Some(MapRef { slot: self, map }),
            None => {
                self.users.fetch_sub(1, Ordering::Release);
                None
            }
        }
    }

    /// Counts a user; waits while another thread is taking the map out.
    fn enter(&self) -> *mut Map {
        loop {
            self.users.fetch_add(1, Ordering::SeqCst);
            if !self.leaving.load(Ordering::SeqCst) {
                return self.map.load(Ordering::Acquire);
            }
            self.users.fetch_sub(1, Ordering::SeqCst);
            std::thread::yield_now();
        }
    }

    /// Takes the map out once it has no users. `None`: there is none, or it still has users after
    /// [`LOOKS`] polls. The next use joins again.
    pub fn take(&self, sys: &SysRef) -> Option<Map> {
        if self.leaving.swap(true, Ordering::SeqCst) {
            return None;
        }
        let mut looks = 0;
        while self.users.load(Ordering::SeqCst) > 0 && looks < LOOKS {
            sys.sleep_until_ns(sys.now_ns() + LOOK_NS);
            looks += 1;
        }
        let free = looks < LOOKS;
        let map = if free { self.map.swap(ptr::null_mut(), Ordering::AcqRel) } else { ptr::null_mut() };
        self.leaving.store(false, Ordering::SeqCst);
        // SAFETY: from `Box::into_raw`, swapped out, and without users.
        (!map.is_null()).then(|| *unsafe { Box::from_raw(map) })
    }

    /// For a forked child, called by its only thread: drops the uses of the parent's other threads.
    pub fn after_fork_child(&self) {
        self.users.store(0, Ordering::SeqCst);
        self.leaving.store(false, Ordering::SeqCst);
        if let Some(map) = self.known() {
            map.after_fork_child();
        }
    }
}

impl Drop for MapSlot {
    fn drop(&mut self) {
        let map = *self.map.get_mut();
        if !map.is_null() {
            // SAFETY: from `Box::into_raw`, and no longer reachable from elsewhere.
            drop(unsafe { Box::from_raw(map) });
        }
    }
}
