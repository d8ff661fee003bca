//! Private descriptors inside an application's process.
//!
//! They have high numbers, which programs that rely on small numbers or close "everything from 3
//! on" seldom touch. They are close-on-exec and entered in a process-wide register, so that the
//! interposed `close`, `dup2`, `close_range` and `closefrom` can leave them alone ([`is_private`]).
//!
//! In a process without an application ([`alone`]) they need not avoid any numbers, and keep those
//! that the kernel chose.
//!
//! The register is a bitmap of atomics. It takes no locks, and is usable in signal handlers and
//! after fork (the child has the same descriptors).

use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};

use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::process::{Resource, getrlimit};

use crate::Result;

/// Private descriptors are below this number; the register has one bit for each.
pub const LIMIT: RawFd = 65536;

/// Largest minimum for the numbers of private descriptors. The kernel's table of descriptors is as
/// long as the highest number in use, and fork copies it.
const PLACE_MAX: u64 = 4096;

static REGISTER: [AtomicU64; LIMIT as usize / 64] = [const { AtomicU64::new(0) }; LIMIT as usize / 64];

/// Set if no application runs in this process.
static ALONE: AtomicBool = AtomicBool::new(false);

/// Declares that no application runs in this process: new private descriptors keep their numbers
/// from now on. A move closes the original number, and a file system behind FUSE gets a request for
/// each close.
pub fn alone() {
    ALONE.store(true, Ordering::Relaxed);
}

/// An owned private descriptor. Dropping it closes it with the raw system call and ignores errors
/// (fsync reports those of writes).
///
/// Closing any descriptor of an inode drops the POSIX record locks that the process holds on it. So
/// hold private descriptors only of files that the application does not lock, or do not close them
/// while it holds locks.
#[derive(Debug)]
pub struct Fd(RawFd);

impl Fd {
    /// Takes over a descriptor that was just made: moves it to a high number (unless the process is
    /// [`alone`]), sets close-on-exec, and registers it.
    ///
    /// # Errors
    /// EMFILE if no number below [`LIMIT`] is free. The descriptor is closed then.
    pub fn adopt(fd: OwnedFd) -> Result<Self> {
        // `std` must not drop it: that would call libc's `close`.
        let fd = ManuallyDrop::new(fd);
        let raw = fd.as_raw_fd();
        let placed = if ALONE.load(Ordering::Relaxed) { Err(Errno::MFILE) } else { place_high(fd.as_fd()) };
        match placed {
            Ok(high) => {
                close_raw(raw);
                Ok(Self::register(high))
            }
            // Moving is unnecessary, or there is no free high number: the descriptor keeps its
            // number.
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

    /// A private duplicate of `fd`. Both refer to the same open file description, so they share
    /// offset, status flags and OFD locks.
    pub fn duplicate(fd: BorrowedFd<'_>) -> Result<Self> {
        place_high(fd).map(Self::register)
    }

    fn register(raw: RawFd) -> Self {
        own(raw);
        Self(raw)
    }
}

impl Drop for Fd {
    fn drop(&mut self) {
        // Unregistered first: once it is closed, another thread may get the number and register it.
        disown(self.0);
        close_raw(self.0);
    }
}

impl AsFd for Fd {
    #[inline]
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

/// Closes a descriptor of [`crate::Sys::open_public`] that was not passed to the application.
pub fn close_public(raw: RawFd) {
    close_raw(raw);
}

/// In a forked child: closes a private descriptor whose owner is a thread of the parent.
///
/// The kernel copies the descriptors before the memory. A descriptor that another thread opened in
/// between is in the child's register, although the child does not have it.
pub fn close_inherited(raw: RawFd) {
    if is_private(raw) {
        disown(raw);
        close_raw(raw);
    }
}

/// Moves a descriptor that a C library has just opened for the runtime to a high number, and
/// returns that number. If none is free, the descriptor keeps its number.
pub fn raise(raw: RawFd) -> RawFd {
    // SAFETY: the caller's descriptor, which was just made.
    match place_high(unsafe { borrow(raw) }) {
        Ok(high) => {
            close_raw(raw);
            high
        }
        Err(_) => raw,
    }
}

/// Registers `raw`, which a C library opened for the runtime, as private. The descriptor keeps its
/// number. Its owner closes it after [`disown`].
pub fn own(raw: RawFd) {
    if let Some((word, bit)) = entry(raw) {
        word.fetch_or(bit, Ordering::Relaxed);
    }
}

/// Undoes [`own`].
pub fn disown(raw: RawFd) {
    if let Some((word, bit)) = entry(raw) {
        word.fetch_and(!bit, Ordering::Relaxed);
    }
}

/// Whether `raw` is a private descriptor of this library (of any copy of it in this process image
/// and in its parents by fork). Lock-free; takes a few ns.
pub fn is_private(raw: RawFd) -> bool {
    entry(raw).is_some_and(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0)
}

/// The register's bit of a descriptor, and the word that it is in.
fn entry(raw: RawFd) -> Option<(&'static AtomicU64, u64)> {
    (0..LIMIT).contains(&raw).then(|| (&REGISTER[raw as usize / 64], 1 << (raw % 64)))
}

/// The smallest private descriptor not below `from`, for splitting a `close_range`.
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

/// Duplicates `fd` to a number in the highest third of those that the process may use, or from
/// [`PLACE_MAX`] on if that is lower. If no number there is free, tries lower ones.
fn place_high(fd: BorrowedFd<'_>) -> Result<RawFd> {
    /// The minimum that was used last; 0 if there is none yet. The resource limit seldom changes,
    /// and reading it takes a system call.
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
            // MFILE: no number from the minimum on is free. INVAL: the resource limit was lowered
            // below it.
            Err(Errno::MFILE | Errno::INVAL) if minimum > 3 => {
                PLACE.store(0, Ordering::Relaxed);
                minimum = (minimum / 2).max(3);
            }
            Err(error) => return Err(error),
        }
    }
}

/// Closes with the raw system call. When a file system fails on close (FUSE without its server),
/// the descriptor is closed nevertheless.
pub(crate) fn close_raw(raw: RawFd) {
    // SAFETY: the callers own the descriptor and do not use it afterwards.
    let _ = unsafe { rustix::io::try_close(raw) };
}

/// Borrows the descriptor of this number.
///
/// # Safety
/// `raw` is open for the lifetime chosen.
pub unsafe fn borrow<'a>(raw: RawFd) -> BorrowedFd<'a> {
    unsafe { BorrowedFd::borrow_raw(raw) }
}

/// Makes an owned descriptor of a number, for [`Fd::adopt`].
///
/// # Safety
/// `raw` is open, and no other code closes it.
pub unsafe fn owned(raw: RawFd) -> OwnedFd {
    unsafe { OwnedFd::from_raw_fd(raw) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dev_null() -> OwnedFd {
        rustix::fs::open("/dev/null", rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty()).unwrap()
    }

    /// A private descriptor with the `last`-to-last number that there is. Tests that run at the
    /// same time do not get this number once it is closed.
    fn far(last: RawFd) -> Fd {
        let soft_limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let number = soft_limit.min(LIMIT as u64) as RawFd - last;
        let fd = Fd::register(fcntl_dupfd_cloexec(dev_null(), number).unwrap().into_raw_fd());
        assert_eq!(fd.as_raw_fd(), number);
        fd
    }

    #[test]
    fn private_descriptors_are_high_registered_and_closed_on_exec() {
        let fd = Fd::adopt(dev_null()).unwrap();
        let raw = fd.as_raw_fd();
        assert!(raw >= 256, "{raw} is low");
        assert!(is_private(raw));
        assert!(rustix::io::fcntl_getfd(&fd).unwrap().contains(rustix::io::FdFlags::CLOEXEC));
    }

    #[test]
    fn a_dropped_descriptor_is_closed_and_not_private() {
        let fd = far(1);
        let raw = fd.as_raw_fd();
        assert!(is_private(raw));
        drop(fd);
        assert!(!is_private(raw));
        // SAFETY: only asks whether there is such a descriptor.
        assert_eq!(rustix::io::fcntl_getfd(unsafe { borrow(raw) }), Err(Errno::BADF));
    }

    #[test]
    fn numbers_that_cannot_be_descriptors_are_not_private() {
        assert!(!is_private(-1));
        assert!(!is_private(LIMIT));
    }

    #[test]
    fn next_private_finds_them_in_order() {
        let (one, two) = (Fd::adopt(dev_null()).unwrap(), Fd::adopt(dev_null()).unwrap());
        let (low, high) = (one.as_raw_fd().min(two.as_raw_fd()), one.as_raw_fd().max(two.as_raw_fd()));
        assert_eq!(next_private(low), Some(low));
        // Other tests of this process may have private descriptors in between.
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
        let gone = far(2).as_raw_fd();
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
    }
}
