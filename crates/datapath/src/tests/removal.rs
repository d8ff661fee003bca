//! The removal of a file with copies that a session of another node has open
//! (docs/formats/nodes.md, "Removing the file").

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use stripewise_extents::MapError;
use stripewise_sys::{OFlags, Sys};

use super::setup::Setup;
use super::support::*;
use crate::{Errno, FileError};

/// A stage whose files have sessions.
fn stage() -> Stage {
    Stage::of(&Setup::replicas()).with_sessions()
}

/// A file that a process of this node has open, and has written; and its objects.
fn in_use(stage: &Stage) -> (Opener, PathBuf, Vec<String>) {
    let path = stage.path("f");
    let opened = open(&stage.real_runtime(), &path, CREATE).unwrap();
    opened.file.write(&pattern(1, 300), 0, 1).unwrap();
    (opened, path, stage.objects())
}

#[test]
fn the_last_name_stays_while_another_node_has_the_file_open() {
    let stage = stage();
    let (opened, path, objects) = in_use(&stage);
    let (there, plain) = (stage.elsewhere(), stage.root.path().join("plain"));
    std::fs::write(&plain, b"plain").unwrap();
    let anchor = std::fs::read(&path).unwrap();
    assert_eq!(there.unlink(None, &path), Err(Errno::BUSY));
    assert_eq!(there.rename(None, &plain, None, &path, 0), Err(Errno::BUSY));
    assert_eq!(std::fs::read(&path).unwrap(), anchor);
    assert!(plain.exists());
    assert_eq!(stage.objects(), objects);
    opened.file.write(&pattern(2, 100), 300, 1).unwrap();
    opened.file.sync(false).unwrap();
    assert_eq!(opened.file.all().unwrap(), [pattern(1, 300), pattern(2, 100)].concat());
    drop(opened);
    there.rename(None, &plain, None, &path, 0).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"plain");
    assert_eq!(stage.objects(), [""; 0]);
}

#[test]
fn a_name_that_is_not_the_last_one_may_go() {
    let stage = stage();
    let (opened, path, objects) = in_use(&stage);
    let other = stage.path("other");
    std::fs::hard_link(&path, &other).unwrap();
    stage.elsewhere().unlink(None, &other).unwrap();
    assert_eq!(stage.objects(), objects);
    drop(opened);
    stage.elsewhere().unlink(None, &path).unwrap();
    assert_eq!(stage.objects(), [""; 0]);
}

#[test]
fn the_node_that_has_the_file_open_removes_it() {
    let stage = stage();
    let (opened, path, _) = in_use(&stage);
    stage.real_runtime().unlink(None, &path).unwrap();
    assert_eq!(stage.objects(), [""; 0]);
    opened.file.write(&pattern(2, 100), 300, 1).unwrap();
    opened.file.sync(false).unwrap();
    assert_eq!(opened.file.all().unwrap(), [pattern(1, 300), pattern(2, 100)].concat());
}

/// A node may open the file between the check and the removal of the name.
#[test]
fn the_objects_of_a_file_that_was_opened_meanwhile_are_left() {
    let stage = stage();
    let (opened, path, objects) = in_use(&stage);
    let manifest = stage.elsewhere().manifest_at(None, &path, false).unwrap().unwrap();
    let refused = stage.elsewhere().remove_objects(&manifest, stripewise_sys::Real.user());
    assert!(matches!(refused, Err(FileError::Map(MapError::InUse { .. }))), "{refused:?}");
    assert_eq!(stage.objects(), objects);
    drop(opened);
}

/// A system interface that counts the locks that are taken.
#[derive(Default)]
struct Locking(AtomicU32);

impl Locking {
    fn before(&self, call: &str) -> stripewise_sys::Result<()> {
        self.0.fetch_add(u32::from(["lock", "try lock"].contains(&call)), Ordering::Relaxed);
        Ok(())
    }
}

impl Sys for Locking {
    stripewise_faulty::delegate!(before);
}

#[test]
fn the_check_takes_no_lock_on_a_file_without_sessions() {
    let stage = Stage::of(&Setup::replicas());
    drop(open(&stage.real_runtime(), &stage.path("f"), CREATE).unwrap());
    let locking = Arc::new(Locking::default());
    let absent = stage.path("absent/f");
    let renamed = stage.runtime_on(locking.clone()).rename(None, &absent, None, &stage.path("f"), 0);
    assert_eq!(renamed, Err(Errno::NOENT));
    assert_eq!(locking.0.load(Ordering::Relaxed), 0);
    assert!(open(&stage.real_runtime(), &stage.path("f"), OFlags::RDONLY).is_ok());
}
