//! The size lock: who appends or truncates has it alone; who must know the size exactly shares it.
//!
//! An OFD lock on `ID.manifest`. Each holder needs an open file description of its own, also each thread, so they are
//! opened when needed and one is kept for the next time.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::atomic::Ordering;

use stripewise_sys::{Fd, LockKind, Mode, OFlags};
use stripewise_target::TargetError;

use super::LogicalFile;
use crate::runtime::link_of;
use crate::{Errno, Result, trouble};

/// The byte that is locked.
pub(crate) const SIZE_LOCK_BYTE: u64 = 0;

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
        let lock = self.lock_size_as_it_is()?;
        if let Some(size) = self.pending(lock.copy()?)? {
            self.finish_truncate(&lock, size)?;
        }
        self.interrupted.store(false, Ordering::Release);
        Ok(lock)
    }

    /// Waits for the lock, alone; an interrupted truncate stays as it is.
    pub(super) fn lock_size_as_it_is(&self) -> Result<SizeLock<'_>> {
        self.acquire(LockKind::Exclusive)
    }

    /// Waits until nobody appends or truncates. An interrupted truncate is finished, or if this process may not, noted.
    pub(super) fn lock_size_shared(&self) -> Result<SizeLock<'_>> {
        let lock = self.acquire(LockKind::Shared)?;
        if self.pending(lock.copy()?)?.is_none() {
            self.interrupted.store(false, Ordering::Release);
            return Ok(lock);
        }
        if self.parts.writable {
            drop(lock);
            return self.lock_size();
        }
        self.interrupted.store(true, Ordering::Release);
        Ok(lock)
    }

    fn acquire(&self, kind: LockKind) -> Result<SizeLock<'_>> {
        let me = stripewise_sys::process::id();
        let mut idle = self.locks.lock().idle.take().filter(|(process, _)| *process == me);
        loop {
            let (fd, has_name) = match idle.take() {
                Some((_, fd)) => (fd, true),
                None => self.open_lock()?,
            };
            self.locks.lock().held.push((me, fd.as_raw_fd()));
            let lock = SizeLock { file: self, fd: Some(fd) };
            self.sys().lock(lock.copy()?, SIZE_LOCK_BYTE, 1, kind)?;
            // A repair may have put another one in its place, which everybody else locks now.
            if !has_name || self.sys().stat(lock.copy()?)?.st_nlink > 0 {
                return Ok(lock);
            }
            lock.discard();
        }
    }

    /// `ID.manifest`, by its name, and true. Where there is none, because the file was removed, the
    /// one that all who have the file open had opened with it, and false.
    fn open_lock(&self) -> Result<(Fd, bool)> {
        let flags = if self.parts.writable { OFlags::RDWR } else { OFlags::RDONLY };
        let opened = match self.components().open_manifest(flags) {
            Err(_) if self.follow_owner() => self.components().open_manifest(flags),
            opened => opened,
        };
        match opened {
            Err(TargetError::Io { errno: Errno::NOENT, .. }) => {
                let link = link_of(self.manifest_copy().as_raw_fd());
                self.sys().open(None, &link, flags, Mode::empty()).map(|fd| (fd, false))
            }
            opened => opened.map(|fd| (fd, true)).map_err(|error| trouble::told(&error)),
        }
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

impl SizeLock<'_> {
    /// Gives the lock back, and the descriptor up.
    fn discard(mut self) {
        let Some(fd) = self.fd.take() else { return };
        let me = stripewise_sys::process::id();
        self.file.locks.lock().held.retain(|held| *held != (me, fd.as_raw_fd()));
    }

    /// `ID.manifest`, as this holder of the lock has it open.
    pub(super) fn copy(&self) -> Result<BorrowedFd<'_>> {
        self.fd.as_ref().map(AsFd::as_fd).ok_or(Errno::BADF)
    }
}

impl Drop for SizeLock<'_> {
    fn drop(&mut self) {
        let Some(fd) = self.fd.take() else { return };
        let me = stripewise_sys::process::id();
        // Explicitly: a child that was forked meanwhile has a duplicate.
        let unlocked = self.file.sys().unlock(fd.as_fd(), SIZE_LOCK_BYTE, 1).is_ok();
        let mut locks = self.file.locks.lock();
        let raw = fd.as_raw_fd();
        locks.held.retain(|held| *held != (me, raw));
        if unlocked && locks.idle.is_none() {
            locks.idle = Some((me, fd));
        }
    }
}
