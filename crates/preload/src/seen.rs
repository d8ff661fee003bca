//! Files that were looked into, so that they need not be looked into again: whether they are anchors.
//!
//! A file is remembered by 64 bits of its device, inode, size and time of change: an anchor is complete when it first is a
//! file of its size, and whatever changes a file changes these. The table is small, lossy and lock-free.

use std::sync::atomic::{AtomicU64, Ordering};

use stripewise_sys::Stat;

const SLOTS: usize = 1024;

/// A mark of each file; its lowest bit says [`Found`].
static SEEN: [AtomicU64; SLOTS] = [const { AtomicU64::new(0) }; SLOTS];

/// What a file was found to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// None of ours.
    Plain = 0,
    /// An anchor.
    Anchor = 1,
}

/// Remembers what the file with these attributes is.
pub fn note(stat: &Stat, found: Found) {
    let mark = mark(stat);
    slot(mark).store(mark | found as u64, Ordering::Relaxed);
}

/// Whether that was noted.
pub fn is(stat: &Stat, found: Found) -> bool {
    let mark = mark(stat);
    slot(mark).load(Ordering::Relaxed) == mark | found as u64
}

fn slot(mark: u64) -> &'static AtomicU64 {
    &SEEN[(mark >> 1) as usize % SLOTS]
}

/// Even, and not 0.
fn mark(stat: &Stat) -> u64 {
    let parts = [stat.st_dev, stat.st_ino, stat.st_size as u64, stat.st_ctime as u64, stat.st_ctime_nsec];
    // The finalizer of splitmix64 after each.
    let mark = parts.into_iter().fold(0x9e37_79b9_7f4a_7c15, |mark: u64, part| {
        let x = (mark ^ part).wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    });
    (mark | 2) & !1
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

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
