//! Finds managed files in directories.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stripewise_sys::user::act_as;
use stripewise_sys::{Errno, FileType, Mode, OFlags};
use stripewise_target::{FileId, Found, MARKER, Objects, Target};

use super::findings::{Finding, Kind, Run, of_target};
use crate::manifest::{MAGIC, Manifest, TEXT_BYTES_MAX, TEXT_BYTES_MIN, family};
use crate::parallel::{in_parallel, jobs_usual};
use crate::runtime::{Runtime, TEMPORARY_PREFIX, temporary_id};

/// Suffix of the name of a file that is set aside.
pub(super) const ASIDE: &str = ".stripewise-aside";

/// The files found below a set of roots.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// The roots without symbolic links.
    pub roots: Vec<PathBuf>,
    /// Files that begin like an anchor.
    pub anchors: Vec<PathBuf>,
    /// All other regular files.
    pub plain: Vec<PathBuf>,
    /// Temporaries and journals of this library.
    pub temporaries: Vec<PathBuf>,
    /// Files and directories that could not be examined.
    pub unreadable: Vec<(PathBuf, Errno)>,
}

/// Examines files and everything below directories, many in parallel. Does not follow symbolic
/// links in them, and skips the objects of targets. Reads the first bytes of every file. The
/// results are sorted by path.
pub fn walk(runtime: &Runtime, roots: &[PathBuf]) -> Listing {
    let named = roots.iter().filter_map(|root| root.canonicalize().ok());
    let mut listing = Listing { roots: named.collect(), ..Listing::default() };
    let mut follow = true;
    let mut waiting = roots.to_vec();
    while !waiting.is_empty() {
        let looked = in_parallel(&waiting, jobs_usual(), |path| look(runtime, path, follow));
        let mut below = Vec::new();
        for (path, seen) in waiting.into_iter().zip(looked) {
            match seen {
                Ok(Seen::Directory(names)) => below.extend(names.into_iter().map(|name| path.join(name))),
                Ok(Seen::Anchor) => listing.anchors.push(path),
                Ok(Seen::Plain) => listing.plain.push(path),
                Ok(Seen::Temporary) => listing.temporaries.push(path),
                Ok(Seen::Nothing) => {}
                // The file was removed since it was listed.
                Err(Errno::NOENT) if !follow => {}
                Err(errno) => listing.unreadable.push((path, errno)),
            }
        }
        (waiting, follow) = (below, false);
    }
    listing.anchors.sort();
    listing.plain.sort();
    listing.temporaries.sort();
    listing.unreadable.sort_by(|one, other| one.0.cmp(&other.0));
    listing
}

/// The files with objects on the targets in `directories`, if they still have the path where they
/// were created.
pub fn files_of(runtime: &Runtime, directories: &[PathBuf]) -> Listing {
    let mut paths: Vec<PathBuf> = Vec::new();
    for target in directories.iter().filter_map(|path| Target::open(runtime.sys(), path, None).ok()) {
        let found = target.list_objects().unwrap_or_default();
        let copies = found.iter().filter(|found| found.object.is_none());
        paths.extend(copies.filter_map(|found| Some(read_copy(&target, found.objects())?.path.into())));
    }
    paths.sort();
    paths.dedup();
    paths.retain(|path| runtime.sys().stat_at(None, path, true).is_ok());
    // Users wrote these paths on the targets: without roots, nothing is repaired there.
    Listing { roots: Vec::new(), ..walk(runtime, &paths) }
}

enum Seen {
    /// A directory with these names in it.
    Directory(Vec<OsString>),
    Anchor,
    Plain,
    Temporary,
    /// Neither a directory nor a regular file.
    Nothing,
}

fn look(runtime: &Runtime, path: &Path, follow: bool) -> Result<Seen, Errno> {
    let stat = runtime.sys().stat_at(None, path, follow)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => {
            let directory =
                runtime.sys().open(None, path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
            let mut names: Vec<_> =
                runtime.sys().list(directory.as_fd())?.into_iter().map(|entry| entry.name).collect();
            if names.iter().any(|name| name == MARKER) {
                names.retain(|name| name != "stripewise");
            }
            Ok(Seen::Directory(names))
        }
        FileType::RegularFile => file(runtime, path, stat.st_size as u64),
        _ => Ok(Seen::Nothing),
    }
}

fn file(runtime: &Runtime, path: &Path, size: u64) -> Result<Seen, Errno> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let ours =
        name.starts_with(TEMPORARY_PREFIX) && (temporary_id(&name).is_some() || name.ends_with(".journal"));
    let copy = name.strip_suffix(".manifest").is_some_and(|id| FileId::from_hex(id).is_some());
    let aside = name.contains(ASIDE);
    if ours {
        return Ok(Seen::Temporary);
    }
    if copy || aside || size < TEXT_BYTES_MIN as u64 {
        return Ok(Seen::Plain);
    }
    let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::NONBLOCK;
    let fd = runtime.sys().open(None, path, flags, Mode::empty())?;
    let begins = runtime.sys().read_start(fd.as_fd(), MAGIC.len())? == MAGIC;
    Ok(if begins { Seen::Anchor } else { Seen::Plain })
}

/// Reports temporaries that are old, and removes them on request. Returns the ids and owners of
/// those removed: an incomplete one does not show which objects belong to it.
pub(super) fn temporaries(run: &mut Run<'_>, listing: &Listing) -> Vec<(FileId, u32)> {
    let runtime = run.runtime;
    let mut swept = Vec::new();
    for path in &listing.temporaries {
        let Ok(stat) = runtime.sys().stat_at(None, path, false) else { continue };
        if !run.is_old(stat.st_mtime) {
            continue;
        }
        let text = "left by a place, export or creation that did not end; run `place` or `export` again, or remove it \
                    with `fsck --remove-orphans`";
        let mut finding = Finding::new(Kind::Temporary, path, text);
        if run.options.remove_orphans {
            let _acting = act_as(Some(stat.st_uid));
            finding = finding.repair(runtime.unlink(None, path));
            let id = path.file_name().and_then(|name| temporary_id(&name.to_string_lossy()));
            swept.extend(id.map(|id| (id, stat.st_uid)));
        }
        run.findings.push(finding);
    }
    swept
}

/// All objects of one file found on the targets.
pub(super) type Parts<'a> = Vec<(&'a Arc<Target>, &'a Found)>;

/// The targets and the objects on them.
#[derive(Default)]
pub(super) struct Stores(Vec<(Arc<Target>, Vec<Found>)>);

impl Stores {
    /// Lists a target unless it was listed before.
    pub fn add(&mut self, run: &mut Run<'_>, target: Arc<Target>) {
        if self.0.iter().any(|(known, _)| known.id() == target.id()) {
            return;
        }
        match target.list_objects() {
            Ok(found) => self.0.push((target, found)),
            Err(error) => run.findings.push(of_target(target.path(), &error)),
        }
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// `ID.manifest` for the damaged anchor at `path` of user `owner`: found by its id if that is
    /// still readable, or if exactly one names this path.
    pub fn copy_for(&self, path: &Path, id: Option<FileId>, owner: u32) -> Option<(FileId, Manifest)> {
        let path = std::path::absolute(path).ok()?;
        let copies = self.0.iter().flat_map(|(target, found)| {
            let copies = found.iter().filter(|found| found.object.is_none() && found.owner == owner);
            copies.filter_map(|found| Some((found.id, read_copy(target, found.objects())?)))
        });
        let copies: Vec<(FileId, Manifest)> = copies.collect();
        let by_id = copies.iter().find(|(found, _)| Some(*found) == id);
        let mut by_path = copies.iter().filter(|(_, copy)| Path::new(&copy.path) == path);
        by_id.or_else(|| by_path.next().filter(|_| by_path.next().is_none())).cloned()
    }

    /// All objects on the targets, by file (with all its copies) and owner.
    pub fn by_file(&self) -> BTreeMap<(FileId, u32), Parts<'_>> {
        let mut files: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (target, found) in
            self.0.iter().flat_map(|(target, all)| all.iter().map(move |found| (target, found)))
        {
            files.entry((family(found.id), found.owner)).or_default().push((target, found));
        }
        files
    }
}

pub(super) fn read_copy(target: &Target, of: Objects) -> Option<Manifest> {
    let text = target.read_manifest_copy(of, TEXT_BYTES_MAX).ok()?;
    Manifest::parse(&text, "copy").ok()
}
