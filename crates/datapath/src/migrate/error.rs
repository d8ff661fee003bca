//! Why a file was not moved or copied.

use std::path::PathBuf;

use crate::trouble::Trouble;

/// One line that names the file, what is wrong, and what to do. The file is as it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MigrateError {
    /// A file, target or manifest is not right.
    #[error(transparent)]
    Trouble(#[from] Trouble),
    /// Another process has the journal's lock.
    #[error("{path}: is being migrated by another process; wait for it", path = .0.display())]
    Busy(PathBuf),
    /// A program would go on with what is replaced.
    #[error("{path}: is open in another program of this machine; close it there, or wait for its end, and run this again", path = .0.display())]
    InUse(PathBuf),
    /// A directory, device, ...
    #[error("{path}: is no regular file; leave it out", path = .0.display())]
    NotRegular(PathBuf),
    /// A new file takes one name only.
    #[error("{path}: has {names} names (hard links), and the others would keep the old file; remove them first",
        path = path.display())]
    Linked {
        /// The file.
        path: PathBuf,
        /// Number of names.
        names: u64,
    },
    /// Somebody wrote to it.
    #[error("{path}: was changed while it was copied; run this again when no program writes to it", path = .0.display())]
    Changed(PathBuf),
    /// Not enough space for the copy; the old file goes only when the new one is complete.
    #[error("{path}: {where_}: needs {need_bytes} bytes, has {free_bytes} free; make space there",
        path = path.display(), where_ = where_.display())]
    NoSpace {
        /// The file.
        path: PathBuf,
        /// The target's or file's directory.
        where_: PathBuf,
        /// Bytes of the copy there.
        need_bytes: u64,
        /// Bytes free.
        free_bytes: u64,
    },
    /// The file system does not give it the layout, or does not say which it has.
    #[error("{}: {reason}", path.display())]
    Native {
        /// The file.
        path: PathBuf,
        /// Why, and the remedy.
        reason: String,
    },
    /// Storage that does not keep what it is given.
    #[error("{path}: what was written is not what is read back, twice; check the disks of its targets", path = .0.display())]
    Damaged(PathBuf),
}
