//! The errors of migrations and copies.

use crate::error::FileError;
use std::path::PathBuf;

pub(super) type Result<T, E = MigrateError> = std::result::Result<T, E>;

/// A one-line message that names the file, the problem and the remedy. The contents of the file are
/// unchanged, except by [`MigrateError::Altered`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MigrateError {
    /// A file, target or manifest is unusable.
    #[error(transparent)]
    File(#[from] FileError),
    /// Another process has the journal's lock.
    #[error("{path}: is being migrated by another process; wait for it", path = .0.display())]
    Busy(PathBuf),
    /// Another program has the file open and would continue with the replaced file.
    #[error("{path}: is open in another program of this machine; close it there, or wait for its end, and run this again", path = .0.display())]
    InUse(PathBuf),
    /// The path is a directory, a device or the like.
    #[error("{path}: is no regular file; leave it out", path = .0.display())]
    NotRegular(PathBuf),
    /// The file has several hard links; a new file would replace only one.
    #[error("{path}: has {names} names (hard links), and the others would keep the old file; remove them first",
        path = path.display())]
    Linked {
        /// The file.
        path: PathBuf,
        /// Number of names.
        names: u64,
    },
    /// The file was written during the copy.
    #[error("{path}: was changed while it was copied; run this again when no program writes to it", path = .0.display())]
    Changed(PathBuf),
    /// There is not enough space for the copy; the old file is removed only once the new one is
    /// complete.
    #[error("{path}: {where_}: needs {need_bytes} bytes, has {free_bytes} free; make space there",
        path = path.display(), where_ = where_.display())]
    NoSpace {
        /// The file.
        path: PathBuf,
        /// The directory of the target or of the file.
        where_: PathBuf,
        /// Bytes that the copy needs there.
        need_bytes: u64,
        /// Bytes free there.
        free_bytes: u64,
    },
    /// The file system does not apply the layout, or does not report the layout of a file.
    #[error("{}: {reason}", path.display())]
    Native {
        /// The file.
        path: PathBuf,
        /// The reason, and the remedy.
        reason: String,
    },
    /// Read-back verification failed twice: the storage does not keep what was written.
    #[error("{path}: what was written is not what is read back, twice; check the disks of its targets", path = .0.display())]
    Damaged(PathBuf),
    /// The file system changed the file's contents with its layout, though not its time.
    #[error("{path}: its contents differ since the file system changed its layout; restore it from a backup, and report \
        this to the file system's administrator", path = .0.display())]
    Altered(PathBuf),
}
