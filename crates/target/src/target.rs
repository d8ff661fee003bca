//! An opened target, and those of a process.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use stripewise_sys::{Fd, SysRef};

use crate::TargetError;

/// A reference to a target in a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetRef {
    /// The target's name in the cluster (`hdd/0`).
    pub name: String,
    /// The directory, absolute.
    pub path: PathBuf,
    /// The id in the target's marker.
    pub id: String,
}

/// An opened target: its identity and a descriptor of its directory.
pub struct Target {
    pub(crate) sys: SysRef,
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) id: String,
    pub(crate) sessions: bool,
    pub(crate) dir: Fd,
    pub(crate) homes: Homes,
}

impl Target {
    /// The target's name in the cluster (`hdd/0`).
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The directory, as given to `prepare` or `open`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The random id in the marker, 32 hexadecimal digits.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Whether the marker says that the file system gives what sessions of several nodes need: its
    /// locks and data are coherent between nodes, and a node whose locks it has freed changes
    /// nothing any more (`docs/formats/nodes.md`).
    pub fn has_sessions(&self) -> bool {
        self.sessions
    }

    /// The reference that a manifest records.
    pub fn reference(&self) -> TargetRef {
        TargetRef { name: self.name.clone(), path: self.path.clone(), id: self.id.clone() }
    }

    /// Bytes that this user may still write there (statvfs).
    pub fn free_bytes(&self) -> Result<u64, TargetError> {
        let stat =
            self.sys.stat_fs(self.dir.as_fd()).map_err(|errno| self.io(Path::new(""), "statvfs", errno))?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    /// A descriptor of the target's directory.
    pub fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    /// Whether the directory was removed since it was opened.
    fn is_gone(&self) -> bool {
        self.sys.stat(self.dir.as_fd()).is_ok_and(|stat| stat.st_nlink == 0)
    }
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target").field("name", &self.name).field("path", &self.path).finish_non_exhaustive()
    }
}

/// The opened targets of a process, each opened once. Never waits for a lock: a thread that finds
/// it held (or a forked child whose parent held it) opens the target for itself.
pub struct Targets {
    sys: SysRef,
    opened: Mutex<HashMap<(PathBuf, String), Arc<Target>>>,
}

impl Targets {
    /// An empty collection.
    pub fn new(sys: SysRef) -> Self {
        Self { sys, opened: Mutex::default() }
    }

    /// The target that `reference` names, opened before or now. Failures are not cached: the next
    /// call tries again.
    pub fn get(&self, reference: &TargetRef) -> Result<Arc<Target>, TargetError> {
        let key = (reference.path.clone(), reference.id.clone());
        let known = self.opened.try_lock().ok().and_then(|opened| opened.get(&key).cloned());
        if let Some(target) = known.filter(|target| !target.is_gone()) {
            return Ok(target);
        }
        let target = Arc::new(Target::open(&self.sys, &reference.path, Some(&reference.id))?);
        if let Ok(mut opened) = self.opened.try_lock() {
            opened.insert(key, target.clone());
        }
        Ok(target)
    }
}

/// The users whose directory on a target this process has verified, and those among them whose
/// directory it has made durable, with the ones above. Only root and the user can change a
/// directory, so neither check is repeated for every file.
#[derive(Debug, Default)]
pub struct Homes {
    pub(crate) known: LastUser,
    pub(crate) synced: LastUser,
}

/// One user, since a process usually works for one. 0: none, otherwise the uid plus 1.
#[derive(Debug, Default)]
pub(crate) struct LastUser(AtomicU64);

impl LastUser {
    pub(crate) fn is(&self, user: u32) -> bool {
        self.0.load(Ordering::Acquire) == u64::from(user) + 1
    }

    pub(crate) fn set(&self, user: u32) {
        self.0.store(u64::from(user) + 1, Ordering::Release);
    }
}

impl Homes {
    /// Forgets a user whose directory turned out to be missing.
    pub(crate) fn forget(&self, owner: u32) {
        if self.known.is(owner) || self.synced.is(owner) {
            self.known.0.store(0, Ordering::Release);
            self.synced.0.store(0, Ordering::Release);
        }
    }
}
