//! BeeGFS 8, through its `beegfs` tool.
//!
//! Checked against its documentation, the source of the tool (ThinkParQ/beegfs-go 8.0.0 to 8.4.0)
//! and a fake that follows it, but not on a real BeeGFS.

mod json;

use std::path::Path;

use stripewise_cluster::FileSystem;
use stripewise_native::{Call, NativeLayout, Stripe};
use stripewise_sys::{Errno, Mode, Real, Sys};

use crate::driver::{Actual, Pool, Probe, never_said};
use crate::error::{DriverError, Result};
use crate::files;
use crate::tool::Tool;
use crate::tooled::{Refusal, Tooled, explained, without_names};
use json::Entry;

/// The pattern of the driver's layouts. Files and directories of other patterns, such as buddy
/// mirrors, are left as they are.
const PATTERN: &str = "RAID0";
/// Lists on one line each of at most this many rows, and without further columns, whatever the
/// user's settings are.
const PRINTED: [&str; 5] = ["--output", "json", "--raw", "--page-size=100", "--debug=false"];
/// The tool reads its flags from variables too: which columns it prints, and where it takes
/// BeeGFS to be mounted. Only those that tell how to reach the servers are left to it.
const VARIABLES: &str = "BEEGFS_";
const REACHING_SERVERS: [&str; 5] = ["MGMTD_ADDR", "TLS_", "AUTH_", "CONN_TIMEOUT", "USE_HTTP_PROXY"];

/// BeeGFS on mounted directories.
#[derive(Clone)]
pub struct BeeGfs {
    tool: Tool,
}

impl Default for BeeGfs {
    fn default() -> Self {
        Self::new(Tool::new("beegfs"))
    }
}

impl Tooled for BeeGfs {
    const SYSTEM: FileSystem = FileSystem::BeeGfs;
    const KINDS: &'static [&'static str] = &["beegfs"];
    /// The texts are those of ctl/pkg/ctl/entry in beegfs-go.
    const REFUSALS: &'static [(&'static [&'static str], Refusal)] = &[
        (
            &["only root", "permission denied", "Permission denied"],
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
        (
            &["specified target", "same target", "storage target"],
            Refusal::Value("`beegfs target list` lists the targets"),
        ),
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

    /// The pattern of new files and directories is that of their directory.
    fn allows(&self, path: &Path, report: &Entry, layout: &NativeLayout) -> Result<()> {
        match other_pattern(report) {
            Some(reason) => Err(DriverError::refused(path, &layout.to_string(), reason)),
            None => Ok(()),
        }
    }

    fn describe(&self, dir: &Path, _report: Entry, probe: &mut Probe) {
        self.add_pools(probe);
        let pool = probe.pools.iter().find(|pool| pool.servers != Some(0)).map(|pool| pool.name.clone());
        for (what, pool) in [("patterns", None), ("storage pools", pool.as_deref())] {
            self.try_out(dir, what, &NativeLayout::even(512 << 10, 1, pool), probe);
        }
    }

    /// As the provided method, with the path without links: the tool compares the devices of a
    /// path's ancestors to find the mount, and takes the child of a link for it (`NewFromPath` in
    /// common/filesystem/fs.go). 8.0 and 8.1 then look for the rest of the path in the whole file
    /// system, and change its root or find another file.
    fn set(&self, path: &Path, calls: &[Call]) -> Result<()> {
        let place = files::without_links(path)?;
        calls.iter().try_for_each(|call| {
            let options = call[1..call.len() - 1].iter().map(String::as_str);
            let name = files::for_tools(&place)?;
            let said = self.tool.change(&options.chain([name]).collect::<Vec<_>>())?;
            let Some(error) = said.error else { return Ok(()) };
            let text = without_names(&[said.errors, said.output].join(" "), name);
            Err(explained(Self::REFUSALS, path, call, error, &text))
        })
    }

    fn make(&self, file: &Path, layout: &NativeLayout, calls: &[Call], mode: u32) -> Result<()> {
        if let Some(Stripe::Listed { .. }) = layout.stripe() {
            return self.make_by_tool(file, layout, &belonging(file, calls, mode)?, mode);
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
        let exact = entry.is_dir.then(|| entry.exact());
        if let Some(reason) = other_pattern(&entry) {
            let note = Some(format!("its pattern is {}", entry.pattern));
            return Ok(Actual { note, exact, left_alone: Some(reason), ..Actual::default() });
        }
        let note = (!entry.is_dir).then(|| format!("on targets {}", entry.targets.join(", ")));
        Ok(Actual { layout: Some(self.layout(&entry, asked)?), note, exact, ..Actual::default() })
    }

    /// Compares what the directory has, not what a new file gets: a pool may have fewer targets
    /// than the directory asks for.
    fn put_back(&self, dir: &Path, exact: &str) -> Result<()> {
        let (former, own) = (Entry::of_exact(exact).ok_or_else(|| never_said(dir, exact))?, self.entry(dir)?);
        if own.exact() == exact {
            return Ok(());
        }
        if let Some(reason) = other_pattern(&former).or_else(|| other_pattern(&own)) {
            return Err(DriverError::refused(dir, exact, reason));
        }
        self.set_like(dir, &own, &former)?;
        self.verify_exact(dir, exact)
    }

    /// A directory always has a pattern: without hints, that of its parent directory. The directory
    /// at the root of the mount keeps its own.
    fn forget(&self, dir: &Path) -> Result<()> {
        let dir = &files::absolute(dir)?;
        let Some(above) = self.report(files::parent(dir))? else { return Ok(()) };
        let own = self.entry(dir)?;
        match other_pattern(&above).or_else(|| other_pattern(&own)) {
            Some(_) => Ok(()),
            None => self.set_like(dir, &own, &above),
        }
    }
}

impl BeeGfs {
    fn new(tool: Tool) -> Self {
        Self { tool: tool.hiding(is_hidden) }
    }

    fn entry(&self, path: &Path) -> Result<Entry> {
        let place = files::without_links(path)?;
        let entry = self.ask(&["entry", "info", files::for_tools(&place)?], Entry::parse)?;
        match entry.unavailable {
            Some(reason) => {
                let doing = format!("asking for its pattern, which BeeGFS does not tell now ({reason})");
                Err(DriverError::io(path, doing, Errno::AGAIN))
            }
            None => Ok(entry),
        }
    }

    /// Gives a directory that is `own` the pattern of `other`. Only root may set a pool, so it is
    /// set only where it differs.
    fn set_like(&self, dir: &Path, own: &Entry, other: &Entry) -> Result<()> {
        let pool = other.pool.as_deref().filter(|_| other.pool != own.pool);
        let layout = NativeLayout::even(other.width, other.count, pool);
        self.set(dir, &Self::calls(&layout, dir, true)?)
    }

    fn pools(&self) -> Result<Vec<Pool>> {
        self.ask(&["pool", "list"], json::pools)
    }

    fn ask<T>(&self, what: &[&str], parse: fn(&str) -> std::result::Result<T, String>) -> Result<T> {
        self.tool.ask(&[what, &PRINTED].concat(), parse)
    }

    /// The layout of an entry, in the terms of the requested one.
    fn layout(&self, entry: &Entry, asked: Option<&NativeLayout>) -> Result<NativeLayout> {
        if entry.is_dir {
            return Ok(NativeLayout::even(entry.width, entry.count, entry.pool.as_deref()));
        }
        let listed = |servers: &Vec<String>| {
            NativeLayout::uniform(Stripe::Listed { width: entry.width, servers: servers.clone() })
        };
        let asked = asked.and_then(NativeLayout::stripe);
        Ok(match asked {
            // The tool passes targets on in an order of its own (`checkAndGetTargets` in
            // ctl/pkg/ctl/entry/create.go).
            Some(Stripe::Listed { servers, .. }) if same(servers, &entry.targets) => listed(servers),
            Some(Stripe::Listed { .. }) => listed(&entry.targets),
            _ => match self.pool_of(&entry.targets, asked)? {
                Some(pool) => NativeLayout::even(entry.width, entry.targets.len() as u32, Some(&pool)),
                None => listed(&entry.targets),
            },
        })
    }

    /// The storage pool that contains all of these targets; `None`: there is none, or no pool was
    /// asked for and the pools are not known.
    fn pool_of(&self, targets: &[String], asked: Option<&Stripe>) -> Result<Option<String>> {
        let inside = |pool: &Pool| targets.iter().all(|target| pool.server_names.contains(target));
        match self.pools() {
            Ok(pools) => Ok(pools.into_iter().find(inside).map(|pool| pool.name)),
            Err(error) if matches!(asked, Some(Stripe::Even { pool: Some(_), .. })) => Err(error),
            Err(_) => Ok(None),
        }
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
        let space_of = |target: &String| free.iter().find(|(name, _)| name == target)?.1;
        for pool in &mut pools {
            pool.free_bytes = pool.server_names.iter().map(space_of).sum();
        }
        let silent: Vec<_> =
            free.iter().filter(|(_, free)| free.is_none()).map(|(name, _)| name.as_str()).collect();
        if !silent.is_empty() {
            probe.notes.push(format!("the free space of target {} is not known", silent.join(", ")));
        }
        probe.set_pools(pools);
    }
}

/// Why an entry is left as it is; `None`: its pattern is [`PATTERN`].
fn other_pattern(entry: &Entry) -> Option<String> {
    let pattern = &entry.pattern;
    (pattern != PATTERN).then(|| format!("the pattern is {pattern}, which stripewise does not set or replace"))
}

fn is_hidden(variable: &str) -> bool {
    variable
        .strip_prefix(VARIABLES)
        .is_some_and(|name| !REACHING_SERVERS.iter().any(|reaching| name.starts_with(reaching)))
}

/// Calls that create a file, with the group and the permissions that open(2) would give it. The
/// tool is installed setgid, and its default is its own group (ctl/build/postinstall.sh and
/// `newGroupFlag` in ctl/internal/cmd/entry/flags.go).
fn belonging(file: &Path, calls: &[Call], mode: u32) -> Result<Vec<Call>> {
    let dir = files::look(&Real, files::parent(file))?;
    let is_setgid = Mode::from_raw_mode(dir.st_mode).contains(Mode::SGID);
    let group = if is_setgid { dir.st_gid } else { Real.group() };
    let options = [format!("--gid={group}"), format!("--permissions={:o}", mode & !files::umask())];
    let with = |call: &Call| {
        let (path, words) = call.split_last().expect("a call ends with its path");
        [words, &options, std::slice::from_ref(path)].concat()
    };
    Ok(calls.iter().map(with).collect())
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
