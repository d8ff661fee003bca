//! OrangeFS 2.10, through its `pvfs2-xattr`, `pvfs2-viewdist`, `pvfs2-touch` and `pvfs2-statfs`.
//!
//! New files inherit the hints on their directory. OrangeFS skips hints that it does not
//! understand, so only a new file shows whether they took effect. The behavior of hints and tools
//! was observed on a 2.10; this driver itself has run only on a fake that follows their source.

mod output;

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use stripewise_cluster::FileSystem;
use stripewise_native::orangefs::Distribution;
use stripewise_native::{NativeLayout, Stripe};
use stripewise_sys::{Errno, Kind, Real, SysRef};

use crate::driver::{Actual, Driver, Probe};
use crate::error::{DriverError, Result};
use crate::files::{self, HERE};
use crate::mounts::mount_of;
use crate::tool::Tool;
use crate::tool::calls;
use output::Server;

const SYSTEM: FileSystem = FileSystem::OrangeFs;
/// The file system's types in the mount table.
const KINDS: [&str; 2] = ["pvfs2", "fuse.pvfs2fuse"];
/// The hints on a directory.
const HINTS: [&str; 5] = ["dist_name", "dist_params", "layout", "server_list", "num_dfiles"];
/// Value of `layout`: the servers are those of `server_list` (PVFS_SYS_LAYOUT_LIST in
/// pvfs2-types.h).
const LISTED: &str = "00004";
const REMEDY: &str = "OrangeFS passes over hints that it does not understand; look with `pvfs2-viewdist -f` what a new file has, and \
    with `pvfs2-statfs -m` how its servers are called";

/// OrangeFS on mounted directories. Its tools know which file systems are mounted (pvfs2tab).
#[derive(Clone)]
pub struct OrangeFs {
    sys: SysRef,
    tools: Tools,
}

/// The tools that the driver uses.
#[derive(Clone, Debug)]
pub struct Tools {
    /// `pvfs2-xattr`.
    pub xattr: Tool,
    /// `pvfs2-viewdist`.
    pub viewdist: Tool,
    /// `pvfs2-touch`.
    pub touch: Tool,
    /// `pvfs2-statfs`.
    pub statfs: Tool,
}

impl Default for OrangeFs {
    fn default() -> Self {
        let tool = |name: &str| Tool::new(&format!("pvfs2-{name}"));
        Self::with(Tools {
            xattr: tool("xattr"),
            viewdist: tool("viewdist"),
            touch: tool("touch"),
            statfs: tool("statfs"),
        })
    }
}

impl Driver for OrangeFs {
    fn system(&self) -> Option<FileSystem> {
        Some(SYSTEM)
    }

    fn probe(&self, dir: &Path) -> Result<Option<Probe>> {
        files::look(&self.sys, dir)?;
        let mount = mount_of(dir)?;
        let mounted = mount.as_ref().is_some_and(|mount| KINDS.contains(&mount.kind.as_str()));
        if !self.tools.statfs.is_there() && !mounted {
            return Ok(None);
        }
        let Some(servers) = self.servers(dir)? else { return Ok(None) };
        let point = mount.map(|mount| mount.point).unwrap_or_default();
        let mut probe = Probe { system: Some(SYSTEM), mount: point, ..Probe::default() };
        probe.servers = servers.iter().map(|server| server.address.clone()).collect();
        if let Some(least) = servers.iter().min_by_key(|server| server.free_bytes) {
            let free = stripewise_cluster::size::format(least.free_bytes);
            probe.notes.push(format!("the server with the least space, {}, has {free}", least.address));
        }
        probe
            .notes
            .push("the size of files with varied stripes or groups is wrong while they have holes".to_owned());
        if let Err(error) = self.try_hints(dir) {
            probe.rights.push(format!("layouts cannot be set here: {error}"));
        }
        Ok(Some(probe))
    }

    fn prepare(&self, dir: &Path, layout: &NativeLayout) -> Result<()> {
        let calls = calls(SYSTEM, layout, dir, true)?;
        self.require(&files::existing(&self.sys, dir)?)?;
        let set = || {
            self.run_all(dir, &calls)?;
            DriverError::compare(dir, layout, self.of_directory(dir)?, REMEDY)
        };
        files::prepare(&self.sys, dir, set, |trial| self.verify(trial, layout))
    }

    fn create(&self, file: &Path, layout: &NativeLayout, mode: u32) -> Result<()> {
        calls(SYSTEM, layout, file, false)?;
        self.require(files::parent(file))?;
        // The distribution comes from hints on the directory, which must not change for other
        // files.
        files::made_apart(&self.sys, file, |dir, inside| {
            self.run_all(dir, &calls(SYSTEM, layout, inside, false)?)?;
            self.verify(inside, layout)?;
            files::give_mode(&self.sys, inside, mode)
        })
    }

    fn read_back(&self, path: &Path) -> Result<Actual> {
        let stat = files::look(&self.sys, path)?;
        if files::is_directory(&stat) {
            self.require(path)?;
            return Ok(Actual { layout: self.of_directory(path)?, ..Actual::default() });
        }
        let stripe = self.of_file(path);
        if stripe.is_err() {
            self.require(path)?;
        }
        Ok(match stripe? {
            Ok(stripe) => Actual { layout: Some(NativeLayout::uniform(stripe)), ..Actual::default() },
            Err(what) => Actual { note: Some(what), ..Actual::default() },
        })
    }

    fn remove(&self, dir: &Path) -> Result<()> {
        if let Err(Errno::NOENT) = self.sys.stat_at(HERE, dir, true) {
            return Ok(());
        }
        self.require(dir)?;
        files::remove_if_empty(&self.sys, dir)?;
        for hint in HINTS.map(|hint| format!("user.pvfs2.{hint}")) {
            match self.sys.remove_xattr(Kind::Named(HERE, dir), OsStr::new(&hint)) {
                Ok(()) | Err(Errno::NODATA | Errno::NOENT) => {}
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                    let problem =
                        "its tools cannot take hints away; mount it with its kernel module and try again";
                    return Err(DriverError::Refused {
                        path: dir.to_owned(),
                        value: hint,
                        problem: problem.to_owned(),
                    });
                }
                Err(errno) => return Err(DriverError::io(dir, format!("taking {hint} away"), errno)),
            }
        }
        Ok(())
    }
}

impl OrangeFs {
    /// A driver that uses these tools.
    pub fn with(tools: Tools) -> Self {
        Self { sys: Arc::new(Real), tools }
    }

    fn run_all(&self, path: &Path, calls: &[Vec<String>]) -> Result<()> {
        calls.iter().try_for_each(|call| {
            let tool = if call[0] == "pvfs2-touch" { &self.tools.touch } else { &self.tools.xattr };
            tool.run(&call[1..]).map(drop).map_err(|error| refused(path, &call[1..], error))
        })
    }

    /// The servers of the file system that an existing path is on; `None`: it is not an OrangeFS.
    fn servers(&self, path: &Path) -> Result<Option<Vec<Server>>> {
        let arguments = ["-m", files::for_tools(path)?];
        match self.tools.statfs.run(&arguments) {
            Ok(text) => output::servers(&text)
                .map(Some)
                .map_err(|what| self.tools.statfs.not_understood(&arguments, &what, &text)),
            Err(error) => match mount_of(path)? {
                Some(mount) if KINDS.contains(&mount.kind.as_str()) => Err(error),
                _ => Ok(None),
            },
        }
    }

    fn require(&self, path: &Path) -> Result<()> {
        match self.servers(path)? {
            Some(_) => Ok(()),
            None => Err(DriverError::Elsewhere { path: path.to_owned(), system: SYSTEM.title() }),
        }
    }

    /// A hint on a directory; `None`: it is not set.
    fn hint(&self, dir: &Path, hint: &str) -> Result<Option<String>> {
        let key = format!("user.pvfs2.{hint}");
        let arguments = ["-t", "-k", &key, files::for_tools(dir)?];
        match self.tools.xattr.run(&arguments) {
            Ok(text) => output::value(&text, &key)
                .map(Some)
                .map_err(|what| self.tools.xattr.not_understood(&arguments, &what, &text)),
            // "PVFS_sys_geteattr: No such file or directory", or "... No data available".
            Err(DriverError::Tool { output, .. }) if output.contains("PVFS_sys_geteattr") => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The layout in a directory's hints; `None`: there are none, or they do not describe a known
    /// layout.
    fn of_directory(&self, dir: &Path) -> Result<Option<NativeLayout>> {
        let (Some(name), Some(params)) = (self.hint(dir, "dist_name")?, self.hint(dir, "dist_params")?) else {
            return Ok(None);
        };
        let listed = self.hint(dir, "layout")?.as_deref() == Some(LISTED);
        let list = if listed { self.hint(dir, "server_list")? } else { None };
        let servers = list.and_then(|list| output::server_list(&list).ok());
        let datafiles = match &servers {
            Some(servers) => servers.len() as u32,
            None => self.hint(dir, "num_dfiles")?.and_then(|number| number.parse().ok()).unwrap_or(0),
        };
        Ok(Distribution::read(&name, &params, servers, datafiles).ok().map(NativeLayout::uniform))
    }

    /// The layout of a file. The inner error names what is not understood of it.
    fn of_file(&self, file: &Path) -> Result<std::result::Result<Stripe, String>> {
        let text = self.tools.viewdist.run(&["-f", files::for_tools(file)?])?;
        Ok(output::distribution(&text))
    }

    fn verify(&self, file: &Path, asked: &NativeLayout) -> Result<()> {
        let got = self.of_file(file)?.ok().map(NativeLayout::uniform);
        DriverError::compare(file, asked, got, REMEDY)
    }

    /// Tries whether this user may set hints here.
    fn try_hints(&self, dir: &Path) -> Result<()> {
        let trial = files::scratch(&self.sys, dir)?;
        let prepared = self.prepare(&trial, &NativeLayout::even(64 << 10, 1, None));
        files::remove_if_empty(&self.sys, &trial)?;
        prepared
    }
}

/// Converts a tool's error to one with a remedy.
fn refused(path: &Path, arguments: &[String], error: DriverError) -> DriverError {
    let DriverError::Tool { output, .. } = &error else { return error };
    let path = path.to_owned();
    let says = |text: &str| output.contains(text);
    if says("Permission denied") || says("Operation not permitted") || says("Not permitted") {
        let remedy = "be the owner of the directory, or ask the owner".to_owned();
        return DriverError::Denied { path, doing: "setting its hints".to_owned(), remedy };
    }
    if says("No space left") {
        let remedy = "`pvfs2-statfs -m` tells which servers are full".to_owned();
        return DriverError::Full { path, doing: "creating the file".to_owned(), remedy };
    }
    if says("File exists") {
        return DriverError::Exists { path };
    }
    if says("unable to resolve server list") || says("BMI_addr_lookup") {
        let problem = format!("{output}; `pvfs2-statfs -m` tells how the servers are called");
        return DriverError::Refused { path, value: arguments[1].clone(), problem };
    }
    error
}

#[cfg(test)]
mod tests;
