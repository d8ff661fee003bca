//! OrangeFS 2.10, through its `pvfs2-xattr`, `pvfs2-viewdist`, `pvfs2-touch` and `pvfs2-statfs`.
//!
//! New files inherit the hints on their directory. OrangeFS skips hints that it does not
//! understand, so only a new file shows whether they took effect. The behavior of hints and tools
//! was observed on a 2.10; this driver itself has run only on a fake that follows their source.

mod output;

use std::ffi::OsStr;
use std::path::Path;

use stripewise_cluster::{FileSystem, size};
use stripewise_native::orangefs::Distribution;
use stripewise_native::{Call, NativeLayout};
use stripewise_sys::{Errno, Kind, Real, Sys};

use crate::driver::{Actual, Probe};
use crate::error::{DriverError, Result};
use crate::files::{self, HERE};
use crate::tool::Tool;
use crate::tooled::{Refusal, Tooled};
use output::Server;

const XATTR: &str = "pvfs2-xattr";
const VIEWDIST: &str = "pvfs2-viewdist";
const STATFS: &str = "pvfs2-statfs";
const TOOLS: [&str; 4] = [XATTR, VIEWDIST, STATFS, "pvfs2-touch"];
/// The hints on a directory.
const HINTS: [&str; 5] = ["dist_name", "dist_params", "layout", "server_list", "num_dfiles"];
/// Value of `layout`: the servers are those of `server_list` (PVFS_SYS_LAYOUT_LIST in
/// pvfs2-types.h).
const LISTED: &str = "00004";

/// OrangeFS on mounted directories (pvfs2tab).
#[derive(Clone)]
pub struct OrangeFs {
    /// In the order of [`TOOLS`].
    tools: [Tool; 4],
}

impl Default for OrangeFs {
    fn default() -> Self {
        Self { tools: TOOLS.map(Tool::new) }
    }
}

impl Tooled for OrangeFs {
    const SYSTEM: FileSystem = FileSystem::OrangeFs;
    const KINDS: &'static [&'static str] = &["pvfs2", "fuse.pvfs2fuse"];
    const REFUSALS: &'static [(&'static [&'static str], Refusal)] = &[
        (
            &["Permission denied", "Operation not permitted", "Not permitted"],
            Refusal::Denied("setting its hints", "be the owner of the directory, or ask the owner"),
        ),
        (
            &["No space left"],
            Refusal::Full("creating the file", "`pvfs2-statfs -m` tells which servers are full"),
        ),
        (&["File exists"], Refusal::Exists),
        (
            &["unable to resolve server list", "BMI_addr_lookup"],
            Refusal::Value("`pvfs2-statfs -m` tells how the servers are called"),
        ),
    ];
    const REMEDY: &'static str = "OrangeFS passes over hints that it does not understand; look with \
                                  `pvfs2-viewdist -f` what a new file has, and with `pvfs2-statfs -m` how its \
                                  servers are called";
    type Report = Vec<Server>;

    fn tool(&self, name: &str) -> &Tool {
        let index = TOOLS.iter().position(|tool| *tool == name).expect("calls are of these tools");
        &self.tools[index]
    }

    fn report(&self, path: &Path) -> Result<Option<Vec<Server>>> {
        self.ask_about(self.tool(STATFS), "-m", path, output::servers)
    }

    fn describe(&self, dir: &Path, report: Vec<Server>, probe: &mut Probe) {
        probe.servers = report.iter().map(|server| server.address.clone()).collect();
        if let Some(least) = report.iter().min_by_key(|server| server.free_bytes) {
            let free = size::format(least.free_bytes);
            probe.notes.push(format!("the server with the least space, {}, has {free}", least.address));
        }
        probe
            .notes
            .push("the size of files with varied stripes or groups is wrong while they have holes".to_owned());
        self.try_out(dir, "layouts", &NativeLayout::even(64 << 10, 1, None), probe);
    }

    /// The distribution comes from hints on the directory, which must not change for other files.
    fn make(&self, file: &Path, layout: &NativeLayout, _calls: &[Call], mode: u32) -> Result<()> {
        files::made_apart(&Real, file, |dir, inside| {
            self.set(dir, &Self::calls(layout, inside, false)?)?;
            self.verify(inside, layout)?;
            files::give_mode(&Real, inside, mode)
        })
    }

    fn found(&self, path: &Path, _asked: Option<&NativeLayout>) -> Result<Actual> {
        if files::is_directory(&Real, path)? {
            return Ok(Actual { layout: self.of_directory(path)?, ..Actual::default() });
        }
        let text = self.tool(VIEWDIST).run(&["-f", files::for_tools(path)?])?;
        Ok(match output::distribution(&text) {
            Ok(stripe) => Actual { layout: Some(NativeLayout::uniform(stripe)), ..Actual::default() },
            Err(what) => Actual { note: Some(what), ..Actual::default() },
        })
    }

    fn forget(&self, dir: &Path) -> Result<()> {
        for hint in HINTS.map(|hint| format!("user.pvfs2.{hint}")) {
            match Real.remove_xattr(Kind::Named(HERE, dir), OsStr::new(&hint)) {
                Ok(()) | Err(Errno::NODATA | Errno::NOENT) => {}
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                    let problem =
                        "its tools cannot take hints away; mount it with its kernel module and try again";
                    return Err(DriverError::refused(dir, &hint, problem));
                }
                Err(errno) => return Err(DriverError::io(dir, format!("taking {hint} away"), errno)),
            }
        }
        Ok(())
    }
}

impl OrangeFs {
    /// A hint on a directory; `None`: it is not set.
    fn hint(&self, dir: &Path, hint: &str) -> Result<Option<String>> {
        let key = format!("user.pvfs2.{hint}");
        let arguments = ["-t", "-k", &key, files::for_tools(dir)?];
        match self.tool(XATTR).ask(&arguments, |text| output::value(text, &key)) {
            Ok(value) => Ok(Some(value)),
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
}

#[cfg(test)]
mod tests;
