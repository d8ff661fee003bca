//! One per process: the plan's rules and targets, and every managed file that is open.

use std::os::fd::{BorrowedFd, RawFd};
use std::path::Path;
use std::sync::Arc;

use stripewise_cluster::Plan;
use stripewise_layout::Layout;
use stripewise_sys::{Dir, Kind, Mode, OFlags, Stat, SysRef, Timestamps};

use crate::file::LogicalFile;
use crate::manifest::Manifest;
use crate::{Errno, Result};

/// Which file, for the kernel: device and inode number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileKey {
    /// `st_dev`.
    pub device: u64,
    /// `st_ino`.
    pub inode: u64,
}

impl FileKey {
    /// Of what fstat(2) says.
    pub fn of(stat: &Stat) -> Self {
        Self { device: stat.st_dev, inode: stat.st_ino }
    }
}

/// What [`Runtime::open`] opened: a descriptor for the application (the lowest free number, close-on-exec as asked).
#[derive(Debug)]
pub enum Opened {
    /// Of a file that is none of ours: everything on it passes through.
    Plain(RawFd),
    /// Of the anchor of a managed file.
    Managed(RawFd, Arc<LogicalFile>),
}

/// The data path of one process.
pub struct Runtime {
    sys: SysRef,
}

impl Runtime {
    /// Without a plan, existing managed files work all the same (their manifests say everything); no file becomes
    /// managed, and nothing is emulated.
    ///
    /// Touches no target yet: a target that is missing fails the first file that needs it.
    pub fn new(sys: SysRef, plan: Option<&Plan>) -> Arc<Self> {
        let _ = plan;
        Arc::new(Self { sys })
    }

    /// The system underneath.
    pub fn sys(&self) -> &SysRef {
        &self.sys
    }

    /// The layout that the plan gives a new file at this absolute path; target indices count the plan's targets.
    pub fn layout_for(&self, path: &Path) -> Option<&Layout> {
        let _ = path;
        None
    }

    /// open(2) of any file: `flags` and `mode` as the application gave them. Creates a managed file where the plan has
    /// a rule for the path and nothing is there; finishes an interrupted truncate; O_TRUNC of a managed file
    /// empties its components and never reaches the kernel.
    ///
    /// # Errors
    /// As open(2). EIO, and a line on stderr: the manifest is damaged, or a target that it needs is missing.
    pub fn open(&self, dir: Dir<'_>, path: &Path, flags: OFlags, mode: Mode) -> Result<Opened> {
        let _ = (dir, path, flags, mode);
        Err(Errno::NOSYS)
    }

    /// The managed file behind a descriptor that was not opened by [`Runtime::open`] (inherited, received, opened
    /// behind our back); `None` for every other file.
    ///
    /// # Errors
    /// As [`Runtime::open`].
    pub fn attach(&self, fd: BorrowedFd<'_>) -> Result<Option<Arc<LogicalFile>>> {
        let _ = fd;
        Ok(None)
    }

    /// The managed file, if this process has it open. No system call.
    pub fn find(&self, key: FileKey) -> Option<Arc<LogicalFile>> {
        let _ = key;
        None
    }

    /// What stat(2) should have said: where `stat` (of the file at `path`, `follow` as it was asked for) is that of a
    /// managed file, sizes, blocks and times are replaced. True then. Errors leave `stat` as it is.
    ///
    /// Costs one comparison for files that cannot be an anchor (not regular, or more blocks than a manifest has);
    /// others are opened and their first bytes read.
    pub fn correct_stat(&self, dir: Dir<'_>, path: &Path, follow: bool, stat: &mut Stat) -> bool {
        let _ = (dir, path, follow, stat);
        false
    }

    /// The manifest of the file at `path`; `None` where it is not a managed file, does not exist or may not be read.
    ///
    /// # Errors
    /// EIO, and a line on stderr: it is one, but damaged.
    pub fn manifest_at(&self, dir: Dir<'_>, path: &Path, follow: bool) -> Result<Option<Manifest>> {
        let _ = (dir, path, follow);
        Ok(None)
    }

    /// truncate(2) of any file.
    ///
    /// # Errors
    /// As truncate(2).
    pub fn truncate(&self, path: &Path, size: u64) -> Result<()> {
        let _ = (path, size);
        Err(Errno::NOSYS)
    }

    /// unlinkat(2) (without AT_REMOVEDIR) of any file; the components of a managed file that loses its last name go
    /// with it. Descriptors that are open keep working.
    ///
    /// # Errors
    /// As unlinkat(2). That a component could not be removed is said on stderr, and no error.
    pub fn unlink(&self, dir: Dir<'_>, path: &Path) -> Result<()> {
        let _ = (dir, path);
        Err(Errno::NOSYS)
    }

    /// renameat2(2) of any file, `flags` as there; a managed file that is replaced goes as in [`Runtime::unlink`].
    ///
    /// # Errors
    /// As renameat2(2).
    pub fn rename(&self, old_dir: Dir<'_>, old: &Path, new_dir: Dir<'_>, new: &Path, flags: u32) -> Result<()> {
        let _ = (old_dir, old, new_dir, new, flags);
        Err(Errno::NOSYS)
    }

    /// utimensat(2), chmod(2), chown(2) of what `of` names, when that is a managed file: anchor and components.
    /// False: it is not, and nothing was done.
    ///
    /// # Errors
    /// As those.
    pub fn change(&self, of: Kind<'_>, change: &Change) -> Result<bool> {
        let _ = (of, change);
        Ok(false)
    }

    /// To be called in the child of a fork before anything else of the data path: forgets locks that threads of the
    /// parent hold, and restarts the engine's threads when they are needed.
    pub fn after_fork_child(&self) {}
}

/// What is changed of a file besides its bytes.
#[derive(Clone, Debug)]
pub enum Change {
    /// utimensat(2).
    Times(Timestamps),
    /// chmod(2).
    Mode(Mode),
    /// chown(2); `None` leaves that one.
    Owner(Option<u32>, Option<u32>),
}
