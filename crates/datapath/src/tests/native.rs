//! Migrations into native layouts of a file system leave a complete file wherever they are
//! interrupted.
//!
//! [`Layouts`] simulates the file system and remembers the inodes that it created. The fault model
//! is that of `stripewise_faulty`. Inodes are new after a power cut, so the names then show
//! what was done.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Mutex;

use stripewise_faulty::{Disk, Faulty, Journal};
use stripewise_sys::{Fd, LockKind, Mode, OFlags, SysRef};

use super::crash::at_every_point;
use super::support::*;
use crate::migrate::{Goal, Maker, MigrateError, Migration, Pace, migrate_in_chunks};
use crate::{Errno, Runtime, Shape};

/// A simulated file system with one native layout.
struct Layouts<'a> {
    sys: SysRef,
    made: &'a Mutex<BTreeSet<u64>>,
    name: &'static str,
}

impl std::fmt::Debug for Layouts<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl Maker for Layouts<'_> {
    fn description(&self) -> String {
        self.name.to_owned()
    }

    fn is_made(&self, _path: &Path, open: BorrowedFd<'_>) -> Result<bool, String> {
        let stat = self.sys.stat(open).map_err(|errno| errno.to_string())?;
        Ok(self.made.lock().unwrap().contains(&stat.st_ino))
    }

    fn make(&self, path: &Path, mode: Mode) -> Result<Fd, String> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let fd = self.sys.open(None, path, flags, mode).map_err(|errno| errno.to_string())?;
        let stat = stripewise_sys::Sys::stat(&stripewise_sys::Real, fd.as_fd()).unwrap();
        self.made.lock().unwrap().insert(stat.st_ino);
        Ok(fd)
    }
}

const LEN: usize = 250;
/// Copies the file in one chunk, or in three.
const PACES: [Pace; 2] = [Pace { chunk_bytes: 1000, streams: 1 }, Pace { chunk_bytes: 100, streams: 1 }];

fn bytes() -> Vec<u8> {
    pattern(5, LEN)
}

fn plain(stage: &Stage) {
    std::fs::write(stage.path("f"), bytes()).unwrap();
    std::fs::set_permissions(stage.path("f"), PermissionsExt::from_mode(0o640)).unwrap();
}

fn names(stage: &Stage) -> Vec<String> {
    let entries = std::fs::read_dir(stage.path("")).unwrap().flatten();
    entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

fn run(
    runtime: &Runtime,
    path: &Path,
    made: &Mutex<BTreeSet<u64>>,
    pace: Pace,
) -> Result<Migration, MigrateError> {
    let maker = Layouts { sys: runtime.sys().clone(), made, name: "a" };
    migrate_in_chunks(runtime, path, Goal::Native(&maker), pace, &mut |_| {})
}

/// Wherever the migration is interrupted, the file is complete, and the next run leaves nothing
/// behind.
fn survives(prepare: impl Fn(&Stage), pace: Pace) {
    let made = Mutex::new(BTreeSet::new());
    let act = |runtime: &Runtime, path: &Path| {
        // Inode numbers are reused between stages, so forget those of earlier ones.
        made.lock().unwrap().clear();
        run(runtime, path, &made, pace).map(drop).map_err(|_| Errno::IO)
    };
    at_every_point(&prepare, act, |stage, ended| {
        let path = stage.path("f");
        let there = made.lock().unwrap().contains(&path.metadata().unwrap().ino()) && !ended.cut;
        let is_plain = stage.objects().is_empty() || there;
        if is_plain {
            assert_eq!(std::fs::read(&path).unwrap(), bytes());
        }
        assert!(there || !ended.finished || ended.cut);
        // A power cut that undid the rename would have left the temporary's name.
        let undone = names(stage).iter().any(|name| name.ends_with(".new"));
        assert!(!ended.finished || !undone, "{:?}", names(stage));
        let done = run(&stage.runtime(), &path, &made, pace).unwrap();
        assert!(ended.cut || (done == Migration::AlreadyThere) == there);
        assert_eq!(std::fs::read(&path).unwrap(), bytes());
        assert_eq!(path.metadata().unwrap().mode() & 0o7777, 0o640);
        assert_eq!(names(stage), ["f"]);
        assert!(made.lock().unwrap().contains(&path.metadata().unwrap().ino()));
        if !ended.cut {
            assert_eq!(stage.objects(), Vec::<String>::new());
        }
    });
}

#[test]
fn short_files() {
    survives(plain, PACES[0]);
}

#[test]
fn long_files() {
    survives(plain, PACES[1]);
}

#[test]
fn managed_files() {
    let managed = |stage: &Stage| {
        plain(stage);
        let goal = Goal::Managed(Shape::from(&stage.plan.rules[0].layouts[0]));
        migrate_in_chunks(&stage.runtime(), &stage.path("f"), goal, PACES[0], &mut |_| {}).unwrap();
    };
    survives(managed, PACES[0]);
}

#[test]
fn the_second_run_is_killed_too() {
    for pace in PACES {
        let killed_once = |stage: &Stage| {
            plain(stage);
            let disk = Disk::new(stage.root.path(), Journal::Posix).unwrap();
            let process = Faulty::new(&disk, 0);
            let tell = &mut |_| process.crash_at(process.calls() + 1);
            let made = Mutex::new(BTreeSet::new());
            let runtime = stage.runtime_on(process.clone());
            let maker = Layouts { sys: runtime.sys().clone(), made: &made, name: "a" };
            let goal = Goal::Native(&maker);
            assert!(migrate_in_chunks(&runtime, &stage.path("f"), goal, pace, tell).is_err());
            assert!(names(stage).len() > 1, "something is left over");
        };
        survives(killed_once, pace);
    }
}

#[test]
fn a_run_with_another_layout_begins_anew() {
    for pace in PACES {
        let stage = Stage::new(small());
        plain(&stage);
        let disk = Disk::new(stage.root.path(), Journal::Posix).unwrap();
        let (process, made) = (Faulty::new(&disk, 0), Mutex::new(BTreeSet::new()));
        let tell = &mut |_| process.crash_at(process.calls() + 1);
        let runtime = stage.runtime_on(process.clone());
        let other = Mutex::new(BTreeSet::new());
        let maker = Layouts { sys: runtime.sys().clone(), made: &other, name: "b" };
        let goal = Goal::Native(&maker);
        migrate_in_chunks(&runtime, &stage.path("f"), goal, pace, tell).unwrap_err();
        run(&stage.runtime(), &stage.path("f"), &made, pace).unwrap();
        assert_eq!(names(&stage), ["f"]);
        assert!(made.lock().unwrap().contains(&stage.path("f").metadata().unwrap().ino()));
    }
}

/// Returns once a change of the file would give it a later time: file times advance in steps of the
/// kernel's clock.
fn wait_for_a_later_time(path: &Path) {
    let time = |path: &Path| path.metadata().map(|of| (of.ctime(), of.ctime_nsec())).unwrap();
    let other = tempfile::NamedTempFile::new_in(path.parent().unwrap()).unwrap();
    while time(other.path()) <= time(path) {
        std::thread::sleep(std::time::Duration::from_millis(1));
        other.as_file().set_permissions(PermissionsExt::from_mode(0o600)).unwrap();
    }
}

#[test]
fn changes_meanwhile_are_noticed() {
    let append = |path: &Path| {
        use std::io::Write;
        std::fs::OpenOptions::new().append(true).open(path).unwrap().write_all(b"more").unwrap();
    };
    // Overwritten with the old mtime restored: only ctime shows the change.
    let hidden = |path: &Path| {
        let before = path.metadata().unwrap();
        std::fs::write(path, pattern(6, LEN)).unwrap();
        let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
        file.set_modified(before.modified().unwrap()).unwrap();
    };
    let replaced = |path: &Path| {
        std::fs::write(path.with_file_name("g"), b"new").unwrap();
        std::fs::rename(path.with_file_name("g"), path).unwrap();
    };
    let changes: [fn(&Path); 3] = [append, hidden, replaced];
    let cases = PACES.into_iter().flat_map(|pace| changes.map(|change| (pace, change)));
    for (name, (pace, change)) in cases.enumerate() {
        let stage = Stage::new(small());
        plain(&stage);
        let (path, runtime) = (stage.path("f"), stage.runtime());
        wait_for_a_later_time(&path);
        let made = Mutex::new(BTreeSet::new());
        let maker = Layouts { sys: runtime.sys().clone(), made: &made, name: "a" };
        let mut first = true;
        let tell = &mut |_| {
            if std::mem::take(&mut first) {
                change(&path);
            }
        };
        let result = migrate_in_chunks(&runtime, &path, Goal::Native(&maker), pace, tell);
        assert_eq!(result, Err(MigrateError::Changed(path.clone())), "{name}");
        assert_ne!(std::fs::read(&path).unwrap(), bytes(), "{name}");
        assert_eq!(names(&stage), ["f"], "{name}");
        assert_eq!(run(&runtime, &path, &made, pace).map(drop), Ok(()), "{name}: and then it is done");
    }
}

#[test]
fn failures_leave_the_old_file_and_nothing_else() {
    for (pace, (call, path)) in PACES.into_iter().flat_map(|pace| {
        [
            ("pwrite", ".new"),
            ("fsync", ".new"),
            ("open", ".new"),
            ("chmod", ".new"),
            ("rename", "/f"),
            ("pread", "/f"),
        ]
        .map(|fault| (pace, fault))
    }) {
        let stage = Stage::new(small());
        plain(&stage);
        let disk = Disk::new(stage.root.path(), Journal::Posix).unwrap();
        let process = Faulty::new(&disk, 0);
        // The first such call may look for a temporary of an earlier run.
        process.fail(call, path, Errno::NOSPC, if call == "open" { 2 } else { 1 });
        let made = Mutex::new(BTreeSet::new());
        let result = run(&stage.runtime_on(process), &stage.path("f"), &made, pace);
        assert!(result.is_err(), "{call} {path}");
        assert_eq!(std::fs::read(stage.path("f")).unwrap(), bytes());
        assert_eq!(names(&stage), ["f"], "{call} {path}");
    }
}

#[test]
fn bytes_that_do_not_arrive_are_noticed() {
    use std::os::unix::fs::FileExt;
    for pace in PACES {
        let stage = Stage::new(small());
        plain(&stage);
        let (path, runtime) = (stage.path("f"), stage.runtime());
        let made = Mutex::new(BTreeSet::new());
        let maker = Layouts { sys: runtime.sys().clone(), made: &made, name: "a" };
        let spoil = &mut |_| {
            let temporary = names(&stage).into_iter().find(|name| name.ends_with(".new")).unwrap();
            let file = std::fs::OpenOptions::new().write(true).open(stage.path(&temporary)).unwrap();
            file.write_all_at(b"?", 1).unwrap();
        };
        let result = migrate_in_chunks(&runtime, &path, Goal::Native(&maker), pace, spoil);
        assert_eq!(result, Err(MigrateError::Damaged(path.clone())));
        assert_eq!((std::fs::read(&path).unwrap(), names(&stage)), (bytes(), vec!["f".to_owned()]));
    }
}

#[test]
fn one_process_at_a_time() {
    for pace in PACES {
        let stage = Stage::new(small());
        plain(&stage);
        let (path, runtime) = (stage.path("f"), stage.runtime());
        let made = Mutex::new(BTreeSet::new());
        let maker = Layouts { sys: runtime.sys().clone(), made: &made, name: "a" };
        let mut second = None;
        let again = &mut |_| second = Some(run(&stage.runtime(), &path, &made, pace));
        migrate_in_chunks(&runtime, &path, Goal::Native(&maker), pace, again).unwrap();
        assert_eq!(second, Some(Err(MigrateError::Busy(path))));
    }
}

#[test]
fn what_somebody_holds_is_not_removed() {
    let stage = Stage::new(small());
    plain(&stage);
    let left = stage.path(&format!(".stripewise-{:032x}.new", crc32fast::hash(b"f")));
    std::fs::write(&left, "half").unwrap();
    let (runtime, made) = (stage.runtime(), Mutex::new(BTreeSet::new()));
    let held = runtime.sys().open(None, &left, OFlags::RDWR, Mode::empty()).unwrap();
    runtime.sys().lock(held.as_fd(), 0, 1, LockKind::Exclusive).unwrap();
    let busy = Err(MigrateError::Busy(stage.path("f")));
    assert_eq!(run(&runtime, &stage.path("f"), &made, PACES[0]), busy);
    assert!(left.exists());
    drop(held);
    run(&runtime, &stage.path("f"), &made, PACES[0]).unwrap();
    assert_eq!(names(&stage), ["f"]);
}

#[test]
fn attributes_and_holes_come_along() {
    use std::ffi::OsStr;
    use std::os::unix::fs::FileExt;
    use stripewise_sys::{Kind, Real, Sys};
    for pace in [Pace { chunk_bytes: 1 << 30, streams: 1 }, Pace { chunk_bytes: 1 << 20, streams: 3 }] {
        let stage = Stage::new(small());
        let (path, runtime) = (stage.path("f"), stage.runtime());
        let file = std::fs::File::create(&path).unwrap();
        file.write_all_at(&pattern(1, 5000), 3 << 20).unwrap();
        file.set_len(8 << 20).unwrap();
        let note = (OsStr::new("user.note"), b"keep me".to_vec());
        let notes = Real.set_xattr(Kind::Named(None, &path), note.0, &note.1).is_ok();
        file.set_permissions(PermissionsExt::from_mode(0o4751)).unwrap();
        let hour = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::new(3600, 12_345);
        file.set_times(std::fs::FileTimes::new().set_modified(hour).set_accessed(hour)).unwrap();
        drop(file);
        let made = Mutex::new(BTreeSet::new());
        assert_eq!(run(&runtime, &path, &made, pace), Ok(Migration::Done(8 << 20)));
        let after = path.metadata().unwrap();
        assert_eq!((after.len(), after.mode() & 0o7777), (8 << 20, 0o4751));
        assert_eq!((after.mtime(), after.mtime_nsec()), (3600, 12_345));
        assert!(after.blocks() * 512 <= 1 << 20, "{}", after.blocks());
        if notes {
            assert_eq!(Real.xattr(Kind::Named(None, &path), note.0), Ok(note.1));
        }
        let mut expected = vec![0; 8 << 20];
        expected[3 << 20..][..5000].copy_from_slice(&pattern(1, 5000));
        assert!(std::fs::read(&path).unwrap() == expected);
    }
}

/// A simulated file system that changes the layout of existing files, and how it fails.
#[derive(Debug)]
struct Changing<'a> {
    made: &'a Mutex<BTreeSet<u64>>,
    fails: &'static str,
}

impl Changing<'_> {
    fn layouts(&self) -> Layouts<'_> {
        Layouts { sys: std::sync::Arc::new(stripewise_sys::Real), made: self.made, name: "changing" }
    }
}

impl Maker for Changing<'_> {
    fn description(&self) -> String {
        "changing".to_owned()
    }

    fn is_made(&self, path: &Path, open: BorrowedFd<'_>) -> Result<bool, String> {
        self.layouts().is_made(path, open)
    }

    fn make(&self, path: &Path, mode: Mode) -> Result<Fd, String> {
        self.layouts().make(path, mode)
    }

    fn changes(&self) -> bool {
        true
    }

    fn change(&self, path: &Path) -> Result<(), String> {
        let modified = path.metadata().unwrap().modified().unwrap();
        match self.fails {
            "refuses" => return Err("a writer has it".to_owned()),
            "alters" | "is overtaken" => {
                let file = std::fs::File::options().write(true).open(path).unwrap();
                std::os::unix::fs::FileExt::write_at(&file, b"!", 3).unwrap();
                let later = std::time::Duration::from_secs(u64::from(self.fails == "is overtaken"));
                file.set_modified(modified + later).unwrap();
            }
            _ => {}
        }
        self.made.lock().unwrap().insert(path.metadata().unwrap().ino());
        Ok(())
    }
}

#[test]
fn a_layout_is_changed_in_place_or_the_file_is_copied() {
    for (pace, fails) in
        PACES.into_iter().flat_map(|pace| ["", "refuses", "alters", "is overtaken"].map(|fails| (pace, fails)))
    {
        let stage = Stage::new(small());
        plain(&stage);
        let (path, made) = (stage.path("f"), Mutex::default());
        let maker = Changing { made: &made, fails };
        let before = path.metadata().unwrap().ino();
        let migrate = || migrate_in_chunks(&stage.runtime(), &path, Goal::Native(&maker), pace, &mut |_| {});
        let done = migrate();
        match fails {
            "alters" => assert!(matches!(done, Err(MigrateError::Altered(_))), "{done:?}"),
            "is overtaken" => assert!(matches!(done, Err(MigrateError::Changed(_))), "{done:?}"),
            _ => {
                assert_eq!(done, Ok(Migration::Done(LEN as u64)));
                assert_eq!(std::fs::read(&path).unwrap(), bytes());
                assert_eq!(path.metadata().unwrap().ino() == before, fails.is_empty());
                assert_eq!(migrate(), Ok(Migration::AlreadyThere));
            }
        }
        assert_eq!(names(&stage), ["f"]);
    }
}
