//! The component files of one logical file.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use stripewise_sys::{Fd, Mode, OFlags, Stat, SysRef, Timestamps};

use crate::{FanOut, FileId, Server, Target, TargetError};

/// How components are opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// For reading only; else for reading and writing.
    pub read_only: bool,
    /// More flags for open(2): O_DIRECT, O_SYNC, O_DSYNC.
    pub flags: OFlags,
}

/// The component files of one logical file: component `n` on target `n`, at `TARGET/stripewise/ID[0..2]/ID.n`.
///
/// The first 64 components are opened with the set, so that it keeps working after the names are gone; later ones when
/// they are first used. May be shared by threads and survives fork (the child has the same descriptors).
#[derive(Debug)]
pub struct ComponentSet {
    _id: FileId,
}

impl ComponentSet {
    /// Creates all components, empty, with `mode` (exactly: no umask), opened for reading and writing.
    ///
    /// All or nothing: after a failure those created are removed again. A crash leaves orphans ([`crate::list_components`]).
    ///
    /// # Errors
    /// [`TargetError`] of the first target that fails.
    pub fn create(
        sys: &SysRef,
        targets: Vec<Arc<Target>>,
        id: FileId,
        mode: Mode,
    ) -> Result<Self, TargetError> {
        let _ = (sys, targets, id, mode);
        todo!()
    }

    /// Opens existing components.
    ///
    /// # Errors
    /// [`TargetError::Io`] with ENOENT for a component that is lost, EACCES, EMFILE, ...
    pub fn open(
        sys: &SysRef,
        targets: Vec<Arc<Target>>,
        id: FileId,
        opening: Opening,
    ) -> Result<Self, TargetError> {
        let _ = (sys, targets, id, opening);
        todo!()
    }

    /// From now on component `n` is paced as emulated server `servers[n]`; `None`: not emulated.
    #[must_use]
    pub fn with_servers(self, servers: Vec<Option<Server>>) -> Self {
        let _ = servers;
        todo!()
    }

    /// Number of components.
    pub fn len(&self) -> usize {
        todo!()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The targets, in order.
    pub fn targets(&self) -> &[Arc<Target>] {
        todo!()
    }

    /// The descriptor of component `index`; opened now if it was not.
    ///
    /// # Errors
    /// As [`ComponentSet::open`].
    pub fn fd(&self, index: usize) -> Result<BorrowedFd<'_>, TargetError> {
        let _ = index;
        todo!()
    }

    /// The sizes of all components, bytes.
    ///
    /// # Errors
    /// [`TargetError::Io`].
    pub fn sizes(&self) -> Result<Vec<u64>, TargetError> {
        todo!()
    }

    /// fstat of all components.
    ///
    /// # Errors
    /// [`TargetError::Io`].
    pub fn stats(&self) -> Result<Vec<Stat>, TargetError> {
        todo!()
    }

    /// Cuts (or lengthens, under the caller's lock) component `index` to exactly `size` bytes.
    ///
    /// # Errors
    /// [`TargetError::Io`].
    pub fn truncate(&self, index: usize, size: u64) -> Result<(), TargetError> {
        let _ = (index, size);
        todo!()
    }

    /// Makes component `index` at least `size` bytes long; never shortens it, whatever races.
    ///
    /// # Errors
    /// [`TargetError::Io`], ENOSPC among them.
    pub fn grow(&self, index: usize, size: u64) -> Result<(), TargetError> {
        let _ = (index, size);
        todo!()
    }

    /// Syncs all components at once. Not paced under emulation.
    ///
    /// # Errors
    /// The first failure; all were tried.
    pub fn sync(&self, fan_out: &FanOut, data_only: bool) -> Result<(), TargetError> {
        let _ = (fan_out, data_only);
        todo!()
    }

    /// Makes the names of the components durable: syncs the directories that lead to them.
    ///
    /// # Errors
    /// [`TargetError::Io`].
    pub fn sync_names(&self) -> Result<(), TargetError> {
        todo!()
    }

    /// Removes the names of all components and of the manifest copy; open descriptors go on working. Those already gone
    /// are no failure. All are tried.
    ///
    /// # Errors
    /// The first failure.
    pub fn remove(sys: &SysRef, targets: &[Arc<Target>], id: FileId) -> Result<(), TargetError> {
        let _ = (sys, targets, id);
        todo!()
    }

    /// chmod of all components and the manifest copy.
    ///
    /// # Errors
    /// The first failure; all were tried.
    pub fn set_mode(&self, mode: Mode) -> Result<(), TargetError> {
        let _ = mode;
        todo!()
    }

    /// chown of all components and the manifest copy.
    ///
    /// # Errors
    /// The first failure; all were tried.
    pub fn set_owner(&self, user: Option<u32>, group: Option<u32>) -> Result<(), TargetError> {
        let _ = (user, group);
        todo!()
    }

    /// utimens of all components.
    ///
    /// # Errors
    /// The first failure; all were tried.
    pub fn set_times(&self, times: &Timestamps) -> Result<(), TargetError> {
        let _ = times;
        todo!()
    }

    /// Creates `ID.manifest` beside component 0 with `text`, whole or not at all.
    ///
    /// # Errors
    /// [`TargetError::Io`], EEXIST when it exists.
    pub fn create_manifest(&self, text: &[u8], mode: Mode) -> Result<(), TargetError> {
        let _ = (text, mode);
        todo!()
    }

    /// Opens `ID.manifest`, a new open file description each time (so each has OFD locks of its own).
    ///
    /// # Errors
    /// [`TargetError::Io`].
    pub fn open_manifest(&self, flags: OFlags) -> Result<Fd, TargetError> {
        let _ = flags;
        todo!()
    }
}
