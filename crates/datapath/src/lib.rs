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
//! Everything returns an [`Errno`]; nothing panics on purpose, prints (but for [`notice`]), reads the environment, or
//! makes a system call past `stripewise-sys`. All types are `Send + Sync`.
//!
//! **After fork** a child must call [`Runtime::after_fork_child`] before anything else here; a vfork child must not
//! call anything. **Dropping** the last `Arc` of a [`LogicalFile`] closes its private descriptors; call
//! [`LogicalFile::closing`] first, so that `ls -l` shows the right size to programs without the library.

pub mod file;
pub mod manifest;
pub mod notice;
pub mod runtime;

pub use file::{Attributes, IoOptions, LogicalFile, MapExtent, Whence};
pub use manifest::{FileId, Manifest, ManifestError, TargetRef};
pub use runtime::{FileKey, Opened, Runtime};
pub use stripewise_sys::Errno;

/// What every call of the data path returns.
pub type Result<T> = std::result::Result<T, Errno>;
