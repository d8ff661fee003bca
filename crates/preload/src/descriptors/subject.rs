//! The file that a call on a descriptor is about.

use std::ffi::c_int;
use std::os::fd::BorrowedFd;

use rustix::fs::{OFlags, SeekFrom, fcntl_getfl, fstat, seek};
use rustix::io::retry_on_intr;
use stripewise_datapath::LogicalFile;
use stripewise_sys::{Errno, Result, Stat};

use crate::descriptors::{Call, EntryRef, Known, record, table, tracked};
use crate::process::{NoCancellation, borrow, identity, state};

pub enum Subject {
    Plain,
    /// A plain file whose calls are recorded.
    Recorded(EntryRef),
    /// The anchor of a managed file, or a descriptor that could be one: then its file is an error.
    Managed(Managed),
}

pub struct Managed {
    fd: c_int,
    entry: EntryRef,
}

impl Subject {
    /// Looks up a descriptor. Costs two loads for a plain one, and one system call for a managed
    /// one, which detects a descriptor that was closed without the library's knowledge and now
    /// refers to another file: a comparison with its [twin](crate::descriptors::Twin), or else an
    /// fstat.
    #[inline]
    pub fn of(fd: c_int) -> Self {
        match tracked(fd) {
            None => Self::Plain,
            Some(entry) => Self::of_entry(fd, entry),
        }
    }

    /// The managed file, for calls that are not recorded.
    #[inline]
    pub fn managed(fd: c_int) -> Option<Managed> {
        tracked(fd).and_then(|entry| Self::managed_of(fd, entry))
    }

    // Not inlined: the first use of a descriptor needs the stack that an inlined caller would
    // occupy.
    #[inline(never)]
    fn managed_of(fd: c_int, entry: EntryRef) -> Option<Managed> {
        match Self::of_entry(fd, entry) {
            Self::Managed(managed) => Some(managed),
            _ => None,
        }
    }

    /// As [`of`](Self::of), for a descriptor that has this entry.
    #[inline(never)]
    pub fn of_entry(fd: c_int, mut entry: EntryRef) -> Self {
        loop {
            if entry.is_plain() {
                return Self::Recorded(entry);
            }
            #[cfg(target_arch = "x86_64")]
            crate::process::patched::keep_entry();
            if let Err(error) = entry.file() {
                return Self::unknown(fd, error);
            }
            // Prepares the data path in a forked child before the child uses a file.
            let _ = state::runtime_if_used();
            if entry.twin.is_of(fd) {
                return Self::Managed(Managed { fd, entry });
            }
            let anchor = match retry_on_intr(|| fstat(borrow(fd))) {
                // Closed without the library's knowledge. The kernel reports EBADF for the real
                // call, too.
                Err(Errno::BADF) => return Self::Plain,
                Err(error) => return Self::unknown(fd, error),
                Ok(anchor) => anchor,
            };
            if entry.key == (anchor.st_dev, anchor.st_ino) {
                entry.twin.ensure(fd, entry.key);
                return Self::Managed(Managed { fd, entry });
            }
            if identity::is_vfork_child() {
                return Self::Plain;
            }
            table::set(fd, Known::Unknown);
            match tracked(fd) {
                None => return Self::Plain,
                Some(other) => entry = other,
            }
        }
    }

    /// The kind of this descriptor could not be determined. Every call on it fails: it might
    /// otherwise reach a manifest.
    fn unknown(fd: c_int, error: Errno) -> Self {
        Self::Managed(Managed { fd, entry: EntryRef::failed(error) })
    }
}

/// Serves a call: by `real` on a plain file, by `ours` on a managed one.
#[inline]
pub fn on_managed<T>(fd: c_int, real: impl FnOnce() -> T, ours: impl FnOnce(&Managed) -> T) -> T {
    Subject::managed(fd).map_or_else(real, |managed| ours(&managed))
}

/// As [`on_managed`], for a call that is recorded.
pub fn on_recorded<T: Copy + TryInto<i64>>(
    fd: c_int,
    call: impl FnOnce() -> Call,
    real: impl FnOnce() -> T,
    ours: impl FnOnce(&Managed) -> T,
) -> T {
    let Some(entry) = tracked(fd) else { return real() };
    let _held = NoCancellation::new();
    match Subject::of_entry(fd, entry) {
        Subject::Plain => real(),
        Subject::Recorded(entry) => record::timed(&entry, call(), real),
        Subject::Managed(managed) => record::timed(managed.entry(), call(), || ours(&managed)),
    }
}

impl Managed {
    /// The descriptor. If the program closes it during the call, the call fails with EBADF or
    /// reaches the file that took the number, as without the library.
    pub fn fd(&self) -> BorrowedFd<'_> {
        borrow(self.fd)
    }

    pub fn file(&self) -> Result<&LogicalFile> {
        self.entry.file()?.ok_or(Errno::IO)
    }

    pub fn entry(&self) -> &EntryRef {
        &self.entry
    }

    /// fstat(2) of the anchor.
    pub fn anchor(&self) -> Result<Stat> {
        self.entry.file()?;
        retry_on_intr(|| fstat(self.fd()))
    }

    /// The status flags with the access mode that the program asked for. The kernel keeps the other
    /// flags, also for other processes that share the open file description.
    /// Errors: EBADF for a descriptor with O_PATH. The error with which the kind of the descriptor
    /// could not be determined: the access mode is unknown then, too.
    pub fn flags(&self) -> Result<OFlags> {
        self.entry.file()?;
        self.with_access(fcntl_getfl(self.fd())?)
    }

    /// As [`flags`](Self::flags), without a system call and as far as this process knows.
    pub fn known_flags(&self) -> Result<OFlags> {
        self.entry.file()?;
        self.with_access(self.entry.status())
    }

    fn with_access(&self, flags: OFlags) -> Result<OFlags> {
        if flags.contains(OFlags::PATH) {
            return Err(Errno::BADF);
        }
        if flags & OFlags::RWMODE == OFlags::RDONLY { Ok(flags | self.entry.access) } else { Ok(flags) }
    }

    /// The managed file, for a call that changes it.
    /// Errors: `refusal` when the descriptor is not open for writing.
    pub fn writable(&self, refusal: Errno) -> Result<&LogicalFile> {
        if self.flags()? & OFlags::RWMODE == OFlags::RDONLY { Err(refusal) } else { self.file() }
    }

    pub fn offset(&self) -> Result<u64> {
        seek(self.fd(), SeekFrom::Current(0))
    }

    pub fn set_offset(&self, offset: u64) -> Result<u64> {
        if offset > i64::MAX as u64 {
            return Err(Errno::INVAL);
        }
        seek(self.fd(), SeekFrom::Start(offset))
    }
}
