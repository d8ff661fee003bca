//! The manifest: the text that describes where a file's bytes are. `docs/formats/manifest.md`
//! specifies it: format 1, and format 2 for files with several copies.
//!
//! This module converts text and does no I/O. [`Manifest::parse`] reads the start of an anchor (a
//! hole may follow) or of `ID.manifest`, and [`Manifest::format`] writes it. A parsed manifest is
//! valid: the targets of every region exist, and every target is used.

mod copies;
mod format;
mod parse;
#[cfg(test)]
mod tests;

pub use copies::{Copies, CopyRef, ExtraCopy};
pub(crate) use copies::{copy_id, family};
pub(crate) use format::pending_text;
use stripewise_layout::Layout;
use stripewise_sys::Identity;
use stripewise_target::{FileId, TargetRef};

/// The start of the first line. A file without it is not an anchor of any format.
pub const MAGIC: &[u8] = b"stripewise file, format ";
/// The first lines of format 1 and of format 2.
pub(crate) const MAGIC_LINES: [&str; 2] = ["stripewise file, format 1\n", "stripewise file, format 2\n"];
/// Maximum length of a manifest, bytes.
pub const TEXT_BYTES_MAX: usize = 1 << 20;
/// Bytes at the start of an anchor that [`Manifest::text_length`] needs.
pub const HEAD_BYTES: usize = 4096;
/// Minimum length of a manifest, bytes: the magic line.
pub const TEXT_BYTES_MIN: usize = MAGIC_LINES[0].len();
/// Characters of the `pending_truncate` value: blank, or a size.
pub const PENDING_BYTES: usize = 20;

/// A file's manifest.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// The id that names the objects.
    pub id: FileId,
    /// The target size, bytes, of a truncate that began and was not finished; written only by
    /// earlier versions.
    pub pending_truncate: Option<u64>,
    /// The anchor's absolute path at its creation; it may have been moved since.
    pub path: String,
    /// Time of creation in UTC, as `2026-11-21T01:00:00Z`, for people.
    pub created: String,
    /// The identity of the anchor. A copy of the anchor made without this library has a different
    /// identity. Unknown in manifests of older versions.
    pub anchor: Identity,
    /// The targets by their number in the layout; the object on target `n` is `ID.n`. The layout
    /// uses every target.
    pub targets: Vec<TargetRef>,
    /// The layout of the bytes; in a file with several copies, that of the original.
    pub layout: Layout,
    /// The extra copies, if any: format 2.
    pub copies: Option<Box<Copies>>,
}

/// The reason why a text is not a valid manifest: one line with the file, the key and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {problem}")]
pub struct ManifestError {
    /// The file as the caller named it.
    pub file: String,
    /// Key, value and remedy.
    pub problem: String,
}

/// Maximum table entries, regions times targets, that a layout may keep in every process that opens
/// the file.
const TABLE_CELLS_MAX: usize = 1 << 20;

/// Checks the total of all copies' tables, each given as (regions, targets).
fn check_size(tables: impl Iterator<Item = (usize, usize)>) -> Result<(), String> {
    let (mut cells, mut regions, mut targets) = (0usize, 0, 0);
    for (of_regions, of_targets) in tables {
        cells = cells.saturating_add(of_regions.saturating_mul(of_targets));
        (regions, targets) = (regions + of_regions, targets + of_targets);
    }
    if cells <= TABLE_CELLS_MAX {
        return Ok(());
    }
    Err(format!(
        "key `region`: {regions} regions over {targets} targets are more than {TABLE_CELLS_MAX} entries; \
         use fewer regions or targets"
    ))
}
