//! What the manifest of a file with several copies says beside that of any other: format 2.

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

/// The copies of a file beside its original, and how they are kept. All processes that use the file go by this, whatever
/// their plans say.
#[derive(Clone, Debug, PartialEq)]
pub struct Copies {
    /// What they are for.
    pub kind: OverlayKind,
    /// Close does not wait until replicas are in sync.
    pub lazy_close: bool,
    /// When the extent map is made durable.
    pub durability: Durability,
    /// Most bytes per second that background copying moves, at least 1; `None`: no limit.
    pub background: Option<u64>,
    /// p that the plan assumed, at least 1; what is known at run time counts more.
    pub procs: u32,
    /// c that the plan assumed, at least 1 and at most p.
    pub procs_per_node: u32,
    /// Servers that the originals of the plan's files are spread over; those of this one at least.
    pub servers: u32,
    /// Copy 1, 2, ...: 1 to [`MAX_COPIES`]` - 1` of them.
    pub list: Vec<FurtherCopy>,
}

/// A copy beside the original.
#[derive(Clone, Debug, PartialEq)]
pub struct FurtherCopy {
    /// For people; those of one file differ.
    pub name: String,
    /// Names its components.
    pub id: FileId,
    /// g of a cache copy, at most its servers; 1 of a replica.
    pub groups: u32,
    /// Servers that this copy of the plan's files is spread over; those of this one at least, but for manifests of older
    /// versions, which counted a target as one where the file system stripes.
    pub servers: u32,
    /// Per target, how many servers the pool has over which the file system stripes it; 0: it is a server of its own. Empty: all
    /// are, or the manifest is of an older version.
    pub pool_servers: Vec<u32>,
    /// As of [`Manifest::targets`].
    pub targets: Vec<TargetRef>,
    /// Where its bytes are.
    pub layout: Layout,
}

/// One copy of a file, the original included.
#[derive(Clone, Copy, Debug)]
pub struct CopyRef<'a> {
    /// Names its components.
    pub id: FileId,
    /// Target `n` of the layout.
    pub targets: &'a [TargetRef],
    /// Where its bytes are.
    pub layout: &'a Layout,
}

impl CopyRef<'_> {
    /// Its objects, which belong to the owner of the anchor.
    pub fn objects(&self, owner: u32) -> Objects {
        Objects { id: self.id, owner }
    }
}

/// The id of copy `number` (0: the original) of file `id`: whoever knows one knows the others, also when no manifest has
/// been written yet.
pub(crate) fn copy_id(id: FileId, number: usize) -> FileId {
    let mut bytes = id.0;
    bytes[15] ^= number as u8;
    FileId(bytes)
}

/// The same for the ids of all copies of a file, and different for any other file.
pub(crate) fn family(id: FileId) -> FileId {
    let mut bytes = id.0;
    bytes[15] &= !(MAX_COPIES as u8 - 1);
    FileId(bytes)
}

impl Manifest {
    /// All copies, the original first.
    pub fn all_copies(&self) -> impl Iterator<Item = CopyRef<'_>> {
        let original = CopyRef { id: self.id, targets: &self.targets, layout: &self.layout };
        let further = self.copies.iter().flat_map(|copies| &copies.list);
        let further = further.map(|copy| CopyRef { id: copy.id, targets: &copy.targets, layout: &copy.layout });
        std::iter::once(original).chain(further)
    }
}

impl Manifest {
    /// Whether copy `number` is a cache copy.
    pub(crate) fn is_cache(&self, number: usize) -> bool {
        number > 0 && self.copies.as_ref().is_some_and(|copies| copies.is_cache())
    }
}

impl Copies {
    /// Whether the copies hold a part of the file only.
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
        for FurtherCopy { name, id, groups, servers, pool_servers, targets, layout } in &self.list {
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
    /// Regions and targets.
    pub fn table_size(&self) -> (usize, usize) {
        (self.region.len(), self.target.len())
    }
}

/// The copies of the file `id`, whose original lies on `targets` targets.
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

fn copy_of(text: TextCopy, cache: bool) -> Result<FurtherCopy, String> {
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
    Ok(FurtherCopy { name, id, groups, servers, pool_servers, targets, layout })
}
