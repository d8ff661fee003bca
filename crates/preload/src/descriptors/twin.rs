//! The twin of a managed file's descriptor: a private duplicate, which tells whether a number still
//! refers to the open file description that the library knows.
//!
//! `fcntl(fd, F_DUPFD_QUERY, twin)` (Linux 6.10) compares the two descriptions. It costs a third of
//! the fstat that compares the files, and says more: with the description, the access mode is the
//! known one, too. Where there is no twin (an older kernel, or too few descriptors), the caller
//! does the fstat at each call.
//!
//! A twin keeps the description open. It is closed with the entry, that is, when the program has
//! closed its last descriptor of the description and no call on it runs any more. At that moment
//! the kernel releases locks of `flock`, as it does without the library. Closing a descriptor also
//! drops the POSIX record locks that the process has on the file: here on the anchor, where there
//! are none (`calls/locks.rs`). Twins are close-on-exec, and a forked child closes its own.

use std::ffi::c_int;
use std::os::fd::AsRawFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::fstat;
use rustix::process::{Resource, getrlimit};
use stripewise_sys::Fd;

use crate::process::state::found_once;
use crate::process::{SignalForkGuard, borrow, identity, kernel};

/// From <linux/fcntl.h>; the libc crate lacks it.
const F_DUPFD_QUERY: c_int = 1024 + 3;
/// Twins have at most one in this many of the descriptors that the process may have. The others are
/// the program's.
const SHARE: u64 = 8;

/// Number of twins of this process.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// The twin of an entry's descriptor, if it has one.
pub struct Twin(OnceLock<Option<Fd>>);

impl Twin {
    pub const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// Whether `fd` refers to the description of the twin. `false` also where this is not known.
    #[inline]
    pub fn is_of(&self, fd: c_int) -> bool {
        matches!(self.0.get(), Some(Some(twin)) if shares(fd, twin.as_raw_fd()))
    }

    /// Makes the twin of `fd`, which refers to the file `key` (device and inode), unless that was
    /// tried before.
    #[inline]
    pub fn ensure(&self, fd: c_int, key: (u64, u64)) {
        if self.0.get().is_none() {
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
        // Handlers and forks wait: they would find the cell locked, or a number that is not theirs.
        let _guard = SignalForkGuard::new();
        let _ = self.0.set(duplicate(fd, key));
    }
}

impl Drop for Twin {
    fn drop(&mut self) {
        if let Some(Some(_)) = self.0.get() {
            COUNT.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn duplicate(fd: c_int, key: (u64, u64)) -> Option<Fd> {
    static KNOWN: AtomicU32 = AtomicU32::new(0);
    if !found_once(&KNOWN, || shares(fd, fd)) || !may_have_more() {
        return None;
    }
    let twin = Fd::duplicate(borrow(fd)).ok()?;
    if fstat(borrow(twin.as_raw_fd())).is_ok_and(|stat| (stat.st_dev, stat.st_ino) == key) {
        COUNT.fetch_add(1, Ordering::Relaxed);
        return Some(twin);
    }
    // Without the library's knowledge the number became another file's after the caller had looked.
    // The program may have record locks on that file, which closing the duplicate would drop.
    std::mem::forget(twin);
    None
}

fn may_have_more() -> bool {
    let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX) / SHARE;
    u64::from(COUNT.load(Ordering::Relaxed)) < most
}

/// Whether both descriptors refer to the same open file description.
#[inline]
fn shares(one: c_int, other: c_int) -> bool {
    kernel::fcntl(one, F_DUPFD_QUERY, other as usize) == Ok(1)
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
        shares(fd, fd).then_some(twin)
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
