use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;

use stripewise_sys::{Errno, Fd, Kind, Mode, OFlags, SysRef};
use tempfile::TempDir;

use super::{DEAD, Disk, Faulty, Journal};

const MODE: Mode = Mode::from_raw_mode(0o640);

fn disk(journal: Journal) -> (TempDir, Arc<Disk>) {
    let dir = tempfile::tempdir().unwrap();
    let disk = Disk::new(dir.path(), journal).unwrap();
    (dir, disk)
}

fn process(disk: &Arc<Disk>) -> (Arc<Faulty>, SysRef) {
    let process = Faulty::new(disk, 1);
    (process.clone(), process)
}

fn create(sys: &SysRef, path: &Path) -> Fd {
    sys.open(None, path, OFlags::RDWR | OFlags::CREATE, MODE).unwrap()
}

fn sync_directory(sys: &SysRef, path: &Path) {
    let directory = sys.open(None, path, OFlags::RDONLY | OFlags::DIRECTORY, MODE).unwrap();
    sys.sync(directory.as_fd()).unwrap();
}

fn text(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// The states that are left by runs of `work` after power cuts with different seeds.
fn cuts<T: std::hash::Hash + Eq>(
    journal: Journal,
    work: impl Fn(&SysRef, &Path),
    look: impl Fn(&Path) -> T,
) -> HashSet<T> {
    let run = |seed| {
        let (dir, disk) = disk(journal);
        work(&process(&disk).1, dir.path());
        disk.power_cut(seed).unwrap();
        look(dir.path())
    };
    (0..40).map(run).collect()
}

#[test]
fn synced_content_and_names_survive_and_the_rest_may_or_may_not() {
    let work = |sys: &SysRef, root: &Path| {
        let file = create(sys, &root.join("a"));
        sys.write_all_at(file.as_fd(), b"synced", 0).unwrap();
        sys.sync(file.as_fd()).unwrap();
        sync_directory(sys, root);
        sys.write_all_at(file.as_fd(), b"later", 10).unwrap();
        create(sys, &root.join("b"));
    };
    let look = |root: &Path| (text(&root.join("a")), text(&root.join("b")));
    for journal in [Journal::Posix, Journal::Ordered] {
        let (old, new) = ("synced".to_owned(), "synced\0\0\0\0later".to_owned());
        let all = [(&old, false), (&old, true), (&new, false), (&new, true)];
        let all = all.map(|(a, b)| (Some(a.clone()), b.then(String::new)));
        assert_eq!(cuts(journal, work, look), HashSet::from(all), "{journal:?}");
    }
}

#[test]
fn a_file_that_is_synced_without_its_directory_may_lose_its_name() {
    let work = |sys: &SysRef, root: &Path| {
        let file = create(sys, &root.join("a"));
        sys.write_all_at(file.as_fd(), b"x", 0).unwrap();
        sys.sync_data(file.as_fd()).unwrap();
    };
    let look = |root: &Path| text(&root.join("a"));
    let there = Some("x".to_owned());
    assert_eq!(cuts(Journal::Posix, work, look), HashSet::from([None, there.clone()]));
    assert_eq!(cuts(Journal::Ordered, work, look), HashSet::from([there]));
}

#[test]
fn a_rename_is_there_or_not_but_the_name_always_leads_to_a_file() {
    let work = |sys: &SysRef, root: &Path| {
        for (name, content) in [("a", b"old"), ("b", b"new")] {
            let file = create(sys, &root.join(name));
            sys.write_all_at(file.as_fd(), content, 0).unwrap();
            sys.sync(file.as_fd()).unwrap();
        }
        sync_directory(sys, root);
        sys.rename(None, &root.join("b"), None, &root.join("a")).unwrap();
    };
    let look = |root: &Path| (text(&root.join("a")), text(&root.join("b")));
    let (old, new) = (Some("old".to_owned()), Some("new".to_owned()));
    let expected = HashSet::from([(old, new.clone()), (new, None)]);
    for journal in [Journal::Posix, Journal::Ordered] {
        assert_eq!(cuts(journal, work, look), expected, "{journal:?}");
    }
}

#[test]
fn directories_links_modes_and_truncates_are_kept() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let (dir, disk) = disk(Journal::Ordered);
    let (_, sys) = process(&disk);
    let root = dir.path();
    sys.mkdir(None, &root.join("d"), Mode::from_raw_mode(0o700)).unwrap();
    let directory = sys.open(None, &root.join("d"), OFlags::DIRECTORY, MODE).unwrap();
    let file = sys.open(Some(directory.as_fd()), Path::new("f"), OFlags::RDWR | OFlags::CREATE, MODE).unwrap();
    sys.write_all_at(file.as_fd(), &[7; 9000], 0).unwrap();
    sys.truncate(file.as_fd(), 5000).unwrap();
    sys.grow(file.as_fd(), 1 << 30).unwrap();
    sys.link(Some(directory.as_fd()), Path::new("f"), None, &root.join("g")).unwrap();
    sys.sync(file.as_fd()).unwrap();
    drop((file, directory));
    for seed in 0..5 {
        disk.power_cut(seed).unwrap();
    }
    let metadata = fs::metadata(root.join("g")).unwrap();
    assert_eq!((metadata.len(), metadata.nlink()), (1 << 30, 2));
    assert_eq!(metadata.permissions().mode() & 0o7777, 0o640);
    assert_eq!(fs::metadata(root.join("d")).unwrap().permissions().mode() & 0o7777, 0o700);
    assert!(metadata.blocks() < 100, "sparse");
    let mut start = vec![0; 9000];
    use std::os::unix::fs::FileExt;
    fs::File::open(root.join("d/f")).unwrap().read_exact_at(&mut start, 0).unwrap();
    assert!(start[..5000].iter().all(|&byte| byte == 7) && start[5000..].iter().all(|&byte| byte == 0));
}

#[test]
fn a_process_dies_at_its_call_and_others_go_on() {
    let (dir, disk) = disk(Journal::Posix);
    let path = dir.path().join("a");
    let ((first, sys), (_, other)) = (process(&disk), process(&disk));
    let file = create(&sys, &path);
    sys.write_all_at(file.as_fd(), b"12345678", 0).unwrap();
    first.crash_at(first.calls());
    assert!(!first.is_dead());
    assert_eq!(sys.write_at(file.as_fd(), b"abcdefgh", 0), Err(DEAD));
    assert!(first.is_dead());
    assert_eq!(sys.open(None, &path, OFlags::RDONLY, MODE).unwrap_err(), DEAD);
    let file = other.open(None, &path, OFlags::RDONLY, MODE).unwrap();
    let found = other.read_start(file.as_fd(), 100).unwrap();
    let prefix = found.iter().zip(b"abcdefgh").take_while(|(a, b)| a == b).count();
    assert_eq!(found[prefix..], b"12345678"[prefix..], "a leading part was written: {found:?}");
    assert!(prefix < 8);
}

#[test]
fn calls_fail_as_told_and_short_transfers_are_short() {
    let (dir, disk) = disk(Journal::Posix);
    let (faulty, sys) = process(&disk);
    let file = create(&sys, &dir.path().join("some-file"));
    faulty.fail("pwrite", "some-", Errno::NOSPC, 2);
    faulty.fail("*", "nowhere", Errno::IO, 1);
    for _ in 0..2 {
        assert_eq!(sys.write_at(file.as_fd(), b"x", 0), Err(Errno::NOSPC));
    }
    assert_eq!(sys.write_at(file.as_fd(), b"x", 0), Ok(1));
    assert_eq!(sys.stat_at(None, Path::new("/nowhere"), true).unwrap_err(), Errno::IO);
    assert_eq!(sys.stat_at(None, Path::new("/nowhere"), true).unwrap_err(), Errno::NOENT);
    faulty.shorten(1000);
    for _ in 0..20 {
        let done = sys.write_at(file.as_fd(), &[5; 100], 0).unwrap();
        assert!((1..100).contains(&done));
    }
    sys.write_all_at(file.as_fd(), &[6; 100], 0).unwrap();
    assert_eq!(sys.read_start(file.as_fd(), 1000).unwrap(), [6; 100]);
    assert!(faulty.log().iter().any(|line| line.contains("pwrite") && line.contains("some-file")));
}

#[test]
fn a_failed_fsync_may_lose_what_a_later_one_does_not_bring_back() {
    let (mut lost, mut kept) = (0, 0);
    for seed in 0..20 {
        let (dir, disk) = disk(Journal::Ordered);
        let faulty = Faulty::new(&disk, seed);
        let sys: SysRef = faulty.clone();
        let file = create(&sys, &dir.path().join("a"));
        sys.write_all_at(file.as_fd(), b"data", 0).unwrap();
        faulty.fail("fsync", "a", Errno::IO, 1);
        assert_eq!(sys.sync(file.as_fd()), Err(Errno::IO));
        assert_eq!(sys.sync(file.as_fd()), Ok(()));
        assert_eq!(sys.read_start(file.as_fd(), 10).unwrap(), b"data");
        disk.power_cut(seed).unwrap();
        match text(&dir.path().join("a")).unwrap().as_str() {
            "data" => kept += 1,
            "" => lost += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(lost > 0 && kept > 0, "{lost} {kept}");
}

#[test]
fn a_punched_hole_is_zeros_at_once_and_after_a_power_cut_perhaps() {
    let work = |sys: &SysRef, root: &Path| {
        let file = create(sys, &root.join("a"));
        sys.write_all_at(file.as_fd(), b"0123456789", 0).unwrap();
        sys.sync(file.as_fd()).unwrap();
        sync_directory(sys, root);
        sys.punch_hole(file.as_fd(), 2, 3).unwrap();
        assert_eq!(sys.read_start(file.as_fd(), 20).unwrap(), b"01\0\0\x0056789");
    };
    let ends = cuts(Journal::Posix, work, |root| text(&root.join("a")).unwrap());
    assert_eq!(ends, HashSet::from(["0123456789".to_owned(), "01\0\0\x0056789".to_owned()]));
}

#[test]
fn attributes_are_the_kernels_until_a_fault() {
    let (dir, disk) = disk(Journal::Ordered);
    let (process, sys) = process(&disk);
    let (of, name) = (Kind::Named(None, dir.path()), OsStr::new("user.a"));
    sys.set_xattr(of, name, b"1").unwrap();
    assert_eq!(sys.xattr(of, name), Ok(b"1".to_vec()));
    assert_eq!(sys.list_xattr(of), Ok(vec![name.to_owned()]));
    for call in ["getxattr", "listxattr", "setxattr", "removexattr"] {
        process.fail(call, "", Errno::ACCESS, 1);
    }
    assert_eq!(sys.set_xattr(of, name, b"2"), Err(Errno::ACCESS));
    assert_eq!(sys.remove_xattr(of, name), Err(Errno::ACCESS));
    assert_eq!(sys.xattr(of, name), Err(Errno::ACCESS));
    assert_eq!(sys.list_xattr(of), Err(Errno::ACCESS));
    // The failed calls had no effect.
    assert_eq!(sys.xattr(of, name), Ok(b"1".to_vec()));
    sys.remove_xattr(of, name).unwrap();
    assert_eq!(sys.list_xattr(of), Ok(Vec::new()));
}
