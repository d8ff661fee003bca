//! Remembers which files are anchors and which are not, so that they need not be read again.
//!
//! A file is remembered by a 64-bit hash of its device, inode, size and time of change. An anchor
//! is complete when it first has its size, and every change of a file changes this hash. The table
//! is small, lossy and lock-free.

use std::ffi::CStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use stripewise_sys::Stat;

const SLOTS: usize = 1024;

/// A mark per file; its lowest bit is the [`Found`].
static SEEN: [AtomicU64; SLOTS] = [const { AtomicU64::new(0) }; SLOTS];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A file that is not managed.
    Plain = 0,
    /// The anchor of a managed file.
    Anchor = 1,
}

/// Marks of plain files and names for which the check "exists and is not in the planned layout" was
/// made.
static DECIDED: [AtomicU64; SLOTS] = [const { AtomicU64::new(0) }; SLOTS];

/// Whether this check was already made for this file under this name. It counts as made from now
/// on.
pub fn is_decided(stat: &Stat, name: &CStr) -> bool {
    let mark = hash((stat.st_dev, stat.st_ino, name));
    let slot = slot(&DECIDED, mark);
    slot.load(Ordering::Relaxed) == mark || {
        slot.store(mark, Ordering::Relaxed);
        false
    }
}

pub fn note(stat: &Stat, found: Found) {
    let mark = mark(stat);
    slot(&SEEN, mark).store(mark | found as u64, Ordering::Relaxed);
}

pub fn is(stat: &Stat, found: Found) -> bool {
    let mark = mark(stat);
    slot(&SEEN, mark).load(Ordering::Relaxed) == mark | found as u64
}

fn slot(table: &'static [AtomicU64; SLOTS], mark: u64) -> &'static AtomicU64 {
    &table[(mark >> 1) as usize % SLOTS]
}

/// The mark of a file.
fn mark(stat: &Stat) -> u64 {
    hash((stat.st_dev, stat.st_ino, stat.st_size, stat.st_ctime, stat.st_ctime_nsec))
}

/// A hash that is even and not 0.
fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    (hasher.finish() | 2) & !1
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_name_is_decided_once() {
        let file = tempfile::tempfile().unwrap();
        let stat = rustix::fs::fstat(file.as_fd()).unwrap();
        assert!(!is_decided(&stat, c"one") && is_decided(&stat, c"one"));
        assert!(!is_decided(&stat, c"other") && is_decided(&stat, c"other"));
    }

    #[test]
    fn a_file_is_known_until_it_changes() {
        let file = tempfile::tempfile().unwrap();
        let stat = || rustix::fs::fstat(file.as_fd()).unwrap();
        file.set_len(500).unwrap();
        for found in [Found::Plain, Found::Anchor] {
            assert!(!is(&stat(), found));
            note(&stat(), found);
            assert!(is(&stat(), found));
        }
        assert!(!is(&stat(), Found::Plain));
        note(&stat(), Found::Plain);
        file.set_len(501).unwrap();
        assert!(!is(&stat(), Found::Plain));
        let other = tempfile::tempfile().unwrap();
        other.set_len(500).unwrap();
        assert!(!is(&rustix::fs::fstat(other.as_fd()).unwrap(), Found::Plain));
    }
}
