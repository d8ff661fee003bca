//! Open file descriptions that the library tracks: of managed files, and of recorded plain files.
//!
//! Entries lie in slots that are never freed, so a thread may look at a slot that another thread is
//! just releasing: the reference count shows whether it still has an entry. Everything is
//! lock-free, and therefore usable in signal handlers and after fork.

use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

use stripewise_datapath::LogicalFile;
use stripewise_recorder::FileId;
use stripewise_sys::fd::close_inherited;
use stripewise_sys::{Errno, Fd, OFlags, Result};

use crate::descriptors::Twin;
use crate::process::{Chunks, SignalForkGuard, identity};

/// The offset is unknown; only the kernel knows it.
pub const UNKNOWN_OFFSET: u64 = u64::MAX;

/// One open file description.
pub struct Entry {
    /// The managed file, `None` for a plain file that is only recorded, or the error with which the
    /// kind of the descriptor could not be determined.
    pub file: Result<Option<Arc<LogicalFile>>>,
    /// Device and inode of the descriptor's file; of the anchor if the file is managed.
    pub key: (u64, u64),
    pub record_as: FileId,
    /// The access mode that the program asked for. The kernel's descriptor of a managed file is
    /// open for reading only.
    pub access: OFlags,
    /// The kernel's size of the file when the entry was made, bytes; for the recorder only.
    pub opened_size: u64,
    /// [`identity::forks`] when the entry was made. After a later fork other processes may share
    /// the descriptor.
    pub forks: u32,
    /// The kernel's status flags, as far as this process knows: another process that shares the
    /// description may have changed O_APPEND or O_DIRECT.
    pub status: AtomicU32,
    /// The offset of the next `read` or `write`, as far as this process knows.
    pub offset: AtomicU64,
    /// The signal that the program has set with F_SETSIG; kept in this process only.
    pub signal: AtomicU32,
    /// The private descriptor whose open file description holds the program's OFD locks; 0 if there
    /// is none.
    pub locks: AtomicI32,
    pub twin: Twin,
}

impl Entry {
    /// An entry without status flags and what else only calls on descriptors need.
    pub const fn new(file: Result<Option<Arc<LogicalFile>>>, key: (u64, u64)) -> Self {
        Self {
            file,
            key,
            record_as: FileId::NOT_RECORDED,
            access: OFlags::RDONLY,
            opened_size: 0,
            forks: 0,
            status: AtomicU32::new(OFlags::empty().bits()),
            offset: AtomicU64::new(UNKNOWN_OFFSET),
            signal: AtomicU32::new(0),
            locks: AtomicI32::new(0),
            twin: Twin::new(),
        }
    }

    pub fn file(&self) -> Result<Option<&LogicalFile>> {
        self.file.as_ref().map(Option::as_deref).map_err(|error| *error)
    }

    /// Whether no other description of this process refers to the file.
    pub fn is_only_of_file(&self) -> bool {
        !matches!(&self.file, Ok(Some(file)) if Arc::strong_count(file) > 1)
    }

    pub fn status(&self) -> OFlags {
        OFlags::from_bits_retain(self.status.load(Ordering::Relaxed))
    }

    /// Notes the flags of a successful F_SETFL.
    pub fn note_status(&self, set: OFlags) {
        let changed = OFlags::APPEND | OFlags::DIRECT;
        self.status.store(((self.status() - changed) | (set & changed)).bits(), Ordering::Relaxed);
    }

    /// Whether the file is certainly not managed.
    pub fn is_plain(&self) -> bool {
        matches!(self.file, Ok(None))
    }

    /// The private descriptor that holds the program's OFD locks on a managed file, which the
    /// read-only descriptor of the anchor cannot hold. `open` makes it on first use; it is closed
    /// with the entry.
    pub fn locks(&self, open: impl FnOnce() -> Result<Fd>) -> Result<c_int> {
        let present = self.locks.load(Ordering::Acquire);
        if present != 0 {
            return Ok(present);
        }
        let new = open()?;
        let raw = new.as_raw_fd();
        match self.locks.compare_exchange(0, raw, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => {
                std::mem::forget(new);
                Ok(raw)
            }
            // Another thread was first.
            Err(first) => Ok(first),
        }
    }
}

pub struct Slot {
    /// Number of table slots and running calls that use the entry; 0 if there is none.
    references: AtomicU32,
    next_free: AtomicU32,
    index: AtomicU32,
    /// Valid while there are references.
    entry: UnsafeCell<MaybeUninit<Entry>>,
}

// SAFETY: an entry is written before the first reference to it exists, and then only read.
unsafe impl Sync for Slot {}

/// Entries of descriptors whose kind could not be determined, one per errno, with a reference that
/// is never released. The table does not refer to them, so the next call examines the descriptor
/// again.
static FAILED: [Slot; ERRNO_END] = {
    let mut slots = [const { failed(Errno::IO) }; ERRNO_END];
    let mut number = 1;
    while number < ERRNO_END {
        slots[number] = failed(Errno::from_raw_os_error(number as i32));
        number += 1;
    }
    slots
};
/// One more than the highest errno that has an entry; Linux's go up to 133.
const ERRNO_END: usize = 256;

const fn failed(error: Errno) -> Slot {
    Slot {
        references: AtomicU32::new(1),
        next_free: AtomicU32::new(0),
        index: AtomicU32::new(0),
        entry: UnsafeCell::new(MaybeUninit::new(Entry::new(Err(error), (0, 0)))),
    }
}

// SAFETY: without references the entry is not read; zero is a valid value of the other fields.
static SLOTS: Chunks<Slot, 256, 4096> = unsafe { Chunks::new() };
/// Number of slots that were ever in use.
static USED: AtomicU32 = AtomicU32::new(0);
/// Low half: index + 1 of the first free slot. High half: a count of changes, so that a slow
/// thread cannot mistake a list that changed twice for an unchanged one (ABA).
static FREE: AtomicU64 = AtomicU64::new(0);

/// A counted reference to an entry.
pub struct EntryRef(&'static Slot);

impl EntryRef {
    /// Stores an entry, and returns its first reference.
    /// Errors: ENFILE when a million entries are in use, ENOMEM.
    pub fn new(entry: Entry) -> Result<Self> {
        #[cfg(target_arch = "x86_64")]
        crate::process::patched::keep_entry();
        let slot = take_free()?;
        // SAFETY: nothing refers to the slot, which is not in the list of free ones any more.
        unsafe { (*slot.entry.get()).write(Entry { forks: identity::forks(), ..entry }) };
        slot.references.store(1, Ordering::Release);
        Ok(Self(slot))
    }

    /// The entry of a descriptor whose kind could not be determined. Needs no memory.
    pub fn failed(error: Errno) -> Self {
        let number = usize::try_from(error.raw_os_error()).unwrap_or(0);
        let slot = FAILED.get(number).unwrap_or(&FAILED[0]);
        slot.references.fetch_add(1, Ordering::Relaxed);
        Self(slot)
    }

    /// `None` if the entry was released meanwhile.
    pub fn try_from_static(slot: &'static Slot) -> Option<Self> {
        let add = |count: u32| (count > 0).then(|| count + 1);
        let added = slot.references.fetch_update(Ordering::Acquire, Ordering::Relaxed, add);
        // Not `then_some`: it would make a reference, and release it, where none was added.
        added.is_ok().then(|| Self(slot))
    }

    /// Passes the reference on to the table.
    pub fn into_static(self) -> &'static Slot {
        let slot = self.0;
        std::mem::forget(self);
        slot
    }

    /// Takes over a reference of the table.
    /// Safety: the table owned a reference and does not refer to the slot any more.
    pub unsafe fn from_static(slot: &'static Slot) -> Self {
        Self(slot)
    }

    /// The slot, which the table refers to.
    pub fn slot(&self) -> &'static Slot {
        self.0
    }

    /// Whether neither the table nor another running call has a reference.
    pub fn is_last(&self) -> bool {
        self.0.references.load(Ordering::Relaxed) == 1
    }
}

impl Clone for EntryRef {
    fn clone(&self) -> Self {
        self.0.references.fetch_add(1, Ordering::Relaxed);
        Self(self.0)
    }
}

impl Drop for EntryRef {
    fn drop(&mut self) {
        if self.0.references.fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        // SAFETY: this was the last reference, so no other thread can reach the entry any more.
        let entry = unsafe { (*self.0.entry.get()).assume_init_read() };
        match entry.locks.load(Ordering::Acquire) {
            0 => {}
            locks => close_inherited(locks),
        }
        if !entry.is_plain() {
            let _guard = SignalForkGuard::new();
            drop(entry);
        }
        give_back(self.0);
    }
}

impl std::ops::Deref for EntryRef {
    type Target = Entry;

    fn deref(&self) -> &Entry {
        // SAFETY: the entry is valid while there are references, and `self` is one.
        unsafe { (*self.0.entry.get()).assume_init_ref() }
    }
}

fn take_free() -> Result<&'static Slot> {
    let mut head = FREE.load(Ordering::Acquire);
    while head as u32 != 0 {
        let slot = SLOTS.get(head as u32 as usize - 1).ok_or(Errno::NFILE)?;
        let next = (head >> 32).wrapping_add(1) << 32 | u64::from(slot.next_free.load(Ordering::Relaxed));
        match FREE.compare_exchange_weak(head, next, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return Ok(slot),
            Err(now) => head = now,
        }
    }
    let index = USED.fetch_add(1, Ordering::Relaxed);
    let slot = SLOTS.get(index as usize).ok_or(Errno::NFILE)?;
    slot.index.store(index, Ordering::Relaxed);
    Ok(slot)
}

fn give_back(slot: &Slot) {
    let index = u64::from(slot.index.load(Ordering::Relaxed)) + 1;
    let put = |head: u64| {
        slot.next_free.store(head as u32, Ordering::Relaxed);
        Some((head >> 32).wrapping_add(1) << 32 | index)
    };
    let _ = FREE.fetch_update(Ordering::AcqRel, Ordering::Relaxed, put);
}

pub fn for_each(mut look: impl FnMut(&EntryRef)) {
    for index in 0..USED.load(Ordering::Relaxed) as usize {
        if let Some(entry) = SLOTS.get(index).and_then(EntryRef::try_from_static) {
            look(&entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(number: u64) -> EntryRef {
        let record_as = FileId(number as u32);
        let plain = Entry::new(Ok(None), (number, number));
        EntryRef::new(Entry { record_as, opened_size: number, ..plain }).unwrap()
    }

    #[test]
    fn an_entry_lives_as_long_as_somebody_refers_to_it() {
        let first = recorded(7);
        let second = first.clone();
        assert!(!first.is_last());
        drop(first);
        assert!(second.is_last());
        assert_eq!((second.key, second.opened_size, second.record_as), ((7, 7), 7, FileId(7)));
        let entry = second.into_static();
        assert!(EntryRef::try_from_static(entry).is_some());
        // SAFETY: the reference that `into_static` gave up above.
        drop(unsafe { EntryRef::from_static(entry) });
    }

    /// Threads take and release entries at the same time. No entry is ever in use by two of them,
    /// and released entries are reused.
    #[test]
    fn entries_are_never_shared_by_mistake() {
        let before = USED.load(Ordering::Relaxed);
        std::thread::scope(|scope| {
            for thread in 0..4u64 {
                scope.spawn(move || {
                    for round in 0..20_000u64 {
                        let number = thread << 32 | round;
                        let entry = recorded(number);
                        assert_eq!(entry.key, (number, number));
                        let copy = EntryRef::try_from_static(entry.into_static()).unwrap();
                        assert_eq!(copy.opened_size, number);
                        // SAFETY: the reference that `into_static` gave up above.
                        drop(unsafe { EntryRef::from_static(copy.0) });
                    }
                });
            }
        });
        // Tests that run at the same time use some, too.
        assert!(USED.load(Ordering::Relaxed) - before < 100);
    }
}
