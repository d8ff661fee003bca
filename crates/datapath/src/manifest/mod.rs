//! The manifest: the text that describes where a file's bytes are. `docs/formats/manifest.md`
//! specifies it: format 1, and format 2 for files with several copies.
//!
//! This module converts text and does no I/O. [`Manifest::parse`] reads the start of an anchor (a
//! hole may follow) or of `ID.manifest`, and [`Manifest::format`] writes it. A parsed manifest is
//! valid: the targets of every region exist, and every target is used.

mod format;
mod parse;
#[cfg(test)]
mod tests;

use stripewise_cluster::overlay::MAX_COPIES;
use stripewise_cluster::{Durability, OverlayKind};
use stripewise_extents::CopyId;
use stripewise_layout::Layout;
use stripewise_sys::Identity;
use stripewise_target::{FileId, Objects, TargetRef};

pub(crate) use format::pending_text;

/// The start of the first line. A file without it is not an anchor of any format.
pub const MAGIC: &[u8] = b"stripewise file, format ";
/// The first lines of format 1 and of format 2.
const MAGIC_LINES: [&str; 2] = ["stripewise file, format 1\n", "stripewise file, format 2\n"];
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

const REPLICA: &str = "replica";
const CACHE: &str = "cache";

/// The extra copies of a file and their settings. They apply to all processes that use the file,
/// whatever plans those have.
#[derive(Clone, Debug, PartialEq)]
pub struct Copies {
    /// The kind: replicas or caches.
    pub kind: OverlayKind,
    /// Close does not wait until replicas are in sync.
    pub lazy_close: bool,
    /// When the extent map becomes durable.
    pub durability: Durability,
    /// Maximum bytes per second of background copying, at least 1; `None`: no limit.
    pub background: Option<u64>,
    /// p assumed by the plan, at least 1; a value known at run time takes precedence.
    pub procs: u32,
    /// c assumed by the plan, at least 1 and at most p.
    pub procs_per_node: u32,
    /// Number of servers over which the originals of the plan's files are spread; at least the
    /// targets of this file's original.
    pub servers: u32,
    /// Copies 1, 2, ...: 1 to [`MAX_COPIES`]` - 1` of them.
    pub list: Vec<ExtraCopy>,
}

/// An extra copy.
#[derive(Clone, Debug, PartialEq)]
pub struct ExtraCopy {
    /// A name for people, unique within the file.
    pub name: String,
    /// The id that names the copy's objects.
    pub id: FileId,
    /// g of a cache copy, at most its number of servers; 1 for a replica.
    pub groups: u32,
    /// Number of servers over which this copy of the plan's files is spread; at least the servers
    /// of this file's copy. Older manifests count a target that is striped over several servers as
    /// one.
    pub servers: u32,
    /// Per target, the number of servers in the pool over which the file system stripes it; 0 if
    /// the target is a server of its own. Empty if all are, or if the manifest is of an older
    /// version.
    pub pool_servers: Vec<u32>,
    /// The targets, in the format of [`Manifest::targets`].
    pub targets: Vec<TargetRef>,
    /// The layout of the copy's bytes.
    pub layout: Layout,
}

/// One copy of a file; may be the original.
#[derive(Clone, Copy, Debug)]
pub struct CopyRef<'a> {
    /// The copy's number.
    pub number: CopyId,
    /// `original`, or the name in the manifest.
    pub name: &'a str,
    /// Whether it is a cache copy, which holds only some of the bytes.
    pub is_cache: bool,
    /// The id that names the copy's objects.
    pub id: FileId,
    /// The targets, by their number in the layout.
    pub targets: &'a [TargetRef],
    /// The layout of the copy's bytes.
    pub layout: &'a Layout,
}

impl CopyRef<'_> {
    /// The copy's objects; `owner` is the owner of the anchor.
    pub fn objects(&self, owner: u32) -> Objects {
        Objects { id: self.id, owner }
    }
}

/// The id of copy `number` (0: the original) of file `id`. The ids of all copies follow from any
/// one of them, even before a manifest is written.
pub(crate) fn copy_id(id: FileId, number: usize) -> FileId {
    let mut bytes = id.0;
    bytes[15] ^= number as u8;
    FileId(bytes)
}

/// An id that is the same for all copies of a file and differs between files.
pub(crate) fn family(id: FileId) -> FileId {
    let mut bytes = id.0;
    bytes[15] &= !(MAX_COPIES as u8 - 1);
    FileId(bytes)
}

impl Manifest {
    pub(crate) fn original(&self) -> CopyRef<'_> {
        let Self { id, ref targets, ref layout, .. } = *self;
        CopyRef { number: CopyId::ORIGINAL, name: "original", is_cache: false, id, targets, layout }
    }

    /// All copies, the original first.
    pub fn all_copies(&self) -> impl Iterator<Item = CopyRef<'_>> {
        let is_cache = self.copies.as_ref().is_some_and(|copies| copies.is_cache());
        let extra = self.copies.iter().flat_map(|copies| &copies.list);
        let extra = extra.zip((1..CopyId::LIMIT).map(CopyId::new)).map(move |(copy, number)| {
            let ExtraCopy { ref name, id, ref targets, ref layout, .. } = *copy;
            CopyRef { number, name, is_cache, id, targets, layout }
        });
        std::iter::once(self.original()).chain(extra)
    }

    /// The original's objects; `owner` is the owner of the anchor.
    pub(crate) fn objects(&self, owner: u32) -> Objects {
        Objects { id: self.id, owner }
    }
}

impl Copies {
    /// Whether the extra copies are caches, which hold only some of the bytes.
    pub fn is_cache(&self) -> bool {
        matches!(self.kind, OverlayKind::Cache { .. })
    }
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
