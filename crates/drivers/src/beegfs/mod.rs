//! BeeGFS 8, through its `beegfs` tool.
//!
//! Checked against its documentation, the source of the tool (ThinkParQ/beegfs-go) and a fake that
//! follows it, but not on a real BeeGFS.

mod json;

use std::path::Path;

use stripewise_cluster::FileSystem;
use stripewise_native::{Call, NativeLayout, Stripe};
use stripewise_sys::Real;

use crate::driver::{Actual, Pool, Probe};
use crate::error::Result;
use crate::files;
use crate::tool::Tool;
use crate::tooled::{Refusal, Tooled};
use json::Entry;

/// The pattern that the driver can read back; mirrored files have other patterns.
const PATTERN: &str = "RAID0";

/// BeeGFS on mounted directories.
#[derive(Clone)]
pub struct BeeGfs {
    tool: Tool,
}

impl Default for BeeGfs {
    fn default() -> Self {
        Self { tool: Tool::new("beegfs") }
    }
}

impl Tooled for BeeGfs {
    const SYSTEM: FileSystem = FileSystem::BeeGfs;
    const KINDS: &'static [&'static str] = &["beegfs"];
    /// The texts are those of ctl/pkg/ctl/entry in beegfs-go.
    const REFUSALS: &'static [(&'static [&'static str], Refusal)] = &[
        (
            &["only root", "permission", "Permission"],
            Refusal::Denied(
                "setting its pattern",
                "be root; others may set chunk sizes and numbers of targets on their own directories where \
                 sysAllowUserSetPattern is set in the metadata servers' configuration",
            ),
        ),
        (&["already exists", "exists already"], Refusal::Exists),
        (
            &["No space left"],
            Refusal::Full("creating the file", "`beegfs health df` tells which targets are full"),
        ),
        (&["storage pool", "specified pool"], Refusal::Value("`beegfs pool list` lists the pools")),
        (&["target"], Refusal::Value("`beegfs target list` lists the targets")),
    ];
    const REMEDY: &'static str = "look with `beegfs entry info` what it has; fewer targets than asked for mean that the \
                                  pool has no more";
    type Report = Entry;

    fn tool(&self, _name: &str) -> &Tool {
        &self.tool
    }

    fn report(&self, path: &Path) -> Result<Option<Entry>> {
        self.unless_elsewhere(path, self.entry(path))
    }

    fn describe(&self, dir: &Path, _report: Entry, probe: &mut Probe) {
        self.add_pools(probe);
        let pool = probe.pools.iter().find(|pool| pool.servers != Some(0)).map(|pool| pool.name.clone());
        for (what, pool) in [("patterns", None), ("storage pools", pool.as_deref())] {
            self.try_out(dir, what, &NativeLayout::even(512 << 10, 1, pool), probe);
        }
    }

    fn make(&self, file: &Path, layout: &NativeLayout, calls: &[Call], mode: u32) -> Result<()> {
        if let Some(Stripe::Listed { .. }) = layout.stripe() {
            return self.make_by_tool(file, layout, calls, mode);
        }
        // `beegfs entry create file` is for root only; other users may set a directory's pattern.
        files::made_apart(&Real, file, |dir, inside| {
            self.set(dir, &Self::calls(layout, dir, true)?)?;
            drop(files::create_new(&Real, inside, mode)?);
            self.verify(inside, layout)
        })
    }

    fn found(&self, path: &Path, asked: Option<&NativeLayout>) -> Result<Actual> {
        let entry = self.entry(path)?;
        if entry.pattern != PATTERN {
            return Ok(Actual { note: Some(format!("its pattern is {}", entry.pattern)), ..Actual::default() });
        }
        let note = (!entry.is_dir).then(|| format!("on targets {}", entry.targets.join(", ")));
        Ok(Actual { layout: Some(self.layout(&entry, asked)), note, ..Actual::default() })
    }

    /// A directory always has a pattern: without hints, that of its parent directory.
    fn forget(&self, dir: &Path) -> Result<()> {
        let above = self.entry(files::parent(dir))?;
        let own = self.entry(dir)?;
        let pool = above.pool.clone().filter(|_| above.pool != own.pool);
        let layout = NativeLayout::even(above.width, above.count, pool.as_deref());
        self.set(dir, &Self::calls(&layout, dir, true)?)
    }
}

impl BeeGfs {
    fn entry(&self, path: &Path) -> Result<Entry> {
        self.ask(&["entry", "info", files::for_tools(path)?], Entry::parse)
    }

    fn pools(&self) -> Result<Vec<Pool>> {
        self.ask(&["pool", "list"], json::pools)
    }

    fn ask<T>(&self, what: &[&str], parse: fn(&str) -> std::result::Result<T, String>) -> Result<T> {
        self.tool.ask(&[what, &["--output", "json", "--raw"]].concat(), parse)
    }

    /// The layout of an entry, in the terms of the requested one.
    fn layout(&self, entry: &Entry, asked: Option<&NativeLayout>) -> NativeLayout {
        if entry.is_dir {
            return NativeLayout::even(entry.width, entry.count, entry.pool.as_deref());
        }
        let listed = |servers: &Vec<String>| {
            NativeLayout::uniform(Stripe::Listed { width: entry.width, servers: servers.clone() })
        };
        match asked.and_then(NativeLayout::stripe) {
            // The tool passes targets on in an order of its own (`checkAndGetTargets` in
            // ctl/pkg/ctl/entry/create.go).
            Some(Stripe::Listed { servers, .. }) if same(servers, &entry.targets) => listed(servers),
            Some(Stripe::Listed { .. }) => listed(&entry.targets),
            _ => match self.pool_of(&entry.targets) {
                Some(pool) => NativeLayout::even(entry.width, entry.targets.len() as u32, Some(&pool)),
                None => listed(&entry.targets),
            },
        }
    }

    /// The storage pool that contains all of these targets, if the pools are known.
    fn pool_of(&self, targets: &[String]) -> Option<String> {
        let inside = |pool: &Pool| targets.iter().all(|target| pool.server_names.contains(target));
        self.pools().ok()?.into_iter().find(inside).map(|pool| pool.name)
    }

    fn add_pools(&self, probe: &mut Probe) {
        let mut pools = match self.pools() {
            Ok(pools) => pools,
            Err(error) => return probe.notes.push(format!("its storage pools are not known: {error}")),
        };
        let free = self.ask(&["target", "list", "--capacity"], json::free_space).unwrap_or_else(|error| {
            probe.notes.push(format!("the space of its targets is not known: {error}"));
            Vec::new()
        });
        let space_of = |target: &String| free.iter().find(|(name, _)| name == target).map(|(_, free)| *free);
        for pool in &mut pools {
            pool.free_bytes = pool.server_names.iter().map(space_of).sum();
        }
        probe.set_pools(pools);
    }
}

fn same(a: &[String], b: &[String]) -> bool {
    let sorted = |names: &[String]| {
        let mut names = names.to_vec();
        names.sort_unstable();
        names
    };
    sorted(a) == sorted(b)
}

#[cfg(test)]
mod tests;
