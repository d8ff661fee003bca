//! One run of a migration: its file, its goal, and the steps that every run has.

use std::path::Path;

use stripewise_sys::{Mode, Stat};
use stripewise_target::FileId;

use super::contents::{Contents, Version};
use super::error::{MigrateError, Result};
use super::place::Place;
use crate::anchor::FileKey;
use crate::error::{Errno, FileError};
use crate::file::sync_directory;
use crate::runtime::Runtime;

/// How to copy the bytes of a long file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    pub chunk_bytes: u64,
    /// Number of chunks copied in parallel.
    pub streams: usize,
}

pub(super) struct Job<'a> {
    pub runtime: &'a Runtime,
    pub path: &'a Path,
    pub source: Contents,
    pub stat: Stat,
    pub version: Version,
    pub place: Place<'a>,
    pub pace: Pace,
    pub progress: &'a mut dyn FnMut(Progress),
}

impl<'a> Job<'a> {
    pub fn new(
        runtime: &'a Runtime,
        path: &'a Path,
        source: Contents,
        place: Place<'a>,
        pace: Pace,
        progress: &'a mut dyn FnMut(Progress),
    ) -> Result<Self> {
        let stat = source.stat().map_err(FileError::io(path, "stat"))?;
        let version = source.version_of(&stat);
        Ok(Self { runtime, path, source, stat, version, place, pace, progress })
    }

    pub(super) fn io(&self, what: &'static str) -> impl Fn(Errno) -> MigrateError + use<> {
        let path = self.path.to_owned();
        move |errno| MigrateError::File(FileError::Io { path: path.clone(), what, errno })
    }

    /// Renames the complete temporary over the file.
    pub(super) fn switch(&self, temporary: &Path) -> Result<()> {
        let sys = self.runtime.sys();
        let named = sys.stat_at(None, self.path, false).map_err(self.io("stat"))?;
        let replaced = FileKey::of(&named) != FileKey::of(&self.stat);
        let managed = self.source.managed().is_some();
        let now = if managed { self.source.version() } else { Ok(self.source.version_of(&named)) };
        if replaced || now.map_err(self.io("stat"))? != self.version {
            return Err(MigrateError::Changed(self.path.into()));
        }
        // A program may have opened the file during the copy.
        self.source.refuse_if_open(self.path)?;
        // Only a managed file has objects, which are removed with it.
        let renamed = match managed {
            true => self.runtime.rename(None, temporary, None, self.path, 0),
            false => sys.rename(None, temporary, None, self.path),
        };
        renamed.map_err(self.io("replace"))?;
        sync_directory(sys, None, self.path).map_err(self.io("sync the directory of"))
    }

    /// Creates the temporary. Until it is complete, only its owner may access it.
    pub(super) fn make(&self, id: FileId) -> Result<Contents> {
        let private = Mode::RUSR | Mode::WUSR;
        self.place.make(self.runtime, self.path, id, private, "create a file beside")
    }

    pub(super) fn check_space(&self) -> Result<()> {
        let data = (self.stat.st_blocks as u64).saturating_mul(512);
        self.place.check_space(self.runtime, self.path, self.version.size, data)
    }
}

/// The phase of a long operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Resuming an earlier run, which has copied `done` bytes. Reported once, first.
    Found,
    /// Copying data.
    Copy,
    /// Reading back the copy.
    Verify,
}

/// The progress of a long operation.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// The current phase.
    pub phase: Phase,
    /// Bytes done.
    pub done: u64,
    /// Bytes in total.
    pub total: u64,
}
