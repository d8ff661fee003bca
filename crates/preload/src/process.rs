//! Which process this is: forked and vforked children, and what happens when the library is loaded.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
use stripewise_sys::asking::{self, Patience};
use stripewise_sys::thread;

use crate::{exit, filter, handler, inside, messages, state, stdio};

/// A page that the kernel wipes in a forked child, and that a vforked child shares.
static PAGE: AtomicPtr<Page> = AtomicPtr::new(ptr::null_mut());

#[repr(C)]
struct Page {
    /// The id of the process whose memory this is.
    owner: AtomicU32,
    /// Whether the data path knows this process.
    told: AtomicU32,
    /// Whether threads of ours may exist.
    threads: AtomicU32,
}

static FORKS: AtomicU32 = AtomicU32::new(0);

/// Whether the caller runs in a process that borrows the memory of another (a vfork child): its descriptors are its own,
/// but every change in memory is its parent's.
pub fn is_vfork_child() -> bool {
    let Some(page) = page() else { return false };
    match page.owner.load(Ordering::Relaxed) {
        // Wiped: a child by fork, which owns its copy of everything.
        0 => {
            page.owner.store(own_pid(), Ordering::Relaxed);
            false
        }
        pid => pid != own_pid(),
    }
}

/// Whether the data path has to be told that this is a new process: true at most once in each.
pub fn is_new_process() -> bool {
    page()
        .is_some_and(|page| page.told.load(Ordering::Relaxed) == 0 && page.told.swap(1, Ordering::Relaxed) == 0)
}

/// Whether this is a forked child that has not used the data path: it is as its parent left it, who looks after it.
pub fn is_idle_child() -> bool {
    page().is_some_and(|page| page.told.load(Ordering::Relaxed) == 0)
}

/// Whether threads that this library started in this process may exist: a forked child has none of its parent's. From
/// this call on they may.
pub fn may_have_threads() -> bool {
    page().is_none_or(|page| {
        page.threads.load(Ordering::Acquire) != 0 || page.threads.swap(1, Ordering::AcqRel) != 0
    })
}

/// How often this process has forked: descriptors from before are shared with others.
pub fn forks() -> u32 {
    FORKS.load(Ordering::Relaxed)
}

#[inline]
fn page() -> Option<&'static Page> {
    let page = PAGE.load(Ordering::Acquire);
    let page = if page.is_null() { make_page()? } else { page };
    // SAFETY: mapped for ever, and only atomics.
    Some(unsafe { &*page })
}

#[cold]
fn make_page() -> Option<*mut Page> {
    const LEN: usize = 4096;
    // SAFETY: a new page of zeros, which are a value.
    let page = unsafe {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let page = mmap_anonymous(ptr::null_mut(), LEN, protection, MapFlags::PRIVATE).ok()?;
        // Kernels before 4.14 cannot: a forked child then looks like a vforked one, and is not served.
        let _ = madvise(page, LEN, Advice::LinuxWipeOnFork);
        let page = page.cast::<Page>();
        (*page).owner.store(own_pid(), Ordering::Relaxed);
        page
    };
    match PAGE.compare_exchange(ptr::null_mut(), page, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => Some(page),
        // Another thread was first; the page stays behind, once.
        Err(first) => Some(first),
    }
}

fn own_pid() -> u32 {
    rustix::process::getpid().as_raw_nonzero().get().cast_unsigned()
}

/// After a fork, in the parent.
pub extern "C" fn forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    inside::after_fork_in_parent();
}

/// Called by the dynamic loader, before or after the first call of ours: nothing depends on it.
extern "C" fn loaded() {
    let _ = page();
    asking::wait_so(Patience { interrupted: inside::is_interrupted, limit: None });
    thread::refuse_where(handler::may_be_inside);
    // SAFETY: functions that may run at any time.
    unsafe {
        libc::pthread_atfork(Some(inside::before_fork), Some(forked), Some(inside::after_fork_in_child));
    }
    messages::at_start();
    stdio::at_start();
    exit::at_start();
    if state::denies_io_uring() {
        filter::deny_io_uring();
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static LOADED: extern "C" fn() = loaded;
