//! Tests of fsck: what it finds, what it repairs, and that it never destroys data.

use std::fs::Permissions;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use stripewise_layout::constructors::on_one;
use stripewise_sys::{Errno, LockKind, OFlags};

use super::support::*;
use crate::check::{Kind, Options, Report, check, walk};
use crate::{FileError, Manifest};

const LOOK: Options = Options {
    repair: false,
    remove_orphans: false,
    take_over: false,
    compare: false,
    drop_dirty: false,
    adopt: false,
    orphan_age_s: 0,
};
const REPAIR: Options = Options { repair: true, ..LOOK };
const REMOVE: Options = Options { remove_orphans: true, ..LOOK };

fn stage_with(names: &[&str]) -> Stage {
    let stage = Stage::new(small());
    let runtime = stage.real_runtime();
    for (seed, name) in (0..).zip(names) {
        open(&runtime, &stage.path(name), CREATE).unwrap().file.write(&pattern(seed, 300), 0, 1).unwrap();
    }
    stage
}

fn run(stage: &Stage, options: Options) -> Report {
    let runtime = stage.real_runtime();
    let targets: Vec<PathBuf> = stage.plan.cluster.targets().into_iter().map(|target| target.path).collect();
    // Walk the whole root: the objects of targets must not be listed as files.
    let listing = walk(&runtime, &[stage.root.path().to_owned()]);
    check(&runtime, &listing, &targets, options, &mut |_| {})
}

#[track_caller]
fn finds(stage: &Stage, options: Options, kinds: &[Kind]) {
    let report = run(stage, options);
    let mut found: Vec<Kind> = report.findings.iter().map(|finding| finding.kind).collect();
    found.sort();
    assert_eq!(found, kinds, "{report:#?}");
    let fixes = options.repair || options.remove_orphans;
    assert!(report.findings.iter().all(|finding| finding.repaired == fixes), "{report:#?}");
    assert_eq!(report.is_clean(), fixes || kinds.iter().all(|kind| !kind.is_problem()));
    assert!(report.findings.iter().all(|finding| !finding.text.contains('\n')));
}

/// The path of the object on target `target` whose name ends in `suffix`.
fn object(stage: &Stage, target: usize, suffix: &str) -> PathBuf {
    let found = stage.objects().into_iter().find(|name| name.ends_with(suffix)).unwrap();
    stage.root.path().join(format!("t{target}/stripewise/{}/{found}", home()))
}

fn bytes(stage: &Stage, name: &str) -> Vec<u8> {
    open(&stage.real_runtime(), &stage.path(name), OFlags::RDONLY).unwrap().file.all().unwrap()
}

#[test]
fn all_is_well() {
    let stage = stage_with(&["a", "b"]);
    std::fs::write(stage.path("plain"), "plain").unwrap();
    std::fs::rename(stage.path("a"), stage.path("moved")).unwrap();
    let report = run(&stage, LOOK);
    assert_eq!((report.files, report.targets, report.findings.len()), (2, 3, 0));
}

#[test]
fn a_hard_link_is_another_name_and_no_copy() {
    let stage = stage_with(&["a"]);
    std::fs::hard_link(stage.path("a"), stage.path("b")).unwrap();
    finds(&stage, LOOK, &[]);
    // A problem of the file is reported once.
    let mode = |mode| Permissions::from_mode(mode);
    std::fs::set_permissions(stage.path("a"), mode(0o644)).unwrap();
    finds(&stage, LOOK, &[Kind::Unprotected]);
    finds(&stage, REPAIR, &[Kind::Unprotected]);
    // A copy made without stripewise is a duplicate.
    std::fs::copy(stage.path("a"), stage.path("c")).unwrap();
    finds(&stage, LOOK, &[Kind::Duplicate]);
    stage.real_runtime().unlink(None, &stage.path("a")).unwrap();
    assert_eq!(bytes(&stage, "b"), pattern(0, 300));
}

#[test]
fn an_interrupted_truncate_is_finished() {
    let stage = stage_with(&["a"]);
    let copy = std::fs::OpenOptions::new().append(true).open(object(&stage, 0, ".manifest"));
    copy.unwrap().write_all(crate::intent::line(10).as_bytes()).unwrap();
    finds(&stage, LOOK, &[Kind::Truncate]);
    finds(&stage, REPAIR, &[Kind::Truncate]);
    finds(&stage, LOOK, &[]);
    assert_eq!(bytes(&stage, "a"), pattern(0, 10));
}

/// Whoever has the size lock may wait for what the thread that finishes the truncate does next.
#[test]
fn a_thread_that_others_wait_for_does_not_wait_for_the_size_lock() {
    let stage = stage_with(&["a"]);
    let runtimes = [stage.real_runtime(), stage.real_runtime()];
    let [one, other] = runtimes.map(|runtime| open(&runtime, &stage.path("a"), OFlags::RDWR).unwrap());
    let lock = one.file.lock_size().unwrap();
    let copy = std::fs::OpenOptions::new().append(true).open(object(&stage, 0, ".manifest"));
    copy.unwrap().write_all(crate::intent::line(10).as_bytes()).unwrap();
    let (settle, (told, results)) = (other.file.clone(), std::sync::mpsc::channel());
    std::thread::spawn(move || told.send(settle.try_settle()));
    assert_eq!(results.recv_timeout(Duration::from_secs(60)), Ok(Err(Errno::AGAIN)), "it waits");
    drop(lock);
    assert_eq!(other.file.try_settle(), Ok(()));
    assert_eq!(bytes(&stage, "a"), pattern(0, 10));
}

/// In earlier versions, anchors were writable by their owner, as long as the file, and held the
/// intent.
#[test]
fn an_anchor_of_an_earlier_version_is_protected_and_its_truncate_finished() {
    let stage = stage_with(&["a"]);
    let text = std::fs::read(stage.path("a")).unwrap();
    std::fs::set_permissions(stage.path("a"), Permissions::from_mode(0o644)).unwrap();
    let anchor = std::fs::OpenOptions::new().write(true).open(stage.path("a")).unwrap();
    anchor.set_len(text.len() as u64 + 500).unwrap();
    finds(&stage, LOOK, &[Kind::Unprotected]);
    let at = Manifest::pending_offset(&text).unwrap() as u64;
    anchor.write_all_at(crate::manifest::pending_text(Some(10)).as_bytes(), at).unwrap();
    finds(&stage, LOOK, &[Kind::Truncate, Kind::Unprotected]);
    finds(&stage, REPAIR, &[Kind::Truncate, Kind::Unprotected]);
    finds(&stage, LOOK, &[]);
    assert_eq!(bytes(&stage, "a"), pattern(0, 10));
    assert_eq!(std::fs::read(stage.path("a")).unwrap(), text);
    assert_eq!(std::fs::metadata(stage.path("a")).unwrap().mode() & 0o777, 0o444);
}

#[test]
fn a_damaged_manifest_is_restored() {
    for (old, new) in [("start = 0", "start = 1"), ("\nid = \"", "\nxx = \""), ("path = ", "oath = ")] {
        let stage = stage_with(&["a", "b"]);
        let text = std::fs::read_to_string(stage.path("a")).unwrap();
        std::fs::write(stage.path("a"), text.replacen(old, new, 1)).unwrap();
        finds(&stage, LOOK, &[Kind::Manifest]);
        finds(&stage, REPAIR, &[Kind::Manifest]);
        finds(&stage, LOOK, &[]);
        assert_eq!(bytes(&stage, "a"), pattern(0, 300));
        let aside = std::fs::read_to_string(stage.path("a.stripewise-aside")).unwrap();
        assert!(aside.contains(new));
    }
}

/// The sessions of several nodes lock bytes of `ID.manifest` (docs/formats/nodes.md).
#[test]
fn the_manifest_of_a_file_that_a_node_has_open_is_not_replaced() {
    const SESSION: u64 = (1 << 32) + 7;
    let stage = stage_with(&["a"]);
    let text = std::fs::read_to_string(stage.path("a")).unwrap();
    std::fs::write(stage.path("a"), text.replacen("start = 0", "start = 1", 1)).unwrap();
    let path = object(&stage, 0, ".manifest");
    let inode = || std::fs::metadata(&path).unwrap().ino();
    let (node, before) = (std::fs::File::open(&path).unwrap(), inode());
    assert!(stage.real_runtime().sys().try_lock(node.as_fd(), SESSION, 1, LockKind::Shared).unwrap());
    let report = run(&stage, REPAIR);
    assert!(!report.is_clean(), "{report:#?}");
    assert!(report.findings[0].text.contains("while a node has the file open"), "{report:#?}");
    assert_eq!(inode(), before);
    drop(node);
    finds(&stage, REPAIR, &[Kind::Manifest]);
    assert_ne!(inode(), before);
    assert_eq!(bytes(&stage, "a"), pattern(0, 300));
}

#[test]
fn an_overwritten_anchor_is_restored_and_what_is_there_set_aside() {
    let stage = stage_with(&["a", "b"]);
    for text in ["short", &"long ".repeat(1000)] {
        std::fs::write(stage.path("a"), text).unwrap();
        finds(&stage, LOOK, &[Kind::Destroyed]);
        assert!(!run(&stage, REMOVE).is_clean(), "they are no orphans");
        finds(&stage, REPAIR, &[Kind::Destroyed]);
        finds(&stage, LOOK, &[]);
        assert_eq!(bytes(&stage, "a"), pattern(0, 300));
    }
    assert_eq!(std::fs::read_to_string(stage.path("a.stripewise-aside")).unwrap(), "short");
    assert_eq!(std::fs::metadata(stage.path("a.stripewise-aside.1")).unwrap().len(), 5000);
}

#[test]
fn orphans_are_named_and_removed_only_when_asked_for() {
    let stage = stage_with(&["a", "b"]);
    std::fs::remove_file(stage.path("a")).unwrap();
    finds(&stage, LOOK, &[Kind::Orphan]);
    let report = run(&stage, Options { orphan_age_s: 3600, ..REMOVE });
    assert!(report.findings.is_empty(), "they are young");
    let report = run(&stage, LOOK);
    assert_eq!(report.findings[0].path, stage.path("a"));
    assert!(!run(&stage, REPAIR).is_clean(), "a repair removes nothing");
    finds(&stage, REMOVE, &[Kind::Orphan]);
    finds(&stage, LOOK, &[]);
    assert_eq!(stage.objects().len(), 4);
    assert_eq!(bytes(&stage, "b"), pattern(1, 300));
}

#[test]
fn what_an_interrupted_creation_left() {
    let stage = stage_with(&["a"]);
    open(&stage.real_runtime(), &stage.path("b"), CREATE).unwrap();
    std::fs::remove_file(stage.path("b")).unwrap();
    finds(&stage, LOOK, &[Kind::Unborn]);
    finds(&stage, REMOVE, &[Kind::Unborn]);
    // The creation was killed before the anchor was written, then before it got its name.
    open(&stage.real_runtime(), &stage.path("c"), CREATE).unwrap();
    let id = id_of(&stage, "c");
    std::fs::remove_file(stage.path("c")).unwrap();
    std::fs::write(stage.path(&format!(".stripewise-{id}.new")), "").unwrap();
    let report = run(&stage, LOOK);
    assert_eq!(report.findings.len(), 2, "{report:#?}");
    finds(&stage, REMOVE, &[Kind::Temporary]);
    finds(&stage, LOOK, &[]);
    open(&stage.real_runtime(), &stage.path("d"), CREATE).unwrap();
    let id = id_of(&stage, "d");
    std::fs::rename(stage.path("d"), stage.path(&format!(".stripewise-{id}.new"))).unwrap();
    assert_eq!(run(&stage, LOOK).findings.len(), 2);
    finds(&stage, REMOVE, &[Kind::Temporary]);
    finds(&stage, LOOK, &[]);
    assert_eq!(stage.objects().len(), 4);
}

fn id_of(stage: &Stage, name: &str) -> String {
    open(&stage.real_runtime(), &stage.path(name), OFlags::RDONLY).unwrap().file.manifest().id.to_string()
}

/// The objects of a damaged anchor are no orphans, even if `ID.manifest` cannot be found.
#[test]
fn nothing_is_removed_while_an_anchor_cannot_be_read() {
    let stage = stage_with(&["a"]);
    let text = std::fs::read_to_string(stage.path("a")).unwrap();
    std::fs::remove_file(stage.path("a")).unwrap();
    std::fs::write(stage.path("elsewhere"), text.replacen("\nid = \"", "\nxx = \"", 1)).unwrap();
    let report = run(&stage, REMOVE);
    assert!(report.findings.iter().all(|finding| !finding.repaired), "{report:#?}");
    assert_eq!(stage.objects().len(), 4);
}

#[test]
fn lost_and_odd_objects() {
    let stage = stage_with(&["a"]);
    std::fs::remove_file(object(&stage, 0, ".manifest")).unwrap();
    finds(&stage, LOOK, &[Kind::Copy]);
    finds(&stage, REPAIR, &[Kind::Copy]);
    finds(&stage, LOOK, &[]);
    std::fs::remove_file(object(&stage, 1, ".1")).unwrap();
    finds(&stage, LOOK, &[Kind::Object]);
    std::fs::rename(stage.root.path().join("t2"), stage.root.path().join("gone")).unwrap();
    // Reported once as a target of the plan and once as a target of the file.
    finds(&stage, LOOK, &[Kind::Target, Kind::Target]);
}

#[test]
fn a_file_in_use_goes_on_without_the_copy_of_its_manifest() {
    let stage = stage_with(&["a"]);
    let in_use = open(&stage.real_runtime(), &stage.path("a"), OFlags::RDWR).unwrap();
    std::fs::remove_file(object(&stage, 0, ".manifest")).unwrap();
    in_use.file.append_bytes(b"one").unwrap();
    in_use.file.truncate(10).unwrap();
    assert_eq!(in_use.file.all().unwrap(), pattern(0, 10));
    assert_eq!(open(&stage.real_runtime(), &stage.path("a"), OFlags::RDWR).map(drop), Err(crate::Errno::IO));
    finds(&stage, LOOK, &[Kind::Copy]);
    finds(&stage, REPAIR, &[Kind::Copy]);
    in_use.file.append_bytes(b"two").unwrap();
    assert_eq!(bytes(&stage, "a").len(), 13);
}

/// A power cut leaves the copy empty, and programs that use the file hold locks on it.
#[test]
fn a_copy_without_its_text_is_written_anew() {
    let stage = stage_with(&["a"]);
    let copy = object(&stage, 0, ".manifest");
    let in_use = open(&stage.real_runtime(), &stage.path("a"), OFlags::RDWR).unwrap();
    in_use.file.append_bytes(b"one").unwrap();
    for text in ["", &"x".repeat(5000)] {
        std::fs::write(&copy, text).unwrap();
        finds(&stage, LOOK, &[Kind::Copy]);
        finds(&stage, REPAIR, &[Kind::Copy]);
        finds(&stage, LOOK, &[]);
    }
    // A process that had the file open takes the same lock as all others.
    let lock = in_use.file.lock_size().unwrap();
    let other = std::fs::File::options().read(true).write(true).open(&copy).unwrap();
    assert!(!stage.runtime().sys().try_lock(other.as_fd(), 0, 1, LockKind::Shared).unwrap());
    drop(lock);
    // An intact copy that belongs to another file is left alone.
    let other = std::fs::read_to_string(&copy).unwrap();
    std::fs::remove_file(&copy).unwrap();
    let opened = open(&stage.real_runtime(), &stage.path("b"), CREATE).unwrap();
    let text = std::fs::read(stage.path("b")).unwrap();
    std::fs::write(&copy, &text[..opened.file.anchored().text_bytes as usize]).unwrap();
    assert!(run(&stage, REPAIR).findings.iter().any(|finding| finding.kind == Kind::Copy && !finding.repaired));
    std::fs::write(&copy, other).unwrap();
    assert!(run(&stage, LOOK).is_clean());
}

/// The file that is there now must be kept, and the managed file that was there cannot be restored.
#[test]
fn an_overwritten_file_with_lost_objects() {
    let stage = stage_with(&["a", "b"]);
    std::fs::remove_file(object(&stage, 1, ".1")).unwrap();
    let lost = if open(&stage.real_runtime(), &stage.path("a"), OFlags::RDONLY).is_err() { "a" } else { "b" };
    std::fs::write(stage.path(lost), "mine").unwrap();
    finds(&stage, LOOK, &[Kind::Orphan]);
    assert!(!run(&stage, REPAIR).is_clean());
    finds(&stage, REMOVE, &[Kind::Orphan]);
    finds(&stage, LOOK, &[]);
    assert_eq!(std::fs::read_to_string(stage.path(lost)).unwrap(), "mine");
    assert_eq!(stage.objects().len(), 4);
}

#[test]
fn an_object_longer_than_its_layout() {
    let layout = stripewise_layout::constructors::two_part(&[(0, 10), (1, 10)], 100, &[(1, 10)]).unwrap();
    let stage = Stage::new(layout);
    open(&stage.real_runtime(), &stage.path("a"), CREATE).unwrap().file.write(&[1; 200], 0, 1).unwrap();
    finds(&stage, LOOK, &[]);
    let file = std::fs::OpenOptions::new().write(true).open(object(&stage, 0, ".0")).unwrap();
    file.set_len(51).unwrap();
    finds(&stage, LOOK, &[Kind::Length]);
}

#[test]
fn a_copied_anchor_is_noticed() {
    let stage = stage_with(&["a"]);
    std::fs::copy(stage.path("a"), stage.path("b")).unwrap();
    finds(&stage, LOOK, &[Kind::Duplicate]);
}

fn kinds(report: &Report) -> Vec<Kind> {
    report.findings.iter().map(|finding| finding.kind).collect()
}

/// The state after `cp a b` without the library: removing one of the files must not destroy the
/// other.
#[test]
fn a_copied_anchor_is_no_file_and_can_be_removed() {
    let stage = stage_with(&["a"]);
    std::fs::copy(stage.path("a"), stage.path("b")).unwrap();
    let runtime = stage.real_runtime();
    let refused = runtime.open_file(&stage.path("b")).unwrap_err();
    assert!(matches!(&refused, FileError::Copied { original, .. } if original.ends_with("/a")), "{refused}");
    assert_eq!(run(&stage, LOOK).findings.len(), 1);
    finds(&stage, LOOK, &[Kind::Duplicate]);
    assert!(!run(&stage, REPAIR).is_clean(), "a person has to remove it");
    for (times, name) in ["b", "c", "d"].into_iter().enumerate() {
        if times > 0 {
            std::fs::copy(stage.path("a"), stage.path(name)).unwrap();
        }
        if name == "c" {
            runtime.rename(None, &stage.path("plain"), None, &stage.path(name), 0).unwrap();
        } else {
            runtime.unlink(None, &stage.path(name)).unwrap();
        }
        assert_eq!(bytes(&stage, "a"), pattern(0, 300), "{name}");
        std::fs::write(stage.path("plain"), "plain").unwrap();
    }
    finds(&stage, LOOK, &[]);
}

/// A backup is restored: the copy becomes the file once the original is certainly gone, or on
/// request (`adopt`).
#[test]
fn a_restored_anchor_becomes_the_file_where_the_original_is_gone() {
    let stage = stage_with(&["a", "b"]);
    for (name, options) in [("a", REPAIR), ("b", Options { adopt: true, ..REPAIR })] {
        let text = std::fs::read(stage.path(name)).unwrap();
        let size = std::fs::metadata(stage.path(name)).unwrap().len();
        if name == "b" {
            // The original is in a directory that is not checked.
            std::fs::rename(stage.path(name), stage.root.path().join("t0/elsewhere")).unwrap();
            finds_nothing_repaired(&stage);
        } else {
            std::fs::remove_file(stage.path(name)).unwrap();
        }
        std::fs::write(stage.path(name), &text).unwrap();
        let file = std::fs::OpenOptions::new().write(true).open(stage.path(name)).unwrap();
        file.set_len(size).unwrap();
        if name == "a" && stage.real_runtime().sys().user() != 0 {
            continue;
        }
        assert!(stage.real_runtime().open_file(&stage.path(name)).is_err());
        let listing = walk(&stage.real_runtime(), &[stage.path("")]);
        let report = check(&stage.real_runtime(), &listing, &[], options, &mut |_| {});
        assert_eq!(kinds(&report), [Kind::Duplicate], "{report:#?}");
        assert!(report.is_clean(), "{report:#?}");
        let seed = u64::from(name == "b");
        assert_eq!(bytes(&stage, name), pattern(seed, 300));
    }
    // The original of b still claims to be the file. Removing it must leave the objects to the
    // adopted copy.
    stage.real_runtime().unlink(None, &stage.root.path().join("t0/elsewhere")).unwrap();
    assert_eq!(bytes(&stage, "b"), pattern(1, 300));
}

fn finds_nothing_repaired(stage: &Stage) {
    let report = run(stage, REPAIR);
    assert!(report.findings.iter().all(|finding| !finding.repaired), "{report:#?}");
}

/// A file that was renamed into a directory that fsck does not check keeps its objects.
#[test]
fn a_file_that_was_moved_out_of_sight_is_no_orphan() {
    let stage = stage_with(&["a"]);
    let elsewhere = tempfile::tempdir_in(stage.root.path().parent().unwrap()).unwrap();
    let moved = elsewhere.path().join("a");
    std::fs::rename(stage.path("a"), &moved).unwrap();
    let report = run(&stage, REMOVE);
    assert_eq!(kinds(&report), [Kind::Orphan]);
    assert!(!report.findings[0].repaired, "{report:#?}");
    let file = stage.real_runtime().open_file(&moved).unwrap().unwrap();
    assert_eq!(file.all().unwrap(), pattern(0, 300));
}

/// Only a file's first target has its `ID.manifest`. Without it fsck does not know whose objects
/// those on other targets are, and whether the file is in a directory that it looks at.
#[test]
fn objects_of_files_whose_first_target_is_not_looked_at_are_kept() {
    let mut stage = stage_with(&["a"]);
    let elsewhere = tempfile::tempdir_in(stage.root.path()).unwrap();
    let runtime = stage.real_runtime();
    let fsck = |root: &Path, targets: &[PathBuf], options| {
        check(&runtime, &walk(&runtime, &[root.to_owned()]), targets, options, &mut |_| {})
    };
    let second = [stage.root.path().join("t1")];
    let report = fsck(elsewhere.path(), &second, REMOVE);
    assert_eq!(kinds(&report), [Kind::Orphan]);
    assert!(!report.findings[0].repaired, "{report:#?}");
    assert_eq!(bytes(&stage, "a"), pattern(0, 300));
    // Nothing can be known, and nothing is said, about other files on the targets of one file.
    stage.plan.rules[0].layouts = vec![on_one(1).unwrap()];
    open(&stage.real_runtime(), &stage.path("narrow"), CREATE).unwrap();
    let report = fsck(&stage.path("narrow"), &[], REMOVE);
    assert_eq!((kinds(&report), report.targets), (Vec::new(), 1));
    assert_eq!(bytes(&stage, "a"), pattern(0, 300));
}

/// A name that anybody may give a file is no reason to remove another user's objects.
#[test]
fn a_temporary_of_another_user_gives_no_objects_away() {
    let stage = stage_with(&["a"]);
    if stage.runtime().sys().user() != 0 {
        return;
    }
    let planted = stage.root.path().join(format!(".stripewise-{}.new", id_of(&stage, "a")));
    let elsewhere = tempfile::tempdir_in(stage.root.path().parent().unwrap()).unwrap();
    std::fs::rename(stage.path("a"), elsewhere.path().join("a")).unwrap();
    std::fs::write(&planted, "").unwrap();
    std::os::unix::fs::chown(&planted, Some(64_132), None).unwrap();
    let report = run(&stage, REMOVE);
    assert_eq!(kinds(&report), [Kind::Temporary, Kind::Orphan]);
    let file = stage.real_runtime().open_file(&elsewhere.path().join("a")).unwrap().unwrap();
    assert_eq!(file.all().unwrap(), pattern(0, 300));
}

#[test]
fn a_plain_chmod_is_noticed_and_taken_over() {
    use std::os::unix::fs::PermissionsExt;
    let stage = stage_with(&["a"]);
    let mode = |path: PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let object = object(&stage, 1, ".1");
    let chmod = |bits| std::fs::set_permissions(stage.path("a"), PermissionsExt::from_mode(bits)).unwrap();
    chmod(0o600);
    finds(&stage, LOOK, &[Kind::Access]);
    finds(&stage, REPAIR, &[Kind::Access]);
    assert_eq!(mode(object.clone()), 0o600);
    chmod(0o640);
    open(&stage.real_runtime(), &stage.path("a"), OFlags::RDONLY).unwrap();
    assert_eq!(mode(object), 0o640, "the next open has done it");
    finds(&stage, LOOK, &[]);
}
