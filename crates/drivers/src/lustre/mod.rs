//! Lustre, through its `lfs`.
//!
//! Checked against the source of lfs.c, liblustreapi.c and lustre/lod (2.12.9, 2.14.0, 2.15.8,
//! 2.16.1, 2.17.57), and a fake that follows them, but not on a real Lustre.

mod listing;
mod striping;

use std::path::Path;
use std::sync::OnceLock;

use stripewise_cluster::FileSystem;
use stripewise_native::{Call, Component, NativeLayout, Stripe};
use stripewise_sys::{Real, Sys};

use crate::driver::{Actual, Pool, Probe, To, never_said};
use crate::error::{DriverError, Result};
use crate::files::{self, HERE};
use crate::tool::Tool;
use crate::tooled::{Refusal, Tooled};
use listing::Osts;
use striping::Striping;

/// The remedies of unknown pools and OSTs.
const POOLS: &str = "`lfs pool_list` lists the pools";
const OSTS: &str = "`lfs osts` lists the OSTs";
/// `lod_qos_parse_config` of 2.12.9 and 2.14.0: the first OST is in the pool, or EINVAL.
const CONFINED: &str = "Lustre before 2.15 refuses other OSTs than those of the pool in the default of the directory or the \
                        root, which `lfs getstripe -d` shows; use another directory, or take its default away";
/// What `lfs` of 2.16 warns of where `enable_setstripe_gid` excludes the user (liblustreapi.c).
const RESTRICTED: &str = "restricted by your administrator";
const MEMBERSHIP: &str = "ask an administrator to add you to the group of `llite.*.enable_setstripe_gid`";
/// The first version whose `lfs` knows the pool `ignore` (LU-15707).
const IGNORES: [u32; 3] = [2, 15, 4];
/// How `lfs pool_list` ends for a pool that does not exist: ENOENT.
const NO_SUCH: &str = "ended with status 2";

/// Lustre on mounted directories.
#[derive(Clone)]
pub struct Lustre {
    lfs: Tool,
    /// Whether `lfs` knows the pool `ignore`.
    ignores: OnceLock<bool>,
}

impl Default for Lustre {
    fn default() -> Self {
        Self::new(Tool::new("lfs"))
    }
}

impl Tooled for Lustre {
    const SYSTEM: FileSystem = FileSystem::Lustre;
    const KINDS: &'static [&'static str] = &["lustre"];
    /// The texts are those of lfs.c, liblustreapi.c and strerror(3). The status is an errno, except
    /// that a failed composite ends with 1 whatever the reason: lfs_component_create returns -1.
    const REFUSALS: &'static [(&'static [&'static str], Refusal)] = &[
        (&["stripe already set", "File exists"], Refusal::Exists),
        (&[RESTRICTED], Refusal::Denied("setting its stripes", MEMBERSHIP)),
        (
            &["Permission denied", "Operation not permitted"],
            Refusal::Denied("setting its stripes", "be the owner of the file or directory, or ask the owner"),
        ),
        (
            &["No space left", "Disk quota exceeded"],
            Refusal::Full(
                "giving it stripes",
                "`lfs df` and `lfs quota` tell what is full; use another pool or other OSTs",
            ),
        ),
        (&["does not exist", "has no OSTs"], Refusal::Value(POOLS)),
        (&["cannot find OST", "inactive OST", "No such device"], Refusal::Value(OSTS)),
        (&["Invalid argument"], Refusal::Value(CONFINED)),
    ];
    const REMEDY: &'static str = "look with `lfs getstripe` what it has; Lustre before 2.13 drops repeated OSTs, a metadata server without ea_inode \
         keeps about 160 stripes, and since 2.16 a tool of another name than `lfs` may be ignored";
    type Report = Osts;

    fn tool(&self, _name: &str) -> &Tool {
        &self.lfs
    }

    fn report(&self, path: &Path) -> Result<Option<Osts>> {
        // Without -l it waits for OSTs that are not connected; without -v it omits inactive ones.
        let arguments = ["df", "-l", "-v", files::for_tools(path)?];
        let table = self.lfs.say(&arguments).and_then(|said| match Osts::parse(&said.output) {
            // One bad OST makes it fail although the table is complete (mntdf in lfs.c).
            Ok(table) => Ok(table),
            Err(why) => match said.error {
                Some(error) => Err(error),
                // Up to 2.14 it says nothing about a directory that is not on Lustre.
                None => self.lfs.understood(&arguments, &said.output, |_| Err(why)),
            },
        });
        self.unless_elsewhere(path, table)
    }

    fn allows(&self, path: &Path, report: &Osts, layout: &NativeLayout) -> Result<()> {
        for Component { stripe, .. } in &layout.components {
            match stripe {
                Stripe::Even { pool: Some(pool), .. } => drop(self.members(path, report, pool)?),
                Stripe::Listed { servers, .. } => {
                    let unknown = |ost: &&String| ost.parse().is_ok_and(|index| !report.has(index));
                    if let Some(ost) = servers.iter().find(unknown) {
                        let problem = format!("{} has no OST {ost}; {OSTS}", report.fsname);
                        return Err(DriverError::refused(path, ost, problem));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn describe(&self, dir: &Path, report: Osts, probe: &mut Probe) {
        probe.servers = report.osts.iter().map(|ost| ost.index.to_string()).collect();
        for ost in report.osts.iter().filter(|ost| !ost.state.is_empty()) {
            probe.notes.push(format!("OST {} is not well ({}): see lfs-df(1)", ost.index, ost.state));
        }
        for (index, reason) in &report.silent {
            probe.notes.push(format!("OST {index} does not answer ({reason})"));
        }
        self.add_pools(&report, probe);
        self.try_out(dir, "layouts", &NativeLayout::even(1 << 20, 1, None), probe);
    }

    fn found(&self, path: &Path, asked: Option<&NativeLayout>) -> Result<Actual> {
        let Some(striping) = self.striping(path)? else {
            return Ok(Actual { note: Some("it has no stripes yet".to_owned()), ..Actual::default() });
        };
        let (exact, pinned) = (striping.exact(), striping.is_pinned());
        Ok(match striping.layout(asked) {
            Ok(layout) => {
                Actual { layout: Some(layout), note: striping.note(), exact, pinned, ..Actual::default() }
            }
            Err(reason) => Actual { note: Some(reason), exact, pinned, ..Actual::default() },
        })
    }

    /// Servers ignore pools that they do not know, and keep the name (2.15: the client no longer
    /// checks; composites: no client before 2.16 does). So the OSTs count. Where `lfs` knows no
    /// pool `ignore`, files on certain OSTs may get the name of a default's pool (`def_pool` in
    /// lod_qos_parse_config), which means nothing.
    fn verify(&self, path: &Path, asked: &NativeLayout) -> Result<()> {
        let striping = self.striping(path)?;
        let got = striping.as_ref().and_then(|striping| striping.layout(Some(asked)).ok());
        DriverError::compare(path, asked, got, Self::REMEDY)?;
        let parts = striping.iter().flat_map(|striping| &striping.components);
        for (part, Component { stripe, .. }) in parts.zip(&asked.components) {
            let Stripe::Even { pool: Some(pool), .. } = stripe else { continue };
            if part.osts.is_empty() {
                continue;
            }
            let members = self.members(path, &self.require(path)?, pool)?;
            if !part.osts.iter().all(|ost| members.contains(ost)) {
                let problem =
                    format!("its stripes are on OSTs {:?}, the pool has {members:?}; {POOLS}", part.osts);
                return Err(DriverError::refused(path, pool, problem));
            }
        }
        Ok(())
    }

    fn forget(&self, dir: &Path) -> Result<()> {
        self.set(dir, &[["lfs", "setstripe", "-d", files::for_tools(dir)?].map(str::to_owned).into()])
    }

    fn make(&self, file: &Path, layout: &NativeLayout, calls: &[Call], mode: u32) -> Result<()> {
        self.make_by_tool(file, layout, &self.for_a_file(calls), mode)
    }

    fn exact_calls(&self, path: &Path, exact: &str) -> Result<Vec<Call>> {
        let options = striping::options(exact).ok_or_else(|| never_said(path, exact))?;
        let words = ["lfs", "setstripe"].into_iter().chain(options).chain([files::for_tools(path)?]);
        Ok(vec![words.map(str::to_owned).collect()])
    }

    fn exact_file_calls(&self, file: &Path, exact: &str) -> Result<Vec<Call>> {
        Ok(self.for_a_file(&self.exact_calls(file, exact)?))
    }

    /// `lfs migrate` copies to a file without a name and exchanges the two files' objects. With -n
    /// it fails where another program writes (lfs_migrate in lfs.c). It makes no mirrors.
    fn change_calls(&self, file: &Path, to: To<'_>) -> Option<Result<Vec<Call>>> {
        let calls = match to {
            To::Layout(layout) => Self::calls(layout, file, false).map(|calls| self.for_a_file(&calls)),
            To::Exact(exact) if striping::is_mirrored(exact) => return None,
            To::Exact(exact) => self.exact_file_calls(file, exact),
        };
        let migrate = |call: Call| {
            let options = call.into_iter().skip(2);
            ["lfs", "migrate", "-n"].into_iter().map(str::to_owned).chain(options).collect()
        };
        Some(calls.map(|calls| calls.into_iter().map(migrate).collect()))
    }

    /// A former layout may have been the file system's default, which a directory without hints
    /// gets by itself.
    fn put_back(&self, dir: &Path, exact: &str) -> Result<()> {
        let calls = self.exact_calls(dir, exact)?;
        self.forget(dir)?;
        self.verify_exact(dir, exact).or_else(|_| {
            self.set(dir, &calls)?;
            self.verify_exact(dir, exact)
        })
    }

    /// `lfs setstripe` creates the file before it sets the layout, and leaves it without stripes
    /// where that fails (llapi_file_open_param, llapi_layout_file_open). A restricted one replaces
    /// it by a file with the default.
    fn discard(&self, file: &Path, error: &DriverError) {
        let restricted = matches!(error, DriverError::Denied { remedy, .. } if remedy == MEMBERSHIP);
        let without_stripes = || matches!(self.striping(file), Ok(None));
        if !matches!(error, DriverError::Exists { .. }) && (restricted || without_stripes()) {
            let _ = Real.unlink(HERE, file);
        }
    }
}

impl Lustre {
    fn new(lfs: Tool) -> Self {
        Self { lfs, ignores: OnceLock::new() }
    }

    /// The calls of `lfs setstripe` for a new file: components without a pool have none. Servers
    /// would give them the first pool in the default of the directory or the root (`def_pool` in
    /// lod_qos_parse_config). Older servers than `lfs` know no pool `ignore`, and so use all OSTs;
    /// they keep the name, which `lfs` hides (lov_dump_user_lmm_header). A plain default of a
    /// directory cannot be without the root's pool: lod_xattr_set_lov_on_dir drops the name.
    fn for_a_file(&self, calls: &[Call]) -> Vec<Call> {
        let version = || self.lfs.run(&["--version"]).is_ok_and(|text| listing::version(&text) >= IGNORES);
        if !*self.ignores.get_or_init(version) {
            return calls.to_vec();
        }
        let without = |call: &Call| {
            let (options, path) = (&call[2..call.len() - 1], &call[call.len() - 1..]);
            [&call[..2], &striping::without_inherited_pools(options), path].concat()
        };
        calls.iter().map(without).collect()
    }

    /// `None`: a file whose stripes are not chosen.
    fn striping(&self, path: &Path) -> Result<Option<Striping>> {
        let arguments = ["getstripe", "-d", "--yaml", files::for_tools(path)?];
        let said = self.lfs.say(&arguments)?;
        match said.error {
            _ if said.output.contains("has no stripe info") => Ok(None),
            Some(error) => Err(error),
            None => self.lfs.understood(&arguments, &said.output, Striping::parse).map(Some),
        }
    }

    /// The OSTs of a pool. An error if the pool does not exist or is empty.
    fn members(&self, path: &Path, report: &Osts, pool: &str) -> Result<Vec<u32>> {
        let name = format!("{}.{pool}", report.fsname);
        let refused = |what| DriverError::refused(path, pool, format!("pool '{name}' {what}; {POOLS}"));
        match self.lfs.ask(&["pool_list", &name], listing::members) {
            Ok(members) if members.is_empty() => Err(refused("has no OSTs")),
            Err(DriverError::Tool { how, .. }) if how == NO_SUCH => Err(refused("does not exist")),
            members => members,
        }
    }

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
                        groups: Vec::new(),
                        free_bytes: Some(inside.map(|ost| ost.free_bytes).sum()),
                    });
                }
                Err(error) => probe.notes.push(format!("the OSTs of pool {name} are not known: {error}")),
            }
        }
    }
}

#[cfg(test)]
mod real;
#[cfg(test)]
mod tests;
