//! The journal: the map as of the last sync. It survives a power cut.

mod commit;
mod contents;
mod format;
mod place;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use commit::limit_bytes;
pub(crate) use commit::{Commit, Position, write_new};
pub use contents::Journal;
pub(crate) use format::{HEADER_BYTES, Header, Writer};
pub(crate) use place::{COMMIT_BYTE, JOIN_BYTE, Locked, Place};
