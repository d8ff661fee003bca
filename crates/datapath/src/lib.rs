//! The data path: presents bytes stored in objects on several targets as one logical file.
//!
//! `docs/decisions/0001-logical-files.md` specifies this crate. It has two main types:
//!
//! - [`Runtime`]: one per process. Holds the plan's rules and targets (if there is a plan), opens
//!   files, and keeps one [`LogicalFile`] per managed file, keyed by (device, inode).
//! - [`LogicalFile`]: one managed file, shared by all descriptors and threads of the process that
//!   use it.
//!
//! The descriptors that an application holds are kernel descriptors of the *anchor*, the file at
//! its path. The kernel keeps their offset, status flags and locks, and implements dup and fork.
//!
//! Every call returns an [`Errno`] or, for commands, a [`FileError`]. The crate does not panic on
//! purpose, does not print except through [`notice`], does not read the environment, and makes all
//! system calls through `stripewise-sys`. All types are `Send + Sync`.
//!
//! **Fork**: a child must call [`Runtime::after_fork_child`] before any other function of this
//! crate. A vfork child must not call any. **Dropping** the last `Arc` of a [`LogicalFile`] closes
//! its private descriptors. Call [`LogicalFile::closing`] first, so that programs without the
//! library see the right modification time.
//!
//! **POSIX record locks**: closing any descriptor of a file drops the locks that the process holds
//! on it. An open managed file keeps its private descriptors until it is dropped, so no lock is
//! lost. Calls by name ([`Runtime::correct_stat`], [`Runtime::unlink`], ...) open and close files
//! to find out whether they are managed. A caller must not make them for an unmanaged file on which
//! the process holds locks.

mod anchor;
pub mod check;
mod error;
pub mod file;
pub mod inspect;
mod intent;
pub mod manifest;
pub mod migrate;
pub mod notice;
pub mod parallel;
mod paths;
mod permissions;
mod pool;
pub mod runtime;
#[cfg(test)]
#[allow(missing_docs, reason = "helpers of tests")]
mod tests;

pub use anchor::FileKey;
pub use error::{Errno, FileError, FileResult, Result};
pub use file::{
    Around, Attributes, Change, Difference, Drained, IoOptions, LogicalFile, MapExtent, OnePiece, Tell, Whence,
};
pub use manifest::{Manifest, ManifestError};
pub use runtime::{Opened, Runtime, Settings, Shape};
