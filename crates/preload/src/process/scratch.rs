//! Pages for data that is too large for the caller's stack, which may be that of a signal handler
//! or of a small thread. They do not come from `malloc`, which a signal may have interrupted.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mm::munmap;
use stripewise_sys::Result;

use crate::process::kernel;

/// Enough for any path, and for a buffer of directory entries.
pub const BYTES: usize = 4096;

#[repr(align(4096))]
struct Page(UnsafeCell<[u8; BYTES]>);

// SAFETY: only the holder of its bit in TAKEN uses a page.
unsafe impl Sync for Page {}

const PAGES: usize = 16;
static POOL: [Page; PAGES] = [const { Page(UnsafeCell::new([0; BYTES])) }; PAGES];
/// A bit per page in use. A thread that abandons its call (by `longjmp`, or by a fork in another
/// thread) keeps its page. When no page is left, new ones come from the kernel.
static TAKEN: AtomicU32 = AtomicU32::new(0);

/// A page of memory, aligned to its size, until it is dropped. It contains the bytes that its last
/// user left there.
pub struct Scratch(*mut [u8; BYTES]);

impl Scratch {
    /// Takes a page of the pool, or maps a new one if all are in use.
    pub fn new() -> Result<Self> {
        let free = |taken: u32| POOL.get(taken.trailing_ones() as usize);
        let take = |taken: u32| free(taken).map(|_| taken | (taken + 1));
        match TAKEN.fetch_update(Ordering::Acquire, Ordering::Relaxed, take).ok().and_then(free) {
            Some(page) => Ok(Self(page.0.get())),
            None => kernel::memory(BYTES).map(|page| Self(page.cast())),
        }
    }

    /// The page as memory for a system call to fill.
    pub fn as_uninit(&mut self) -> &mut [MaybeUninit<u8>] {
        // SAFETY: not shared; only initialized bytes are ever stored there.
        unsafe { std::slice::from_raw_parts_mut(self.0.cast(), BYTES) }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        match POOL.iter().position(|page| ptr::eq(page.0.get(), self.0)) {
            Some(number) => drop(TAKEN.fetch_and(!(1 << number), Ordering::Release)),
            // SAFETY: mapped by `new`, and not used any more.
            None => drop(unsafe { munmap(self.0.cast(), BYTES) }),
        }
    }
}

impl Deref for Scratch {
    type Target = [u8; BYTES];

    fn deref(&self) -> &Self::Target {
        // SAFETY: not shared.
        unsafe { &*self.0 }
    }
}

impl DerefMut for Scratch {
    fn deref_mut(&mut self) -> &mut Self::Target {
        // SAFETY: not shared.
        unsafe { &mut *self.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_never_shared_and_never_run_out() {
        let mut pages: Vec<Scratch> = (0..3 * PAGES).map(|_| Scratch::new().unwrap()).collect();
        for (number, page) in pages.iter_mut().enumerate() {
            assert_eq!(page.as_ptr() as usize % BYTES, 0);
            page.fill(number as u8);
        }
        assert!(pages.iter().enumerate().all(|(number, page)| page.iter().all(|byte| *byte == number as u8)));
    }
}
