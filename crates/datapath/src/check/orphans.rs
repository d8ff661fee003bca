//! Finds objects that belong to no known file.

use std::path::{Path, PathBuf};

use stripewise_target::{FileId, ObjectSet, Objects};

use super::anchors::Known;
use super::findings::{Finding, Kind, Run, Scope, is_gone};
use super::restore;
use super::walk::{Parts, Stores, read_copy};
use crate::manifest::{Manifest, family};
use crate::runtime::{Runtime, temporary_name};

/// Reports, and on request removes, objects on the targets that belong to no known file.
pub(super) fn check(
    run: &mut Run<'_>,
    stores: &Stores,
    known: &Known,
    swept: &[(FileId, u32)],
    scope: Scope<'_>,
) {
    let (runtime, options) = (run.runtime, run.options);
    let old = |parts: &Parts<'_>| parts.iter().all(|(_, found)| run.is_old(found.modified_s));
    let is_known = |(id, owner)| known.path(Objects { id, owner }).is_some();
    let unknown = stores.by_file().into_iter().filter(|(of, parts)| !is_known(*of) && old(parts));
    let fates = unknown.map(|(_, parts)| {
        let (id, fate) = fate(runtime, &parts);
        (id, fate, parts)
    });
    let fates: Vec<_> = fates.collect();
    let claims = |claimed: &Path| {
        let same = |fate: &Fate| matches!(fate, Fate::Overwritten(path, _) if path == claimed);
        fates.iter().filter(|(_, fate, _)| same(fate)).count()
    };
    let was_swept = |id, parts: &Parts<'_>| {
        swept.iter().any(|&(swept, owner)| family(swept) == family(id) && owner == parts[0].1.owner)
    };
    for (id, fate, parts) in &fates {
        let finding = match fate {
            // The temporary has a finding already.
            Fate::Gone(_) | Fate::Unnamed if was_swept(*id, parts) && remove(parts).is_ok() => continue,
            Fate::There => continue,
            Fate::Damaged(path) => {
                let text = "its manifest is damaged; run `stripewise fsck --repair` on it";
                Finding::new(Kind::Manifest, path, text)
            }
            Fate::OnItsWay(temporary) => {
                let what = what(parts);
                let text = format!(
                    "{what} belong to a place, export or creation that did not end; `fsck --remove-orphans` removes them with it"
                );
                Finding::new(Kind::Temporary, temporary, text)
            }
            Fate::Overwritten(path, copy) => {
                let text = format!(
                    "was overwritten by a program that ran without stripewise, or emptied by a power cut; its {} are there. `fsck --repair` \
                     with the name of its directory brings it back, if no other file was there, too, and sets aside what is there now",
                    what(parts)
                );
                let finding = Finding::new(Kind::Destroyed, path, text);
                // A user wrote this path on a target: repair only below a directory that was named.
                if options.repair && claims(path) == 1 && scope.has(path) {
                    let owner = parts[0].1.owner;
                    finding.repair(restore::anchor(runtime, path, copy, owner, restore::Old::SetAside))
                } else {
                    finding
                }
            }
            // The objects may belong to a damaged anchor elsewhere.
            Fate::Gone(copy) => {
                // Nothing is lost with an empty file of an earlier version.
                let proven = copy.anchor.is_unknown() && bytes(parts) == 0 || is_gone(runtime, copy, scope);
                gone(copy, parts, options.remove_orphans && known.all_readable && proven)
            }
            // Objects of every file whose first target was not looked at.
            Fate::Unnamed if !scope.targets_named => continue,
            Fate::Unnamed => unnamed(parts, options.remove_orphans && scope.has_everything()),
            Fate::Lost(path, copy) => {
                // The remains of a file of an earlier version are of no use.
                let proven = copy.anchor.is_unknown() || is_gone(runtime, copy, scope);
                lost(path, parts, options.remove_orphans && known.all_readable && proven)
            }
        };
        run.findings.push(finding.of(*id));
    }
}

/// The state at the path of the file to which a set of objects belongs.
enum Fate {
    /// The file is there, but was not among the files checked.
    There,
    /// The file is there, but not readable.
    Damaged(PathBuf),
    /// The file still has its temporary name.
    OnItsWay(PathBuf),
    /// A file that is not managed is there.
    Overwritten(PathBuf, Manifest),
    /// A file that is not managed is there, and objects are lost: the managed file cannot be
    /// restored.
    Lost(PathBuf, Manifest),
    /// Nothing or another managed file is there.
    Gone(Manifest),
    /// The path is unknown: no target that was looked at has a readable `ID.manifest`. It may lie
    /// on another target.
    Unnamed,
}

/// The id of the file, as far as it can be determined, and its fate.
fn fate(runtime: &Runtime, parts: &Parts<'_>) -> (FileId, Fate) {
    let copies = parts.iter().filter(|(_, found)| found.object.is_none());
    let copy = copies.filter_map(|(target, found)| read_copy(target, found.objects())).next();
    match copy {
        Some(copy) => (copy.id, fate_of(runtime, copy, parts[0].1.owner)),
        None => (parts[0].1.id, Fate::Unnamed),
    }
}

fn fate_of(runtime: &Runtime, copy: Manifest, owner: u32) -> Fate {
    let id = copy.id;
    let path = PathBuf::from(&copy.path);
    let exists = |path: &Path| runtime.sys().stat_at(None, path, true).is_ok();
    let temporary = path.with_file_name(temporary_name(id));
    match runtime.manifest_at(None, &path, true) {
        Ok(Some(there)) if there.id == id => Fate::There,
        Err(_) => Fate::Damaged(path),
        _ if exists(&temporary) => Fate::OnItsWay(temporary),
        Ok(None) if exists(&path) && restore::has_lost_objects(runtime, &copy, owner) => Fate::Lost(path, copy),
        Ok(None) if exists(&path) => Fate::Overwritten(path, copy),
        _ => Fate::Gone(copy),
    }
}

fn what(parts: &Parts<'_>) -> String {
    let objects = parts.iter().filter(|(_, found)| found.object.is_some()).count();
    format!("{objects} objects with {} bytes", bytes(parts))
}

fn bytes(parts: &Parts<'_>) -> u64 {
    parts.iter().filter(|(_, found)| found.object.is_some()).map(|(_, found)| found.size).sum()
}

fn gone(copy: &Manifest, parts: &Parts<'_>, remove_them: bool) -> Finding {
    let path = Path::new(&copy.path);
    let text = format!(
        "{} belong to {}, which is not there any more (if it was moved, name the directory where it is now). \
         `fsck --remove-orphans` removes them if root runs it and the kernel says that the file is gone, or if the mount point of \
         its file system is named, so that all of that is looked through, and no anchor is damaged",
        what(parts),
        path.display()
    );
    orphans(path, text, parts, remove_them)
}

fn unnamed(parts: &Parts<'_>, remove_them: bool) -> Finding {
    let mut patterns: Vec<_> = parts.iter().map(|(_, found)| found.objects().pattern()).collect();
    patterns.dedup();
    let patterns: Vec<_> = patterns.iter().map(|pattern| pattern.display().to_string()).collect();
    let text = format!(
        "{} belong to a file that none of these targets names: its manifest was lost, or lies on a target that was \
         not looked at. `fsck --remove-orphans` removes them only if all of / is looked through; if you know that the \
         file is gone, remove {} on each target yourself",
        what(parts),
        patterns.join(", ")
    );
    orphans(parts[0].0.path(), text, parts, remove_them)
}

fn lost(path: &Path, parts: &Parts<'_>, remove_them: bool) -> Finding {
    let text = format!(
        "{} belong to a managed file that was here; others are lost, so that it cannot be brought back. \
         `fsck --remove-orphans` removes them, unless an anchor is damaged, and leaves what is here now",
        what(parts)
    );
    orphans(path, text, parts, remove_them)
}

fn orphans(path: &Path, text: String, parts: &Parts<'_>, remove_them: bool) -> Finding {
    let kind = if bytes(parts) > 0 { Kind::Orphan } else { Kind::Unborn };
    let finding = Finding::new(kind, path, text);
    if remove_them { finding.repair(remove(parts)) } else { finding }
}

fn remove(parts: &Parts<'_>) -> Result<(), String> {
    for (target, found) in parts {
        target.remove_extents(found.objects()).map_err(|error| error.to_string())?;
        // A set names its files by the index of their targets.
        let targets = vec![(*target).clone(); found.object.unwrap_or(0) as usize + 1];
        ObjectSet::remove(&targets, found.objects()).map_err(|error| error.to_string())?;
    }
    Ok(())
}
