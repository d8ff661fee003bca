//! Errors of joining, reading and changing a map.

use std::path::PathBuf;

use stripewise_sys::Errno;

/// An error of this crate. Its message is one line that names the file and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum MapError {
    /// A system call failed.
    #[error("{path}: {what}: {errno}", path = path.display())]
    Io { path: PathBuf, what: &'static str, errno: Errno },
    /// An LMDB operation on the index failed.
    #[error("{path}: {what}: {problem}", path = path.display())]
    Index { path: PathBuf, what: &'static str, problem: String, errno: Errno },
    /// The journal does not exist.
    #[error(
        "{path}: the journal of the extent map is missing; put it back, or let `stripewise fsck --repair` fall back on the original",
        path = path.display()
    )]
    Missing { path: PathBuf },
    /// The content of the journal is invalid.
    #[error(
        "{path}: damaged ({problem}); `stripewise fsck --repair` falls back on the original",
        path = path.display()
    )]
    Damaged { path: PathBuf, problem: String },
    /// The journal, or the shared state of running processes, has another format version.
    #[error(
        "{path}: has version {found}, this program reads version {known}; use one version of stripewise for a file",
        path = path.display()
    )]
    Version { path: PathBuf, found: u64, known: u64 },
    /// The journal or the shared state belongs to another file, or to this file with a different
    /// set of copies.
    #[error(
        "{path}: belongs to another file or plan ({problem}); use one plan for a file at a time",
        path = path.display()
    )]
    Foreign { path: PathBuf, problem: String },
    /// The file belongs to another user. Only that user's processes join its map: the index is
    /// memory that they write, and no process of another user, least of all root's, trusts or maps
    /// it.
    #[error(
        "{path}: belongs to user {owner}, and only that user's processes use a file with several copies; \
         run this as user {owner} (`setpriv --reuid {owner} --clear-groups -- ...`)",
        path = path.display()
    )]
    NotOwner { path: PathBuf, owner: u32 },
    /// The file was being written on this node during the current boot, and the index is gone.
    #[error(
        "{path}: the extent map in {run_dir} was lost while the file was in use; `stripewise fsck --repair` goes on with its last synced state",
        path = path.display(), run_dir = run_dir.display()
    )]
    Lost { path: PathBuf, run_dir: PathBuf },
    /// Another node is writing the file, or was writing it when that node died.
    #[error(
        "{path}: in use by node {node}; close it there, or if that node is gone run `stripewise fsck --take-over`",
        path = path.display()
    )]
    OtherNode { path: PathBuf, node: String },
    /// A process of another node has the file open. Only for a file with sessions.
    #[error(
        "{path}: in use by node {node}; close it there (if that node has crashed, try again once the file system has \
         freed its locks)",
        path = path.display()
    )]
    InUse { path: PathBuf, node: String },
    /// Other nodes have the file open, and would not see stores through a shared mapping.
    #[error(
        "{path}: cannot be mapped shared and writable while other nodes have the file open; close it there, or use \
         read and write",
        path = path.display()
    )]
    Shared { path: PathBuf },
    /// Processes of this node use the file through another mount, and a sync through one mount does
    /// not sync what was written through another. Only for a file with sessions.
    #[error(
        "{path}: other processes of this node use it through another mount of its file system; use one mount",
        path = path.display()
    )]
    OtherMount { path: PathBuf },
    /// Another node's batches of the log may stay hidden behind pages that this node has kept. Only
    /// for a file with sessions.
    #[error(
        "{path}: its file system is mounted here so that what other nodes write may stay unseen; mount it with \
         `ceph-fuse --fuse_disable_pagecache=true`",
        path = path.display()
    )]
    Stale { path: PathBuf },
    /// A call of this node's session has failed in a way that the node may have been cut off from
    /// the file system, or that what it committed last may be lost.
    #[error(
        "{path}: this node could not write its log, or was cut off; close the file in all processes here and open it \
         again (what was not synced may be lost)",
        path = path.display()
    )]
    Over { path: PathBuf },
    /// The journal was changed by a process that does not share the index: another node wrote it,
    /// or a backup was restored.
    #[error(
        "{path}: changed by another node or restored while in use; close the file everywhere and run `stripewise fsck`",
        path = path.display()
    )]
    Changed { path: PathBuf },
    /// All blocks of the shared state are in use.
    #[error("{path}: {limit} processes have the file open already", path = path.display())]
    Full { path: PathBuf, limit: usize },
    /// A callback of the caller failed (syncing the data, punching a hole, reading the size), or
    /// the caller was about to write to a forbidden copy.
    #[error("{what}: {errno}")]
    Caller { what: &'static str, errno: Errno },
}

impl MapError {
    /// The errno that the application gets.
    pub fn errno(&self) -> Errno {
        match self {
            Self::Io { errno, .. } | Self::Index { errno, .. } | Self::Caller { errno, .. } => *errno,
            Self::OtherNode { .. }
            | Self::InUse { .. }
            | Self::Shared { .. }
            | Self::OtherMount { .. }
            | Self::Foreign { .. } => Errno::BUSY,
            Self::NotOwner { .. } => Errno::PERM,
            Self::Full { .. } => Errno::USERS,
            _ => Errno::IO,
        }
    }
}

/// For `map_err`: the error of a system call on `path`.
pub(crate) fn io(path: &std::path::Path, what: &'static str) -> impl FnOnce(Errno) -> MapError {
    move |errno| MapError::Io { path: path.to_owned(), what, errno }
}

/// For `map_err`: the error of a callback of the caller.
pub(crate) fn caller(what: &'static str) -> impl FnOnce(Errno) -> MapError {
    move |errno| MapError::Caller { what, errno }
}
