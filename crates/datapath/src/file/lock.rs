//! The size lock: who appends, truncates or changes the anchor's size has it alone; who must know the size exactly
//! shares it.
//!
//! An OFD lock on `ID.manifest`. Each holder needs an open file description of its own, also each thread, so they are
//! opened when needed and one is kept for the next time.

use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::path::Path;

use stripewise_sys::{Fd, LockKind, Mode, OFlags};
use stripewise_target::TargetError;

use super::LogicalFile;
use crate::{Errno, Result, anchor, trouble};

/// The byte that is locked.
const BYTE: u64 = 0;

#[derive(Debug, Default)]
pub(super) struct Locks {
    /// Not locked, of this process (a forked child's would be its parent's).
    idle: Option<(u32, Fd)>,
    /// Locked now: (process, descriptor).
    held: Vec<(u32, RawFd)>,
}

/// The lock; given back on drop.
pub(crate) struct SizeLock<'a> {
    file: &'a LogicalFile,
    fd: Option<Fd>,
}

impl LogicalFile {
    /// Waits for the lock, alone, and finishes a truncate whose process died.
    pub(crate) fn lock_size(&self) -> Result<SizeLock<'_>> {
        let lock = self.acquire(LockKind::Exclusive)?;
        if let Some(size) = anchor::pending(self.sys(), self.anchor(), self.parts.anchored.pending_at)? {
            self.finish_truncate(size)?;
        }
        Ok(lock)
    }

    /// Waits until nobody appends or truncates. An interrupted truncate is finished, or if this process may not, noted.
    pub(super) fn lock_size_shared(&self) -> Result<SizeLock<'_>> {
        let lock = self.acquire(LockKind::Shared)?;
        let pending = anchor::pending(self.sys(), self.anchor(), self.parts.anchored.pending_at)?;
        if pending.is_none() {
            return Ok(lock);
        }
        if self.parts.writable {
            drop(lock);
            return self.lock_size();
        }
        self.interrupted.store(true, std::sync::atomic::Ordering::Release);
        Ok(lock)
    }

    fn acquire(&self, kind: LockKind) -> Result<SizeLock<'_>> {
        let me = stripewise_sys::process::id();
        let idle = self.locks.lock().idle.take().filter(|(process, fd)| *process == me && self.has_name(fd));
        let fd = match idle {
            Some((_, fd)) => fd,
            None => self.open_lock()?,
        };
        self.locks.lock().held.push((me, fd.as_raw_fd()));
        let lock = SizeLock { file: self, fd: Some(fd) };
        if let Some(fd) = &lock.fd {
            self.sys().lock(fd.as_fd(), BYTE, 1, kind)?;
        }
        Ok(lock)
    }

    /// `ID.manifest`; once that is gone, because the file was removed, the first component, which all who have the file
    /// open can reach.
    fn open_lock(&self) -> Result<Fd> {
        let flags = if self.parts.writable { OFlags::RDWR } else { OFlags::RDONLY };
        let opened = match self.components().open_manifest(flags) {
            Err(_) if self.follow_owner() => self.components().open_manifest(flags),
            opened => opened,
        };
        match opened {
            Err(TargetError::Io { errno: Errno::NOENT, .. }) => {
                let component = self.components().fd(0).map_err(|error| trouble::told(&error))?;
                let path = format!("/proc/self/fd/{}", component.as_raw_fd());
                self.sys().open(None, Path::new(&path), flags, Mode::empty())
            }
            opened => opened.map_err(|error| trouble::told(&error)),
        }
    }

    fn has_name(&self, fd: &Fd) -> bool {
        self.sys().stat(fd.as_fd()).is_ok_and(|stat| stat.st_nlink > 0)
    }

    /// In a forked child: descriptors with which the parent's threads hold the lock are duplicates of the parent's, and
    /// would hold it when the parent is killed.
    pub(super) fn forget_locks(&self) {
        let me = stripewise_sys::process::id();
        let mut locks = self.locks.lock();
        locks.idle = None;
        for (_, raw) in locks.held.extract_if(.., |(process, _)| *process != me) {
            stripewise_sys::fd::close_inherited(raw);
        }
    }
}

impl Drop for SizeLock<'_> {
    fn drop(&mut self) {
        let Some(fd) = self.fd.take() else { return };
        let me = stripewise_sys::process::id();
        // Explicitly: a child that was forked meanwhile has a duplicate.
        let unlocked = self.file.sys().unlock(fd.as_fd(), BYTE, 1).is_ok();
        let mut locks = self.file.locks.lock();
        let raw = fd.as_raw_fd();
        locks.held.retain(|held| *held != (me, raw));
        if unlocked && locks.idle.is_none() {
            locks.idle = Some((me, fd));
        }
    }
}
