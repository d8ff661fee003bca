//! The twin of a managed file's descriptor: a private duplicate, which tells whether a number still
//! refers to the open file description that the library knows.
//!
//! `fcntl(fd, F_DUPFD_QUERY, twin)` (Linux 6.10) compares the two descriptions. It costs a third of
//! the fstat that compares the files, and says more: with the description, the access mode is the
//! known one, too. Where there is no twin (an older kernel, or too few descriptors), the caller
//! does the fstat at each call.
//!
//! A twin keeps the description open, and with it the locks of `flock`. It is closed when the
//! program closes its last descriptor of the description, also in a forked child: by `close`
//! (`calls/close.rs`) if calls still run, and otherwise with the entry. Closing a descriptor also
//! drops the POSIX record locks that the process has on the file: here on the anchor, where there
//! are none (`calls/locks.rs`). Twins are close-on-exec.

use std::ffi::c_int;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

use rustix::fs::{FileType, fstat};
use rustix::process::{Resource, getrlimit};
use stripewise_sys::fd::close_inherited;
use stripewise_sys::{Fd, Result};

use crate::process::{SignalForkGuard, borrow, identity, kernel};

/// From <linux/fcntl.h>; the libc crate lacks it.
const F_DUPFD_QUERY: c_int = 1024 + 3;
/// Twins have at most one in this many of the descriptors that the process may have. The others are
/// the program's.
const SHARE: u64 = 8;

/// Number of twins of this process.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// The twin of an entry's descriptor: its number, [`UNTRIED`] or [`NONE`].
pub struct Twin(AtomicI32);

const UNTRIED: c_int = 0;
/// There is none any more, or could not be one.
const NONE: c_int = -1;

impl Twin {
    pub const fn new() -> Self {
        Self(AtomicI32::new(UNTRIED))
    }

    /// Whether `fd` refers to the description of the twin. `false` also where this is not known.
    #[inline]
    pub fn is_of(&self, fd: c_int) -> bool {
        let twin = self.0.load(Ordering::Acquire);
        twin > 0 && shares(fd, twin) == Ok(true)
    }

    /// Makes the twin of `fd`, which refers to the file `key` (device and inode), unless that was
    /// tried before.
    #[inline]
    pub fn ensure(&self, fd: c_int, key: (u64, u64)) {
        if self.0.load(Ordering::Relaxed) == UNTRIED {
            self.make(fd, key);
        }
    }

    #[cold]
    #[inline(never)]
    fn make(&self, fd: c_int, key: (u64, u64)) {
        // A vfork child has descriptors of its own, but its memory is its parent's.
        if identity::is_vfork_child() {
            return;
        }
        // Handlers and forks wait: a child would have a number that is not its own.
        let _guard = SignalForkGuard::new();
        let made = duplicate(fd, key);
        let raw = made.as_ref().map_or(NONE, AsRawFd::as_raw_fd);
        // If another thread was first, the duplicate is dropped.
        if self.0.compare_exchange(UNTRIED, raw, Ordering::AcqRel, Ordering::Relaxed).is_ok()
            && let Some(twin) = made
        {
            COUNT.fetch_add(1, Ordering::Relaxed);
            std::mem::forget(twin);
        }
    }

    /// Closes the twin; there is none from now on.
    pub fn close(&self) {
        let twin = self.0.swap(NONE, Ordering::AcqRel);
        if twin > 0 {
            COUNT.fetch_sub(1, Ordering::Relaxed);
            close_inherited(twin);
        }
    }
}

impl Drop for Twin {
    fn drop(&mut self) {
        self.close();
    }
}

fn duplicate(fd: c_int, key: (u64, u64)) -> Option<Fd> {
    /// The kernel does not know the comparison.
    static UNKNOWN: AtomicBool = AtomicBool::new(false);
    if UNKNOWN.load(Ordering::Relaxed) || !may_have_more() {
        return None;
    }
    let twin = Fd::duplicate(borrow(fd)).ok()?;
    let raw = twin.as_raw_fd();
    let stat = fstat(borrow(raw)).ok()?;
    if (stat.st_dev, stat.st_ino) != key {
        // The number became another file's after the caller had looked. The program may have record
        // locks on a regular file, which closing the duplicate would drop.
        if FileType::from_raw_mode(stat.st_mode).is_file() {
            std::mem::forget(twin);
        }
        return None;
    }
    if shares(raw, raw).is_err() {
        UNKNOWN.store(true, Ordering::Relaxed);
        return None;
    }
    Some(twin)
}

fn may_have_more() -> bool {
    let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX) / SHARE;
    u64::from(COUNT.load(Ordering::Relaxed)) < most
}

/// Whether both descriptors refer to the same open file description.
#[inline]
fn shares(one: c_int, other: c_int) -> Result<bool> {
    kernel::fcntl(one, F_DUPFD_QUERY, other as usize).map(|answer| answer == 1)
}

#[cfg(test)]
mod tests {
    use rustix::fs::{Mode, OFlags, open};

    use super::*;
    use crate::process::guard;

    fn key_of(fd: c_int) -> (u64, u64) {
        let stat = fstat(borrow(fd)).unwrap();
        (stat.st_dev, stat.st_ino)
    }

    /// Without F_DUPFD_QUERY there are no twins, and nothing to test.
    fn twin_of(fd: c_int) -> Option<Twin> {
        let twin = Twin::new();
        twin.ensure(fd, key_of(fd));
        shares(fd, fd).is_ok().then_some(twin)
    }

    #[test]
    fn a_twin_knows_its_description_and_no_other() {
        let _alone = guard::TESTED.lock();
        let named = tempfile::NamedTempFile::new().unwrap();
        let again = || open(named.path(), OFlags::RDONLY, Mode::empty()).unwrap();
        let (one, other) = (again(), again());
        let Some(twin) = twin_of(one.as_raw_fd()) else { return };
        let duplicate = one.try_clone().unwrap();
        assert!(twin.is_of(one.as_raw_fd()) && twin.is_of(duplicate.as_raw_fd()));
        assert!(!twin.is_of(other.as_raw_fd()), "the same file, opened again");
        assert!(!twin.is_of(-1) && !Twin::new().is_of(one.as_raw_fd()));
    }

    #[test]
    fn a_number_that_became_another_files_gets_no_twin() {
        let _alone = guard::TESTED.lock();
        let (one, other) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        let twin = Twin::new();
        twin.ensure(one.as_raw_fd(), key_of(other.as_raw_fd()));
        assert!(!twin.is_of(one.as_raw_fd()) && !twin.is_of(other.as_raw_fd()));
    }

    #[test]
    fn a_number_that_became_a_pipes_leaves_no_copy_of_it() {
        let _alone = guard::TESTED.lock();
        let (file, (reader, writer)) = (tempfile::tempfile().unwrap(), std::io::pipe().unwrap());
        Twin::new().ensure(writer.as_raw_fd(), key_of(file.as_raw_fd()));
        drop(writer);
        assert_eq!(std::io::read_to_string(reader).unwrap(), "");
    }

    #[test]
    fn a_closed_twin_is_not_made_again() {
        let _alone = guard::TESTED.lock();
        let file = tempfile::tempfile().unwrap();
        let Some(twin) = twin_of(file.as_raw_fd()) else { return };
        twin.close();
        twin.ensure(file.as_raw_fd(), key_of(file.as_raw_fd()));
        assert!(!twin.is_of(file.as_raw_fd()));
    }

    #[test]
    fn a_lock_of_the_description_ends_with_the_twin() {
        let _alone = guard::TESTED.lock();
        let named = tempfile::NamedTempFile::new().unwrap();
        let again = || open(named.path(), OFlags::RDONLY, Mode::empty()).unwrap();
        let (one, other) = (again(), again());
        let Some(twin) = twin_of(one.as_raw_fd()) else { return };
        let exclusive = rustix::fs::FlockOperation::NonBlockingLockExclusive;
        rustix::fs::flock(&one, exclusive).unwrap();
        drop(one);
        assert!(rustix::fs::flock(&other, exclusive).is_err());
        drop(twin);
        assert!(rustix::fs::flock(&other, exclusive).is_ok());
    }
}
