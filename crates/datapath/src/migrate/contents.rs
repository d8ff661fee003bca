//! Uniform access to the bytes of plain and managed files, for copying.

use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;

use stripewise_sys::{Fd, IoVec, Kind, Mode, OFlags, SeekFrom, Stat, SysRef, Timestamps};

use super::error::MigrateError;
use super::extended;
use crate::anchor::{self, FileKey};
use crate::error::{Errno, FileError, FileResult, Result};
use crate::file::{Change, IoOptions, LogicalFile, time};
use crate::runtime::Runtime;

/// How long to wait for a program that has the file open, and the pause between polls, ns.
const OPEN_PATIENCE_NS: u64 = 1_000_000_000;
const OPEN_LOOK_NS: u64 = 5_000_000;

/// An open file, plain or managed.
pub enum Contents {
    /// A plain file.
    Plain(SysRef, Fd),
    /// A managed file.
    Managed(Arc<LogicalFile>),
}

/// Identifies one state of a file's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    /// The file or its anchor.
    pub key: FileKey,
    pub size: u64,
    /// Time of the last change of the bytes: seconds and nanoseconds since 1970.
    pub modified: (i64, i64),
    /// Time of the last change of bytes or attributes of a plain file; (0, 0) for a managed file,
    /// whose anchor is updated lazily.
    pub changed: (i64, i64),
}

impl Version {
    pub fn chunk_count(&self, chunk_bytes: u64) -> u64 {
        self.size.div_ceil(chunk_bytes)
    }
}

impl Contents {
    /// Opens the file at `path`: a managed file for writing if permitted, a plain file for reading.
    ///
    /// # Errors
    /// It does not exist, is not a regular file, or may not be read; its manifest, a target or an
    /// object is unusable.
    pub fn open(runtime: &Runtime, path: &Path) -> FileResult<Self> {
        let (sys, io) = (runtime.sys(), || FileError::io(path, "open"));
        let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::NONBLOCK;
        // A file that may not be read may already be open in this process.
        let plain = match sys.open(None, path, flags, Mode::empty()) {
            Ok(fd) if !anchor::begins(sys, fd.as_fd()).map_err(io())? => Ok(fd),
            opened => match runtime.open_file(path)? {
                Some(file) => return Ok(Self::Managed(file)),
                None => opened,
            },
        };
        Ok(Self::Plain(sys.clone(), plain.map_err(io())?))
    }

    /// The managed file, if it is one.
    pub fn managed(&self) -> Option<&Arc<LogicalFile>> {
        match self {
            Self::Plain(..) => None,
            Self::Managed(file) => Some(file),
        }
    }

    fn sys(&self) -> &SysRef {
        match self {
            Self::Plain(sys, _) => sys,
            Self::Managed(file) => file.sys(),
        }
    }

    /// The descriptor of the file at the path: the anchor of a managed file.
    pub(super) fn named_file(&self) -> BorrowedFd<'_> {
        match self {
            Self::Plain(_, fd) => fd.as_fd(),
            Self::Managed(file) => file.anchor(),
        }
    }

    /// Whether another program of this node has the file open or mapped, as far as this can be
    /// known. The kernel knows on file systems with leases, for files of this user; for a file with
    /// several copies the extent map knows.
    fn is_open_elsewhere(&self) -> bool {
        let is_open = |fd: BorrowedFd<'_>| self.sys().is_open_elsewhere(fd) == Ok(true);
        match self {
            Self::Plain(_, fd) => is_open(fd.as_fd()),
            Self::Managed(file) => {
                // A mapping maps objects, and stays after the descriptor of the anchor is closed.
                let objects = file.objects();
                let mapped = |index| objects.fd(index).is_ok_and(is_open);
                is_open(file.anchor()) || (0..objects.targets().len()).any(mapped) || file.has_other_members()
            }
        }
    }

    /// Fails if another program has the file at `path` open: it would continue with the old file,
    /// and its later writes would be lost. Waits for a program that only looks at the file or is
    /// about to close it.
    pub(super) fn refuse_if_open(&self, path: &Path) -> Result<(), MigrateError> {
        let until_ns = self.sys().now_ns() + OPEN_PATIENCE_NS;
        while self.is_open_elsewhere() {
            let now_ns = self.sys().now_ns();
            if now_ns >= until_ns {
                return Err(MigrateError::InUse(path.into()));
            }
            self.sys().sleep_until_ns(now_ns + OPEN_LOOK_NS);
        }
        Ok(())
    }

    /// The stat(2) result of the file, with size, permissions, blocks and times of a managed file.
    ///
    /// # Errors
    /// Same as fstat(2).
    pub fn stat(&self) -> Result<Stat> {
        match self {
            Self::Plain(sys, fd) => sys.stat(fd.as_fd()),
            Self::Managed(file) => {
                let mut stat = file.sys().stat(file.anchor())?;
                file.correct_stat(&mut stat)?;
                Ok(stat)
            }
        }
    }

    /// The current state of the bytes.
    pub(super) fn version(&self) -> Result<Version> {
        Ok(self.version_of(&self.stat()?))
    }

    /// The state of the bytes according to [`Contents::stat`] or, for a plain file, to stat(2) of
    /// its name.
    pub(super) fn version_of(&self, stat: &Stat) -> Version {
        Version {
            key: FileKey::of(stat),
            size: stat.st_size as u64,
            modified: (stat.st_mtime, stat.st_mtime_nsec as i64),
            changed: match self {
                Self::Plain(..) => (stat.st_ctime, stat.st_ctime_nsec as i64),
                Self::Managed(_) => (0, 0),
            },
        }
    }

    /// Reads from `offset` on until the buffer is full or the file ends.
    ///
    /// # Errors
    /// Same as pread(2).
    pub fn read(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            let (rest, at) = (&mut buffer[done..], offset + done as u64);
            let more = match self {
                Self::Plain(sys, fd) => sys.read_at(fd.as_fd(), rest, at)?,
                Self::Managed(file) => {
                    let vector = IoVec { base: rest.as_mut_ptr(), len: rest.len() };
                    // SAFETY: the buffer is borrowed exclusively.
                    unsafe { file.read_at(&[vector], at, IoOptions::default())? }
                }
            };
            if more == 0 {
                break;
            }
            done += more;
        }
        Ok(done)
    }

    /// Writes the whole buffer at `offset`.
    ///
    /// # Errors
    /// Same as pwrite(2).
    pub fn write(&self, buffer: &[u8], offset: u64) -> Result<()> {
        let file = match self {
            Self::Plain(sys, fd) => return sys.write_all_at(fd.as_fd(), buffer, offset),
            Self::Managed(file) => file,
        };
        let mut done = 0;
        while done < buffer.len() {
            let rest = &buffer[done..];
            let vector = IoVec { base: rest.as_ptr().cast_mut(), len: rest.len() };
            // SAFETY: the buffer is borrowed, so it does not change, and is only read.
            match unsafe { file.write_at(&[vector], offset + done as u64, IoOptions::default())? } {
                0 => return Err(Errno::NOSPC),
                more => done += more,
            }
        }
        Ok(())
    }

    /// The offset of the first byte at or after `offset` that is not in a hole; `None` if there is
    /// none.
    pub(super) fn next_data(&self, offset: u64) -> Result<Option<u64>> {
        let found = match self {
            Self::Plain(sys, fd) => match sys.seek(fd.as_fd(), SeekFrom::Data(offset)) {
                // The file system does not support SEEK_DATA.
                Err(Errno::INVAL) => Ok(offset),
                found => found,
            },
            Self::Managed(file) => file.next_data(offset),
        };
        match found {
            Ok(found) => Ok(Some(found)),
            Err(Errno::NXIO) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sets the size to exactly `size` bytes.
    pub(super) fn set_size(&self, size: u64) -> Result<()> {
        match self {
            // Writing the last byte has set the size already; on some file systems another truncate
            // is expensive.
            Self::Plain(sys, fd) if sys.stat(fd.as_fd())?.st_size as u64 == size => Ok(()),
            Self::Plain(sys, fd) => sys.truncate(fd.as_fd(), size),
            Self::Managed(file) => file.truncate(size),
        }
    }

    pub(super) fn sync(&self) -> Result<()> {
        match self {
            Self::Plain(sys, fd) => sys.sync(fd.as_fd()),
            Self::Managed(file) => file.sync(false),
        }
    }

    /// Drops written and synced data from the page cache of this node, as far as the kernel does
    /// that: the next read then comes from the file system.
    pub(super) fn forget(&self) -> Result<()> {
        match self {
            Self::Plain(sys, fd) => sys.drop_cached(fd.as_fd()),
            Self::Managed(_) => Ok(()),
        }
    }

    /// Drains a file with several copies, so that each copy has everything it is to have. EBUSY if
    /// another process uses the file.
    pub(super) fn settle(&self) -> Result<()> {
        let Self::Managed(file) = self else { return Ok(()) };
        match file.drain(&mut |_, _| ControlFlow::Continue(()))?.left_bytes {
            0 => Ok(()),
            _ => Err(Errno::BUSY),
        }
    }

    /// Copies extended attributes, mode, times and, if permitted, the owner from another file.
    /// Without the owner, set-user-ID and set-group-ID are not copied either. The access list is
    /// copied between plain files only: on a managed file, whose bytes are in several files, it
    /// would protect only the anchor.
    pub(super) fn take_attributes(&self, of: &Stat, from: &Contents) -> Result<()> {
        let now = self.sys().stat(self.named_file())?;
        let owned = (now.st_uid, now.st_gid) == (of.st_uid, of.st_gid)
            || self.change(&Change::Owner(Some(of.st_uid), Some(of.st_gid))).is_ok();
        let bits = if owned { 0o7777 } else { 0o1777 };
        let plain = self.managed().is_none() && from.managed().is_none();
        extended::copy(self.sys(), Kind::Open(from.named_file()), Kind::Open(self.named_file()), plain)?;
        self.change(&Change::Mode(Mode::from_raw_mode(of.st_mode & bits)))?;
        self.change(&Change::Times(Timestamps {
            last_access: time(of.st_atime, of.st_atime_nsec),
            last_modification: time(of.st_mtime, of.st_mtime_nsec),
        }))
    }

    fn change(&self, change: &Change) -> Result<()> {
        let (sys, fd) = match self {
            Self::Plain(sys, fd) => (sys, Kind::Open(fd.as_fd())),
            Self::Managed(file) => return file.change(change),
        };
        match change {
            Change::Times(times) => sys.set_times(fd, times),
            Change::Mode(mode) => sys.set_mode(fd, *mode),
            Change::Owner(user, group) => sys.set_owner(fd, *user, *group),
        }
    }
}
