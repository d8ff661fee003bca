//! The calling thread's state: its window, and how records get into it.

use std::cell::Cell;
use std::ptr::{self, NonNull, null_mut};
use std::slice;
use std::sync::atomic::{Ordering, compiler_fence};

use rustix::thread::gettid;
use stripewise_trace::record::{Flags, Op};
use stripewise_trace::spool::{BLOCK_RECORDS, BlockHeader, NO_WINDOW, Record, WINDOW_RECORDS, Window};

use crate::clock::Ticks;
use crate::spool_file::{block, bytes_of};
use crate::state::{MAX_WINDOWS, Slot, Spool, State};

/// A file's number in the spool of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId(pub u32);

impl FileId {
    /// A file that the filters exclude. [`Recorder::record`] ignores it; callers need not even read
    /// the clock.
    pub const NOT_RECORDED: FileId = FileId(0);
}

/// One call to record.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// The file, from [`Recorder::file_id`].
    pub file: FileId,
    /// The operation.
    pub op: Op,
    /// Positional, vector, append and so on.
    pub flags: Flags,
    /// Offset in the file, bytes.
    pub offset: u64,
    /// Requested bytes.
    pub size: u64,
    /// Time before the call.
    pub start: Ticks,
    /// Time after the call.
    pub end: Ticks,
    /// Number of bytes moved, or 0, or the negated errno.
    pub result: i64,
}

/// Number of other threads' windows that are checked before a new one is made.
const PROBES: u32 = 16;

/// Longest interval between two comparisons of the clocks, ticks: some 0.1 s.
const COMPARE_TICKS: u64 = 1 << 28;

/// The generation of a thread without a window. (Not 0, which a forked child finds in place of its
/// parent's generation.)
const NO_GENERATION: u64 = u64::MAX;

/// The state of a thread. It has no destructor: the end of the thread requires no action.
struct Local {
    /// Set while the thread is in this module. A signal handler that finds it set does not touch
    /// the rest.
    busy: Cell<bool>,
    /// The generation of the spool that `window` belongs to.
    generation: Cell<u64>,
    window: Cell<*mut Window>,
    index: Cell<u32>,
    /// Number of records in the window. The count in the file is only written, never read, because
    /// others can change a file.
    len: Cell<usize>,
    /// Time of the next comparison of the clocks.
    compare_at: Cell<u64>,
    /// Flags of all records that the thread makes now.
    flags: Cell<u8>,
}

thread_local! {
    static LOCAL: Local = const {
        Local {
            busy: Cell::new(false),
            generation: Cell::new(NO_GENERATION),
            window: Cell::new(null_mut()),
            index: Cell::new(0),
            len: Cell::new(0),
            compare_at: Cell::new(0),
            flags: Cell::new(0),
        }
    };
}

fn thread_id() -> u32 {
    gettid().as_raw_nonzero().get() as u32
}

/// Runs `run` with the thread's busy flag set, and passes it whether the flag was set before.
pub fn busy<T>(run: impl FnOnce(bool) -> T) -> T {
    LOCAL.with(|local| {
        let was_busy = local.busy.replace(true);
        compiler_fence(Ordering::SeqCst);
        let result = run(was_busy);
        compiler_fence(Ordering::SeqCst);
        local.busy.set(was_busy);
        result
    })
}

/// Sets whether the calling thread is inside a collective call of MPI-IO. If so, its records get
/// [`Flags::COLLECTIVE`]. Asynchronous calls get the flag of their submission instead
/// ([`collective`]).
pub fn set_collective(inside: bool) {
    LOCAL.with(|local| local.flags.set(if inside { Flags::COLLECTIVE.0 } else { 0 }));
}

/// [`Flags::COLLECTIVE`] if the calling thread is inside a collective call, else no flag.
pub fn collective() -> Flags {
    Flags(LOCAL.with(|local| local.flags.get()))
}

/// Records a call.
#[inline]
pub fn record(state: &State, event: &Event) {
    LOCAL.with(|local| {
        if local.busy.replace(true) {
            return record_aside(state, raw(event, local.flags.get()), true);
        }
        compiler_fence(Ordering::SeqCst);
        if local.generation.get() == state.generation() || local.attach(state) {
            local.put(state, event);
        } else {
            record_aside(state, raw(event, local.flags.get()), false);
        }
        compiler_fence(Ordering::SeqCst);
        local.busy.set(false);
    });
}

#[inline]
fn raw(event: &Event, of_thread: u8) -> Record {
    // An asynchronous request does not belong to the call during which it happens to end.
    let flags = if event.flags.has(Flags::ASYNC) { event.flags.0 } else { event.flags.0 | of_thread };
    Record {
        start: event.start.0,
        end: event.end.0,
        offset: event.offset,
        size: event.size,
        result: event.result,
        file: event.file.0,
        op: event.op as u8,
        flags,
        reserved: 0,
    }
}

/// Appends one record directly to the log. Slow, but uses no state of the thread.
#[cold]
fn record_aside(state: &State, record: Record, reentrant: bool) {
    let Some(spool) = state.spool(reentrant) else { return };
    let (records, moment) = ([record], state.fixed.clock.moment());
    let payload = bytes_of(&records);
    let header = BlockHeader { moment, tid: thread_id(), ..block(BLOCK_RECORDS, NO_WINDOW, payload) };
    spool.append_or_count(&header, payload, 1);
}

impl Local {
    /// Writes the record into the thread's window, and moves the window's records to the log when
    /// it is full.
    #[inline]
    fn put(&self, state: &State, event: &Event) {
        let window = self.window.get();
        let len = self.len.get();
        // SAFETY: the window is mapped for the life of the process, and only this thread writes to
        // it (its slot says so). The length is below the number of records, because a full window
        // is emptied.
        unsafe {
            (&raw mut (*window).records).cast::<Record>().add(len).write(raw(event, self.flags.get()));
            // If the process ends here, the record does not count yet; after the next line it does.
            compiler_fence(Ordering::Release);
            (&raw mut (*window).header.len).write_volatile(len as u64 + 1);
        }
        self.len.set(len + 1);
        if event.end.0 >= self.compare_at.get() {
            self.compare_clocks(state, window, event.end);
        }
        if len + 1 == WINDOW_RECORDS {
            // SAFETY: as above.
            unsafe { empty(state, self.index.get(), window) };
            self.len.set(0);
        }
    }

    /// Notes the time on both clocks: first soon after the start, and then at growing intervals. So
    /// all times of the process can be converted, whenever it ends.
    #[cold]
    fn compare_clocks(&self, state: &State, window: *mut Window, now: Ticks) {
        let moment = state.fixed.clock.moment();
        // SAFETY: this thread is the only writer of its window.
        unsafe {
            let header = &raw mut (*window).header;
            let next = 1 - ((*header).latest & 1);
            (&raw mut (*header).moments[next as usize]).write(moment);
            compiler_fence(Ordering::Release);
            (&raw mut (*header).latest).write_volatile(next);
        }
        let age = now.0.saturating_sub(state.fixed.started.0).clamp(1, COMPARE_TICKS);
        self.compare_at.set(now.0.saturating_add(age));
    }

    /// Gives the thread a window of the current spool; `false` if there is none for it.
    #[cold]
    fn attach(&self, state: &State) -> bool {
        let Some(spool) = state.spool(false) else { return false };
        // A vfork child borrows its parent's thread: it must not leave the parent a window under
        // the child's thread id.
        if !spool.is_ours() {
            return false;
        }
        let Some((index, window)) = find_window(spool, thread_id()) else { return false };
        self.window.set(window.as_ptr());
        self.index.set(index);
        self.len.set(0);
        self.compare_at.set(0);
        self.generation.set(state.generation());
        true
    }
}

/// A window for the thread: the one it owns already (its id may have been another thread's before),
/// one of a thread that has ended, or a new one.
fn find_window(spool: Spool, tid: u32) -> Option<(u32, NonNull<Window>)> {
    let state = spool.state;
    let made = state.windows_made.load(Ordering::Acquire).min(MAX_WINDOWS as u32);
    let mine = (0..made).find(|index| state.windows[*index as usize].owner.load(Ordering::Relaxed) == tid);
    let index = mine.or_else(|| claim_abandoned(state, made, tid)).or_else(|| claim_new(state, tid))?;
    let slot = &state.windows[index as usize];
    if let Some(window) = NonNull::new(slot.window.load(Ordering::Acquire)) {
        // SAFETY: this thread owns the slot.
        unsafe {
            empty(state, index, window.as_ptr());
            (*window.as_ptr()).header.tid = tid;
        }
        return Some((index, window));
    }
    match spool.make_window(index as usize) {
        Ok(window) => {
            // SAFETY: not yet visible to other threads.
            unsafe { (*window.as_ptr()).header.tid = tid };
            slot.window.store(window.as_ptr(), Ordering::Release);
            Some((index, window))
        }
        Err(_) => {
            // The caller appends the record to the log directly, or counts it as dropped.
            slot.owner.store(ABANDONED, Ordering::Release);
            None
        }
    }
}

/// The owner of an abandoned window: no thread has this id.
const ABANDONED: u32 = u32::MAX;

/// Takes over the window of a thread that has ended. Checks only a few; the next call checks the
/// following ones.
fn claim_abandoned(state: &State, made: u32, tid: u32) -> Option<u32> {
    let probes = PROBES.min(made);
    let from = state.probe.fetch_add(probes, Ordering::Relaxed);
    (0..probes).map(|i| from.wrapping_add(i) % made).find(|index| {
        let owner = &state.windows[*index as usize].owner;
        let present = owner.load(Ordering::Relaxed);
        present != 0
            && !is_alive(present)
            && owner.compare_exchange(present, tid, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    })
}

fn claim_new(state: &State, tid: u32) -> Option<u32> {
    let index = state.windows_made.fetch_add(1, Ordering::AcqRel);
    match state.windows.get(index as usize) {
        Some(Slot { owner, .. }) => {
            owner.store(tid, Ordering::Release);
            Some(index)
        }
        None => {
            state.windows_made.fetch_sub(1, Ordering::AcqRel);
            None
        }
    }
}

/// Whether a thread of this process has the id.
fn is_alive(tid: u32) -> bool {
    if tid == ABANDONED {
        return false;
    }
    // SAFETY: signal 0 only checks. errno is restored, because this may run inside another call.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        let found = libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, 0) == 0;
        *errno = before;
        found
    }
}

/// Moves the records of a window to the log, or counts them as dropped.
///
/// # Safety
/// The calling thread owns the window.
#[cold]
unsafe fn empty(state: &State, index: u32, window: *mut Window) {
    // SAFETY: only this thread writes to the window.
    let header = unsafe { &mut (*window).header };
    let len = (header.len as usize).min(WINDOW_RECORDS);
    if len == 0 {
        return;
    }
    // SAFETY: `len` records were written.
    let records = unsafe { slice::from_raw_parts((&raw const (*window).records).cast::<Record>(), len) };
    let (payload, moment) = (bytes_of(records), state.fixed.clock.moment());
    let (first, tid) = (header.first, header.tid);
    let block = BlockHeader { first, moment, tid, ..block(BLOCK_RECORDS, index, payload) };
    if let Some(spool) = state.spool(false) {
        spool.append_or_count(&block, payload, len as u64);
    }
    // The order matters. If the process ends in between, a reader finds the window empty, or finds
    // records that are in the log already, under the same numbers. It never finds the same records
    // under new numbers.
    // SAFETY: fields of a window that this thread owns.
    unsafe {
        ptr::write_volatile(&mut header.len, 0);
        compiler_fence(Ordering::Release);
        ptr::write_volatile(&mut header.first, header.first + len as u64);
    }
    compiler_fence(Ordering::Release);
}
