//! Descriptors of our own inside somebody else's process.
//!
//! They are placed high, where programs that count on small numbers or close "everything from 3 on" seldom look, are
//! closed on exec, and stand in a process-wide register, so that the interposed `close`, `dup2`, `close_range` and
//! `closefrom` can leave them alone ([`is_private`]).
//!
//! In a process of our own ([`alone`]) there is nobody to get out of the way of, and they stay where the kernel put them.
//!
//! The register is a bitmap of atomics: no locks, usable after fork (the child has the same descriptors) and in
//! signal handlers.

use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};

use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::process::{Resource, getrlimit};

use crate::Result;

/// Private descriptors are below this number; the register has one bit for each.
pub const LIMIT: RawFd = 65536;

/// Highest number from which on private descriptors are placed: the kernel's table of descriptors is as long
/// as the highest one used, and fork copies it.
const PLACE_MAX: u64 = 4096;

static REGISTER: [AtomicU64; LIMIT as usize / 64] = [const { AtomicU64::new(0) }; LIMIT as usize / 64];

/// Nobody else's code runs in this process.
static ALONE: AtomicBool = AtomicBool::new(false);

/// Says that no application lives in this process: from now on new private descriptors are not moved. Moving one costs closing the
/// first number, and that is a request of its own to a file system behind FUSE.
pub fn alone() {
    ALONE.store(true, Ordering::Relaxed);
}

/// An owned private descriptor. Dropping closes it by the raw system call, ignoring errors (what was written is
/// checked by fsync).
///
/// Beware: closing any descriptor of an inode drops the POSIX record locks that the process holds on it. Hold private
/// descriptors only of files that the application does not lock itself, or never close them while it does.
#[derive(Debug)]
pub struct Fd(RawFd);

impl Fd {
    /// Takes over a descriptor that was just made: moves it high (but where we are [`alone`]), sets close-on-exec, registers it.
    ///
    /// # Errors
    /// EMFILE when no number below [`LIMIT`] is left. The descriptor is closed then.
    pub fn adopt(fd: OwnedFd) -> Result<Self> {
        // Not to be dropped by std, which would call libc's close.
        let fd = ManuallyDrop::new(fd);
        let raw = fd.as_raw_fd();
        let placed = if ALONE.load(Ordering::Relaxed) { Err(Errno::MFILE) } else { place_high(fd.as_fd()) };
        match placed {
            Ok(high) => {
                close_raw(raw);
                Ok(Self::register(high))
            }
            // Nobody minds, or the table is full: the descriptor may stay where it is.
            Err(_) if raw < LIMIT => {
                let _ = rustix::io::fcntl_setfd(fd.as_fd(), rustix::io::FdFlags::CLOEXEC);
                Ok(Self::register(raw))
            }
            Err(error) => {
                close_raw(raw);
                Err(error)
            }
        }
    }

    /// A private duplicate of `fd`: same open file description, so same offset, status flags and OFD locks.
    ///
    /// # Errors
    /// EMFILE, EBADF.
    pub fn duplicate(fd: BorrowedFd<'_>) -> Result<Self> {
        place_high(fd).map(Self::register)
    }

    /// Gives the descriptor away, no longer private: the caller closes it.
    pub fn into_public(self) -> RawFd {
        let fd = ManuallyDrop::new(self);
        unregister(fd.0);
        fd.0
    }

    fn register(raw: RawFd) -> Self {
        REGISTER[raw as usize / 64].fetch_or(1 << (raw % 64), Ordering::Relaxed);
        Self(raw)
    }
}

impl Drop for Fd {
    fn drop(&mut self) {
        // First: another thread may get the number the moment it is closed, and register it.
        unregister(self.0);
        close_raw(self.0);
    }
}

impl AsFd for Fd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: open until drop.
        unsafe { BorrowedFd::borrow_raw(self.0) }
    }
}

impl AsRawFd for Fd {
    fn as_raw_fd(&self) -> RawFd {
        self.0
    }
}

/// A duplicate at the lowest free number, for the application; it closes it.
///
/// # Errors
/// EMFILE, EBADF.
pub fn duplicate_public(fd: BorrowedFd<'_>, close_on_exec: bool) -> Result<RawFd> {
    let public = fcntl_dupfd_cloexec(fd, 0).map(IntoRawFd::into_raw_fd)?;
    if !close_on_exec {
        // SAFETY: just made.
        rustix::io::fcntl_setfd(unsafe { borrow(public) }, rustix::io::FdFlags::empty())?;
    }
    Ok(public)
}

/// Closes a descriptor made by [`duplicate_public`] that the application never saw.
pub fn close_public(raw: RawFd) {
    close_raw(raw);
}

/// In a forked child: closes a private descriptor whose owner is a thread that only the parent has.
///
/// The kernel copies the descriptors before the memory: one that another thread opened in between stands in the child's
/// register, and the child does not have it.
pub fn close_inherited(raw: RawFd) {
    if is_private(raw) {
        unregister(raw);
        close_raw(raw);
    }
}

/// Moves a descriptor that a C library has just opened for us to where private ones are, and returns its number there; where there is no
/// room it stays.
pub fn raise(raw: RawFd) -> RawFd {
    // SAFETY: the caller's, just made.
    match place_high(unsafe { borrow(raw) }) {
        Ok(high) => {
            close_raw(raw);
            high
        }
        Err(_) => raw,
    }
}

/// Notes that `raw`, which a C library opened for us, is private from now on. It stays where it is, and its owner closes
/// it after [`disown`].
pub fn own(raw: RawFd) {
    if (0..LIMIT).contains(&raw) {
        REGISTER[raw as usize / 64].fetch_or(1 << (raw % 64), Ordering::Relaxed);
    }
}

/// The contrary of [`own`].
pub fn disown(raw: RawFd) {
    if (0..LIMIT).contains(&raw) {
        unregister(raw);
    }
}

/// Whether `raw` is a private descriptor of this library (of any copy of it in this process image and its parents by
/// fork). Lock-free, a few ns.
pub fn is_private(raw: RawFd) -> bool {
    (0..LIMIT).contains(&raw) && REGISTER[raw as usize / 64].load(Ordering::Relaxed) & (1 << (raw % 64)) != 0
}

/// The smallest private descriptor that is at least `from`: for splitting a `close_range`.
pub fn next_private(from: RawFd) -> Option<RawFd> {
    let from = from.max(0);
    if from >= LIMIT {
        return None;
    }
    let first = from as usize / 64;
    let mask = u64::MAX << (from % 64);
    let word = |index: usize| {
        let bits = REGISTER[index].load(Ordering::Relaxed);
        if index == first { bits & mask } else { bits }
    };
    (first..REGISTER.len())
        .map(|index| (index, word(index)))
        .find(|&(_, bits)| bits != 0)
        .map(|(index, bits)| (index * 64) as RawFd + bits.trailing_zeros() as RawFd)
}

fn unregister(raw: RawFd) {
    REGISTER[raw as usize / 64].fetch_and(!(1 << (raw % 64)), Ordering::Relaxed);
}

/// Duplicates `fd` to the highest third of the numbers that the process may use; lower if that is full.
fn place_high(fd: BorrowedFd<'_>) -> Result<RawFd> {
    /// Where the last ones went: the limit seldom changes, and to ask for it is a call of its own.
    /// 0: nowhere yet.
    static PLACE: AtomicI32 = AtomicI32::new(0);
    let mut minimum = PLACE.load(Ordering::Relaxed);
    if minimum == 0 {
        let soft_limit = getrlimit(Resource::Nofile).current.unwrap_or(PLACE_MAX);
        minimum = (soft_limit / 3 * 2).min(PLACE_MAX) as RawFd;
        PLACE.store(minimum, Ordering::Relaxed);
    }
    loop {
        match fcntl_dupfd_cloexec(fd, minimum).map(IntoRawFd::into_raw_fd) {
            Ok(raw) if raw < LIMIT => return Ok(raw),
            Ok(raw) => {
                close_raw(raw);
                return Err(Errno::MFILE);
            }
            // MFILE: no free number from the minimum on; INVAL: the limit was lowered below it.
            Err(Errno::MFILE | Errno::INVAL) if minimum > 3 => {
                PLACE.store(0, Ordering::Relaxed);
                minimum = (minimum / 2).max(3);
            }
            Err(error) => return Err(error),
        }
    }
}

/// Closes by the raw system call. A file system that fails on close (FUSE whose server is gone) has closed it, too.
pub(crate) fn close_raw(raw: RawFd) {
    // SAFETY: the callers own the descriptor and forget it after this.
    let _ = unsafe { rustix::io::try_close(raw) };
}

/// Reads an inherited number back as a borrowed descriptor.
///
/// # Safety
/// `raw` is open for the lifetime chosen.
pub unsafe fn borrow<'a>(raw: RawFd) -> BorrowedFd<'a> {
    unsafe { BorrowedFd::borrow_raw(raw) }
}

/// Makes an owned descriptor of a number, for [`Fd::adopt`].
///
/// # Safety
/// `raw` is open, and nobody else closes it.
pub unsafe fn owned(raw: RawFd) -> OwnedFd {
    unsafe { OwnedFd::from_raw_fd(raw) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dev_null() -> OwnedFd {
        rustix::fs::open("/dev/null", rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty()).unwrap()
    }

    #[test]
    fn private_descriptors_are_high_registered_and_closed_on_exec() {
        let fd = Fd::adopt(dev_null()).unwrap();
        let raw = fd.as_raw_fd();
        assert!(raw >= 256, "{raw} is low");
        assert!(is_private(raw));
        assert!(rustix::io::fcntl_getfd(&fd).unwrap().contains(rustix::io::FdFlags::CLOEXEC));
        drop(fd);
        assert!(!is_private(raw));
        assert!(!is_private(-1));
        assert!(!is_private(LIMIT));
    }

    #[test]
    fn next_private_finds_them_in_order() {
        let (one, two) = (Fd::adopt(dev_null()).unwrap(), Fd::adopt(dev_null()).unwrap());
        let (low, high) = (one.as_raw_fd().min(two.as_raw_fd()), one.as_raw_fd().max(two.as_raw_fd()));
        assert_eq!(next_private(low), Some(low));
        // Other tests of this process may have some in between.
        let next = next_private(low + 1).unwrap();
        assert!(next > low && next <= high);
        assert_eq!(next_private(LIMIT), None);
        assert!(next_private(-5).unwrap() <= low);
    }

    #[test]
    fn foreign_descriptors_are_private_until_disowned() {
        let fd = dev_null();
        own(fd.as_raw_fd());
        assert!(is_private(fd.as_raw_fd()));
        disown(fd.as_raw_fd());
        assert!(!is_private(fd.as_raw_fd()));
        own(-1);
        disown(LIMIT);
    }

    #[test]
    fn a_child_may_lack_what_its_register_says() {
        let gone = {
            let fd = Fd::adopt(dev_null()).unwrap();
            fd.as_raw_fd()
        };
        own(gone);
        close_inherited(gone);
        assert!(!is_private(gone));
    }

    #[test]
    fn a_duplicate_shares_the_open_file() {
        let file = tempfile::tempfile().unwrap();
        let duplicate = Fd::duplicate(file.as_fd()).unwrap();
        rustix::fs::seek(&duplicate, rustix::fs::SeekFrom::Start(7)).unwrap();
        assert_eq!(rustix::fs::tell(&file).unwrap(), 7);
        let raw = duplicate.into_public();
        assert!(!is_private(raw));
        close_raw(raw);
    }
}
