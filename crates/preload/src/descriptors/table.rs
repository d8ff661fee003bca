//! Maps a descriptor number to the library's knowledge of it. Lock-free.
//!
//! A slot is *unknown* (never used, or closed), *plain* (not managed and not recorded) or refers to
//! an [`Entry`]. An unknown descriptor is examined at its first use. This also covers descriptors
//! that were inherited through exec or created in a way that the library does not intercept.

use std::ffi::{c_int, c_uint};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::descriptors::EntryRef;
use crate::descriptors::entry::Slot;
use crate::process::{Chunks, identity};

const UNKNOWN: usize = 0;
const PLAIN: usize = 1;

/// Number of slots. Descriptors from 2^20 on always count as plain; managed files never get such
/// numbers.
pub const LIMIT: usize = 1 << 20;

// SAFETY: an atomic, for which zero is a valid value.
static SLOTS: Chunks<AtomicUsize, 1024, { LIMIT / 1024 }> = unsafe { Chunks::new() };

/// The content of a slot: see above.
pub enum Known {
    Unknown,
    Plain,
    Entry(EntryRef),
}

/// Whether a descriptor is known to be plain, at the cost of two loads.
#[inline]
pub fn is_plain(fd: c_int) -> bool {
    slot(fd).map_or(!is_in_range(fd), |slot| slot.load(Ordering::Acquire) == PLAIN)
}

/// The content of a descriptor's slot, without examining the descriptor itself.
pub fn known(fd: c_int) -> Known {
    let Some(slot) = slot(fd) else { return if is_in_range(fd) { Known::Unknown } else { Known::Plain } };
    loop {
        let value = slot.load(Ordering::Acquire);
        match value {
            UNKNOWN => return Known::Unknown,
            PLAIN => return Known::Plain,
            _ => {
                let entry = EntryRef::try_from_static(entry_of(value));
                if let Some(entry) = entry.filter(|_| slot.load(Ordering::Acquire) == value) {
                    return Known::Entry(entry);
                }
            }
        }
    }
}

/// Sets a descriptor's slot and returns its previous content. Must not be called in a vfork child.
pub fn set(fd: c_int, known: Known) -> Known {
    let Some(slot) = slot(fd) else { return Known::Plain };
    let value = match known {
        Known::Unknown => UNKNOWN,
        Known::Plain => PLAIN,
        Known::Entry(entry) => std::ptr::from_ref(entry.into_static()) as usize,
    };
    match slot.swap(value, Ordering::AcqRel) {
        UNKNOWN => Known::Unknown,
        PLAIN => Known::Plain,
        // SAFETY: the swap took the slot's reference out.
        old => Known::Entry(unsafe { EntryRef::from_static(entry_of(old)) }),
    }
}

/// Forgets a descriptor that is about to be closed. A vfork child has descriptors of its own, but
/// its table is its parent's: no entry is removed there.
#[inline]
pub fn forget(fd: c_int) -> Option<EntryRef> {
    let slot = slot(fd)?;
    match slot.load(Ordering::Relaxed) {
        UNKNOWN => None,
        // The cheap store is also right in a vfork child: the parent examines its descriptor once
        // more, with the same result. The compare-exchange leaves an entry alone that another
        // thread has just stored.
        PLAIN => {
            let _ = slot.compare_exchange(PLAIN, UNKNOWN, Ordering::AcqRel, Ordering::Relaxed);
            None
        }
        _ => forget_entry(fd),
    }
}

fn forget_entry(fd: c_int) -> Option<EntryRef> {
    if identity::is_vfork_child() {
        return None;
    }
    match set(fd, Known::Unknown) {
        Known::Entry(entry) => Some(entry),
        _ => None,
    }
}

/// Calls [`forget`] for all descriptors from `first` to `last`, and `gone` with each removed entry.
pub fn forget_range(first: c_uint, last: c_uint, mut gone: impl FnMut(EntryRef)) {
    let last = (last as usize).min(LIMIT - 1);
    for fd in (first as usize..=last).filter(|&fd| SLOTS.has(fd)) {
        if let Some(entry) = forget(fd as c_int) {
            gone(entry);
        }
    }
}

/// Whether a slot refers to this entry.
pub fn refers_to(entry: &EntryRef) -> bool {
    let value = std::ptr::from_ref(entry.slot()) as usize;
    SLOTS.present().any(|slot| slot.load(Ordering::Acquire) == value)
}

/// Whether the table can store the descriptor's content. It cannot if the number is out of range,
/// or if there is no memory.
pub fn has_slot(fd: c_int) -> bool {
    slot(fd).is_some()
}

fn is_in_range(fd: c_int) -> bool {
    usize::try_from(fd).is_ok_and(|fd| fd < LIMIT)
}

#[inline]
fn slot(fd: c_int) -> Option<&'static AtomicUsize> {
    SLOTS.get(usize::try_from(fd).ok()?)
}

fn entry_of(value: usize) -> &'static Slot {
    // SAFETY: only `set` stores such values, and these slots are never freed.
    unsafe { &*(value as *const Slot) }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use stripewise_recorder::FileId;

    use super::*;
    use crate::descriptors::entry::Entry;

    fn entry(number: u32) -> EntryRef {
        let key = (u64::from(number), u64::from(number));
        EntryRef::new(Entry { record_as: FileId(number), ..Entry::new(Ok(None), key) }).unwrap()
    }

    fn record_as(fd: c_int) -> FileId {
        match known(fd) {
            Known::Entry(entry) => entry.record_as,
            _ => FileId::NOT_RECORDED,
        }
    }

    #[test]
    fn slots_say_what_was_said() {
        // Numbers that no test of this process has open.
        let fd = 90_001;
        assert!(matches!(known(fd), Known::Unknown));
        set(fd, Known::Plain);
        assert!(is_plain(fd));
        set(fd, Known::Entry(entry(5)));
        assert_eq!(record_as(fd), FileId(5));
        set(fd + 1, known(fd));
        let first = forget(fd).unwrap();
        assert!(first.record_as == FileId(5) && refers_to(&first));
        assert!(matches!(known(fd), Known::Unknown) && forget(fd).is_none());
        let mut gone = Vec::new();
        forget_range(fd as c_uint, fd as c_uint + 10, |entry| gone.push(entry.record_as));
        assert!(gone == [FileId(5)] && !refers_to(&first));
        for out_of_range in [-1, LIMIT as c_int] {
            assert!(is_plain(out_of_range) && forget(out_of_range).is_none());
        }
    }

    /// A reader gets the entry that a slot has, or had a moment ago: never one of another
    /// descriptor.
    #[test]
    fn readers_race_with_those_who_close() {
        let done = AtomicBool::new(false);
        let fds = [91_000, 91_001];
        for (number, fd) in fds.into_iter().enumerate() {
            set(fd, Known::Entry(entry(number as u32 + 1)));
        }
        std::thread::scope(|scope| {
            for (number, fd) in fds.into_iter().enumerate() {
                let done = &done;
                scope.spawn(move || {
                    for _ in 0..50_000 {
                        drop(set(fd, Known::Entry(entry(number as u32 + 1))));
                    }
                    done.store(true, Ordering::Relaxed);
                });
            }
            while !done.load(Ordering::Relaxed) {
                for (number, fd) in fds.into_iter().enumerate() {
                    assert_eq!(record_as(fd), FileId(number as u32 + 1));
                }
            }
        });
        fds.into_iter().for_each(|fd| drop(forget(fd)));
    }
}
