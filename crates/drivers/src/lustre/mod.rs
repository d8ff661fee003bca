//! Lustre, through its `lfs`.
//!
//! Checked against lustre/doc, the source of lfs.c and liblustreapi.c (2.12 to 2.15), and a fake
//! that follows them, but not on a real Lustre.

mod listing;
mod striping;

use std::path::Path;

use stripewise_cluster::FileSystem;
use stripewise_native::NativeLayout;

use crate::driver::{Actual, Pool, Probe};
use crate::error::Result;
use crate::files;
use crate::tool::Tool;
use crate::tooled::{Refusal, Tooled};
use listing::Osts;
use striping::Striping;

/// Lustre on mounted directories.
#[derive(Clone)]
pub struct Lustre {
    lfs: Tool,
}

impl Default for Lustre {
    fn default() -> Self {
        Self { lfs: Tool::new("lfs") }
    }
}

impl Tooled for Lustre {
    const SYSTEM: FileSystem = FileSystem::Lustre;
    const KINDS: &'static [&'static str] = &["lustre"];
    /// The texts are those of lfs.c and liblustreapi.c; the status is an errno.
    const REFUSALS: &'static [(&'static [&'static str], Refusal)] = &[
        (&["stripe already set", "ended with status 17"], Refusal::Exists),
        (
            &["ended with status 13", "ended with status 1"],
            Refusal::Denied("setting its stripes", "be the owner of the file or directory, or ask the owner"),
        ),
        (
            &["ended with status 28", "ended with status 122"],
            Refusal::Full(
                "giving it stripes",
                "`lfs df` and `lfs quota` tell what is full; use another pool or other OSTs",
            ),
        ),
        (&["does not exist", "has no OSTs"], Refusal::Value("`lfs pool_list` lists the pools")),
        (&["cannot find OST", "inactive OST"], Refusal::Value("`lfs osts` lists the OSTs")),
    ];
    const REMEDY: &'static str =
        "look with `lfs getstripe` what it has; an older Lustre may not take lists of OSTs for directories";
    type Report = Osts;

    fn tool(&self, _name: &str) -> &Tool {
        &self.lfs
    }

    fn report(&self, path: &Path) -> Result<Option<Osts>> {
        self.ask_about(&self.lfs, "df", path, Osts::parse)
    }

    fn describe(&self, dir: &Path, report: Osts, probe: &mut Probe) {
        probe.servers = report.osts.iter().map(|ost| ost.index.to_string()).collect();
        for ost in report.osts.iter().filter(|ost| !ost.state.is_empty()) {
            probe.notes.push(format!("OST {} is not well ({}): see lfs-df(1)", ost.index, ost.state));
        }
        if report.inactive > 0 {
            probe.notes.push(format!("{} OSTs do not answer", report.inactive));
        }
        self.add_pools(&report, probe);
        self.try_out(dir, "layouts", &NativeLayout::even(1 << 20, 1, None), probe);
    }

    fn found(&self, path: &Path, asked: Option<&NativeLayout>) -> Result<Actual> {
        let parse = |text: &str| match Striping::parse(text) {
            _ if text.contains("has no stripe info") => Ok(Err("it has no stripes yet".to_owned())),
            Err(why) if why.contains("pattern") || why.contains("mirrors") => Ok(Err(why)),
            parsed => parsed.map(Ok),
        };
        let striping = self.lfs.ask(&["getstripe", "-d", "--yaml", files::for_tools(path)?], parse)?;
        Ok(match striping {
            Ok(striping) => {
                Actual { layout: Some(striping.layout(asked)), note: striping.note(), ..Actual::default() }
            }
            Err(why) => Actual { note: Some(why), ..Actual::default() },
        })
    }

    fn forget(&self, dir: &Path) -> Result<()> {
        self.set(dir, &[["lfs", "setstripe", "-d", files::for_tools(dir)?].map(str::to_owned).into()])
    }
}

impl Lustre {
    fn add_pools(&self, report: &Osts, probe: &mut Probe) {
        let names = match self.lfs.run(&["pool_list", &report.fsname]) {
            Ok(text) => listing::pools(&text, &report.fsname),
            Err(error) => return probe.notes.push(format!("its pools are not known: {error}")),
        };
        for name in names {
            match self.lfs.ask(&["pool_list", &format!("{}.{name}", report.fsname)], listing::members) {
                Ok(members) => {
                    let inside = report.osts.iter().filter(|ost| members.contains(&ost.index));
                    probe.pools.push(Pool {
                        name,
                        servers: Some(members.len() as u32),
                        server_names: members.iter().map(u32::to_string).collect(),
                        free_bytes: Some(inside.map(|ost| ost.free_bytes).sum()),
                    });
                }
                Err(error) => probe.notes.push(format!("the OSTs of pool {name} are not known: {error}")),
            }
        }
    }
}

#[cfg(test)]
mod tests;
