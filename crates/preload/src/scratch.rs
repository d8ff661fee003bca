//! Pages for what is too big for the stack of the caller, which may be a signal handler's or that of a small thread. They do not
//! come from `malloc`, which a signal may have interrupted.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use stripewise_sys::Result;

/// Bytes of one: room for any path, and for a directory's entries.
pub const BYTES: usize = 4096;

#[repr(align(4096))]
struct Page(UnsafeCell<[u8; BYTES]>);

// SAFETY: a page is used by the holder of its bit in TAKEN alone.
unsafe impl Sync for Page {}

const PAGES: usize = 16;
static POOL: [Page; PAGES] = [const { Page(UnsafeCell::new([0; BYTES])) }; PAGES];
/// A bit for each page in use. A thread that ends in the middle (by `longjmp`, by a fork of another) keeps its page: when all are
/// gone, new ones come from the kernel.
static TAKEN: AtomicU32 = AtomicU32::new(0);

/// A page of memory, aligned to its size, until it is dropped. Its bytes are those that the last user left.
pub struct Scratch(*mut [u8; BYTES]);

impl Scratch {
    /// A page of the pool, or when all are in use a new one.
    ///
    /// # Errors
    /// ENOMEM.
    pub fn new() -> Result<Self> {
        let mut taken = TAKEN.load(Ordering::Relaxed);
        loop {
            let free = taken.trailing_ones() as usize;
            let Some(page) = POOL.get(free) else { return Self::map() };
            match TAKEN.compare_exchange_weak(taken, taken | 1 << free, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Ok(Self(page.0.get())),
                Err(now) => taken = now,
            }
        }
    }

    fn map() -> Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping.
        let page = unsafe { mmap_anonymous(ptr::null_mut(), BYTES, protection, MapFlags::PRIVATE)? };
        Ok(Self(page.cast()))
    }

    /// As memory that a system call fills.
    pub fn as_uninit(&mut self) -> &mut [MaybeUninit<u8>] {
        // SAFETY: ours alone; only initialized bytes are ever put there.
        unsafe { std::slice::from_raw_parts_mut(self.0.cast(), BYTES) }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        match POOL.iter().position(|page| ptr::eq(page.0.get(), self.0)) {
            Some(number) => drop(TAKEN.fetch_and(!(1 << number), Ordering::Release)),
            // SAFETY: mapped by `map`, and used by nobody any more.
            None => drop(unsafe { munmap(self.0.cast(), BYTES) }),
        }
    }
}

impl Deref for Scratch {
    type Target = [u8; BYTES];

    fn deref(&self) -> &Self::Target {
        // SAFETY: ours alone.
        unsafe { &*self.0 }
    }
}

impl DerefMut for Scratch {
    fn deref_mut(&mut self) -> &mut Self::Target {
        // SAFETY: ours alone.
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
