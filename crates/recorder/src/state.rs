//! The recorder's state of its process: private memory, which fork copies.

use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use rustix::io::{Errno, Result};
use rustix::process::getpid;
use stripewise_trace::spool::{BlockHeader, Header, WINDOW_BYTES, Window};

use crate::memory;
use crate::names::Names;
use crate::spool_file::{self, Fixed, Job, Paths};

/// Largest number of threads with a window at the same time. Records of further threads go to the
/// log one by one.
pub const MAX_WINDOWS: usize = 4096;

/// A slot of the table of windows, with the thread id of its owner (0: none). Only the owner writes
/// to the window.
pub struct Slot {
    pub owner: AtomicU32,
    pub window: AtomicPtr<Window>,
}

/// The recorder's memory. Except for `fixed` and `alive`, all-zero bytes are a valid initial state.
pub struct State {
    pub fixed: Fixed,
    rank: AtomicI32,
    ranks: AtomicU32,
    node: AtomicU32,
    /// One of the constants below, or the generation of the spool. The kernel clears it in a forked
    /// child.
    alive: NonNull<AtomicU64>,
    /// The process that the spool belongs to.
    pid: AtomicU32,
    /// The spool's names. Written only while `alive` is `OPENING`.
    paths: UnsafeCell<Paths>,
    header: AtomicPtr<Header>,
    /// Nonzero if the log ends in a torn block, so that nothing can be appended any more.
    log_broken: AtomicU32,
    pub last_file: AtomicU32,
    pub names: Names,
    pub probe: AtomicU32,
    pub windows_made: AtomicU32,
    pub windows: [Slot; MAX_WINDOWS],
}

// SAFETY: everything is atomic, except `fixed`, which is not written after the start, and `paths`,
// which `alive` guards.
unsafe impl Sync for State {}
unsafe impl Send for State {}

/// `alive` in a forked child that has no spool yet.
const NONE: u64 = 0;
/// `alive` while a thread opens the spool.
const OPENING: u64 = 1;
/// `alive` when the spool could not be opened.
const DEAD: u64 = 2;

/// Generations of spools, unique among the process and its forked children.
static NEXT_GENERATION: AtomicU64 = AtomicU64::new(3);

impl State {
    /// Makes the state, and opens its spool.
    pub fn start(fixed: Fixed, rank: i32) -> Result<&'static State> {
        let memory = memory::private::<State>()?;
        let alive = memory::wiped_on_fork::<AtomicU64>()?;
        // SAFETY: the mapping has the size of `State`, and is not yet visible to other threads.
        // Zeros are valid in the other fields.
        let state: &'static State = unsafe {
            let state = memory.as_ptr();
            (&raw mut (*state).fixed).write(fixed);
            (&raw mut (*state).alive).write(alive);
            (*state).rank.store(rank, Ordering::Relaxed);
            &*state
        };
        state.open_spool()?;
        Ok(state)
    }

    /// The generation of this process's spool, or one of the constants above.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.alive().load(Ordering::Acquire)
    }

    /// Whether this is a forked child that has no spool yet.
    #[inline]
    pub fn is_new(&self) -> bool {
        self.generation() == NONE
    }

    /// The spool; a forked child opens it now. `None` if that fails, or if this thread is opening
    /// it at this moment (`reentrant`: called from a signal handler that interrupted another call).
    pub fn spool(&self, reentrant: bool) -> Option<Spool<'_>> {
        loop {
            match self.generation() {
                NONE => {
                    let claim =
                        self.alive().compare_exchange(NONE, OPENING, Ordering::Acquire, Ordering::Acquire);
                    if claim.is_ok() && self.open_spool().is_err() {
                        self.count_lost_child();
                    }
                }
                OPENING if reentrant => {
                    // A signal handler that interrupted its own thread while that opens the spool.
                    self.count_lost_child();
                    return None;
                }
                OPENING => rustix::thread::sched_yield(),
                DEAD => return None,
                _ => return Some(Spool { state: self }),
            }
        }
    }

    fn job(&self) -> Job {
        Job {
            rank: self.rank.load(Ordering::Relaxed),
            ranks: self.ranks.load(Ordering::Relaxed),
            node: self.node.load(Ordering::Relaxed),
        }
    }

    /// Sets the job for this process's spool, and for the spools of children that it forks later.
    pub fn set_job(&self, job: Job) {
        self.rank.store(job.rank, Ordering::Relaxed);
        self.ranks.store(job.ranks, Ordering::Relaxed);
        self.node.store(job.node, Ordering::Relaxed);
        let Some(spool) = self.spool(false) else { return };
        let header = spool.header();
        // SAFETY: mapped as long as the spool is open; only this function writes these fields,
        // atomically.
        unsafe {
            AtomicI32::from_ptr(&raw mut (*header).rank).store(job.rank, Ordering::Relaxed);
            AtomicU32::from_ptr(&raw mut (*header).ranks).store(job.ranks, Ordering::Relaxed);
            AtomicU32::from_ptr(&raw mut (*header).node).store(job.node, Ordering::Relaxed);
        }
    }

    fn alive(&self) -> &AtomicU64 {
        // SAFETY: mapped for the life of the process, also in its children.
        unsafe { self.alive.as_ref() }
    }

    /// Opens this process's spool and publishes it. A forked child names its parent's spool in its
    /// own.
    fn open_spool(&self) -> Result<()> {
        // SAFETY: no other thread reads or writes the paths: see `alive`.
        let paths = unsafe { &mut *self.paths.get() };
        let header = match spool_file::create(&self.fixed, self.job(), paths) {
            Ok(header) => header,
            Err(error) => {
                self.alive().store(DEAD, Ordering::Release);
                return Err(error);
            }
        };
        self.header.store(header.as_ptr(), Ordering::Relaxed);
        self.pid.store(getpid().as_raw_nonzero().get() as u32, Ordering::Relaxed);
        self.log_broken.store(0, Ordering::Relaxed);
        let made = self.windows_made.swap(0, Ordering::Relaxed) as usize;
        for slot in &self.windows[..made.min(MAX_WINDOWS)] {
            slot.owner.store(0, Ordering::Relaxed);
            slot.window.store(std::ptr::null_mut(), Ordering::Relaxed);
        }
        self.alive().store(NEXT_GENERATION.fetch_add(1, Ordering::Relaxed), Ordering::Release);
        Ok(())
    }

    /// Counts, in the parent's header, which is still mapped, a child without a spool. So the
    /// merged trace is marked as incomplete.
    fn count_lost_child(&self) {
        let header = self.header.load(Ordering::Relaxed);
        if !header.is_null() {
            // SAFETY: a header is mapped for the life of the process and its children.
            unsafe { AtomicU32::from_ptr(&raw mut (*header).lost_children) }.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The reason why a record or name is not in the trace.
pub enum Refused {
    /// The spool has reached its limit.
    Limit,
    /// A system call failed.
    Failed(Errno),
}

/// The open spool of this process.
#[derive(Clone, Copy)]
pub struct Spool<'a> {
    pub state: &'a State,
}

impl<'a> Spool<'a> {
    fn paths(self) -> &'a Paths {
        // SAFETY: not written while the spool is open.
        unsafe { &*self.state.paths.get() }
    }

    fn header(self) -> *mut Header {
        self.state.header.load(Ordering::Relaxed)
    }

    /// Makes window number `index`, empty.
    pub fn make_window(self, index: usize) -> core::result::Result<NonNull<Window>, Refused> {
        self.reserve(WINDOW_BYTES as u64)?;
        spool_file::make_window(self.paths(), index).map_err(Refused::Failed)
    }

    /// Appends a block to the log in one piece, even if other threads append at the same time. If
    /// that is not possible, counts `records` as dropped and returns `false`.
    pub fn append_or_count(self, header: &BlockHeader, payload: &[u8], records: u64) -> bool {
        let appended = self.append(header, payload);
        appended.map_err(|refused| self.count_dropped(records, refused)).is_ok()
    }

    fn append(self, header: &BlockHeader, payload: &[u8]) -> core::result::Result<(), Refused> {
        let bytes = size_of::<BlockHeader>() + payload.len();
        if self.state.log_broken.load(Ordering::Relaxed) != 0 {
            return Err(Refused::Failed(Errno::NOSPC));
        }
        self.reserve(bytes as u64)?;
        let written = spool_file::append(self.paths(), header, payload).map_err(Refused::Failed)?;
        if written < bytes {
            self.state.log_broken.store(1, Ordering::Relaxed);
            return Err(Refused::Failed(Errno::NOSPC));
        }
        Ok(())
    }

    /// Whether the spool belongs to this process. It does not in a vfork child, which shares its
    /// parent's memory.
    pub fn is_ours(self) -> bool {
        getpid().as_raw_nonzero().get() as u32 == self.state.pid.load(Ordering::Relaxed)
    }

    /// Counts records or names that are not in the trace.
    fn count_dropped(self, count: u64, refused: Refused) {
        let header = self.header();
        // SAFETY: mapped as long as the spool is open; accessed atomically only.
        unsafe {
            match refused {
                Refused::Limit => {
                    AtomicU64::from_ptr(&raw mut (*header).dropped_limit).fetch_add(count, Ordering::Relaxed);
                }
                Refused::Failed(errno) => {
                    AtomicU32::from_ptr(&raw mut (*header).failure)
                        .store(errno.raw_os_error() as u32, Ordering::Relaxed);
                    AtomicU64::from_ptr(&raw mut (*header).dropped_failed).fetch_add(count, Ordering::Relaxed);
                }
            }
        }
    }

    /// Counts `bytes` against the spool's limit, or refuses them.
    fn reserve(self, bytes: u64) -> core::result::Result<(), Refused> {
        let header = self.header();
        // SAFETY: as above.
        let spooled = unsafe { AtomicU64::from_ptr(&raw mut (*header).spooled_bytes) };
        let before = spooled.fetch_add(bytes, Ordering::Relaxed);
        if before + bytes > self.state.fixed.limit_bytes {
            spooled.fetch_sub(bytes, Ordering::Relaxed);
            return Err(Refused::Limit);
        }
        Ok(())
    }
}
