//! Is an anchor right, and are its components?

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stripewise_sys::{Mode, OFlags};
use stripewise_target::{ComponentSet, FileId, Opening, Target};

use super::findings::{Finding, Kind, NEVER_SYNCED};
use super::orphans::Stores;
use super::{Options, copies, of_target, restore};
use crate::anchor::{self, Anchored};
use crate::manifest::{CopyRef, HEAD_BYTES, Manifest, family};
use crate::runtime::Runtime;

/// The files that were found, by their components' name.
pub(super) struct Known {
    /// Its first path, and the device and inode there.
    paths: HashMap<FileId, (PathBuf, Inode)>,
    /// No anchor was met of which it is not known which components are its own.
    pub all_readable: bool,
}

/// Device and inode; `None` where they are not known.
type Inode = Option<(u64, u64)>;

impl Known {
    pub fn new() -> Self {
        Self { paths: HashMap::new(), all_readable: true }
    }

    /// Of the file that the components `id` belong to, of whichever copy.
    pub fn path(&self, id: FileId) -> Option<&Path> {
        self.paths.get(&family(id)).map(|(path, _)| path.as_path())
    }

    /// Returns the path and inode under which the components are known already.
    fn note(&mut self, id: FileId, path: &Path, inode: Inode) -> Option<(PathBuf, Inode)> {
        match self.paths.entry(family(id)) {
            Entry::Occupied(known) => Some(known.get().clone()),
            Entry::Vacant(free) => {
                free.insert((path.to_owned(), inode));
                None
            }
        }
    }
}

/// Checks the anchor at `path`.
pub(super) fn check(
    runtime: &Runtime,
    path: &Path,
    options: Options,
    known: &mut Known,
    stores: &mut Stores,
    findings: &mut Vec<Finding>,
) {
    let Some(anchored) = read(runtime, path, options, known, stores, findings) else { return };
    let (manifest, id) = (&anchored.manifest, anchored.manifest.id);
    let inode = runtime.sys().stat_at(None, path, true).ok().map(|stat| (stat.st_dev, stat.st_ino));
    if let Some((other, others)) = known.note(id, path, inode) {
        if inode.is_some() && inode == others {
            // Another name of the same file (a hard link), which has been looked at.
            return;
        }
        let text = format!(
            "has the same components as {}: a copy made without stripewise; whatever is written to one shows in both. \
             Remove the name of the copy with a program that runs without stripewise",
            other.display()
        );
        findings.push(Finding::new(Kind::Duplicate, path, text).of(id));
    }
    let mut size = Some(0);
    for (number, copy) in manifest.all_copies().enumerate() {
        // What it means that another copy is lost, only the map can tell.
        let mut unsaid = Vec::new();
        let of_original = if number == 0 { &mut *findings } else { &mut unsaid };
        let targets = targets(runtime, path, id, copy, of_original);
        let of_copy =
            targets.as_ref().and_then(|targets| components(runtime, path, id, copy, targets, of_original));
        findings.extend(unsaid.into_iter().filter(|finding| finding.kind == Kind::Length));
        targets.iter().flatten().for_each(|target| stores.add(runtime.sys(), target.clone(), findings));
        if let (0, Some((_, target))) = (number, &of_copy) {
            self::copy(runtime, path, manifest, target, options, findings);
        }
        size = match of_copy {
            Some((of_copy, _)) => size.map(|size: u64| of_copy.max(size)),
            None if number == 0 => None,
            None => size,
        };
    }
    if manifest.copies.is_some() && size.is_some() {
        copies::check(runtime, path, manifest, options, findings);
    }
    if let Some(size) = size {
        rest(runtime, path, &anchored, size, options, findings);
    }
}

/// The targets of a copy, if they are all there.
fn targets(
    runtime: &Runtime,
    path: &Path,
    id: FileId,
    copy: CopyRef<'_>,
    findings: &mut Vec<Finding>,
) -> Option<Vec<Arc<Target>>> {
    let mut targets = Vec::new();
    for reference in copy.targets {
        match Target::open(runtime.sys(), &reference.path, Some(&reference.id)) {
            Ok(target) => targets.push(Arc::new(target)),
            Err(error) => findings.push(of_target(path, &error).of(id)),
        }
    }
    (targets.len() == copy.targets.len()).then_some(targets)
}

fn read(
    runtime: &Runtime,
    path: &Path,
    options: Options,
    known: &mut Known,
    stores: &Stores,
    findings: &mut Vec<Finding>,
) -> Option<Anchored> {
    let sys = runtime.sys();
    let fd = match sys.open(None, path, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()) {
        Ok(fd) => fd,
        Err(errno) => {
            known.all_readable = false;
            findings.push(Finding::new(Kind::Unreadable, path, errno.to_string()));
            return None;
        }
    };
    let error = match anchor::read(sys, fd.as_fd(), path) {
        Ok(anchored) => return anchored,
        Err(error) => error,
    };
    let id = sys.read_start(fd.as_fd(), HEAD_BYTES).ok().and_then(|text| id_in(&text));
    let Some((id, copy)) = stores.copy_for(runtime, path, id) else {
        known.all_readable = false;
        let text =
            format!("{error}; the targets looked at have no copy (name others with -c or -p); {NEVER_SYNCED}");
        findings.push(Finding::new(Kind::Manifest, path, text));
        return None;
    };
    // Its components are accounted for, whatever happens now.
    known.note(id, path, None);
    if restore::has_lost_components(runtime, &copy) {
        let text =
            format!("{error}; but components are lost, too, so that it cannot be brought back; {NEVER_SYNCED}");
        findings.push(Finding::new(Kind::Manifest, path, text).of(id));
        return None;
    }
    let finding = Finding::new(Kind::Manifest, path, error.to_string()).of(id);
    findings.push(if options.repair { finding.repair(restore::anchor(runtime, path, &copy)) } else { finding });
    None
}

/// The id in a damaged manifest.
fn id_in(text: &[u8]) -> Option<FileId> {
    let text = String::from_utf8_lossy(text);
    let hex = text.split_once("\nid = \"")?.1.get(..32)?;
    FileId::from_hex(hex)
}

/// The size that the components of a copy give, and its first target; `None` where one is lost.
fn components(
    runtime: &Runtime,
    path: &Path,
    id: FileId,
    copy: CopyRef<'_>,
    targets: &[Arc<Target>],
    findings: &mut Vec<Finding>,
) -> Option<(u64, Arc<Target>)> {
    let mut add = |kind, text: String| findings.push(Finding::new(kind, path, text).of(id));
    let opening = Opening { read_only: true, flags: OFlags::empty() };
    let set = ComponentSet::open(runtime.sys(), targets.to_vec(), copy.id, opening);
    let sizes = match set.and_then(|set| set.sizes()) {
        Ok(sizes) => sizes,
        Err(error) => {
            add(Kind::Component, format!("{error}; {NEVER_SYNCED}"));
            return None;
        }
    };
    for (index, &size) in (0..).zip(&sizes) {
        if size > 0 && copy.layout.file_offset(index, size - 1).is_none() {
            let name = &copy.targets[index as usize].name;
            let text = format!("its component on {name} has {size} bytes, more than the layout puts there");
            add(Kind::Length, text);
        }
    }
    Some((copy.layout.file_size(&sizes), targets.first()?.clone()))
}

/// The copy of the manifest.
fn copy(
    runtime: &Runtime,
    path: &Path,
    manifest: &Manifest,
    target: &Target,
    options: Options,
    findings: &mut Vec<Finding>,
) {
    let Err(error) = same_copy(runtime, manifest, target) else { return };
    let text = format!("{error}; `fsck --repair` writes it anew");
    let finding = Finding::new(Kind::Copy, path, text).of(manifest.id);
    let repair = || restore::copy(runtime, manifest);
    findings.push(if options.repair { finding.repair(repair()) } else { finding });
}

/// What can be wrong with a file of which everything is there.
fn rest(
    runtime: &Runtime,
    path: &Path,
    anchored: &Anchored,
    size: u64,
    options: Options,
    findings: &mut Vec<Finding>,
) {
    let Some(size) = anchored.manifest.pending_truncate else {
        return lag(runtime, path, anchored, size, options, findings);
    };
    let text = format!(
        "a truncate to {size} bytes was interrupted; the next program that opens the file finishes it, or `fsck --repair`"
    );
    let finding = Finding::new(Kind::Truncate, path, text).of(anchored.manifest.id);
    findings.push(if options.repair { finding.repair(settle(runtime, path)) } else { finding });
}

/// Opening finishes it.
fn settle(runtime: &Runtime, path: &Path) -> Result<(), String> {
    match runtime.open_file(path) {
        Ok(Some(file)) if file.is_writable() => Ok(()),
        Ok(_) => Err("it may not be written to".into()),
        Err(error) => Err(error.to_string()),
    }
}

fn same_copy(runtime: &Runtime, manifest: &Manifest, target: &Target) -> Result<(), String> {
    let bytes_max = crate::manifest::TEXT_BYTES_MAX;
    let text = stripewise_target::read_manifest_copy(runtime.sys(), target, manifest.id, bytes_max);
    let text = text.map_err(|error| error.to_string())?;
    let copy = Manifest::parse(&text, "the copy of its manifest").map_err(|error| error.to_string())?;
    let copy = Manifest { pending_truncate: manifest.pending_truncate, ..copy };
    if copy == *manifest { Ok(()) } else { Err("the copy of its manifest says something else".into()) }
}

/// What `ls` shows of the file.
fn lag(
    runtime: &Runtime,
    path: &Path,
    anchored: &Anchored,
    size: u64,
    options: Options,
    findings: &mut Vec<Finding>,
) {
    let expected = size.max(anchored.text_bytes);
    let Ok(stat) = runtime.sys().stat_at(None, path, true) else { return };
    if stat.st_size as u64 == expected {
        return;
    }
    let text = format!(
        "its anchor shows {} bytes, the file has {size}; a program that wrote to it was killed, or is at work",
        stat.st_size
    );
    let refresh = || match runtime.open_file(path) {
        Ok(Some(file)) => file.refresh_anchor().map_err(|errno| errno.to_string()),
        Ok(None) => Err("it is not a managed file any more".into()),
        Err(error) => Err(error.to_string()),
    };
    let finding = Finding::new(Kind::Lag, path, text).of(anchored.manifest.id);
    findings.push(if options.repair { finding.repair(refresh()) } else { finding });
}
