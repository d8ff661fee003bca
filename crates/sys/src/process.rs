//! The id of this process, without a system call.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

const PAGE_BYTES: usize = 4096;

/// A page that the kernel clears in a forked child. Its first word is the process id, or 0 if not
/// known. Null until the page is made.
static PAGE: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::null_mut());

/// The process id. A forked child never gets its parent's id, by whatever call it was forked. Only
/// a child that shares its parent's memory (vfork) gets the parent's id.
#[inline]
pub fn id() -> u32 {
    let page = PAGE.load(Ordering::Acquire);
    // SAFETY: null, or mapped for ever.
    match unsafe { page.as_ref() }.map_or(0, |known| known.load(Ordering::Relaxed)) {
        0 => ask(page),
        known => known,
    }
}

#[cold]
fn ask(page: *mut AtomicU32) -> u32 {
    let id = std::process::id();
    let page = if page.is_null() { make() } else { page };
    // SAFETY: as above.
    if let Some(known) = unsafe { page.as_ref() } {
        known.store(id, Ordering::Relaxed);
    }
    id
}

/// Makes the page. Null if the kernel cannot clear pages (before Linux 4.14): then every call asks
/// the kernel.
fn make() -> *mut AtomicU32 {
    // SAFETY: a new mapping, which is unmapped again unless all threads use it from now on.
    unsafe {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let Ok(page) = mmap_anonymous(ptr::null_mut(), PAGE_BYTES, protection, MapFlags::PRIVATE) else {
            return ptr::null_mut();
        };
        let made = madvise(page, PAGE_BYTES, Advice::LinuxWipeOnFork).is_ok()
            && PAGE.compare_exchange(ptr::null_mut(), page.cast(), Ordering::AcqRel, Ordering::Acquire).is_ok();
        if !made {
            let _ = munmap(page, PAGE_BYTES);
        }
    }
    PAGE.load(Ordering::Acquire)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_and_their_children_know_who_they_are() {
        let right = || id() == std::process::id() && id() == std::process::id();
        assert!(right());
        assert!(!PAGE.load(Ordering::Relaxed).is_null(), "the kernel is not asked each time");
        // SAFETY: the children only read their ids, and exit without returning.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                let grandchild = libc::fork();
                if grandchild == 0 {
                    libc::_exit(i32::from(!right()));
                }
                let mut status = 0;
                libc::waitpid(grandchild, &raw mut status, 0);
                libc::_exit(i32::from(!right() || status != 0));
            }
            let mut status = 0;
            assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
            assert_eq!(status, 0);
        }
        assert!(right());
    }
}
