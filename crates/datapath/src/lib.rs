//! A logical file: bytes that lie in components on several targets, seen as one file.
//!
//! The page that this crate implements is `docs/decisions/0001-logical-files.md`. Two types carry it:
//!
//! - [`Runtime`]: one per process. Knows the plan's rules and targets (if there is a plan), opens files, keeps every
//!   managed file of the process once, by (device, inode).
//! - [`LogicalFile`]: one managed file, shared by all descriptors and threads of the process that use it.
//!
//! The descriptors that an application holds are kernel descriptors of the *anchor*, the file at its path; offset,
//! status flags, locks, dup and fork are the kernel's business and never ours.
//!
//! Everything returns an [`Errno`] (or, for commands, a [`Trouble`]); nothing panics on purpose, prints (but for
//! [`notice`]), reads the environment, or makes a system call past `stripewise-sys`. All types are `Send + Sync`.
//!
//! **After fork** a child must call [`Runtime::after_fork_child`] before anything else here; a
//! vfork child must not call anything. **Dropping** the last `Arc` of a [`LogicalFile`] closes its
//! private descriptors; call [`LogicalFile::closing`] first, so that `ls -l` shows the right time
//! to programs without the library.
//!
//! **POSIX record locks**: closing any descriptor of a file drops the locks that the process holds on it. A managed file
//! that is open keeps its private descriptors, so nothing is lost; but calls by name ([`Runtime::correct_stat`],
//! [`Runtime::unlink`], ...) open and close files that are *not* managed to find that out. Who knows that the process holds
//! locks on an unmanaged file must not call them for it.

mod anchor;
pub mod check;
pub mod file;
mod forked;
pub mod inspect;
mod intent;
pub mod manifest;
pub mod migrate;
pub mod notice;
pub mod parallel;
mod permissions;
mod pool;
pub mod runtime;
#[cfg(test)]
#[allow(missing_docs, reason = "helpers of tests")]
mod tests;
mod trouble;

pub use file::{
    Around, Attributes, Difference, Drained, IoOptions, LogicalFile, MapExtent, Statistics, Tell, Whence,
};
pub use manifest::{Manifest, ManifestError};
pub use runtime::{Change, FileKey, NewFile, Opened, Runtime, Settings, Shape};
pub use stripewise_sys::Errno;
pub use trouble::Trouble;

/// What every call of the data path returns.
pub type Result<T> = std::result::Result<T, Errno>;
