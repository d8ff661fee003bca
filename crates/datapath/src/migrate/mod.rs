//! Migration: moves a file's bytes into a managed layout, into another one, into a native layout of
//! the file system, or back into a plain file. Also copies files.
//!
//! A migration copies to a temporary in the file's directory, verifies the copy, and renames it
//! over the path: at any moment the path shows the complete old or the complete new file. A
//! migration that is killed can be resumed. No program may write to the file meanwhile; a change of
//! its size or times is detected before the rename.

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

/// The phase of a long operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Resuming an earlier run, which has copied `done` bytes. Reported once, first.
    Found,
    /// Copying data.
    Copy,
    /// Reading back the copy.
    Verify,
}

/// The progress of a long operation.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// The current phase.
    pub phase: Phase,
    /// Bytes done.
    pub done: u64,
    /// Bytes in total.
    pub total: u64,
}
