//! Parses the tables that only the manifest of a file with several copies has: format 2.

use serde::Deserialize;
use stripewise_cluster::overlay::MAX_COPIES;
use stripewise_cluster::{CacheAdmission, CacheMode, Durability, OverlayKind};
use stripewise_target::FileId;

use super::fields::{CACHE, Copies, ExtraCopy, REPLICA, copy_id};
use super::parse_layout::{RESTORE, TextRegion, TextTarget, layout_of, targets_of};
use crate::pool::servers_of;

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
