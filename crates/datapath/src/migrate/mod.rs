//! Moving a file's bytes: into a layout, into another, into one of the file system's own, or back into a plain file; and copying
//! files.
//!
//! A migration copies to a temporary beside the file, checks what arrived, and renames it over the path: the path shows
//! the old file or the new one, whole, at any moment. It can be killed at any moment, and goes on where it was.
//! No program may write to the file meanwhile; a change that shows in its size or time is noticed before the rename.

mod chunks;
mod contents;
mod copy;
mod duplicate;
mod error;
mod extended;
mod journal;
mod long;
mod maker;
mod place;
mod short;
mod space;
mod steps;

pub use contents::{Contents, Version};
pub use duplicate::copy_file;
pub use error::MigrateError;
pub use maker::Maker;
pub(crate) use space::FreeSpace;
pub use steps::{Goal, Migration, SHORT_BYTES_MAX, migrate};
#[cfg(test)]
pub(crate) use steps::{Pace, migrate_in_chunks};

/// What a long job is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Going on where an earlier run was: so many bytes are copied already. Said once, first.
    Found,
    /// Copying.
    Copy,
    /// Reading what was written.
    Verify,
}

/// How far a long job is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// What it is doing.
    pub phase: Phase,
    /// Bytes done.
    pub done: u64,
    /// Of so many.
    pub total: u64,
}
