//! Where a journal lies, and its locks.

use std::ffi::OsString;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, Ordering};

use stripewise_sys::{Errno, Fd, LockKind, Mode, OFlags, SysRef};

use crate::error::io;
use crate::hooks;
use crate::{MapError, MapSpec, Result};

/// Held while joining, leaving, and renaming a new journal over the old.
pub(crate) const JOIN_BYTE: u64 = 0;
/// Held while changing the journal.
pub(crate) const COMMIT_BYTE: u64 = 1;

/// Descriptors that threads hold locks with: a forked child closes its duplicates, or the locks would outlive the parent.
#[derive(Debug, Default)]
pub(crate) struct Held([AtomicI32; 16]);

impl Held {
    /// Numbers are stored plus 1: 0 is free. When there are too many, one is left out.
    pub fn add(&self, raw: i32) {
        let free =
            |slot: &&AtomicI32| slot.compare_exchange(0, raw + 1, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        let _ = self.0.iter().find(free);
    }

    pub fn remove(&self, raw: i32) {
        let own =
            |slot: &&AtomicI32| slot.compare_exchange(raw + 1, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        let _ = self.0.iter().find(own);
    }

    /// In a forked child.
    pub fn close_inherited(&self) {
        for slot in &self.0 {
            if let Some(raw) = slot.swap(0, Ordering::AcqRel).checked_sub(1).filter(|&raw| raw >= 0) {
                stripewise_sys::fd::close_inherited(raw);
            }
        }
    }
}

/// A lock of a byte of a file, on a description of its own; given back on drop.
pub(crate) struct Locked<'a> {
    sys: &'a SysRef,
    held: &'a Held,
    /// `None` only while it is dropped.
    file: Option<Fd>,
}

impl<'a> Locked<'a> {
    /// Takes over a description that holds its locks already.
    pub fn new(sys: &'a SysRef, held: &'a Held, file: Fd) -> Self {
        held.add(file.as_raw_fd());
        Self { sys, held, file: Some(file) }
    }

    pub fn file(&self) -> &Fd {
        match &self.file {
            Some(file) => file,
            None => unreachable!("taken only on drop"),
        }
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let Some(file) = self.file.take() else { return };
        if !hooks::dead() {
            // Explicitly: a child that was forked meanwhile has a duplicate.
            let _ = self.sys.unlock(file.as_fd(), 0, 0);
        }
        self.held.remove(file.as_raw_fd());
    }
}

/// A journal's place.
pub(crate) struct Place {
    pub sys: SysRef,
    pub dir: Fd,
    pub name: OsString,
    /// For messages.
    pub path: PathBuf,
}

impl Place {
    pub fn new(sys: &SysRef, spec: &MapSpec) -> Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let dir = sys.open(None, &spec.journal_dir, flags, Mode::empty());
        let dir = dir.map_err(io(&spec.journal_dir, "open"))?;
        let path = spec.journal_dir.join(&spec.journal_name);
        Ok(Self { sys: sys.clone(), dir, name: spec.journal_name.clone(), path })
    }

    pub fn new_name(&self) -> OsString {
        let mut name = self.name.clone();
        name.push(".new");
        name
    }

    /// Waits for a lock of a byte of the journal that has the name now.
    pub fn lock<'a>(&'a self, held: &'a Held, byte: u64, create: bool) -> Result<Locked<'a>> {
        let create = if create { OFlags::CREATE } else { OFlags::empty() };
        let (sys, name) = (&self.sys, Path::new(&self.name));
        loop {
            let opened = sys.open(Some(self.dir.as_fd()), name, OFlags::RDWR | create, Mode::RUSR | Mode::WUSR);
            let file = match opened {
                Err(Errno::NOENT) => return Err(MapError::Missing { path: self.path.clone() }),
                file => file.map_err(io(&self.path, "open"))?,
            };
            let locked = Locked::new(sys, held, file);
            let fd = locked.file().as_fd();
            sys.lock(fd, byte, 1, LockKind::Exclusive).map_err(io(&self.path, "lock"))?;
            // It may have been replaced by a new one meanwhile.
            let own = sys.stat(fd).map_err(io(&self.path, "stat"))?;
            match sys.stat_at(Some(self.dir.as_fd()), name, false) {
                Ok(named) if (named.st_dev, named.st_ino) == (own.st_dev, own.st_ino) => return Ok(locked),
                Ok(_) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(io(&self.path, "stat")(errno)),
            }
        }
    }

    pub fn sync_dir(&self) -> Result<()> {
        self.sys.sync(self.dir.as_fd()).map_err(io(&self.path, "sync its directory"))
    }
}
