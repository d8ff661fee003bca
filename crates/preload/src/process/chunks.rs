//! Arrays that grow in chunks and never move or shrink, so readers need no lock.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use rustix::mm::munmap;

use crate::process::kernel;

/// An array of up to `CHUNKS * PER_CHUNK` elements, all zero at first. The memory comes from the
/// kernel, not from `malloc`, which a signal may have interrupted.
pub struct Chunks<T: 'static, const PER_CHUNK: usize, const CHUNKS: usize> {
    chunks: [AtomicPtr<T>; CHUNKS],
}

/// Types for which all-zero bytes are a valid value, and that threads may share.
///
/// # Safety
/// All-zero bytes must be a valid value of the type.
pub unsafe trait Zeroed: Sync {}

// SAFETY: an atomic, for which zero is a valid value.
unsafe impl Zeroed for std::sync::atomic::AtomicUsize {}

impl<T: Zeroed, const PER_CHUNK: usize, const CHUNKS: usize> Chunks<T, PER_CHUNK, CHUNKS> {
    pub const fn new() -> Self {
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
