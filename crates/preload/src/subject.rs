//! What a call on a descriptor has to do with.

use std::ffi::c_int;
use std::os::fd::BorrowedFd;

use rustix::fs::{OFlags, SeekFrom, fcntl_getfl, fstat, seek};
use rustix::io::retry_on_intr;
use stripewise_datapath::LogicalFile;
use stripewise_sys::{Errno, Result, Stat};

use crate::entry::EntryRef;
use crate::table::{self, Known};
use crate::{process, state};

/// What a descriptor refers to.
pub enum Subject {
    /// None of our business.
    Plain,
    /// A plain file whose calls are recorded.
    Recorded(EntryRef),
    /// The anchor of a managed file, or what may be one: then its file is an error.
    Managed(Managed),
}

/// A descriptor of a managed file.
pub struct Managed {
    fd: c_int,
    entry: EntryRef,
    anchor: Result<Stat>,
}

impl Subject {
    /// Of a descriptor. Costs two loads for plain ones, and one fstat for managed ones: a descriptor that was closed
    /// behind our back and now is another file's is noticed here.
    #[inline]
    pub fn of(fd: c_int) -> Self {
        match table::tracked(fd) {
            None => Self::Plain,
            Some(entry) => Self::of_entry(fd, entry),
        }
    }

    /// The managed file, for calls that are not recorded.
    #[inline]
    pub fn managed(fd: c_int) -> Option<Managed> {
        table::tracked(fd).and_then(|entry| Self::managed_of(fd, entry))
    }

    // Out of line: what is seen for the first time needs the stack before.
    #[inline(never)]
    fn managed_of(fd: c_int, entry: EntryRef) -> Option<Managed> {
        match Self::of_entry(fd, entry) {
            Self::Managed(managed) => Some(managed),
            _ => None,
        }
    }

    /// Of a descriptor that has this entry.
    #[inline(never)]
    pub fn of_entry(fd: c_int, mut entry: EntryRef) -> Self {
        loop {
            if let Ok(None) = entry.file() {
                return Self::Recorded(entry);
            }
            #[cfg(target_arch = "x86_64")]
            crate::patched::keep_entry();
            if let Some(error) = entry.failure() {
                return Self::unknown(fd, error);
            }
            // A forked child has to be told before it touches a file.
            let _ = state::runtime_if_used();
            // SAFETY: borrowed for the call.
            let anchor = match retry_on_intr(|| fstat(unsafe { BorrowedFd::borrow_raw(fd) })) {
                // Closed behind our back: the kernel says so, too.
                Err(Errno::BADF) => return Self::Plain,
                Err(error) => return Self::unknown(fd, error),
                Ok(anchor) => anchor,
            };
            if entry.key() == (anchor.st_dev, anchor.st_ino) {
                return Self::Managed(Managed { fd, entry, anchor: Ok(anchor) });
            }
            if process::is_vfork_child() {
                return Self::Plain;
            }
            table::set(fd, Known::Unknown);
            match table::tracked(fd) {
                None => return Self::Plain,
                Some(other) => entry = other,
            }
        }
    }

    /// What this descriptor is could not be found out: every call on it fails, rather than reach a manifest.
    fn unknown(fd: c_int, error: Errno) -> Self {
        Self::Managed(Managed { fd, entry: EntryRef::failed(error), anchor: Err(error) })
    }
}

impl Managed {
    /// The descriptor.
    pub fn fd(&self) -> BorrowedFd<'_> {
        // SAFETY: it was open a moment ago; a program that closes it meanwhile gets EBADF, or what it deserves.
        unsafe { BorrowedFd::borrow_raw(self.fd) }
    }

    /// The file.
    ///
    /// # Errors
    /// It cannot be served: EIO.
    pub fn file(&self) -> Result<&LogicalFile> {
        self.entry.file()?.ok_or(Errno::IO)
    }

    /// The entry.
    pub fn entry(&self) -> &EntryRef {
        &self.entry
    }

    /// What the kernel says of the anchor.
    ///
    /// # Errors
    /// It did not.
    pub fn anchor(&self) -> Result<&Stat> {
        self.anchor.as_ref().map_err(|error| *error)
    }

    /// The status flags; the kernel keeps them, also for other processes that share the descriptor.
    /// The access mode is the one that the program asked for.
    ///
    /// # Errors
    /// EBADF for a descriptor with O_PATH. Why it could not be found out what the descriptor is:
    /// then nothing is known of what the program asked for either.
    pub fn flags(&self) -> Result<OFlags> {
        if let Some(error) = self.entry.failure() {
            return Err(error);
        }
        let flags = fcntl_getfl(self.fd())?;
        if flags.contains(OFlags::PATH) {
            return Err(Errno::BADF);
        }
        if flags & OFlags::RWMODE == OFlags::RDONLY { Ok(flags | self.entry.access()) } else { Ok(flags) }
    }

    /// The file, for a call that changes it.
    ///
    /// # Errors
    /// `refusal` when the descriptor is not open for writing.
    pub fn writable(&self, refusal: Errno) -> Result<&LogicalFile> {
        if self.flags()? & OFlags::RWMODE == OFlags::RDONLY { Err(refusal) } else { self.file() }
    }

    /// The descriptor's offset.
    ///
    /// # Errors
    /// As lseek(2).
    pub fn offset(&self) -> Result<u64> {
        seek(self.fd(), SeekFrom::Current(0))
    }

    /// Sets the descriptor's offset.
    ///
    /// # Errors
    /// As lseek(2).
    pub fn set_offset(&self, offset: u64) -> Result<u64> {
        if offset > i64::MAX as u64 {
            return Err(Errno::INVAL);
        }
        seek(self.fd(), SeekFrom::Start(offset))
    }
}
