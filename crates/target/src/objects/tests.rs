use std::os::fd::AsRawFd;

use stripewise_sys::{Timespec, fd};

use super::*;
use crate::FanOut;
use crate::tests::{of, real, set, targets};

const MODE: Mode = Mode::from_raw_mode(0o640);

fn reopen(sys: &SysRef, set: &ObjectSet, read_only: bool) -> Result<ObjectSet, TargetError> {
    let opening = Opening { read_only, flags: OFlags::empty() };
    ObjectSet::open(sys, set.targets().to_vec(), set.objects(), opening)
}

#[test]
fn created_opened_changed_listed_and_removed() {
    let (sys, dir) = (real(), tempfile::tempdir().unwrap());
    let targets = targets(&sys, &dir, 3);
    let id = FileId::random(sys.as_ref()).unwrap();
    let of = of(&sys, id);
    let set = ObjectSet::create(&sys, targets.clone(), of, &Access::of_mode(MODE)).unwrap();
    set.create_manifest(b"text", &Access::of_mode(MODE)).unwrap();
    let again = set.create_manifest(b"other", &Access::of_mode(MODE));
    assert_eq!(again.unwrap_err().errno(), Errno::EXIST);
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
    set.give_to(of.owner).unwrap();
    let stats = set.stats().unwrap();
    assert!(stats.iter().all(|stat| stat.st_mode & 0o7777 == 0o600 && stat.st_mtime == 1_000_000));

    let found: Vec<_> = targets[0].list_objects().unwrap();
    let names: Vec<_> = found.iter().map(|found| (found.id, found.object)).collect();
    assert_eq!(names, [(id, None), (id, Some(0))]);
    let found = targets[1].list_objects().unwrap();
    assert_eq!((found.len(), found[0].object, found[0].size), (1, Some(1), 1000));

    ObjectSet::remove(&targets, of).unwrap();
    ObjectSet::remove(&targets, of).unwrap();
    assert!(targets.iter().all(|target| target.list_objects().unwrap().is_empty()));
    assert_eq!(reopen(&sys, &set, true).unwrap_err().errno(), Errno::NOENT);
    assert_eq!(set.sizes().unwrap(), [0, 1000, 5], "open descriptors go on working");
}

#[test]
fn a_failed_creation_leaves_nothing() {
    let (sys, dir) = (real(), tempfile::tempdir().unwrap());
    let targets = targets(&sys, &dir, 3);
    let id = FileId([9; 16]);
    let home = format!("t2/stripewise/u{}", sys.user());
    std::fs::write(dir.path().join(&home), "no directory").unwrap();
    let error = ObjectSet::create(&sys, targets.clone(), of(&sys, id), &Access::of_mode(MODE)).unwrap_err();
    assert_eq!(error.errno(), Errno::NOTDIR);
    assert!(error.to_string().contains(&home), "{error}");
    assert!(targets.iter().all(|target| target.list_objects().unwrap().is_empty()));
}

#[test]
fn users_have_a_directory_each_in_one_with_the_mode_of_the_target() {
    use std::os::unix::fs::PermissionsExt;
    let (sys, dir) = (real(), tempfile::tempdir().unwrap());
    let path = dir.path().join("shared");
    std::fs::create_dir(&path).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o1777)).unwrap();
    let target = Arc::new(Target::prepare(&sys, &path, "t/0").unwrap());
    ObjectSet::create(&sys, vec![target], of(&sys, FileId([9; 16])), &Access::of_mode(MODE)).unwrap();
    let home = format!("stripewise/u{}", sys.user());
    for (directory, expected) in [("stripewise", 0o1777), (&home, 0o711)] {
        let mode = std::fs::metadata(path.join(directory)).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, expected, "{directory}");
    }
}

#[test]
fn more_objects_than_are_opened_at_once() {
    let (sys, dir) = (real(), tempfile::tempdir().unwrap());
    let count = OPENED_AT_ONCE + 3;
    let set = set(&sys, &dir, count);
    let opened = |set: &ObjectSet| set.files.iter().filter(|slot| slot.get().is_some()).count();
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
fn a_lost_object_is_named() {
    let (sys, dir) = (real(), tempfile::tempdir().unwrap());
    let set = set(&sys, &dir, 2);
    let lost = dir.path().join(format!("t1/stripewise/u{}/{}.1", sys.user(), set.id()));
    std::fs::remove_file(&lost).unwrap();
    let error = reopen(&sys, &set, false).unwrap_err();
    assert!(error.to_string().starts_with(&lost.display().to_string()), "{error}");
}

const OTHER: u32 = 64_124;

fn other(id: FileId) -> Objects {
    Objects { id, owner: OTHER }
}

/// Files that another user may have put where the objects of a file should be are never used.
#[test]
fn only_regular_files_of_the_right_user_are_used() {
    use std::os::unix::fs::{chown, symlink};
    if !is_root() {
        return;
    }
    let (sys, dir) = (real(), tempfile::tempdir().unwrap());
    let set = set(&sys, &dir, 1);
    let object = dir.path().join(format!("t0/stripewise/u0/{}.0", set.id()));
    let secret = dir.path().join("secret");
    std::fs::write(&secret, "secret").unwrap();
    let refused = || reopen(&sys, &set, false).unwrap_err();

    chown(&object, Some(OTHER), None).unwrap();
    assert!(matches!(refused(), TargetError::NotOwned { expected: 0, found: OTHER, .. }));
    let stats = ObjectSet::stats_by_name(set.targets(), set.objects());
    assert!(matches!(stats, Err(TargetError::NotOwned { .. })));
    let removed = ObjectSet::remove(set.targets(), set.objects());
    assert!(matches!(removed, Err(TargetError::NotOwned { .. })) && object.exists());

    std::fs::remove_file(&object).unwrap();
    symlink(&secret, &object).unwrap();
    assert_eq!(refused().errno(), Errno::LOOP);
    assert!(set.set_mode(Mode::from_raw_mode(0o666)).is_err());

    std::fs::remove_file(&object).unwrap();
    let fifo = std::process::Command::new("mkfifo").arg(&object).status().unwrap();
    assert!(fifo.success());
    assert_eq!(refused().errno(), Errno::LOOP, "and nobody waits for a writer");

    std::fs::remove_dir_all(dir.path().join("t0/stripewise/u0")).unwrap();
    symlink(dir.path(), dir.path().join("t0/stripewise/u0")).unwrap();
    std::fs::write(dir.path().join(format!("{}.0", set.id())), "").unwrap();
    assert!(matches!(refused().errno(), Errno::LOOP | Errno::NOTDIR));
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&secret).unwrap().permissions());
    assert_eq!((std::fs::read_to_string(&secret).unwrap(), mode & 0o7777), ("secret".to_owned(), 0o644));
}

/// The same for the file through which nodes share the space of caches.
#[test]
fn a_ledger_is_a_regular_file_of_its_user() {
    use std::os::unix::fs::{chown, symlink};
    let (sys, dir) = (real(), tempfile::tempdir().unwrap());
    let set = set(&sys, &dir, 1);
    let (target, user) = (&set.targets()[0], sys.user());
    let ledger = dir.path().join(format!("t0/stripewise/u{user}/space"));
    assert!(!target.has_ledger(user));
    drop(target.open_ledger(user).unwrap());
    drop(target.open_ledger(user).unwrap());
    assert!(target.has_ledger(user) && ledger.is_file());
    if is_root() {
        chown(&ledger, Some(OTHER), None).unwrap();
        assert!(matches!(target.open_ledger(user), Err(TargetError::NotOwned { found: OTHER, .. })));
    }
    std::fs::remove_file(&ledger).unwrap();
    symlink(dir.path().join("secret"), &ledger).unwrap();
    assert_eq!(target.open_ledger(user).unwrap_err().errno(), Errno::LOOP);
    std::fs::remove_file(&ledger).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&ledger).status().unwrap().success());
    assert_eq!(target.open_ledger(user).unwrap_err().errno(), Errno::LOOP);
    assert!(!dir.path().join("secret").exists());
}

#[test]
fn a_users_directory_that_another_made_is_not_used() {
    use std::os::unix::fs::chown;
    if !is_root() {
        return;
    }
    let (sys, dir) = (real(), tempfile::tempdir().unwrap());
    let targets = targets(&sys, &dir, 1);
    let objects = dir.path().join("t0/stripewise");
    let create = |id| ObjectSet::create(&sys, targets.clone(), id, &Access::of_mode(MODE)).map(drop);
    std::fs::create_dir(objects.join(format!("u{OTHER}"))).unwrap();
    let squatted = create(other(FileId([1; 16]))).unwrap_err();
    assert!(matches!(squatted, TargetError::NotOwned { expected: OTHER, found: 0, .. }), "{squatted}");
    // Its owner could exchange the directories in it.
    chown(&objects, Some(OTHER + 1), None).unwrap();
    std::fs::remove_dir(objects.join(format!("u{OTHER}"))).unwrap();
    assert!(matches!(create(other(FileId([1; 16]))), Err(TargetError::NotOwned { .. })));
    chown(&objects, Some(OTHER), None).unwrap();
    create(other(FileId([1; 16]))).unwrap();
}

/// Also after a kill at every step of an earlier call.
#[test]
fn a_file_is_given_away_whole() {
    use std::os::unix::fs::{MetadataExt, chown};
    if !is_root() {
        return;
    }
    let (sys, dir) = (real(), tempfile::tempdir().unwrap());
    let set = set(&sys, &dir, 3);
    set.create_manifest(b"text", &Access::of_mode(MODE)).unwrap();
    let path = |target: usize, user: u32, suffix: &str| {
        dir.path().join(format!("t{target}/stripewise/u{user}/{}.{suffix}", set.id()))
    };
    std::fs::write(path(0, 0, "extents"), "journal").unwrap();
    // Killed between the two steps for object 1.
    chown(path(1, 0, "1"), Some(OTHER), None).unwrap();
    set.give_to(OTHER).unwrap();
    let opening = Opening { read_only: true, flags: OFlags::empty() };
    ObjectSet::open(&sys, set.targets().to_vec(), other(set.id()), opening).unwrap();
    for (target, suffix) in [(0, "0"), (1, "1"), (2, "2"), (0, "manifest"), (0, "extents")] {
        assert_eq!(std::fs::metadata(path(target, OTHER, suffix)).unwrap().uid(), OTHER);
        assert!(!path(target, 0, suffix).exists());
    }
    // An object of another file stays.
    let third = ObjectSet::open(&sys, set.targets().to_vec(), other(set.id()), opening).unwrap();
    chown(path(0, OTHER, "0"), Some(OTHER + 1), None).unwrap();
    assert!(matches!(third.give_to(0), Err(TargetError::NotOwned { found, .. }) if found == OTHER + 1));
}

/// Files as earlier versions have written them.
#[test]
fn objects_at_their_earlier_place_are_used_and_brought_home() {
    let (sys, dir) = (real(), tempfile::tempdir().unwrap());
    let set = set(&sys, &dir, 2);
    for index in 0..2 {
        let root = dir.path().join(format!("t{index}/stripewise"));
        let earlier = root.join(format!("{:02x}", set.id().0[0]));
        std::fs::create_dir(&earlier).unwrap();
        let file = format!("{}.{index}", set.id());
        std::fs::rename(root.join(format!("u{}/{file}", sys.user())), earlier.join(file)).unwrap();
    }
    set.grow(1, 70).unwrap();
    let again = reopen(&sys, &set, false).unwrap();
    assert_eq!(again.sizes().unwrap(), [0, 70]);
    assert!(again.is_at_earlier_place());
    again.sync_names().unwrap();
    assert_eq!(again.targets()[1].list_objects().unwrap().len(), 1);
    again.bring_home().unwrap();
    again.bring_home().unwrap();
    assert!(!again.is_at_earlier_place());
    assert_eq!(reopen(&sys, &set, false).unwrap().sizes().unwrap(), [0, 70]);
    ObjectSet::remove(set.targets(), set.objects()).unwrap();
    assert!(again.targets()[1].list_objects().unwrap().is_empty());
}

fn is_root() -> bool {
    real().user() == 0
}
