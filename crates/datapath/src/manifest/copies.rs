//! The tables that only the manifest of a file with several copies has: format 2.

use std::fmt::Write;

use serde::Deserialize;
use stripewise_cluster::overlay::MAX_COPIES;
use stripewise_cluster::{CacheAdmission, CacheMode, Durability, OverlayKind};
use stripewise_layout::Layout;
use stripewise_target::{FileId, Objects, TargetRef};

use super::format::{format_layout, quoted};
use super::parse::{RESTORE, TextRegion, TextTarget, layout_of, targets_of};
use super::{Manifest, ManifestError};
use crate::pool::servers_of;

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
    /// All copies, the original first.
    pub fn all_copies(&self) -> impl Iterator<Item = CopyRef<'_>> {
        let original = CopyRef { id: self.id, targets: &self.targets, layout: &self.layout };
        let extra = self.copies.iter().flat_map(|copies| &copies.list);
        let extra = extra.map(|copy| CopyRef { id: copy.id, targets: &copy.targets, layout: &copy.layout });
        std::iter::once(original).chain(extra)
    }
}

impl Manifest {
    /// Whether copy `number` is a cache copy.
    pub(crate) fn is_cache(&self, number: usize) -> bool {
        number > 0 && self.copies.as_ref().is_some_and(|copies| copies.is_cache())
    }
}

impl Copies {
    /// Whether the extra copies are caches, which hold only some of the bytes.
    pub fn is_cache(&self) -> bool {
        matches!(self.kind, OverlayKind::Cache { .. })
    }

    /// Appends the tables `[overlay]` and `[[copy]]`.
    pub(super) fn format(&self, path: &str, text: &mut String) -> Result<(), ManifestError> {
        text.push_str("[overlay]\n");
        if let OverlayKind::Cache { mode, admission, capacity_per_server } = self.kind {
            let (mode, admission) = (mode.name(), admission.name());
            // Writing to a String cannot fail.
            let _ = writeln!(text, "mode = \"{mode}\"\nadmission = \"{admission}\"");
            let _ = writeln!(text, "capacity_per_server = {capacity_per_server}");
        }
        let (lazy_close, durability) = (self.lazy_close, self.durability.name());
        let _ = writeln!(text, "lazy_close = {lazy_close}\ndurability = \"{durability}\"");
        if let Some(background) = self.background {
            let _ = writeln!(text, "background = {background}");
        }
        let Self { procs, procs_per_node, servers, .. } = self;
        let _ = writeln!(text, "procs = {procs}\nprocs_per_node = {procs_per_node}\nservers = {servers}");
        let kind = if self.is_cache() { CACHE } else { REPLICA };
        for ExtraCopy { name, id, groups, servers, pool_servers, targets, layout } in &self.list {
            let name = quoted(name);
            let _ = writeln!(text, "[[copy]]\nkind = \"{kind}\"\nname = {name}\nid = \"{id}\"");
            let _ = writeln!(text, "groups = {groups}\nservers = {servers}");
            if !pool_servers.is_empty() {
                let _ = writeln!(text, "pool_servers = {pool_servers:?}");
            }
            format_layout(path, "copy.", targets, layout, text)?;
        }
        Ok(())
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TextOverlay {
    mode: Option<String>,
    admission: Option<String>,
    capacity_per_server: Option<u64>,
    lazy_close: bool,
    durability: String,
    background: Option<u64>,
    procs: u32,
    procs_per_node: u32,
    servers: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TextCopy {
    kind: String,
    name: String,
    id: String,
    groups: u32,
    servers: u32,
    #[serde(default)]
    pool_servers: Vec<u32>,
    #[serde(default)]
    target: Vec<TextTarget>,
    #[serde(default)]
    region: Vec<TextRegion>,
}

impl TextCopy {
    /// Number of regions and number of targets.
    pub fn table_size(&self) -> (usize, usize) {
        (self.region.len(), self.target.len())
    }
}

/// Converts the extra copies of file `id`, whose original lies on `targets` targets, and checks
/// them.
pub(super) fn read(
    overlay: TextOverlay,
    copies: Vec<TextCopy>,
    id: FileId,
    targets: usize,
) -> Result<Copies, String> {
    if copies.is_empty() || copies.len() >= MAX_COPIES {
        let most = MAX_COPIES - 1;
        return Err(format!("key `copy`: {} copies, there must be 1 to {most}; {RESTORE}", copies.len()));
    }
    let cache = copies[0].kind == CACHE;
    let kind = kind_of(&overlay, cache)?;
    let (procs, procs_per_node) = (overlay.procs, overlay.procs_per_node);
    let bad = |key: &str| Err(format!("key `overlay.{key}`: is not in its range; {RESTORE}"));
    if procs_per_node == 0 || procs < procs_per_node {
        return bad("procs");
    }
    if overlay.background == Some(0) {
        return bad("background");
    }
    if (overlay.servers as usize) < targets {
        return bad("servers");
    }
    let durability = Durability::by_name(&overlay.durability)
        .ok_or_else(|| format!("key `overlay.durability`: {:?} is unknown; {RESTORE}", overlay.durability))?;
    let list: Vec<_> = copies.into_iter().map(|copy| copy_of(copy, cache)).collect::<Result<_, _>>()?;
    for (index, copy) in list.iter().enumerate() {
        if copy.id != copy_id(id, index + 1) {
            return Err(format!("key `copy.id`: {} is not that of copy {}; {RESTORE}", copy.id, index + 1));
        }
        if list[..index].iter().any(|other| other.name == copy.name) {
            return Err(format!("key `copy.name`: {:?} is that of another copy; {RESTORE}", copy.name));
        }
    }
    let TextOverlay { lazy_close, background, servers, .. } = overlay;
    Ok(Copies { kind, lazy_close, durability, background, procs, procs_per_node, servers, list })
}

fn kind_of(overlay: &TextOverlay, cache: bool) -> Result<OverlayKind, String> {
    let unknown = |key: &str, name: &str| format!("key `overlay.{key}`: {name:?} is unknown; {RESTORE}");
    match (&overlay.mode, &overlay.admission, overlay.capacity_per_server) {
        (None, None, None) if !cache => Ok(OverlayKind::Replicas),
        (Some(mode), Some(admission), Some(capacity_per_server)) if cache && capacity_per_server > 0 => {
            let mode = CacheMode::by_name(mode).ok_or_else(|| unknown("mode", mode))?;
            let admission =
                CacheAdmission::by_name(admission).ok_or_else(|| unknown("admission", admission))?;
            Ok(OverlayKind::Cache { mode, admission, capacity_per_server })
        }
        _ => Err(format!(
            "keys `overlay.mode`, `overlay.admission` and `overlay.capacity_per_server`: caches have all, replicas \
             none; {RESTORE}"
        )),
    }
}

fn copy_of(text: TextCopy, cache: bool) -> Result<ExtraCopy, String> {
    if text.kind != if cache { CACHE } else { REPLICA } {
        return Err(format!(
            "key `copy.kind`: {:?}, but all must be \"{REPLICA}\" or all \"{CACHE}\"; {RESTORE}",
            text.kind
        ));
    }
    let id = FileId::from_hex(&text.id)
        .ok_or_else(|| format!("key `copy.id`: {:?} must be 32 hexadecimal digits; {RESTORE}", text.id))?;
    let count = text.target.len();
    let layout = layout_of("copy.", text.region, count)?;
    let targets = targets_of("copy.", text.target)?;
    let all = || targets.iter().map(|target| u64::from(servers_of(&target.name, &target.path))).sum();
    let groups_max = if cache { all() } else { 1 };
    if text.groups == 0 || u64::from(text.groups) > groups_max || (text.servers as usize) < count {
        return Err(format!("keys `copy.groups` and `copy.servers`: are not in their ranges; {RESTORE}"));
    }
    if !text.pool_servers.is_empty() && text.pool_servers.len() != count {
        let said = text.pool_servers.len();
        return Err(format!("key `copy.pool_servers`: has {said} numbers for {count} targets; {RESTORE}"));
    }
    let TextCopy { name, groups, servers, pool_servers, .. } = text;
    Ok(ExtraCopy { name, id, groups, servers, pool_servers, targets, layout })
}
