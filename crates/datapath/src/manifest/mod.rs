//! The text that says where a file's bytes are: `docs/formats/manifest.md`, format 1; of a file with several copies, format 2.
//!
//! Text in, text out; no I/O. [`Manifest::parse`] takes what stands at the start of an anchor (a hole may follow)
//! or in `ID.manifest`; [`Manifest::format`] writes it. What was parsed is valid: every region's targets exist,
//! every target is used.

mod copies;
mod format;
mod parse;
#[cfg(test)]
mod tests;

pub use copies::{Copies, CopyRef, FurtherCopy};
pub(crate) use copies::{copy_id, family};
pub(crate) use format::pending_text;
use stripewise_layout::Layout;
use stripewise_sys::Identity;
use stripewise_target::{FileId, TargetRef};

/// The first line. A file that does not start with it is not an anchor of any format.
pub const MAGIC: &[u8] = b"stripewise file, format ";
/// The first lines of format 1 and of format 2.
pub(crate) const MAGIC_LINES: [&str; 2] = ["stripewise file, format 1\n", "stripewise file, format 2\n"];
/// Upper limit of a manifest, bytes.
pub const TEXT_BYTES_MAX: usize = 1 << 20;
/// How many bytes of an anchor [`Manifest::text_length`] wants to see.
pub const HEAD_BYTES: usize = 4096;
/// No manifest, and nothing that was once one, is shorter than the magic line.
pub const TEXT_BYTES_MIN: usize = MAGIC_LINES[0].len();
/// Characters of the `pending_truncate` value: blank, or a size.
pub const PENDING_BYTES: usize = 20;

/// A file's manifest.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// Names the components.
    pub id: FileId,
    /// A truncate to this size, bytes, began and has not been finished.
    pub pending_truncate: Option<u64>,
    /// The anchor's absolute path when it was created: a hint, not a truth.
    pub path: String,
    /// UTC, `2026-11-21T01:00:00Z`; for people.
    pub created: String,
    /// Which file the anchor is: a copy of it that was made without this library has another
    /// identity. Of manifests of older versions nothing is known.
    pub anchor: Identity,
    /// Target `n` of the layout; its component is `ID.n`. Every one is used by the layout.
    pub targets: Vec<TargetRef>,
    /// Where the bytes are; of a file with several copies, those of the original.
    pub layout: Layout,
    /// What there is beside the original: format 2.
    pub copies: Option<Box<Copies>>,
}

/// Why a text is not a manifest: which file, which key, and what to do about it, in one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {problem}")]
pub struct ManifestError {
    /// The file it was read from, as the caller called it.
    pub file: String,
    /// Key, value and remedy.
    pub problem: String,
}

/// A layout keeps tables of regions times targets, in every process that opens the file.
const TABLE_CELLS_MAX: usize = 1 << 20;

/// Of all copies: regions and targets.
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
