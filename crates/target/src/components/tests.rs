use std::os::fd::AsRawFd;

use stripewise_sys::{Timespec, fd};

use super::*;
use crate::list_components;
use crate::testing::{real, set, targets};

const MODE: Mode = Mode::from_raw_mode(0o640);

fn reopen(sys: &SysRef, set: &ComponentSet, read_only: bool) -> Result<ComponentSet, TargetError> {
    let opening = Opening { read_only, flags: OFlags::empty() };
    ComponentSet::open(sys, set.targets().to_vec(), set.id(), opening)
}

#[test]
fn created_opened_changed_listed_and_removed() {
    let (sys, dir) = (real(), tempfile::tempdir().unwrap());
    let targets = targets(&sys, &dir, 3);
    let id = FileId::random(sys.as_ref()).unwrap();
    let set = ComponentSet::create(&sys, targets.clone(), id, MODE).unwrap();
    set.create_manifest(b"text", MODE).unwrap();
    assert_eq!(set.create_manifest(b"other", MODE).unwrap_err().errno(), Errno::EXIST);
    set.grow(1, 1000).unwrap();
    set.grow(1, 10).unwrap();
    set.truncate(2, 5).unwrap();
    assert_eq!(set.sizes().unwrap(), [0, 1000, 5]);
    assert!(set.stats().unwrap().iter().all(|stat| stat.st_mode & 0o7777 == 0o640));
    set.sync_names().unwrap();
    set.sync(&FanOut::new(sys.clone(), crate::Engine::Auto), false).unwrap();

    let again = reopen(&sys, &set, true).unwrap();
    assert_eq!(again.sizes().unwrap(), [0, 1000, 5]);
    assert_eq!(again.truncate(1, 0).unwrap_err().errno(), Errno::INVAL, "read only");
    let copy = again.open_manifest(OFlags::RDONLY).unwrap();
    assert_eq!(sys.read_start(copy.as_fd(), 100).unwrap(), b"text");

    set.set_mode(Mode::from_raw_mode(0o600)).unwrap();
    let then = Timespec { tv_sec: 1_000_000, tv_nsec: 7 };
    set.set_times(&Timestamps { last_access: then, last_modification: then }).unwrap();
    set.set_owner(None, None).unwrap();
    let stats = set.stats().unwrap();
    assert!(stats.iter().all(|stat| stat.st_mode & 0o7777 == 0o600 && stat.st_mtime == 1_000_000));

    let found: Vec<_> = list_components(&sys, &targets[0]).unwrap();
    let names: Vec<_> = found.iter().map(|found| (found.id, found.component)).collect();
    assert_eq!(names, [(id, None), (id, Some(0))]);
    let found = list_components(&sys, &targets[1]).unwrap();
    assert_eq!((found.len(), found[0].component, found[0].size), (1, Some(1), 1000));

    ComponentSet::remove(&sys, &targets, id).unwrap();
    ComponentSet::remove(&sys, &targets, id).unwrap();
    assert!(targets.iter().all(|target| list_components(&sys, target).unwrap().is_empty()));
    assert_eq!(reopen(&sys, &set, true).unwrap_err().errno(), Errno::NOENT);
    assert_eq!(set.sizes().unwrap(), [0, 1000, 5], "open descriptors go on working");
}

#[test]
fn a_failed_creation_leaves_nothing() {
    let (sys, dir) = (real(), tempfile::tempdir().unwrap());
    let targets = targets(&sys, &dir, 3);
    let id = FileId([9; 16]);
    let blocker = dir.path().join("t2/stripewise/09");
    std::fs::write(&blocker, "no directory").unwrap();
    let error = ComponentSet::create(&sys, targets.clone(), id, MODE).unwrap_err();
    assert_eq!(error.errno(), Errno::NOTDIR);
    assert!(error.to_string().contains("t2/stripewise/09"), "{error}");
    assert!(targets.iter().all(|target| list_components(&sys, target).unwrap().is_empty()));
}

#[test]
fn directories_take_the_mode_of_the_target() {
    use std::os::unix::fs::PermissionsExt;
    let (sys, dir) = (real(), tempfile::tempdir().unwrap());
    let path = dir.path().join("shared");
    std::fs::create_dir(&path).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o1777)).unwrap();
    let target = Arc::new(Target::prepare(&sys, &path, "t/0").unwrap());
    ComponentSet::create(&sys, vec![target], FileId([9; 16]), MODE).unwrap();
    for directory in ["stripewise", "stripewise/09"] {
        let mode = std::fs::metadata(path.join(directory)).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o1777, "{directory}");
    }
}

#[test]
fn more_components_than_are_opened_at_once() {
    let (sys, dir) = (real(), tempfile::tempdir().unwrap());
    let count = OPENED_AT_ONCE + 3;
    let set = set(&sys, &dir, count);
    let opened = |set: &ComponentSet| set.files.iter().filter(|slot| slot.get().is_some()).count();
    assert_eq!(opened(&set), OPENED_AT_ONCE);
    let fds: Vec<_> = std::thread::scope(|scope| {
        let last = || set.fd(count - 1).unwrap().as_raw_fd();
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(last)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(fds.iter().all(|&raw| raw == fds[0] && fd::is_private(raw)), "{fds:?}");
    assert_eq!(opened(&set), OPENED_AT_ONCE + 1);
    assert_eq!(set.sizes().unwrap().len(), count);
    assert_eq!(set.fd(count).unwrap_err().errno(), Errno::NOENT);
}

#[test]
fn a_lost_component_is_named() {
    let (sys, dir) = (real(), tempfile::tempdir().unwrap());
    let set = set(&sys, &dir, 2);
    let lost = dir.path().join(format!("t1/stripewise/{:02x}/{}.1", set.id().0[0], set.id()));
    std::fs::remove_file(&lost).unwrap();
    let error = reopen(&sys, &set, false).unwrap_err();
    assert!(error.to_string().starts_with(&lost.display().to_string()), "{error}");
}
