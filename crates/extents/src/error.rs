//! Why a map cannot be joined, read or changed.

use std::path::PathBuf;

use stripewise_sys::Errno;

use crate::lmdb::Failure;

/// What went wrong: one line that names the file and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MapError {
    /// A system call failed.
    #[error("{path}: {what}: {errno}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// What the kernel said.
        errno: Errno,
    },
    /// The index failed: LMDB's own words.
    #[error("{path}: {what}: {problem}", path = path.display())]
    Index {
        /// The index.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// What LMDB said.
        problem: String,
        /// What an application is told.
        errno: Errno,
    },
    /// The journal is not there.
    #[error(
        "{path}: the journal of the extent map is missing; put it back, or let `stripewise fsck --repair` fall back on the original",
        path = path.display()
    )]
    Missing {
        /// The journal.
        path: PathBuf,
    },
    /// The journal cannot be what was written.
    #[error(
        "{path}: damaged ({problem}); `stripewise fsck --repair` falls back on the original",
        path = path.display()
    )]
    Damaged {
        /// The journal.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The journal, or the board of processes that are running, is of another version.
    #[error(
        "{path}: has version {found}, this program reads version {known}; use one version of stripewise for a file",
        path = path.display()
    )]
    Version {
        /// The journal or the board.
        path: PathBuf,
        /// Its version.
        found: u64,
        /// Ours.
        known: u64,
    },
    /// The journal, or the board, belongs to another file, or to the same with other copies.
    #[error(
        "{path}: belongs to another file or plan ({problem}); use one plan for a file at a time",
        path = path.display()
    )]
    Foreign {
        /// The journal or the board.
        path: PathBuf,
        /// In what it differs.
        problem: String,
    },
    /// The file is another user's: the index is what that user's processes have made of it, and
    /// nobody else, root least of all, believes that or maps it.
    #[error(
        "{path}: belongs to user {owner}, and only that user's processes use a file with several copies; \
         run this as user {owner} (`setpriv --reuid {owner} --clear-groups -- ...`)",
        path = path.display()
    )]
    NotOwner {
        /// The journal.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
    },
    /// The file was being written on this node since it booted, and the index is gone.
    #[error(
        "{path}: the extent map in {run_dir} was lost while the file was in use; `stripewise fsck --repair` goes on with its last synced state",
        path = path.display(), run_dir = run_dir.display()
    )]
    Lost {
        /// The journal.
        path: PathBuf,
        /// Where the index should be.
        run_dir: PathBuf,
    },
    /// The file is being written by another node, or was when that died.
    #[error(
        "{path}: in use by node {node}; close it there, or if that node is gone run `stripewise fsck --take-over`",
        path = path.display()
    )]
    OtherNode {
        /// The journal.
        path: PathBuf,
        /// That node's name.
        node: String,
    },
    /// The journal was changed by somebody who does not share the index: another node, or a backup put back.
    #[error(
        "{path}: changed by another node or restored while in use; close the file everywhere and run `stripewise fsck`",
        path = path.display()
    )]
    Changed {
        /// The journal.
        path: PathBuf,
    },
    /// More processes than a board has room for.
    #[error("{path}: {limit} processes have the file open already", path = path.display())]
    Full {
        /// The board.
        path: PathBuf,
        /// How many there can be.
        limit: usize,
    },
    /// What the caller was to do failed: syncing the data, punching a hole.
    #[error("{what}: {errno}")]
    Caller {
        /// What was to be done.
        what: &'static str,
        /// With what it failed.
        errno: Errno,
    },
}

impl MapError {
    /// What an application is told.
    pub fn errno(&self) -> Errno {
        match self {
            Self::Io { errno, .. } | Self::Index { errno, .. } | Self::Caller { errno, .. } => *errno,
            Self::OtherNode { .. } | Self::Foreign { .. } => Errno::BUSY,
            Self::NotOwner { .. } => Errno::PERM,
            Self::Full { .. } => Errno::USERS,
            Self::Missing { .. }
            | Self::Damaged { .. }
            | Self::Version { .. }
            | Self::Lost { .. }
            | Self::Changed { .. } => Errno::IO,
        }
    }
}

/// For `map_err`: a system call on `path` failed.
pub(crate) fn io(path: &std::path::Path, what: &'static str) -> impl FnOnce(Errno) -> MapError {
    move |errno| MapError::Io { path: path.to_owned(), what, errno }
}

/// The index in `run_dir` failed.
pub(crate) fn index_error(run_dir: &std::path::Path, what: &'static str, failure: Failure) -> MapError {
    let (path, problem) = (run_dir.to_owned(), failure.text());
    MapError::Index { path, what, problem, errno: failure.errno() }
}

/// For `map_err`: what the caller was to do failed.
pub(crate) fn caller(what: &'static str) -> impl FnOnce(Errno) -> MapError {
    move |errno| MapError::Caller { what, errno }
}
