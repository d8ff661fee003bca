//! Status of files with several copies: the bytes of each copy, the processes that use the file,
//! and the operations since it was opened.

use std::path::Path;

use anyhow::bail;
use serde_json::{Value, json};
use stripewise_cluster::{OverlayKind, size};
use stripewise_datapath::inspect::{CopyState, Inspection, Lease, MapState, SessionState, Totals, inspect};
use stripewise_datapath::manifest::{Copies, CopyRef, Manifest};
use stripewise_datapath::{Errno, Runtime};
use stripewise_layout::{Layout, Stripe};
use stripewise_target::TargetRef;

use crate::output::{self, human};

/// Status of a file with several copies.
pub struct CopiesStatus {
    found: Inspection,
    copies: Box<Copies>,
    map: MapState,
}

/// Inspects the file at `path`, which has this manifest and owner. The error says why the file
/// cannot be used.
pub fn look(runtime: &Runtime, path: &Path, found: (Manifest, u32)) -> anyhow::Result<CopiesStatus> {
    let mut found = inspect(runtime, path, found)?;
    match (found.manifest.copies.clone(), found.map.take()) {
        (Some(copies), Some(Ok(map))) => Ok(CopiesStatus { found, copies, map }),
        (_, Some(Err(error))) => bail!("{}: {error}", path.display()),
        _ => bail!("{}: it has a single copy now", path.display()),
    }
}

impl CopiesStatus {
    pub fn size_bytes(&self) -> u64 {
        self.found.size_bytes
    }

    fn all(&self) -> impl Iterator<Item = (usize, CopyRef<'_>, &CopyState)> {
        let all = self.found.manifest.all_copies().zip(&self.found.copies).enumerate();
        all.map(|(number, (copy, state))| (number, copy, state))
    }

    /// Returns the JSON of the file at `path`.
    pub fn to_json(&self, path: String) -> Value {
        let Self { found, copies, map } = self;
        let (kind, mode, capacity) = match copies.kind {
            OverlayKind::Replicas => ("replicas", None, None),
            OverlayKind::Cache { mode, capacity_per_server, .. } => {
                ("cache", Some(mode.name()), Some(capacity_per_server))
            }
        };
        json!({
            "path": path,
            "ok": !self.is_incomplete(),
            "managed": true,
            "size_bytes": found.size_bytes,
            "kind": kind,
            "mode": mode,
            "capacity_per_server": capacity,
            "lazy_close": copies.lazy_close,
            "durability": copies.durability.name(),
            "lease": lease_json(map),
            "nodes": map.sessions.iter().map(node_json).collect::<Vec<_>>(),
            "processes": map.processes,
            "copying": map.copying,
            "copies": self.all().map(|(number, copy, state)| self.copy_json(number, copy, state)).collect::<Vec<_>>(),
            "statistics": map.statistics,
        })
    }

    /// Returns the bytes that the copy lacks; `None` for a cache copy, which need not hold all.
    fn stale_bytes(&self, number: usize, state: &CopyState) -> Option<u64> {
        let whole = number == 0 || !self.copies.is_cache();
        whole.then(|| self.found.size_bytes - state.bytes.map_or(0, |bytes| bytes.valid))
    }

    fn copy_json(&self, number: usize, copy: CopyRef<'_>, state: &CopyState) -> Value {
        let bytes = state.bytes.unwrap_or_default();
        let target = |(index, target): (usize, &TargetRef)| {
            let of = |values: &[u64]| values.get(index).copied();
            json!({
                "name": target.name, "path": target.path.display().to_string(),
                "bytes": of(&state.size_bytes), "allocated_bytes": of(&state.allocated_bytes),
            })
        };
        let mut entry = json!({
            "name": state.name,
            "tier": tiers(copy.targets),
            "layout": layout(copy.layout, copy.targets),
            "valid_bytes": bytes.valid,
            "dirty_bytes": bytes.dirty,
            "wanted_bytes": bytes.wanted,
            "allocated_bytes": state.allocated_bytes.iter().sum::<u64>(),
            "lost": state.lost.as_ref().map(ToString::to_string),
            "targets": copy.targets.iter().enumerate().map(target).collect::<Vec<_>>(),
        });
        if let Some(bytes) = self.stale_bytes(number, state) {
            entry["stale_bytes"] = bytes.into();
        }
        entry
    }

    /// Prints the copies below the file's first line.
    pub fn print(&self) {
        println!("  {}; {}", kept(&self.copies), used(&self.map));
        let header = ["  copy", "tier", "layout", "valid", "dirty", "stale", "wanted", "on disk"];
        let mut table = output::table(header, 3..8);
        for (number, copy, state) in self.all() {
            let bytes = state.bytes.unwrap_or_default();
            let some = |bytes: u64| if bytes == 0 { "-".to_owned() } else { human(bytes) };
            let disk = match &state.lost {
                Some(_) => "lost".to_owned(),
                None => human(state.allocated_bytes.iter().sum()),
            };
            table.add_row([
                format!("  {}", state.name),
                tiers(copy.targets),
                layout(copy.layout, copy.targets),
                human(bytes.valid),
                some(bytes.dirty),
                some(self.stale_bytes(number, state).unwrap_or(0)),
                some(bytes.wanted),
                disk,
            ]);
        }
        println!("{}", table.to_string().trim_end());
        print_nodes(&self.map.sessions);
        for lost in self.found.copies.iter().filter_map(|copy| copy.lost.as_ref()) {
            println!("  lost: {lost}");
        }
        if let Some(totals) = &self.map.statistics {
            println!("  since it was opened: {}", statistics(totals));
        }
    }

    /// Returns whether a copy or the map is lost.
    pub fn is_incomplete(&self) -> bool {
        self.map.lease == Lease::Lost || self.found.copies.iter().any(|copy| copy.lost.is_some())
    }
}

/// Describes how the copies are kept.
fn kept(copies: &Copies) -> String {
    match copies.kind {
        OverlayKind::Cache { mode, capacity_per_server, .. } => {
            format!("cache, mode {}, at most {} per server", mode.name(), human(capacity_per_server))
        }
        OverlayKind::Replicas if copies.lazy_close => "replicas, lazy close".to_owned(),
        OverlayKind::Replicas => "replicas".to_owned(),
    }
}

/// Describes which processes or node have the file open.
fn used(map: &MapState) -> String {
    let processes = match map.processes {
        1 => "1 process".to_owned(),
        many => format!("{many} processes"),
    };
    let lease = match &map.lease {
        Lease::Closed if map.processes == 0 => return "not in use".to_owned(),
        Lease::Closed => format!("{processes} of this node read it"),
        Lease::Here if map.processes == 0 => "left open by processes that were killed".to_owned(),
        Lease::Here => format!("{processes} of this node have it open"),
        Lease::EarlierBoot => "left open when this node went down".to_owned(),
        Lease::Lost => "its map was lost while it was in use; see `stripewise fsck`".to_owned(),
        Lease::Elsewhere(node) => format!("in use by node {node}"),
    };
    if map.copying { format!("{lease}, and one is copying") } else { lease }
}

fn lease_json(map: &MapState) -> Value {
    let state = match map.lease {
        Lease::Closed => "closed",
        Lease::Here => "here",
        Lease::EarlierBoot => "earlier-boot",
        Lease::Lost => "lost",
        Lease::Elsewhere(_) => "elsewhere",
    };
    json!({ "state": state, "node": map.node })
}

fn node_json(session: &SessionState) -> Value {
    let SessionState { node, is_alone, is_alive } = session;
    let mut entry = json!({ "name": node.name, "alive": is_alive.as_ref().ok(), "alone": is_alone });
    if let Err(problem) = is_alive {
        entry["problem"] = problem.to_string().into();
    }
    entry
}

/// Prints a line for each node in the log of the map.
fn print_nodes(sessions: &[SessionState]) {
    if sessions.is_empty() {
        return;
    }
    let mut table = output::table(["  node", "state"], []);
    for SessionState { node, is_alone, is_alive } in sessions {
        table.add_row(node_row(node.host(), *is_alone, is_alive.as_ref().map_err(|problem| problem.errno())));
    }
    println!("{}", output::without_blanks(&table));
}

fn node_row(host: &str, is_alone: bool, is_alive: Result<&bool, Errno>) -> [String; 2] {
    const HOST_CHARS: usize = 28;
    let state = match is_alive {
        Ok(true) if is_alone => "has the file open, alone".to_owned(),
        Ok(true) => "has the file open".to_owned(),
        Ok(false) => "died; the next open recovers it".to_owned(),
        Err(problem) => format!("unknown: {problem}"),
    };
    [format!("  {}", host.chars().take(HOST_CHARS).collect::<String>()), state]
}

/// Formats tiers, `hdd` or `hdd, ssd`, from target names like `hdd/0`.
fn tiers(targets: &[TargetRef]) -> String {
    let names = targets.iter().map(|target| target.name.as_str());
    let mut tiers: Vec<_> = names.map(|name| name.rsplit_once('/').map_or(name, |(tier, _)| tier)).collect();
    tiers.dedup();
    tiers.join(", ")
}

/// Formats the cycles of the layout's regions.
fn layout(layout: &Layout, targets: &[TargetRef]) -> String {
    let regions = layout.regions().iter().map(|region| match region.end {
        Some(end) => format!("{} to {}", cycle(&region.cycle, targets), human(end)),
        None => cycle(&region.cycle, targets),
    });
    regions.collect::<Vec<_>>().join(", ")
}

fn statistics(totals: &Totals) -> String {
    let counts = &totals.counts;
    let mut text = format!("{} requests", counts.requests);
    for (count, word) in [
        (counts.critical, "critical"),
        (counts.hits, "hits"),
        (counts.partial_hits, "hits in part"),
        (counts.evictions, "evictions"),
        (counts.write_backs, "write-backs"),
        (counts.fetches, "fetches"),
        (totals.synchronisations, "synchronisations"),
    ] {
        if count > 0 {
            text += &format!(", {count} {word}");
        }
    }
    text
}

/// Formats a region's stripe cycle over a copy's targets in plan notation: `hdd/0-3:64K ssd/0:8K`.
pub fn cycle(stripes: &[Stripe], targets: &[TargetRef]) -> String {
    let name = |stripe: &Stripe| targets[stripe.target as usize].name.as_str();
    let mut words: Vec<String> = Vec::new();
    let mut rest = stripes;
    while let Some(first) = rest.first() {
        let numbered = name(first).rsplit_once('/').and_then(|(tier, n)| Some((tier, n.parse::<u64>().ok()?)));
        let follows = |(index, stripe): (usize, &Stripe)| {
            let expected = numbered.map(|(tier, number)| format!("{tier}/{}", number + index as u64));
            stripe.width == first.width && (index == 0 || expected.as_deref() == Some(name(stripe)))
        };
        let run = rest.iter().enumerate().take_while(|&pair| follows(pair)).count();
        let last = match numbered {
            Some((_, number)) if run > 1 => format!("-{}", number + run as u64 - 1),
            _ => String::new(),
        };
        words.push(format!("{}{last}:{}", name(first), size::format(first.width)));
        rest = &rest[run..];
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_shown_within_80_columns() {
        // A blank on each side of both columns.
        const BLANKS: usize = 4;
        for is_alive in [Ok(&true), Ok(&false), Err(Errno::ROFS), Err(Errno::ACCESS), Err(Errno::PERM)] {
            let row = node_row(&"host".repeat(16), true, is_alive);
            let width: usize = row.iter().map(String::len).sum();
            assert!(width + BLANKS <= 80, "{row:?}");
        }
    }
}
