//! Open file descriptions that the library tracks: of managed files, and of recorded plain files.
//!
//! Entries live in chunks that are never freed, so a thread may read an entry that another thread
//! is just releasing: the reference count shows whether the entry is still in use. Everything is
//! atomic and lock-free, and therefore usable in signal handlers and after fork.

use std::ffi::c_int;
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use stripewise_datapath::LogicalFile;
use stripewise_recorder::FileId;
use stripewise_sys::fd::close_inherited;
use stripewise_sys::{Errno, Fd, OFlags, Result};

use crate::process::chunks::Chunks;
use crate::process::guard::SignalForkGuard;
use crate::process::identity;

/// The offset is unknown; only the kernel knows it.
pub const UNKNOWN_OFFSET: u64 = u64::MAX;

/// One open file description. Its creator sets the fields before other threads can reach the entry.
pub struct Entry {
    /// Number of table slots and running calls that use the entry; 0 if it is free.
    references: AtomicU32,
    next_free: AtomicU32,
    index: AtomicU32,
    file: AtomicPtr<LogicalFile>,
    error: AtomicI32,
    device: AtomicU64,
    inode: AtomicU64,
    record_as: AtomicU32,
    /// Number of forks of this process when the entry was made. After a later fork other processes
    /// may share the descriptor.
    forks: AtomicU32,
    appends: AtomicBool,
    access: AtomicU32,
    /// The private descriptor whose open file description holds the program's OFD locks; 0 if there
    /// is none.
    locks: AtomicI32,
    /// The signal that the program has set with F_SETSIG; kept in this process only.
    pub signal: AtomicU32,
    opened_size: AtomicU64,
    /// The offset of the next `read` or `write` as far as this process knows; for the recorder
    /// only.
    pub offset: AtomicU64,
}

/// The fields of a new entry.
pub struct Description {
    /// The managed file, `None` for a plain file that is only recorded, or the error of a managed
    /// file that cannot be served.
    pub file: Result<Option<Arc<LogicalFile>>>,
    /// Device and inode of the descriptor's file; of the anchor if the file is managed.
    pub key: (u64, u64),
    /// The file's number in the trace.
    pub record_as: FileId,
    /// Whether the descriptor is in append mode.
    pub appends: bool,
    /// The access mode that the program asked for.
    pub access: OFlags,
    /// The kernel's size of the file, bytes.
    pub opened_size: u64,
}

impl Description {
    /// Whether the file needs no entry: it is neither managed nor recorded.
    pub fn is_of_no_interest(&self) -> bool {
        matches!(self.file, Ok(None)) && self.record_as == FileId::NOT_RECORDED
    }
}

/// Entries of descriptors whose kind could not be determined, one per errno. No slot of the table
/// refers to them, so the next call examines the descriptor again.
static FAILED: [Entry; ERRNO_END] = [const { Entry::new() }; ERRNO_END];
/// One more than the highest errno that has an entry; Linux's go up to 133.
const ERRNO_END: usize = 256;

static ENTRIES: Chunks<Entry, 256, 4096> = Chunks::new();
/// Number of entries that were ever in use.
static USED: AtomicU32 = AtomicU32::new(0);
/// Low half: index + 1 of the first free entry. High half: a count of changes, so that a slow
/// thread cannot mistake a list that changed twice for an unchanged one (ABA).
static FREE: AtomicU64 = AtomicU64::new(0);

/// A counted reference to an entry.
pub struct EntryRef(&'static Entry);

impl EntryRef {
    /// Returns a new entry with one reference.
    ///
    /// # Errors
    /// ENFILE when a million entries are in use, ENOMEM.
    pub fn new(description: Description) -> Result<Self> {
        #[cfg(target_arch = "x86_64")]
        crate::calls::patched::keep_entry();
        let entry = take_free()?;
        let (file, error) = match description.file {
            Ok(Some(file)) => (Arc::into_raw(file).cast_mut(), 0),
            Ok(None) => (ptr::null_mut(), 0),
            Err(error) => (ptr::null_mut(), error.raw_os_error()),
        };
        entry.file.store(file, Ordering::Relaxed);
        entry.error.store(error, Ordering::Relaxed);
        entry.device.store(description.key.0, Ordering::Relaxed);
        entry.inode.store(description.key.1, Ordering::Relaxed);
        entry.record_as.store(description.record_as.0, Ordering::Relaxed);
        entry.forks.store(identity::forks(), Ordering::Relaxed);
        entry.appends.store(description.appends, Ordering::Relaxed);
        entry.access.store((description.access & OFlags::RWMODE).bits(), Ordering::Relaxed);
        entry.signal.store(0, Ordering::Relaxed);
        entry.opened_size.store(description.opened_size, Ordering::Relaxed);
        entry.offset.store(UNKNOWN_OFFSET, Ordering::Relaxed);
        entry.references.store(1, Ordering::Release);
        Ok(Self(entry))
    }

    /// The entry of a descriptor whose kind could not be determined. Needs no memory.
    pub fn failed(error: Errno) -> Self {
        let number = Some(error.raw_os_error()).filter(|number| (1..ERRNO_END as i32).contains(number));
        let number = number.unwrap_or(libc::EIO);
        let entry = &FAILED[number as usize];
        entry.error.store(number, Ordering::Relaxed);
        // The first reference is never released.
        let _ = entry.references.compare_exchange(0, 1, Ordering::Relaxed, Ordering::Relaxed);
        entry.references.fetch_add(1, Ordering::Relaxed);
        Self(entry)
    }

    /// Adds a reference. `None` if the entry was released meanwhile.
    pub fn try_from_static(entry: &'static Entry) -> Option<Self> {
        let mut count = entry.references.load(Ordering::Relaxed);
        while count > 0 {
            match entry.references.compare_exchange_weak(count, count + 1, Ordering::Acquire, Ordering::Relaxed)
            {
                Ok(_) => return Some(Self(entry)),
                Err(now) => count = now,
            }
        }
        None
    }

    /// Passes the reference on to a slot of the table.
    pub fn into_static(self) -> &'static Entry {
        let entry = self.0;
        std::mem::forget(self);
        entry
    }

    /// Takes over the reference of a slot.
    ///
    /// # Safety
    /// The slot owned a reference and does not refer to the entry any more.
    pub unsafe fn from_slot(entry: &'static Entry) -> Self {
        Self(entry)
    }

    /// The managed file; `None` for a plain file that is only recorded.
    ///
    /// # Errors
    /// The file is managed but cannot be served.
    pub fn file(&self) -> Result<Option<&LogicalFile>> {
        match self.error.load(Ordering::Relaxed) {
            // SAFETY: the entry owns an Arc while it has references, and `self` is one.
            0 => Ok(unsafe { self.file.load(Ordering::Relaxed).as_ref() }),
            error => Err(Errno::from_raw_os_error(error)),
        }
    }

    /// Whether this is the only reference: no slot and no other running call has one.
    pub fn is_last(&self) -> bool {
        self.references.load(Ordering::Relaxed) == 1
    }
}

impl Entry {
    const fn new() -> Self {
        Self {
            references: AtomicU32::new(0),
            next_free: AtomicU32::new(0),
            index: AtomicU32::new(0),
            file: AtomicPtr::new(ptr::null_mut()),
            error: AtomicI32::new(0),
            device: AtomicU64::new(0),
            inode: AtomicU64::new(0),
            record_as: AtomicU32::new(FileId::NOT_RECORDED.0),
            forks: AtomicU32::new(0),
            appends: AtomicBool::new(false),
            access: AtomicU32::new(0),
            locks: AtomicI32::new(0),
            signal: AtomicU32::new(0),
            opened_size: AtomicU64::new(0),
            offset: AtomicU64::new(UNKNOWN_OFFSET),
        }
    }

    /// The error with which the kind of the descriptor could not be determined, if so.
    pub fn failure(&self) -> Option<Errno> {
        let stands_for_an_error = FAILED.as_ptr_range().contains(&ptr::from_ref(self));
        stands_for_an_error.then(|| Errno::from_raw_os_error(self.error.load(Ordering::Relaxed)))
    }

    /// Device and inode of the file that was opened.
    pub fn key(&self) -> (u64, u64) {
        (self.device.load(Ordering::Relaxed), self.inode.load(Ordering::Relaxed))
    }

    /// The file's number in the trace.
    pub fn record_as(&self) -> FileId {
        FileId(self.record_as.load(Ordering::Relaxed))
    }

    /// [`identity::forks`] when the entry was made.
    pub fn forks_seen(&self) -> u32 {
        self.forks.load(Ordering::Relaxed)
    }

    /// Whether the descriptor is in append mode, as far as this process knows; for the recorder
    /// only.
    pub fn appends(&self) -> bool {
        self.appends.load(Ordering::Relaxed)
    }

    /// The access mode that the program asked for. The kernel's descriptor of a managed file is
    /// open for reading only.
    pub fn access(&self) -> OFlags {
        OFlags::from_bits_retain(self.access.load(Ordering::Relaxed))
    }

    /// The private descriptor that holds the program's OFD locks on a managed file, which the
    /// read-only descriptor of the anchor cannot hold. `open` makes it on first use; it is closed
    /// with the entry.
    ///
    /// # Errors
    /// Those of `open`.
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

    /// The size when the entry was made, bytes; for the recorder only.
    pub fn opened_size(&self) -> u64 {
        self.opened_size.load(Ordering::Relaxed)
    }

    /// Updates [`appends`](Self::appends) after a change by `fcntl`.
    pub fn set_appends(&self, appends: bool) {
        self.appends.store(appends, Ordering::Relaxed);
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
        match self.0.locks.swap(0, Ordering::AcqRel) {
            0 => {}
            locks => close_inherited(locks),
        }
        let file = self.0.file.swap(ptr::null_mut(), Ordering::Relaxed);
        if !file.is_null() {
            let _guard = SignalForkGuard::new();
            // SAFETY: from `Arc::into_raw`, and no other thread can reach it any more.
            drop(unsafe { Arc::from_raw(file) });
        }
        give_back(self.0);
    }
}

impl std::ops::Deref for EntryRef {
    type Target = Entry;

    fn deref(&self) -> &Entry {
        self.0
    }
}

fn take_free() -> Result<&'static Entry> {
    let mut head = FREE.load(Ordering::Acquire);
    while head as u32 != 0 {
        let entry = ENTRIES.get(head as u32 as usize - 1).ok_or(Errno::NFILE)?;
        let next = (head >> 32).wrapping_add(1) << 32 | u64::from(entry.next_free.load(Ordering::Relaxed));
        match FREE.compare_exchange_weak(head, next, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return Ok(entry),
            Err(now) => head = now,
        }
    }
    let index = USED.fetch_add(1, Ordering::Relaxed);
    let entry = ENTRIES.get(index as usize).ok_or(Errno::NFILE)?;
    entry.index.store(index, Ordering::Relaxed);
    Ok(entry)
}

fn give_back(entry: &Entry) {
    let index = u64::from(entry.index.load(Ordering::Relaxed)) + 1;
    let mut head = FREE.load(Ordering::Relaxed);
    loop {
        entry.next_free.store(head as u32, Ordering::Relaxed);
        let next = (head >> 32).wrapping_add(1) << 32 | index;
        match FREE.compare_exchange_weak(head, next, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => return,
            Err(now) => head = now,
        }
    }
}

/// Calls `look` for every entry in use.
pub fn for_each(mut look: impl FnMut(&EntryRef)) {
    for index in 0..USED.load(Ordering::Relaxed) as usize {
        if let Some(entry) = ENTRIES.get(index).and_then(EntryRef::try_from_static) {
            look(&entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(number: u64) -> EntryRef {
        let description = Description {
            file: Ok(None),
            key: (number, number),
            record_as: FileId(number as u32),
            appends: false,
            access: OFlags::RDWR,
            opened_size: number,
        };
        EntryRef::new(description).unwrap()
    }

    #[test]
    fn an_entry_lives_as_long_as_somebody_refers_to_it() {
        let first = recorded(7);
        let second = first.clone();
        assert!(!first.is_last());
        drop(first);
        assert!(second.is_last());
        assert_eq!((second.key(), second.opened_size(), second.record_as()), ((7, 7), 7, FileId(7)));
        let entry = second.into_static();
        assert!(EntryRef::try_from_static(entry).is_some());
        // SAFETY: the reference that `into_static` gave up above.
        drop(unsafe { EntryRef::from_slot(entry) });
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
                        assert_eq!(entry.key(), (number, number));
                        let copy = EntryRef::try_from_static(entry.into_static()).unwrap();
                        assert_eq!(copy.opened_size(), number);
                        // SAFETY: the reference that `into_static` gave up above.
                        drop(unsafe { EntryRef::from_slot(copy.0) });
                    }
                });
            }
        });
        // Tests that run at the same time use some, too.
        assert!(USED.load(Ordering::Relaxed) - before < 100);
    }
}
