//! The tables `[[rule.copy]]` and `[rule.overlay]` of `plan.toml`.

use std::fmt::Write;

use crate::cluster::Cluster;
use crate::error::FileError;
use crate::layout_text::{REMEDY, read_layouts, read_spread, write_layouts};
use crate::overlay::{CacheAdmission, CacheMode, CopySpec, Durability, MAX_COPIES, Overlay, OverlayKind};
use crate::reader::{Item, Table};
use crate::size;
use crate::spread::Spread;
use crate::write::quoted;

const REPLICA: &str = "replica";
const CACHE: &str = "cache";

pub(crate) fn write_overlay(out: &mut String, overlay: &Overlay, cluster: &Cluster) {
    let cache = matches!(overlay.kind, OverlayKind::Cache { .. });
    for copy in &overlay.copies {
        let kind = if cache { CACHE } else { REPLICA };
        let _ = writeln!(out, "\n[[rule.copy]]\nkind = \"{kind}\"\nname = {}", quoted(&copy.name));
        if copy.groups != 1 {
            let _ = writeln!(out, "groups = {}", copy.groups);
        }
        write_layouts(out, &copy.layouts, &copy.spread, cluster);
    }
    out.push_str("\n[rule.overlay]\n");
    if let OverlayKind::Cache { mode, admission, capacity_per_server } = overlay.kind {
        let capacity = quoted(&size::format(capacity_per_server));
        let (mode, admission) = (mode.name(), admission.name());
        let _ =
            writeln!(out, "mode = \"{mode}\"\nadmission = \"{admission}\"\ncapacity_per_server = {capacity}");
    }
    let (lazy_close, durability) = (overlay.lazy_close, overlay.durability.name());
    let _ = writeln!(out, "lazy_close = {lazy_close}\ndurability = \"{durability}\"");
    if let Some(background) = overlay.background {
        let _ = writeln!(out, "background = {}", quoted(&size::format(background)));
    }
    let _ = writeln!(out, "procs = {}\nprocs_per_node = {}", overlay.procs, overlay.procs_per_node);
}

/// Reads the overlay of a rule; `None`: it has none. `managed`: the rule has layouts; `spread` is
/// the rule's.
pub(crate) fn read_overlay(
    rule: &Table<'_>,
    managed: bool,
    spread: Spread,
    cluster: &Cluster,
) -> Result<Option<Overlay>, FileError> {
    let tables = rule.tables("copy")?;
    let overlay = rule.get("overlay");
    let Some(item) = rule.get("copy").filter(|_| !tables.is_empty()) else {
        let Some(overlay) = overlay else { return Ok(None) };
        return Err(overlay.error("the rule has no further copies; add [[rule.copy]], or leave this table out"));
    };
    if !managed {
        return Err(item.error("a rule with scheme \"keep\" has no further copies; leave them out"));
    }
    if tables.len() >= MAX_COPIES {
        let most = MAX_COPIES - 1;
        return Err(
            item.error(format!("a file has at most {most} copies besides the original; leave some out"))
        );
    }
    let cache = is_cache(&tables[0])?;
    let mut copies: Vec<CopySpec> = Vec::with_capacity(tables.len());
    for table in &tables {
        let copy = read_copy(table, cache, spread, cluster)?;
        if copies.iter().any(|known| known.name == copy.name) {
            return Err(table
                .need("name", REMEDY)?
                .error("another copy of the rule has this name; rename one"));
        }
        copies.push(copy);
    }
    let table = overlay.map(|item| item.table()).transpose()?;
    read_settings(rule, table.as_ref(), cache, copies, cluster).map(Some)
}

/// Whether a copy is a cache copy.
fn is_cache(table: &Table<'_>) -> Result<bool, FileError> {
    let by_name = |name: &str| [REPLICA, CACHE].contains(&name).then(|| name == CACHE);
    let choices = "\"replica\" or \"cache\"";
    table.need("kind", &format!("write {choices}"))?.one_of(by_name, choices)
}

fn read_copy(table: &Table<'_>, cache: bool, spread: Spread, cluster: &Cluster) -> Result<CopySpec, FileError> {
    table.allow_only(&["kind", "name", "groups", "spread", "layouts"])?;
    if is_cache(table)? != cache {
        let problem = "the copies of a rule are all \"replica\" or all \"cache\"; make two rules";
        return Err(table.need("kind", REMEDY)?.error(problem));
    }
    let name = table.need("name", "write a name for people, like \"1-DV\"")?;
    if name.text()?.is_empty() {
        return Err(name.error("must not be empty; write a name for people, like \"1-DV\""));
    }
    let item = table.need("layouts", "list at least one layout")?;
    let layouts = read_layouts(&item, cluster)?;
    let spread = match table.get("spread") {
        Some(item) => read_spread(&item)?,
        None if layouts.len() > 1 => spread,
        None => Spread::default(),
    };
    let mut copy = CopySpec { name: name.text()?.to_owned(), layouts, spread, groups: 1 };
    if copy.layouts.is_empty() {
        return Err(item.error("a copy has at least one layout"));
    }
    if let Some(item) = table.get("groups") {
        copy.groups = read_groups(&item, cache, servers_of(&copy, cluster).len())?;
    }
    Ok(copy)
}

/// The servers of a copy; those of pools as models count them.
fn servers_of(copy: &CopySpec, cluster: &Cluster) -> Vec<u32> {
    CopySpec { layouts: cluster.unfold_all(&copy.layouts), ..copy.clone() }.targets()
}

fn read_groups(item: &Item<'_>, cache: bool, servers: usize) -> Result<u32, FileError> {
    if !cache {
        return Err(item.error("only cache copies have groups; leave it out"));
    }
    item.number(servers, &format!(": the copy has {servers} servers"))
}

fn read_settings(
    rule: &Table<'_>,
    table: Option<&Table<'_>>,
    cache: bool,
    copies: Vec<CopySpec>,
    cluster: &Cluster,
) -> Result<Overlay, FileError> {
    if let Some(table) = table {
        let common = ["lazy_close", "durability", "background", "procs", "procs_per_node"];
        let of_cache = ["mode", "admission", "capacity_per_server"].into_iter().filter(|_| cache);
        table.allow_only(&of_cache.chain(common).collect::<Vec<_>>())?;
    }
    let get = |key| table.and_then(|table| table.get(key));
    let kind = match (cache, table) {
        (false, _) => OverlayKind::Replicas,
        (true, Some(table)) => read_cache(table, &copies, cluster)?,
        (true, None) => {
            return Err(rule.error("cache copies need [rule.overlay] with their capacity_per_server"));
        }
    };
    let durability = get("durability").map_or(Ok(Durability::default()), |item| {
        item.one_of(Durability::by_name, "\"sync\" or \"each-write\"")
    })?;
    let background = get("background").map(|item| match item.size()? {
        0 => Err(item.error("must be at least 1 byte per second; leave it out for no limit")),
        bytes => Ok(bytes),
    });
    let count = |key, or| get(key).map_or(Ok(or), |item| item.number(u32::MAX as usize, ""));
    let procs = count("procs", 1)?;
    let procs_per_node = count("procs_per_node", 1)?;
    if let Some(item) = get("procs_per_node").filter(|_| procs_per_node > procs) {
        return Err(item.error(format!("must be at most procs = {procs}")));
    }
    Ok(Overlay {
        kind,
        copies,
        lazy_close: get("lazy_close").map_or(Ok(false), |item| item.flag())?,
        durability,
        background: background.transpose()?,
        procs,
        procs_per_node,
    })
}

fn read_cache(table: &Table<'_>, copies: &[CopySpec], cluster: &Cluster) -> Result<OverlayKind, FileError> {
    let mode = table.get("mode").map_or(Ok(CacheMode::default()), |item| {
        item.one_of(CacheMode::by_name, "\"sla\", \"sca\", \"nsca\" or \"off\"")
    })?;
    let admission = table.get("admission").map_or(Ok(CacheAdmission::default()), |item| {
        item.one_of(CacheAdmission::by_name, "\"balanced\" or \"as-printed\"")
    })?;
    let one_dh = copies.iter().any(|copy| copy.groups == 1);
    let needs_one_dh = matches!(mode, CacheMode::Sca | CacheMode::Nsca);
    if let Some(item) = table.get("mode").filter(|_| needs_one_dh && !one_dh) {
        return Err(
            item.error("this mode caches in 1-DH, and no copy has groups = 1; add one, or write \"sla\"")
        );
    }
    let item =
        table.need("capacity_per_server", "write how much each server of the cache may hold, like \"1G\"")?;
    let capacity_per_server = item.size()?;
    if capacity_per_server == 0 {
        return Err(item.error("must be at least 1 byte; write mode = \"off\" to admit nothing"));
    }
    let servers = cluster.targets();
    let used = copies.iter().flat_map(|copy| servers_of(copy, cluster)).map(|target| &servers[target as usize]);
    if let Some(server) = used.into_iter().find(|server| server.capacity < capacity_per_server) {
        let (name, capacity) = (&server.name, size::format(server.capacity));
        return Err(item.error(format!("the cluster allows only {capacity} on {name}; write at most that")));
    }
    Ok(OverlayKind::Cache { mode, admission, capacity_per_server })
}
