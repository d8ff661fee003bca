//! The manifest: the text that describes where a file's bytes are. `docs/formats/manifest.md`
//! specifies it: format 1, and format 2 for files with several copies.
//!
//! This module converts text and does no I/O. [`Manifest::parse`] reads the start of an anchor (a
//! hole may follow) or of `ID.manifest`, and [`Manifest::format`] writes it. A parsed manifest is
//! valid: the targets of every region exist, and every target is used.

mod fields;
mod format;
mod parse;
#[cfg(test)]
mod tests;

pub use fields::{
    Copies, CopyRef, ExtraCopy, HEAD_BYTES, MAGIC, Manifest, ManifestError, PENDING_BYTES, TEXT_BYTES_MAX,
    TEXT_BYTES_MIN,
};
pub(crate) use fields::{copy_id, family};
pub(crate) use format::pending_text;
