//! BeeGFS 8, through its `beegfs` tool.
//!
//! Checked against its documentation, the source of the tool (ThinkParQ/beegfs-go) and a fake that
//! follows it, but not on a real BeeGFS.

mod json;

use std::path::Path;
use std::sync::Arc;

use stripewise_cluster::FileSystem;
use stripewise_native::{NativeLayout, Stripe};
use stripewise_sys::{Errno, Real, SysRef};

use crate::driver::{Actual, Driver, Pool, Probe};
use crate::error::{DriverError, Result};
use crate::files::{self, HERE};
use crate::mounts::{Mount, mount_of};
use crate::tool::Tool;
use crate::tool::calls;
use json::{Entry, StoragePool};

const SYSTEM: FileSystem = FileSystem::BeeGfs;
/// The file system's type in the mount table.
const KIND: &str = "beegfs";
/// The pattern that the driver can read back; mirrored files have other patterns.
const PATTERN: &str = "RAID0";
const REMEDY: &str =
    "look with `beegfs entry info` what it has; fewer targets than asked for mean that the pool has no more";
const ROOT_ONLY: &str = "be root; others may set chunk sizes and numbers of targets on their own directories where \
    sysAllowUserSetPattern is set in the metadata servers' configuration";

/// BeeGFS on mounted directories. The tool knows which file systems are mounted.
#[derive(Clone)]
pub struct BeeGfs {
    sys: SysRef,
    tool: Tool,
}

impl Default for BeeGfs {
    fn default() -> Self {
        Self::with(Tool::new("beegfs"))
    }
}

impl Driver for BeeGfs {
    fn system(&self) -> Option<FileSystem> {
        Some(SYSTEM)
    }

    fn probe(&self, dir: &Path) -> Result<Option<Probe>> {
        files::look(&self.sys, dir)?;
        let mount = mount_of(dir)?.filter(|mount| mount.kind == KIND);
        if !self.tool.is_there() && mount.is_none() {
            return Ok(None);
        }
        let Some(_) = self.entry_if_any(dir)? else { return Ok(None) };
        let point = mount_of(dir)?.map(|mount| mount.point).unwrap_or_default();
        let mut probe = Probe { system: Some(SYSTEM), mount: point, ..Probe::default() };
        self.add_pools(&mut probe);
        self.add_rights(dir, &mut probe);
        Ok(Some(probe))
    }

    fn prepare(&self, dir: &Path, layout: &NativeLayout) -> Result<()> {
        let call = arguments(layout, dir, true)?;
        self.require(&files::existing(&self.sys, dir)?)?;
        let set = || self.set(dir, &call).and_then(|()| self.verify(dir, layout));
        files::prepare(&self.sys, dir, set, |trial| self.verify(trial, layout))
    }

    fn create(&self, file: &Path, layout: &NativeLayout, mode: u32) -> Result<()> {
        let call = arguments(layout, file, false)?;
        self.require(files::parent(file))?;
        if let Some(Stripe::Listed { .. }) = layout.stripe() {
            files::must_not_exist(&self.sys, file)?;
            self.set(file, &call)?;
            let made = self.verify(file, layout).and_then(|()| files::give_mode(&self.sys, file, mode));
            if made.is_err() {
                let _ = self.sys.unlink(HERE, file);
            }
            return made;
        }
        // `beegfs entry create file` is for root only; other users may set a directory's pattern.
        files::made_apart(&self.sys, file, |dir, inside| {
            self.set(dir, &arguments(layout, dir, true)?)?;
            drop(files::create_new(&self.sys, inside, mode)?);
            self.verify(inside, layout)
        })
    }

    fn read_back(&self, path: &Path) -> Result<Actual> {
        files::look(&self.sys, path)?;
        let entry = self.require(path)?;
        if entry.pattern != PATTERN {
            return Ok(Actual { note: Some(format!("its pattern is {}", entry.pattern)), ..Actual::default() });
        }
        let note = (!entry.is_dir).then(|| format!("on targets {}", entry.targets.join(", ")));
        Ok(Actual { layout: Some(self.layout(&entry, None)), note, ..Actual::default() })
    }

    fn remove(&self, dir: &Path) -> Result<()> {
        if let Err(Errno::NOENT) = self.sys.stat_at(HERE, dir, true) {
            return Ok(());
        }
        self.require(dir)?;
        files::remove_if_empty(&self.sys, dir)?;
        if let Err(Errno::NOENT) = self.sys.stat_at(HERE, dir, true) {
            return Ok(());
        }
        // A directory always has a pattern: without hints, that of its parent directory.
        let above = self.entry(files::parent(dir))?;
        let own = self.entry(dir)?;
        let pool = above.pool.clone().filter(|_| above.pool != own.pool);
        let layout = NativeLayout::even(above.width, above.count, pool.as_deref());
        self.set(dir, &arguments(&layout, dir, true)?)
    }
}

impl BeeGfs {
    /// A driver that uses this `beegfs`.
    pub fn with(tool: Tool) -> Self {
        Self { sys: Arc::new(Real), tool }
    }

    /// The entry of an existing path; `None`: the path is not on a BeeGFS.
    fn entry_if_any(&self, path: &Path) -> Result<Option<Entry>> {
        match self.entry(path) {
            Ok(entry) => Ok(Some(entry)),
            Err(error) => match mount_of(path)? {
                Some(Mount { kind, .. }) if kind == KIND => Err(error),
                _ => Ok(None),
            },
        }
    }

    fn require(&self, path: &Path) -> Result<Entry> {
        let entry = self.entry_if_any(path)?;
        entry.ok_or_else(|| DriverError::Elsewhere { path: path.to_owned(), system: SYSTEM.title() })
    }

    fn entry(&self, path: &Path) -> Result<Entry> {
        self.ask(&["entry", "info", files::for_tools(path)?], Entry::parse)
    }

    fn pools(&self) -> Result<Vec<StoragePool>> {
        self.ask(&["pool", "list"], json::pools)
    }

    fn ask<T>(&self, what: &[&str], parse: fn(&str) -> std::result::Result<T, String>) -> Result<T> {
        let arguments = [what, &["--output", "json", "--raw"]].concat();
        let text = self.tool.run(&arguments)?;
        parse(&text).map_err(|what| self.tool.not_understood(&arguments, &what, &text))
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
        let inside = |pool: &StoragePool| targets.iter().all(|target| pool.targets.contains(target));
        self.pools().ok()?.into_iter().find(inside).map(|pool| pool.name)
    }

    fn verify(&self, path: &Path, asked: &NativeLayout) -> Result<()> {
        let entry = self.entry(path)?;
        let got = (entry.pattern == PATTERN).then(|| self.layout(&entry, Some(asked)));
        DriverError::compare(path, asked, got, REMEDY)
    }

    fn set(&self, path: &Path, arguments: &[String]) -> Result<()> {
        self.tool.run(arguments).map(drop).map_err(|error| refused(path, arguments, error))
    }

    fn add_pools(&self, probe: &mut Probe) {
        let pools = match self.pools() {
            Ok(pools) => pools,
            Err(error) => return probe.notes.push(format!("its storage pools are not known: {error}")),
        };
        let free = self.ask(&["target", "list", "--capacity"], json::free_space).unwrap_or_else(|error| {
            probe.notes.push(format!("the space of its targets is not known: {error}"));
            Vec::new()
        });
        let space = |pool: &StoragePool| -> Option<u64> {
            let space_of =
                |target: &String| free.iter().find(|(name, _)| name == target).map(|(_, free)| *free);
            pool.targets.iter().map(space_of).sum()
        };
        probe.servers =
            pools.iter().filter(|pool| pool.targets.len() == 1).map(|pool| pool.name.clone()).collect();
        probe.pools = pools
            .into_iter()
            .map(|pool| Pool {
                free_bytes: space(&pool),
                servers: Some(pool.targets.len() as u32),
                name: pool.name,
                server_names: pool.targets,
            })
            .collect();
    }

    /// Tries whether this user may set a pattern and a pool here.
    fn add_rights(&self, dir: &Path, probe: &mut Probe) {
        let pool = probe.pools.iter().find(|pool| pool.servers != Some(0)).map(|pool| pool.name.clone());
        let attempt = |layout: &NativeLayout| {
            let trial = files::scratch(&self.sys, dir)?;
            let prepared = self.prepare(&trial, layout);
            files::remove_if_empty(&self.sys, &trial)?;
            prepared
        };
        for (what, pool) in [("patterns", None), ("storage pools", pool.as_deref())] {
            if let Err(error) = attempt(&NativeLayout::even(512 << 10, 1, pool)) {
                probe.rights.push(format!("{what} cannot be set here: {error}"));
            }
        }
    }
}

/// The arguments of `beegfs` that set a layout.
fn arguments(layout: &NativeLayout, path: &Path, is_dir: bool) -> Result<Vec<String>> {
    Ok(calls(SYSTEM, layout, path, is_dir)?.into_iter().flatten().skip(1).collect())
}

fn same(a: &[String], b: &[String]) -> bool {
    let sorted = |names: &[String]| {
        let mut names = names.to_vec();
        names.sort_unstable();
        names
    };
    sorted(a) == sorted(b)
}

/// Converts an error of `beegfs entry` to one with a remedy; the texts are those of
/// ctl/pkg/ctl/entry in beegfs-go.
fn refused(path: &Path, arguments: &[String], error: DriverError) -> DriverError {
    let DriverError::Tool { output, .. } = &error else { return error };
    let path = path.to_owned();
    let says = |text: &str| output.contains(text);
    if says("only root") || says("permission") || says("Permission") {
        let doing = "setting its pattern".to_owned();
        return DriverError::Denied { path, doing, remedy: ROOT_ONLY.to_owned() };
    }
    if says("already exists") || says("exists already") {
        return DriverError::Exists { path };
    }
    if says("No space left") {
        let remedy = "`beegfs health df` tells which targets are full".to_owned();
        return DriverError::Full { path, doing: "creating the file".to_owned(), remedy };
    }
    let remedy = if says("storage pool") || says("specified pool") {
        "`beegfs pool list` lists the pools"
    } else if says("target") {
        "`beegfs target list` lists the targets"
    } else {
        return error;
    };
    let value = arguments[2..arguments.len() - 1].join(" ");
    DriverError::Refused { path, value, problem: format!("{output}; {remedy}") }
}

#[cfg(test)]
mod tests;
