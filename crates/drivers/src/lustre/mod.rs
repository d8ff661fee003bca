//! Lustre, through its `lfs`.
//!
//! Checked against lustre/doc, the source of lfs.c and liblustreapi.c (2.12 to 2.15), and a fake
//! that follows them, but not on a real Lustre.

mod listing;
mod striping;

use std::path::Path;
use std::sync::Arc;

use stripewise_cluster::FileSystem;
use stripewise_native::NativeLayout;
use stripewise_sys::{Errno, Real, SysRef};

use crate::driver::{Actual, Driver, Pool, Probe};
use crate::error::{DriverError, Result};
use crate::files::{self, HERE};
use crate::mounts::{Mount, mount_of};
use crate::tool::Tool;
use crate::tool::calls;
use listing::Osts;
use striping::Striping;

const SYSTEM: FileSystem = FileSystem::Lustre;
/// The file system's type in the mount table.
const KIND: &str = "lustre";
/// Permissions that `lfs setstripe` gives a file that it creates, less the umask.
const MODE_OF_LFS: u32 = 0o644;
const REMEDY: &str =
    "look with `lfs getstripe` what it has; an older Lustre may not take lists of OSTs for directories";

/// Lustre on mounted directories. `lfs` knows which file systems are mounted.
#[derive(Clone)]
pub struct Lustre {
    sys: SysRef,
    lfs: Tool,
}

impl Default for Lustre {
    fn default() -> Self {
        Self::with(Tool::new("lfs"))
    }
}

impl Driver for Lustre {
    fn system(&self) -> Option<FileSystem> {
        Some(SYSTEM)
    }

    fn probe(&self, dir: &Path) -> Result<Option<Probe>> {
        files::look(&self.sys, dir)?;
        if !self.lfs.is_there() {
            return match mount_of(dir)? {
                Some(Mount { kind, .. }) if kind == KIND => {
                    Err(self.lfs.run(&["df"]).expect_err("it was not there a moment ago"))
                }
                _ => Ok(None),
            };
        }
        let Some(osts) = self.osts(dir)? else { return Ok(None) };
        let mut probe = Probe { system: Some(SYSTEM), mount: osts.mount.clone(), ..Probe::default() };
        probe.servers = osts.osts.iter().map(|ost| ost.index.to_string()).collect();
        for ost in osts.osts.iter().filter(|ost| !ost.state.is_empty()) {
            probe.notes.push(format!("OST {} is not well ({}): see lfs-df(1)", ost.index, ost.state));
        }
        if osts.inactive > 0 {
            probe.notes.push(format!("{} OSTs do not answer", osts.inactive));
        }
        self.add_pools(&osts, &mut probe);
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
        // `lfs` would also give a layout to an existing file that has none, which may belong to
        // another program.
        files::must_not_exist(&self.sys, file)?;
        self.set(file, &call)?;
        let made = self
            .verify(file, layout)
            .and_then(|()| if mode == MODE_OF_LFS { Ok(()) } else { files::give_mode(&self.sys, file, mode) });
        if made.is_err() {
            let _ = self.sys.unlink(HERE, file);
        }
        made
    }

    fn read_back(&self, path: &Path) -> Result<Actual> {
        files::look(&self.sys, path)?;
        let striping = self.striping(path);
        if striping.is_err() {
            self.require(path)?;
        }
        match striping? {
            Ok(striping) => {
                Ok(Actual { layout: Some(striping.layout()), note: striping.note(), ..Actual::default() })
            }
            Err(why) => Ok(Actual { note: Some(why), ..Actual::default() }),
        }
    }

    fn remove(&self, dir: &Path) -> Result<()> {
        if let Err(Errno::NOENT) = self.sys.stat_at(HERE, dir, true) {
            return Ok(());
        }
        self.require(dir)?;
        self.set(dir, &["setstripe", "-d", files::for_tools(dir)?].map(str::to_owned))?;
        files::remove_if_empty(&self.sys, dir)
    }
}

impl Lustre {
    /// A driver that uses this `lfs`.
    pub fn with(lfs: Tool) -> Self {
        Self { sys: Arc::new(Real), lfs }
    }

    /// The OSTs of the file system that an existing path is on; `None`: it is not a Lustre.
    fn osts(&self, path: &Path) -> Result<Option<Osts>> {
        let arguments = ["df", files::for_tools(path)?];
        match self.lfs.run(&arguments) {
            Ok(text) => {
                Osts::parse(&text).map(Some).map_err(|what| self.lfs.not_understood(&arguments, &what, &text))
            }
            Err(error) => match mount_of(path)? {
                Some(Mount { kind, .. }) if kind == KIND => Err(error),
                _ => Ok(None),
            },
        }
    }

    fn require(&self, path: &Path) -> Result<()> {
        match self.osts(path)? {
            Some(_) => Ok(()),
            None => Err(DriverError::Elsewhere { path: path.to_owned(), system: SYSTEM.title() }),
        }
    }

    fn add_pools(&self, osts: &Osts, probe: &mut Probe) {
        let listed = self.lfs.run(&["pool_list", &osts.fsname]).map(|text| listing::pools(&text, &osts.fsname));
        let names = match listed {
            Ok(names) => names,
            Err(error) => return probe.notes.push(format!("its pools are not known: {error}")),
        };
        for name in names {
            let arguments = ["pool_list".to_owned(), format!("{}.{name}", osts.fsname)];
            let members = self.lfs.run(&arguments).and_then(|text| {
                listing::members(&text).map_err(|what| self.lfs.not_understood(&arguments, &what, &text))
            });
            match members {
                Ok(members) => {
                    let inside = osts.osts.iter().filter(|ost| members.contains(&ost.index));
                    let pool = Pool {
                        name,
                        servers: Some(members.len() as u32),
                        server_names: members.iter().map(u32::to_string).collect(),
                        free_bytes: Some(inside.map(|ost| ost.free_bytes).sum()),
                    };
                    probe.pools.push(pool);
                }
                Err(error) => probe.notes.push(format!("the OSTs of pool {name} are not known: {error}")),
            }
        }
    }

    /// Tries whether this user may set layouts here.
    fn add_rights(&self, dir: &Path, probe: &mut Probe) {
        let layout = NativeLayout::even(1 << 20, 1, None);
        let tried = files::scratch(&self.sys, dir).and_then(|trial| {
            self.create(&trial, &layout, 0o600)?;
            self.sys.unlink(HERE, &trial).map_err(|errno| DriverError::io(&trial, "removing the trial", errno))
        });
        if let Err(error) = tried {
            probe.rights.push(format!("layouts cannot be set here: {error}"));
        }
    }

    fn set(&self, path: &Path, arguments: &[String]) -> Result<()> {
        self.lfs.run(arguments).map(drop).map_err(|error| refused(path, arguments, error))
    }

    /// The output of `lfs getstripe`. The inner error means that the layout is not one of stripes.
    fn striping(&self, path: &Path) -> Result<std::result::Result<Striping, String>> {
        let arguments = ["getstripe", "-d", "--yaml", files::for_tools(path)?];
        let text = self.lfs.run(&arguments)?;
        if text.contains("has no stripe info") {
            return Ok(Err("it has no stripes yet".to_owned()));
        }
        match Striping::parse(&text) {
            Ok(striping) => Ok(Ok(striping)),
            Err(why) if why.contains("pattern") || why.contains("mirrors") => Ok(Err(why)),
            Err(what) => Err(self.lfs.not_understood(&arguments, &what, &text)),
        }
    }

    fn verify(&self, path: &Path, asked: &NativeLayout) -> Result<()> {
        let got = self.striping(path)?.ok().map(|striping| striping.like(asked));
        DriverError::compare(path, asked, got, REMEDY)
    }
}

/// The arguments of `lfs` that set a layout.
fn arguments(layout: &NativeLayout, path: &Path, is_dir: bool) -> Result<Vec<String>> {
    Ok(calls(SYSTEM, layout, path, is_dir)?.into_iter().flatten().skip(1).collect())
}

/// Converts an error of `lfs setstripe` to one with a remedy. The texts are those of lfs.c and
/// liblustreapi.c; the status is an errno.
fn refused(path: &Path, arguments: &[String], error: DriverError) -> DriverError {
    let DriverError::Tool { output, how, .. } = &error else { return error };
    let path = path.to_owned();
    let says = |text: &str| output.contains(text);
    let ended = |errno: Errno| how.ends_with(&format!("status {}", errno.raw_os_error()));
    if says("stripe already set") || ended(Errno::EXIST) {
        return DriverError::Exists { path };
    }
    if ended(Errno::ACCESS) || ended(Errno::PERM) {
        let remedy = "be the owner of the file or directory, or ask the owner".to_owned();
        return DriverError::Denied { path, doing: "setting its stripes".to_owned(), remedy };
    }
    if ended(Errno::NOSPC) || ended(Errno::DQUOT) {
        let remedy = "`lfs df` and `lfs quota` tell what is full; use another pool or other OSTs".to_owned();
        return DriverError::Full { path, doing: "giving it stripes".to_owned(), remedy };
    }
    let remedy = if says("does not exist") || says("has no OSTs") {
        "`lfs pool_list` lists the pools"
    } else if says("cannot find OST") || says("inactive OST") {
        "`lfs osts` lists the OSTs"
    } else {
        return error;
    };
    let value = arguments[1..arguments.len() - 1].join(" ");
    DriverError::Refused { path, value, problem: format!("{output}; {remedy}") }
}

#[cfg(test)]
mod tests;
