//! OrangeFS 2.10, through its `pvfs2-xattr`, `pvfs2-viewdist` and `pvfs2-statfs`.
//!
//! New files inherit the hints on their directory. OrangeFS skips hints that it does not
//! understand, so only a new file shows whether they took effect.

mod output;

use std::path::{Component, Path, PathBuf};

use stripewise_cluster::{FileSystem, size};
use stripewise_native::orangefs::{self, Distribution, LISTED};
use stripewise_native::{Call, NativeLayout};
use stripewise_sys::Real;

use crate::driver::{Actual, Probe, never_said};
use crate::error::{DriverError, Result};
use crate::files;
use crate::tool::Tool;
use crate::tooled::{Refusal, Tooled};
use output::Server;

const XATTR: &str = "pvfs2-xattr";
const VIEWDIST: &str = "pvfs2-viewdist";
const STATFS: &str = "pvfs2-statfs";
const TOOLS: [&str; 3] = [XATTR, VIEWDIST, STATFS];
/// The hints on a directory.
const HINTS: [&str; 5] = ["dist_name", "layout", "server_list", "num_dfiles", "dist_params"];
/// The end of an error of the tools on a mounted OrangeFS.
const TOOLS_REMEDY: &str = "this is on an OrangeFS, whose tools must be in PATH (or STRIPEWISE_PVFS2_STATFS and its \
                            counterparts name them) and find its mount point, without blanks, in PVFS2TAB_FILE or \
                            /etc/pvfs2tab";

/// The values of [`HINTS`] on a directory; empty where a hint is not set.
type Hints = [String; 5];

/// OrangeFS on mounted directories (pvfs2tab).
#[derive(Clone)]
pub struct OrangeFs {
    /// In the order of [`TOOLS`].
    tools: [Tool; 3],
}

impl Default for OrangeFs {
    fn default() -> Self {
        Self { tools: TOOLS.map(Tool::new) }
    }
}

impl Tooled for OrangeFs {
    const SYSTEM: FileSystem = FileSystem::OrangeFs;
    const KINDS: &'static [&'static str] = &["pvfs2", "fuse.pvfs2fuse"];
    const REFUSALS: &'static [(&'static [&'static str], Refusal)] = &[(
        &["Permission denied", "Operation not permitted", "Not permitted"],
        Refusal::Denied("setting its hints", "be the owner of the directory, or ask the owner"),
    )];
    const REMEDY: &'static str = "OrangeFS passes over hints that it does not understand; look with \
                                  `pvfs2-viewdist -f` what a new file has, and with `pvfs2-statfs -m` how its \
                                  servers are called";
    type Report = Vec<Server>;

    fn tool(&self, name: &str) -> &Tool {
        let index = TOOLS.iter().position(|tool| *tool == name).expect("calls are of these tools");
        &self.tools[index]
    }

    fn report(&self, path: &Path) -> Result<Option<Vec<Server>>> {
        let (tool, asked) = (self.tool(STATFS), without_blanks(&files::absolute(path)?));
        let said = files::for_tools(&asked).and_then(|asked| tool.run(&["-m", asked]));
        let said = self.unless_elsewhere(path, said).map_err(|error| match error {
            DriverError::Tool { command, how, output } => {
                DriverError::Tool { command, how: format!("{how} ({TOOLS_REMEDY})"), output }
            }
            error => error,
        })?;
        let understood = |text: String| tool.understood(&["-m".as_ref(), &*asked], &text, output::servers);
        said.map(understood).transpose()
    }

    fn describe(&self, dir: &Path, report: Vec<Server>, probe: &mut Probe) {
        probe.servers = report.iter().map(|server| server.address.clone()).collect();
        if let Some(least) = report.iter().min_by_key(|server| server.free_bytes) {
            let free = size::format(least.free_bytes);
            probe.notes.push(format!("the server with the least space, {}, has {free}", least.address));
        }
        let notes = [
            "it has no fallocate, which targets need: plan with `stripewise plan --native`, and place with \
             `stripewise place --native`",
            "the size of files with varied stripes or groups is wrong while they have holes",
        ];
        probe.notes.extend(notes.map(str::to_owned));
        self.try_out(dir, "layouts", &NativeLayout::even(64 << 10, 1, None), probe);
    }

    /// As the provided method, with the path without links: the tools know a mount by the text of
    /// the path, and fail where they resolve links (PVFS_util_resolve in pvfs2-util.c).
    fn calls(layout: &NativeLayout, path: &Path, is_dir: bool) -> Result<Vec<Call>> {
        let place = files::without_links(path)?;
        files::for_tools(&place)?;
        stripewise_native::calls(Self::SYSTEM, layout, &place, is_dir)
            .map_err(|problem| DriverError::unsupported(Self::SYSTEM, layout, problem))
    }

    /// A file takes its layout from hints on its directory, which must not change for other files.
    fn make(&self, file: &Path, layout: &NativeLayout, _calls: &[Call], mode: u32) -> Result<()> {
        self.require_servers(files::parent(file), layout)?;
        files::made_apart(&Real, file, |dir, inside| {
            // It has inherited the hints of the directory above it.
            self.change(dir, self.hints(dir)?, &Hints::default())?;
            self.set(dir, &Self::calls(layout, dir, true)?)?;
            look(dir)?;
            files::create_new(&Real, inside, mode)?;
            self.verify(inside, layout)
        })
    }

    fn restoring(
        &self,
        dir: &Path,
        layout: &NativeLayout,
        change: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        self.require_servers(dir, layout)?;
        let former = self.hints(dir)?;
        let there = layout_of(&former).is_some_and(|has| layout.is_met_by(&has));
        let emptied = if there { Ok(()) } else { self.change(dir, former.clone(), &Hints::default()) };
        emptied.and_then(|()| change()).map_err(|error| {
            // The hints there now may be unknown, so all are set by hand.
            let calls = || Ok(calls(&files::without_links(dir)?, None, &former));
            error.after(dir, self.change_to(dir, &former), calls)
        })
    }

    fn found(&self, path: &Path, _asked: Option<&NativeLayout>) -> Result<Actual> {
        if look(path)? {
            let hints = self.hints(path)?;
            return Ok(Actual { layout: layout_of(&hints), exact: text_of(&hints), ..Actual::default() });
        }
        let text = self.tool(VIEWDIST).run(&["-f", files::for_tools(&files::without_links(path)?)?])?;
        Ok(match output::distribution(&text) {
            Ok(stripe) => Actual { layout: Some(NativeLayout::uniform(stripe)), ..Actual::default() },
            Err(what) => Actual { note: Some(what), ..Actual::default() },
        })
    }

    fn put_back(&self, dir: &Path, exact: &str) -> Result<()> {
        let mut hints = Hints::default();
        for line in exact.lines() {
            let (name, value) = line.split_once('=').unwrap_or((line, ""));
            let hint = HINTS.iter().position(|known| *known == name).ok_or_else(|| never_said(dir, exact))?;
            hints[hint] = value.to_owned();
        }
        self.change_to(dir, &hints)
    }

    /// The tools cannot remove hints, but an empty one counts as none.
    fn forget(&self, dir: &Path) -> Result<()> {
        self.change(dir, self.hints(dir)?, &Hints::default())
    }
}

/// Whether a path is a directory. `pvfs2fuse` keeps the hints of a directory for up to a minute
/// (acache.c), and creates files by what it keeps; looking at the directory through the mount makes
/// it ask its servers again.
fn look(path: &Path) -> Result<bool> {
    files::is_directory(&Real, path)
}

/// The directory above the first name with a blank: `pvfs2-statfs -m` cuts its argument at the
/// first blank, and what is left can be on another file system.
fn without_blanks(path: &Path) -> PathBuf {
    let blank = |name: &Component<'_>| {
        name.as_os_str().as_encoded_bytes().iter().any(|byte| byte.is_ascii_whitespace() || *byte == b'\x0b')
    };
    path.components().take_while(|name| !blank(name)).collect()
}

impl OrangeFs {
    /// The hints on a directory.
    fn hints(&self, dir: &Path) -> Result<Hints> {
        let (mut hints, place) = (Hints::default(), files::without_links(dir)?);
        for (hint, name) in hints.iter_mut().zip(HINTS) {
            let key = format!("user.pvfs2.{name}");
            let arguments = ["-t", "-k", &key, files::for_tools(&place)?];
            *hint = match self.tool(XATTR).ask(&arguments, |text| output::value(text, &key)) {
                Err(DriverError::Tool { output, .. }) if output.contains(output::NO_HINT) => String::new(),
                value => value?,
            };
        }
        Ok(hints)
    }

    /// Changes all hints of a directory.
    fn change(&self, dir: &Path, now: Hints, to: &Hints) -> Result<()> {
        self.set(dir, &calls(&files::without_links(dir)?, Some(now), to))?;
        look(dir).map(drop)
    }

    /// Gives a directory these hints, and reads them back.
    fn change_to(&self, dir: &Path, hints: &Hints) -> Result<()> {
        self.change(dir, self.hints(dir)?, hints)?;
        if self.hints(dir)? == *hints {
            return Ok(());
        }
        let former = text_of(hints).unwrap_or_default();
        Err(DriverError::refused(dir, &former, "its hints are others after they were set"))
    }

    /// Fails unless a layout's servers are those of the file system, whose clients would fail to
    /// create any file.
    fn require_servers(&self, path: &Path, layout: &NativeLayout) -> Result<()> {
        let named = layout.stripe().and_then(|stripe| Distribution::of(stripe).ok()?.servers);
        let known = self.require(path)?;
        let is_known = |name: &String| known.iter().any(|server| server.address == *name);
        match named.iter().flatten().find(|name| !is_known(name)) {
            None => Ok(()),
            Some(unknown) => Err(DriverError::refused(
                path,
                unknown,
                "it is no server of this OrangeFS; `pvfs2-statfs -m` tells how its servers are called",
            )),
        }
    }
}

/// The calls that change the hints of a directory from `now` (`None`: not known). In between, new
/// files get the default distribution: the new distribution comes last, and a layout by list is
/// never without a list, which would end `pvfs2fuse`.
fn calls(place: &Path, now: Option<Hints>, to: &Hints) -> Vec<Call> {
    let [name, layout, list, number, params] = to;
    let mut now = now.map_or_else(Default::default, |now| now.map(Some));
    let steps = [(0, ""), (1, ""), (2, list), (1, layout), (3, number), (4, params), (0, name)];
    let changed = steps.into_iter().filter(|&(hint, value)| {
        let before = now[hint].replace(value.to_owned());
        before.as_deref() != Some(value)
    });
    changed.map(|(hint, value)| orangefs::set(place, HINTS[hint], value)).collect()
}

/// A line for each hint that is set, for [`Actual::exact`]; `None`: there are none.
fn text_of(hints: &Hints) -> Option<String> {
    let set = HINTS.iter().zip(hints).filter(|(_, value)| !value.is_empty());
    let lines: Vec<String> = set.map(|(name, value)| format!("{name}={value}")).collect();
    Some(lines.join("\n")).filter(|text| !text.is_empty())
}

/// The layout in a directory's hints; `None`: there are none, or they do not describe a known
/// layout.
fn layout_of([name, layout, list, number, params]: &Hints) -> Option<NativeLayout> {
    let listed = layout.parse() == LISTED.parse::<u32>();
    let list = output::server_list(list).ok();
    // A list counts even where the layout is not by list (getattr_interpret_dir_hint, get-attr.sm).
    let datafiles = list.as_ref().map_or(number.parse().unwrap_or(0), |list| list.len() as u32);
    let servers = list.filter(|_| listed);
    Distribution::read(name, params, servers, datafiles).ok().map(NativeLayout::uniform)
}

#[cfg(test)]
mod tests;
