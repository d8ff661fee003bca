//! The tables `[[rule.copy]]` and `[rule.overlay]` of `plan.toml`.

use std::fmt::Write;

use crate::cluster::Cluster;
use crate::layout_text::{REMEDY, Read, Written, read_layouts, read_spread, write_layouts};
use crate::overlay::{CacheAdmission, CacheMode, CopySpec, Durability, MAX_COPIES, Overlay, OverlayKind};
use crate::pattern::Spread;
use crate::reader::{FileError, Item, Table};
use crate::size;
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
        write_layouts(out, (&copy.layouts, &copy.spread), cluster, &mut Written::new());
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
    item.ensure(managed, "a rule with scheme \"keep\" has no further copies; leave them out")?;
    if tables.len() >= MAX_COPIES {
        let most = MAX_COPIES - 1;
        let problem = format!("a file has at most {most} copies besides the original; leave some out");
        return Err(item.error(problem));
    }
    let cache = is_cache(&tables[0])?;
    let mut copies: Vec<CopySpec> = Vec::with_capacity(tables.len());
    for table in &tables {
        let copy = read_copy(table, cache, spread, cluster)?;
        if copies.iter().any(|known| known.name == copy.name) {
            let item = table.need("name", REMEDY)?;
            return Err(item.error("another copy of the rule has this name; rename one"));
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
    table.allow_only("kind, name, groups, spread, layouts")?;
    if is_cache(table)? != cache {
        let problem = "the copies of a rule are all \"replica\" or all \"cache\"; make two rules";
        return Err(table.need("kind", REMEDY)?.error(problem));
    }
    let name = table.need("name", "write a name for people, like \"1-DV\"")?;
    let named = !name.text()?.is_empty();
    name.ensure(named, "must not be empty; write a name for people, like \"1-DV\"")?;
    let item = table.need("layouts", "list at least one layout")?;
    let layouts = read_layouts(&item, cluster, &mut Read::new())?;
    let spread = match table.get("spread") {
        Some(item) => read_spread(&item)?,
        None if layouts.len() > 1 => spread,
        None => Spread::default(),
    };
    let mut copy = CopySpec { name: name.text()?.to_owned(), layouts, spread, groups: 1 };
    item.ensure(!copy.layouts.is_empty(), "a copy has at least one layout")?;
    if let Some(item) = table.get("groups") {
        item.ensure(cache, "only cache copies have groups; leave it out")?;
        let servers = cluster.servers_of(&copy.layouts).len();
        copy.groups = item.number(servers, &format!(": the copy has {servers} servers"))?;
    }
    Ok(copy)
}

fn read_settings(
    rule: &Table<'_>,
    table: Option<&Table<'_>>,
    cache: bool,
    copies: Vec<CopySpec>,
    cluster: &Cluster,
) -> Result<Overlay, FileError> {
    let mut overlay = Overlay {
        kind: OverlayKind::Replicas,
        copies,
        lazy_close: false,
        durability: Durability::default(),
        background: None,
        procs: 1,
        procs_per_node: 1,
    };
    let table = match table {
        Some(table) => table,
        None if cache => {
            return Err(rule.error("cache copies need [rule.overlay] with their capacity_per_server"));
        }
        None => return Ok(overlay),
    };
    let common = "lazy_close, durability, background, procs, procs_per_node";
    if cache {
        table.allow_only(&format!("mode, admission, capacity_per_server, {common}"))?;
        overlay.kind = read_cache(table, &overlay.copies, cluster)?;
    } else {
        table.allow_only(common)?;
    }
    overlay.durability = table.optional("durability", Durability::default(), |item| {
        item.one_of(Durability::by_name, "\"sync\" or \"each-write\"")
    })?;
    let count = |item: &Item<'_>| item.number(u32::MAX as usize, "");
    overlay.procs = table.optional("procs", 1, count)?;
    overlay.procs_per_node = table.optional("procs_per_node", 1, |item| {
        let (per_node, procs) = (count(item)?, overlay.procs);
        item.ensure(per_node <= procs, &format!("must be at most procs = {procs}"))?;
        Ok(per_node)
    })?;
    overlay.lazy_close = table.optional("lazy_close", false, Item::flag)?;
    overlay.background = table.optional("background", None, |item| match item.size()? {
        0 => Err(item.error("must be at least 1 byte per second; leave it out for no limit")),
        bytes => Ok(Some(bytes)),
    })?;
    Ok(overlay)
}

fn read_cache(table: &Table<'_>, copies: &[CopySpec], cluster: &Cluster) -> Result<OverlayKind, FileError> {
    let mode = table.optional("mode", CacheMode::default(), |item| {
        item.one_of(CacheMode::by_name, "\"sla\", \"sca\", \"nsca\" or \"off\"")
    })?;
    let admission = table.optional("admission", CacheAdmission::default(), |item| {
        item.one_of(CacheAdmission::by_name, "\"balanced\" or \"as-printed\"")
    })?;
    let one_dh = copies.iter().any(|copy| copy.groups == 1);
    if matches!(mode, CacheMode::Sca | CacheMode::Nsca) && !one_dh {
        let problem = "this mode caches in 1-DH, and no copy has groups = 1; add one, or write \"sla\"";
        return Err(table.need("mode", REMEDY)?.error(problem));
    }
    let item =
        table.need("capacity_per_server", "write how much each server of the cache may hold, like \"1G\"")?;
    let capacity_per_server = item.size()?;
    item.ensure(capacity_per_server > 0, "must be at least 1 byte; write mode = \"off\" to admit nothing")?;
    let servers = cluster.targets();
    let used = copies.iter().flat_map(|copy| cluster.servers_of(&copy.layouts));
    let mut used = used.map(|target| &servers[target as usize]);
    if let Some(server) = used.find(|server| server.capacity < capacity_per_server) {
        let (name, capacity) = (&server.name, size::format(server.capacity));
        return Err(item.error(format!("the cluster allows only {capacity} on {name}; write at most that")));
    }
    Ok(OverlayKind::Cache { mode, admission, capacity_per_server })
}
