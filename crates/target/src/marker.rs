//! Targets: directories with a marker, so that an unmounted disk is never taken for an empty target.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stripewise_sys::{Fd, SysRef};

use crate::TargetError;

/// Name of the marker file in a target's directory.
pub const MARKER: &str = "stripewise-target.toml";

/// How a manifest names a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetRef {
    /// Its name in the cluster (`hdd/0`).
    pub name: String,
    /// The directory, absolute.
    pub path: PathBuf,
    /// The id in the target's marker.
    pub id: String,
}

/// An opened target: its identity and a descriptor of its directory.
#[derive(Debug)]
pub struct Target {
    name: String,
    path: PathBuf,
    id: String,
    dir: Fd,
}

impl Target {
    /// Makes the existing directory `path` a target called `name`, or opens it when it is one of that name already.
    ///
    /// Writes the marker (atomically: a crash leaves it whole or absent; two processes at once agree on one) and the
    /// directory for components, with the mode of the target's directory: who may create files in the target may
    /// create components.
    ///
    /// # Errors
    /// [`TargetError::Missing`] when there is no such directory; [`TargetError::Foreign`] when it is a target of another
    /// name; [`TargetError::Unusable`] when there are components without a marker, or the file system lacks fallocate.
    pub fn prepare(sys: &SysRef, path: &Path, name: &str) -> Result<Self, TargetError> {
        let _ = (sys, path, name);
        todo!()
    }

    /// Opens the target at `path`. With `expected_id`, it must be that one. Creates nothing.
    ///
    /// # Errors
    /// [`TargetError::Missing`] without directory or marker; [`TargetError::Foreign`] with another id.
    pub fn open(sys: &SysRef, path: &Path, expected_id: Option<&str>) -> Result<Self, TargetError> {
        let _ = (sys, path, expected_id);
        todo!()
    }

    /// Its name in the cluster (`hdd/0`).
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The directory, as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The random id of its marker, 32 hexadecimal digits.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// How a manifest names it.
    pub fn reference(&self) -> TargetRef {
        TargetRef { name: self.name.clone(), path: self.path.clone(), id: self.id.clone() }
    }

    /// Bytes that this user may still write there (statvfs).
    ///
    /// # Errors
    /// [`TargetError::Io`].
    pub fn free_bytes(&self, sys: &SysRef) -> Result<u64, TargetError> {
        let _ = sys;
        todo!()
    }

    /// The directory.
    pub fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }
}

/// The opened targets of a process, each opened once. Never waits for a lock: a thread that comes at the wrong moment
/// (or a forked child whose parent was in here) opens the target for itself.
pub struct Targets {
    sys: SysRef,
}

impl Targets {
    /// None opened yet.
    pub fn new(sys: SysRef) -> Self {
        Self { sys }
    }

    /// The target that `reference` names, opened before or now. Failures are not kept: the next call tries again.
    ///
    /// # Errors
    /// As [`Target::open`].
    pub fn get(&self, reference: &TargetRef) -> Result<Arc<Target>, TargetError> {
        let _ = (&self.sys, reference);
        todo!()
    }
}
