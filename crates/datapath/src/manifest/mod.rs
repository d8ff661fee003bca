//! The text that says where a file's bytes are: `docs/formats/manifest.md`, format 1.
//!
//! Text in, text out; no I/O. [`Manifest::parse`] takes what stands at the start of an anchor (a hole may follow)
//! or in `ID.manifest`; [`Manifest::format`] writes it. What was parsed is valid: every region's targets exist,
//! every target is used.

mod format;
mod parse;
#[cfg(test)]
mod tests;

pub(crate) use format::pending_text;
pub(crate) use parse::parse_pending;
use stripewise_layout::Layout;
use stripewise_target::{FileId, TargetRef};

/// The first line. A file that does not start with it is not an anchor of any format.
pub const MAGIC: &[u8] = b"stripewise file, format ";
/// The first line of the only format there is.
pub(crate) const MAGIC_LINE: &str = "stripewise file, format 1\n";
/// Upper limit of a manifest, bytes.
pub const TEXT_BYTES_MAX: usize = 1 << 20;
/// How many bytes of an anchor [`Manifest::text_length`] wants to see.
pub const HEAD_BYTES: usize = 4096;
/// No manifest, and nothing that was once one, is shorter than the magic line.
pub const TEXT_BYTES_MIN: usize = MAGIC_LINE.len();
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
    /// Target `n` of the layout; its component is `ID.n`. Every one is used by the layout.
    pub targets: Vec<TargetRef>,
    /// Where the bytes are.
    pub layout: Layout,
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

fn check_size(regions: usize, targets: usize) -> Result<(), String> {
    if regions.saturating_mul(targets) <= TABLE_CELLS_MAX {
        return Ok(());
    }
    Err(format!(
        "key `region`: {regions} regions over {targets} targets are more than {TABLE_CELLS_MAX} entries; \
         use fewer regions or targets"
    ))
}
