//! Migration: moves a file's bytes into a managed layout, into another one, into a native layout of
//! the file system, or back into a plain file. Also copies files.
//!
//! A migration copies to a temporary in the file's directory, verifies the copy, and renames it
//! over the path: at any moment the path shows the complete old or the complete new file. A
//! migration that is killed can be resumed. No program may write to the file meanwhile; a change of
//! its size or times is detected before the rename.

mod contents;
mod copy;
mod duplicate;
mod error;
mod extended;
mod job;
mod journal;
mod long;
mod place;
mod short;
mod steps;

pub use contents::{Contents, Version};
pub use duplicate::copy_file;
pub use error::MigrateError;
#[cfg(test)]
pub(crate) use job::Pace;
pub use job::{Phase, Progress};
pub use place::{Goal, Maker};
#[cfg(test)]
pub(crate) use steps::migrate_in_chunks;
pub use steps::{Migration, SHORT_BYTES_MAX, migrate};
