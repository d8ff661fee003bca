//! The size lock: append and truncate take it exclusively; reads that need the exact size share it.
//!
//! It is an OFD lock on `ID.manifest`. Each holder, including each thread, needs its own open file
//! description. Descriptions are opened on demand, and one is cached for the next use.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::Ordering;

use stripewise_sys::{Fd, LockKind, Mode, OFlags};
use stripewise_target::TargetError;

use super::LogicalFile;
use crate::error::{Errno, Logged, Result};
use crate::paths::link_of;

pub(crate) const SIZE_LOCK_BYTE: u64 = 0;

/// The held size lock; released on drop.
pub(crate) struct SizeLock<'a> {
    file: &'a LogicalFile,
    fd: Option<Fd>,
}

impl LogicalFile {
    /// Waits for the exclusive lock and finishes a truncate whose process died.
    pub(crate) fn lock_size(&self) -> Result<SizeLock<'_>> {
        self.finish_pending(self.lock_size_as_it_is()?)
    }

    /// As [`LogicalFile::lock_size`]; EAGAIN if another process has the lock. It finishes such a
    /// truncate.
    pub(super) fn try_lock_size(&self) -> Result<SizeLock<'_>> {
        self.finish_pending(self.acquire(LockKind::Exclusive, false)?)
    }

    fn finish_pending<'a>(&'a self, lock: SizeLock<'a>) -> Result<SizeLock<'a>> {
        if let Some(size) = self.pending(lock.copy()?)? {
            self.finish_truncate(&lock, size)?;
        }
        self.interrupted.store(false, Ordering::Release);
        Ok(lock)
    }

    /// Waits for the exclusive lock and leaves an interrupted truncate as it is.
    pub(super) fn lock_size_as_it_is(&self) -> Result<SizeLock<'_>> {
        self.acquire(LockKind::Exclusive, true)
    }

    /// Waits for the shared lock, that is, until no append or truncate is running. Finishes an
    /// interrupted truncate, or records it if this process may not write.
    pub(super) fn lock_size_shared(&self) -> Result<SizeLock<'_>> {
        let lock = self.acquire(LockKind::Shared, true)?;
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

    fn acquire(&self, kind: LockKind, waits: bool) -> Result<SizeLock<'_>> {
        let me = stripewise_sys::process::id();
        let mut idle = self.locks.lock().idle.take().filter(|(process, _)| *process == me);
        loop {
            let (fd, has_name) = match idle.take() {
                Some((_, fd)) => (fd, true),
                None => self.open_lock()?,
            };
            self.locks.lock().held.push((me, fd.as_raw_fd()));
            let lock = SizeLock { file: self, fd: Some(fd) };
            if waits {
                self.sys().lock(lock.copy()?, SIZE_LOCK_BYTE, 1, kind)?;
            } else if !self.sys().try_lock(lock.copy()?, SIZE_LOCK_BYTE, 1, kind)? {
                lock.discard();
                return Err(Errno::AGAIN);
            }
            // A repair may have replaced `ID.manifest`; other processes then lock the new one.
            if !has_name || self.sys().stat(lock.copy()?)?.st_nlink > 0 {
                return Ok(lock);
            }
            lock.discard();
        }
    }

    /// Opens `ID.manifest` by name and returns true with it. If the file was removed, reopens the
    /// one that this process opened with the file, which all other openers share, and returns
    /// false.
    fn open_lock(&self) -> Result<(Fd, bool)> {
        let flags = if self.parts.writable { OFlags::RDWR } else { OFlags::RDONLY };
        let opened = match self.objects().open_manifest(flags) {
            Err(_) if self.follow_owner() => self.objects().open_manifest(flags),
            opened => opened,
        };
        match opened {
            Err(TargetError::Io { errno: Errno::NOENT, .. }) => {
                let link = link_of(self.manifest_copy().as_raw_fd());
                self.sys().open(None, &link, flags, Mode::empty()).map(|fd| (fd, false))
            }
            opened => opened.map(|fd| (fd, true)).logged(),
        }
    }

    /// For a forked child: closes descriptors through which threads of the parent hold the lock.
    /// They are duplicates, and would keep the lock held after the parent is killed.
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
    /// Closes the descriptor, which releases the lock.
    fn discard(mut self) {
        let Some(fd) = self.fd.take() else { return };
        let me = stripewise_sys::process::id();
        self.file.locks.lock().held.retain(|held| *held != (me, fd.as_raw_fd()));
    }

    /// The descriptor of `ID.manifest` through which this lock is held.
    pub(super) fn copy(&self) -> Result<BorrowedFd<'_>> {
        self.fd.as_ref().map(AsFd::as_fd).ok_or(Errno::BADF)
    }
}

impl Drop for SizeLock<'_> {
    fn drop(&mut self) {
        let Some(fd) = self.fd.take() else { return };
        let me = stripewise_sys::process::id();
        // Unlock explicitly: a child forked meanwhile has a duplicate of the descriptor.
        let unlocked = self.file.sys().unlock(fd.as_fd(), SIZE_LOCK_BYTE, 1).is_ok();
        let mut locks = self.file.locks.lock();
        let raw = fd.as_raw_fd();
        locks.held.retain(|held| *held != (me, raw));
        if unlocked && locks.idle.is_none() {
            locks.idle = Some((me, fd));
        }
    }
}
