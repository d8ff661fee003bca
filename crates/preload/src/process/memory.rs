//! Memory that comes from the kernel, not from `malloc`, which a signal may have interrupted.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use rustix::mm::munmap;
use stripewise_sys::Result;

use crate::process::kernel;

/// An array of up to `CHUNKS * PER_CHUNK` elements, all zero at first. It grows in chunks that
/// never move or shrink, so readers need no lock.
pub struct Chunks<T: 'static, const PER_CHUNK: usize, const CHUNKS: usize> {
    chunks: [AtomicPtr<T>; CHUNKS],
}

impl<T: Sync, const PER_CHUNK: usize, const CHUNKS: usize> Chunks<T, PER_CHUNK, CHUNKS> {
    /// Safety: all-zero bytes are a valid value of the type.
    pub const unsafe fn new() -> Self {
        Self { chunks: [const { AtomicPtr::new(ptr::null_mut()) }; CHUNKS] }
    }

    /// The element at `index`; `None` past the end, or if there is no memory for its chunk.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&T> {
        let chunk = self.chunks.get(index / PER_CHUNK)?;
        let mut base = chunk.load(Ordering::Acquire);
        if base.is_null() {
            base = Self::allocate(chunk)?;
        }
        // SAFETY: the chunk has PER_CHUNK elements and is never freed.
        Some(unsafe { &*base.add(index % PER_CHUNK) })
    }

    /// Whether the element's chunk exists. Elements of other chunks are still zero.
    pub fn has(&self, index: usize) -> bool {
        self.chunks.get(index / PER_CHUNK).is_some_and(|chunk| !chunk.load(Ordering::Acquire).is_null())
    }

    /// The elements of all chunks that exist.
    pub fn present(&self) -> impl Iterator<Item = &T> {
        let bases = self.chunks.iter().map(|chunk| chunk.load(Ordering::Acquire));
        // SAFETY: the chunk has PER_CHUNK elements and is never freed.
        bases
            .filter(|base| !base.is_null())
            .flat_map(|base| unsafe { std::slice::from_raw_parts(base, PER_CHUNK) })
    }

    #[cold]
    fn allocate(chunk: &AtomicPtr<T>) -> Option<*mut T> {
        let bytes = PER_CHUNK * size_of::<T>();
        let base = kernel::memory(bytes).ok()?.cast();
        match chunk.compare_exchange(ptr::null_mut(), base, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Some(base),
            Err(other) => {
                // SAFETY: no other thread has seen this mapping.
                let _ = unsafe { munmap(base.cast(), bytes) };
                Some(other)
            }
        }
    }
}

#[repr(align(4096))]
struct Page(UnsafeCell<[u8; Scratch::BYTES]>);

// SAFETY: only the holder of its bit in TAKEN uses a page.
unsafe impl Sync for Page {}

const PAGES: usize = 16;
static POOL: [Page; PAGES] = [const { Page(UnsafeCell::new([0; Scratch::BYTES])) }; PAGES];
/// A bit per page in use. A thread that abandons its call (by `longjmp`, or by a fork in another
/// thread) keeps its page. When no page is left, new ones come from the kernel.
static TAKEN: AtomicU32 = AtomicU32::new(0);

/// A page for data that is too large for the caller's stack, which may be that of a signal handler
/// or of a small thread. It is aligned to its size, and contains the bytes that its last user left
/// there.
pub struct Scratch(*mut [u8; Scratch::BYTES]);

impl Scratch {
    /// Enough for any path, and for a buffer of directory entries.
    pub const BYTES: usize = 4096;

    /// Takes a page of the pool, or maps a new one if all are in use.
    pub fn new() -> Result<Self> {
        let free = |taken: u32| POOL.get(taken.trailing_ones() as usize);
        let take = |taken: u32| free(taken).map(|_| taken | (taken + 1));
        match TAKEN.fetch_update(Ordering::Acquire, Ordering::Relaxed, take).ok().and_then(free) {
            Some(page) => Ok(Self(page.0.get())),
            None => kernel::memory(Self::BYTES).map(|page| Self(page.cast())),
        }
    }

    /// The page as memory for a system call to fill.
    pub fn as_uninit(&mut self) -> &mut [MaybeUninit<u8>] {
        // SAFETY: not shared; only initialized bytes are ever stored there.
        unsafe { std::slice::from_raw_parts_mut(self.0.cast(), Self::BYTES) }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        match POOL.iter().position(|page| ptr::eq(page.0.get(), self.0)) {
            Some(number) => drop(TAKEN.fetch_and(!(1 << number), Ordering::Release)),
            // SAFETY: mapped by `new`, and not used any more.
            None => drop(unsafe { munmap(self.0.cast(), Self::BYTES) }),
        }
    }
}

impl Deref for Scratch {
    type Target = [u8; Self::BYTES];

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
            assert_eq!(page.as_ptr() as usize % Scratch::BYTES, 0);
            page.fill(number as u8);
        }
        assert!(pages.iter().enumerate().all(|(number, page)| page.iter().all(|byte| *byte == number as u8)));
    }
}
