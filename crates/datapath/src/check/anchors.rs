//! Checks anchors and their objects.

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stripewise_extents::CopyId;
use stripewise_sys::{Mode, OFlags, Stat};
use stripewise_target::{FileId, ObjectSet, Objects, Opening, Target};

use super::findings::{Finding, Kind, NEVER_SYNCED, Run, Scope, is_gone, of_target};
use super::looked::Looked;
use super::walk::Stores;
use super::{copies, restore};
use crate::anchor::{self, FileKey};
use crate::intent;
use crate::manifest::{CopyRef, HEAD_BYTES, Manifest, TEXT_BYTES_MAX, family};
use crate::permissions::of_anchor;
use crate::runtime::Runtime;

/// The files found so far, by the id of their objects and their owner.
pub(super) struct Known {
    anchors: HashMap<(FileId, u32), (PathBuf, FileKey)>,
    copied: Vec<Looked>,
    /// Every anchor could be read, or its objects could be determined otherwise.
    pub all_readable: bool,
}

impl Known {
    pub fn new() -> Self {
        Self { anchors: HashMap::new(), copied: Vec::new(), all_readable: true }
    }

    /// The path of the file to which these objects belong, as any of its copies.
    pub fn path(&self, of: Objects) -> Option<&Path> {
        let known = self.anchors.get(&(family(of.id), of.owner)).map(|(path, _)| path.as_path());
        let copied = || self.copied.iter().find(|copied| copied.is_of(of)).map(|copied| copied.path.as_path());
        known.or_else(copied)
    }

    /// Records a file. Returns the file recorded earlier with the same objects.
    fn note(&mut self, of: Objects, path: &Path, key: FileKey) -> Option<(PathBuf, FileKey)> {
        self.anchors.insert((family(of.id), of.owner), (path.to_owned(), key))
    }
}

pub(super) fn check(run: &mut Run<'_>, path: &Path, known: &mut Known, stores: &mut Stores) {
    let Some(looked) = read(run, path, known, stores) else { return };
    if looked.is_copied {
        return known.copied.push(looked);
    }
    let key = FileKey::of(&looked.stat);
    if let Some((other, other_key)) = known.note(looked.objects(), path, key) {
        if other_key == key {
            // Another name of the same file (a hard link), which was checked before.
            return;
        }
        run.findings.push(looked.finding(Kind::Duplicate, duplicate(&other)));
    }
    let mut is_whole = false;
    for copy in looked.manifest().all_copies() {
        let is_original = copy.number == CopyId::ORIGINAL;
        let mut found = Vec::new();
        let targets = targets(run.runtime, &looked, copy, &mut found);
        let is_there = targets
            .as_ref()
            .is_some_and(|targets| has_objects(run.runtime, &looked, copy, targets, &mut found));
        // What the loss of another copy means depends on the map.
        run.findings.extend(found.into_iter().filter(|found| is_original || found.kind == Kind::Length));
        targets.iter().flatten().for_each(|target| stores.add(run, target.clone()));
        if let (true, true, Some(first)) = (is_original, is_there, targets.iter().flatten().next()) {
            is_whole = true;
            manifest_copy(run, &looked, first);
        }
    }
    if is_whole {
        if looked.manifest().copies.is_some() {
            copies::check(run, &looked);
        }
        truncate(run, &looked);
        access(run, &looked);
        shared(run, &looked);
    }
}

fn duplicate(original: &Path) -> String {
    format!(
        "has the same objects as {}: a copy made without stripewise. Remove it; copy files with `stripewise cp`",
        original.display()
    )
}

/// Reports copies of anchors. If the original is gone, the copy may become the file.
pub(super) fn copied(run: &mut Run<'_>, known: &Known, scope: Scope<'_>) {
    let (runtime, options) = (run.runtime, run.options);
    for looked in &known.copied {
        let (of, manifest) = (looked.objects(), looked.manifest());
        if let Some((original, _)) = known.anchors.get(&(family(of.id), of.owner)) {
            run.findings.push(looked.finding(Kind::Duplicate, duplicate(original)));
            continue;
        }
        let gone = is_gone(runtime, manifest, scope);
        let what = if gone { "is gone" } else { "is not among the files looked at" };
        let text = format!(
            "is a copy of an anchor, made or restored without stripewise, and the original, made as {}, {what}: \
             `fsck --repair{}` makes this one the file",
            manifest.path,
            if gone { "" } else { " --adopt" }
        );
        let claims = known.copied.iter().filter(|other| other.is_of(of)).count();
        let wanted = options.repair && (gone || options.adopt) && claims == 1;
        run.add(looked.finding(Kind::Duplicate, text), wanted, || {
            restore::anchor(runtime, &looked.path, manifest, of.owner, restore::Old::Replaced)
        });
    }
}

/// Checks for permission changes by plain chmod, chgrp or setfacl, and for unprotected anchors of
/// earlier versions.
fn access(run: &mut Run<'_>, looked: &Looked) {
    let runtime = run.runtime;
    let Ok(targets) = runtime.first_target(looked.manifest()) else { return };
    let Ok(stats) = ObjectSet::stats_by_name(&targets, looked.objects()) else { return };
    let Some(object) = stats.first() else { return };
    let of = |stat: &Stat| (stat.st_mode & 0o777, stat.st_gid);
    let ((mode, group), (object_mode, object_group)) = (of(&looked.stat), of(object));
    if (mode, group) == (of_anchor(object_mode), object_group) {
        return;
    }
    let (kind, text) = if (mode, group) == (object_mode, object_group) {
        let text =
            "may be overwritten by programs that run without stripewise; the next open by its owner ends that";
        (Kind::Unprotected, text.to_owned())
    } else {
        let text = format!(
            "has permissions {mode:o} and group {group}, and its objects {object_mode:o} and {object_group}: changed by \
             a program that ran without stripewise. The next open by its owner takes it over"
        );
        (Kind::Access, text)
    };
    // Opening the file repairs this.
    let finding = looked.finding(kind, format!("{text}, or `fsck --repair`"));
    run.repairable(finding, || settle(runtime, &looked.path));
}

/// Checks for objects in the directories where earlier versions put them.
fn shared(run: &mut Run<'_>, looked: &Looked) {
    let open = |copy| run.runtime.open_objects(copy, looked.owner()).ok();
    let sets = looked.manifest().all_copies().filter_map(open);
    let away: Vec<_> = sets.filter(|set| set.is_at_earlier_place()).collect();
    if away.is_empty() {
        return;
    }
    let text = "its objects lie in directories that all users share, where earlier versions put them; when no program uses \
                the file, `fsck --repair` moves them to its owner's";
    run.repairable(looked.finding(Kind::Shared, text), || {
        away.iter().try_for_each(|set| set.bring_home().and_then(|()| set.sync_names()))
    });
}

fn targets(
    runtime: &Runtime,
    looked: &Looked,
    copy: CopyRef<'_>,
    findings: &mut Vec<Finding>,
) -> Option<Vec<Arc<Target>>> {
    let mut targets = Vec::new();
    for reference in copy.targets {
        match Target::open(runtime.sys(), &reference.path, Some(&reference.id)) {
            Ok(target) => targets.push(Arc::new(target)),
            Err(error) => findings.push(of_target(&looked.path, &error).of(looked.objects().id)),
        }
    }
    (targets.len() == copy.targets.len()).then_some(targets)
}

fn read(run: &mut Run<'_>, path: &Path, known: &mut Known, stores: &Stores) -> Option<Looked> {
    let runtime = run.runtime;
    let sys = runtime.sys();
    let opened = sys.open(None, path, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty());
    let (fd, stat) = match opened.and_then(|fd| sys.stat(fd.as_fd()).map(|stat| (fd, stat))) {
        Ok(opened) => opened,
        Err(errno) => {
            known.all_readable = false;
            run.findings.push(Finding::new(Kind::Unreadable, path, errno.to_string()));
            return None;
        }
    };
    let error = match anchor::read(sys, fd.as_fd(), path) {
        Ok(anchored) => {
            let anchored = anchored?;
            let is_copied = runtime.refuse_copied(&anchored.manifest, fd.as_fd(), path).is_err();
            return Some(Looked { path: path.to_owned(), anchored, stat, is_copied });
        }
        Err(error) => error,
    };
    let id = sys.read_start(fd.as_fd(), HEAD_BYTES).ok().and_then(|text| id_in(&text));
    let owner = stat.st_uid;
    let Some((id, copy)) = stores.copy_for(path, id, owner) else {
        known.all_readable = false;
        let text =
            format!("{error}; the targets looked at have no copy (name others with -c or -p); {NEVER_SYNCED}");
        run.findings.push(Finding::new(Kind::Manifest, path, text));
        return None;
    };
    // From here on its objects count as belonging to a file.
    known.note(Objects { id, owner }, path, FileKey::of(&stat));
    if restore::has_lost_objects(runtime, &copy, owner) {
        let text =
            format!("{error}; but objects are lost, too, so that it cannot be brought back; {NEVER_SYNCED}");
        run.findings.push(Finding::new(Kind::Manifest, path, text).of(id));
        return None;
    }
    let finding = Finding::new(Kind::Manifest, path, error.to_string()).of(id);
    run.repairable(finding, || restore::anchor(runtime, path, &copy, owner, restore::Old::SetAside));
    None
}

fn id_in(text: &[u8]) -> Option<FileId> {
    let text = String::from_utf8_lossy(text);
    let hex = text.split_once("\nid = \"")?.1.get(..32)?;
    FileId::from_hex(hex)
}

/// Checks the objects of a copy. Returns whether all are there.
fn has_objects(
    runtime: &Runtime,
    looked: &Looked,
    copy: CopyRef<'_>,
    targets: &[Arc<Target>],
    findings: &mut Vec<Finding>,
) -> bool {
    let opening = Opening { read_only: true, flags: OFlags::empty() };
    let set = ObjectSet::open(runtime.sys(), targets.to_vec(), copy.objects(looked.owner()), opening);
    let sizes = match set.and_then(|set| set.sizes()) {
        Ok(sizes) => sizes,
        Err(error) => {
            findings.push(looked.finding(Kind::Object, format!("{error}; {NEVER_SYNCED}")));
            return false;
        }
    };
    for (index, &size) in (0..).zip(&sizes) {
        if size > 0 && copy.layout.file_offset(index, size - 1).is_none() {
            let name = &copy.targets[index as usize].name;
            let text = format!("its object on {name} has {size} bytes, more than the layout puts there");
            findings.push(looked.finding(Kind::Length, text));
        }
    }
    true
}

/// Checks `ID.manifest`, which lies on `target`.
fn manifest_copy(run: &mut Run<'_>, looked: &Looked, target: &Target) {
    let runtime = run.runtime;
    let Err(error) = same_copy(looked, target) else { return };
    let finding = looked.finding(Kind::Copy, format!("{error}; `fsck --repair` writes it anew"));
    run.repairable(finding, || restore::copy(runtime, &looked.path, looked.manifest(), looked.owner()));
}

/// Checks a file whose objects are all there for an interrupted truncate.
fn truncate(run: &mut Run<'_>, looked: &Looked) {
    let runtime = run.runtime;
    // Earlier versions recorded the size in the anchor.
    let noted = || {
        let target = runtime.first_target(looked.manifest()).ok()?.into_iter().next()?;
        let text = target.read_manifest_copy(looked.objects(), TEXT_BYTES_MAX).ok()?;
        intent::in_text(&text)
    };
    let Some(size) = looked.manifest().pending_truncate.or_else(noted) else { return };
    let text = format!(
        "a truncate to {size} bytes was interrupted; the next program that opens the file finishes it, or `fsck --repair`"
    );
    run.repairable(looked.finding(Kind::Truncate, text), || settle(runtime, &looked.path));
}

/// Finishes the truncate by opening the file.
fn settle(runtime: &Runtime, path: &Path) -> Result<(), String> {
    match runtime.open_file(path) {
        Ok(Some(file)) if file.is_writable() => Ok(()),
        Ok(_) => Err("it may not be written to".into()),
        Err(error) => Err(error.to_string()),
    }
}

fn same_copy(looked: &Looked, target: &Target) -> Result<(), String> {
    let text = target.read_manifest_copy(looked.objects(), TEXT_BYTES_MAX);
    let text = text.map_err(|error| error.to_string())?;
    let manifest = looked.manifest();
    let copy = Manifest::parse(&text, "the copy of its manifest").map_err(|error| error.to_string())?;
    let copy = Manifest { pending_truncate: manifest.pending_truncate, ..copy };
    if copy == *manifest { Ok(()) } else { Err("the copy of its manifest says something else".into()) }
}
