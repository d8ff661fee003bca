//! A CephFS as the driver holds it.

use std::path::Path;
use std::sync::Arc;

use stripewise_cluster::FileSystem;
use stripewise_sys::{Errno, Kind, Real, SysRef};

use super::attributes::{FILE_LAYOUT, Xattr};
use crate::error::{DriverError, Result};
use crate::files::{self, HERE};
use crate::mounts::{Mount, mount_of};
use crate::tool::Tool;

pub const SYSTEM: FileSystem = FileSystem::CephFs;
pub const DIR_LAYOUT: &str = "ceph.dir.layout";
/// The file system's types in the mount table.
pub const KINDS: [&str; 3] = ["ceph", "fuse.ceph-fuse", "fuse.ceph"];

pub type MountOf = dyn Fn(&Path) -> Result<Option<Mount>> + Send + Sync;

/// CephFS through a mounted directory.
#[derive(Clone)]
pub struct CephFs {
    pub(super) sys: SysRef,
    /// Finds the mount that a path is on.
    pub(super) mount_of: Arc<MountOf>,
    /// The administrators' tool, for facts that users cannot query otherwise.
    pub(super) ceph: Tool,
}

impl Default for CephFs {
    fn default() -> Self {
        Self { sys: Arc::new(Real), mount_of: Arc::new(mount_of), ceph: Tool::new("ceph") }
    }
}

impl CephFs {
    /// The layout of a file.
    pub(super) fn file<'a>(&'a self, path: &'a Path) -> Xattr<'a> {
        Xattr { sys: &*self.sys, of: Kind::Named(HERE, path), path, name: FILE_LAYOUT }
    }

    /// The layout of a directory's new files.
    pub(super) fn dir<'a>(&'a self, path: &'a Path) -> Xattr<'a> {
        Xattr { name: DIR_LAYOUT, ..self.file(path) }
    }

    /// The mount that an existing path is on, if it is a CephFS.
    pub(super) fn mount(&self, path: &Path) -> Result<Option<Mount>> {
        let mount = (self.mount_of)(path)?.filter(|mount| KINDS.contains(&mount.kind.as_str()));
        // A CephFS recognizes the attribute, whether it is set or not.
        let attribute = files::attribute(&*self.sys, Kind::Named(HERE, path), DIR_LAYOUT);
        Ok(mount.filter(|_| attribute != Err(Errno::OPNOTSUPP)))
    }

    pub(super) fn require(&self, path: &Path) -> Result<()> {
        self.mount(path)?.map(drop).ok_or_else(|| DriverError::elsewhere(path, SYSTEM))
    }
}

/// How a user gets permission to write to a pool.
pub fn may_write(pool: &str) -> String {
    format!(
        "writing to pool {pool} takes OSD capabilities for it; an administrator gives them: \
         `ceph osd pool application set {pool} cephfs data FS` and `ceph fs authorize FS client.NAME / rwp`"
    )
}
