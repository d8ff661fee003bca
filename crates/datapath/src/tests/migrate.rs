//! Migrations leave a complete file wherever they are interrupted.

use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;

use stripewise_faulty::{Disk, Faulty, Journal};
use stripewise_layout::Layout;
use stripewise_layout::constructors::{striped, two_part};
use stripewise_sys::OFlags;

use super::crash::at_every_point;
use super::support::*;
use crate::migrate::{
    Contents, Goal, MigrateError, Migration, Pace, Phase, copy_file, migrate, migrate_in_chunks,
};
use crate::{Errno, Runtime, Shape};

fn other() -> Layout {
    two_part(&[(2, 11), (1, 2)], 90, &[(0, 30)]).unwrap()
}

fn bytes() -> Vec<u8> {
    pattern(5, 250)
}

/// The bytes of the plain or managed file at `path`, and the layout of a managed one.
fn read(runtime: &Runtime, path: &Path) -> (Vec<u8>, Option<Layout>) {
    let file = Contents::open(runtime, path).unwrap();
    let mut all = vec![0; file.stat().unwrap().st_size as usize];
    assert_eq!(file.read(&mut all, 0), Ok(all.len()));
    let layout = file.managed().map(|file| file.manifest().layout.clone());
    (all, layout)
}

fn names(stage: &Stage) -> Vec<String> {
    let entries = std::fs::read_dir(stage.path("")).unwrap().flatten();
    entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

fn plain(stage: &Stage) {
    std::fs::write(stage.path("f"), bytes()).unwrap();
}

fn managed(stage: &Stage) {
    plain(stage);
    run(&stage.runtime(), &stage.path("f"), Goal::Managed(Shape::from(&small()))).unwrap();
}

/// Small chunks, and a fixed order of system calls.
const PACE: Pace = Pace { chunk_bytes: 100, streams: 1 };

fn run(runtime: &Runtime, path: &Path, goal: Goal<'_>) -> Result<Migration, MigrateError> {
    migrate_in_chunks(runtime, path, goal, PACE, &mut |_| {})
}

/// Wherever the migration is interrupted, the file is complete, and the next run leaves nothing
/// behind.
fn survives(prepare: fn(&Stage), goal: Goal<'_>) {
    let act = |runtime: &Runtime, path: &Path| run(runtime, path, goal).map(drop).map_err(|_| Errno::IO);
    at_every_point(prepare, act, |stage, ended| {
        let path = stage.path("f");
        let (all, layout) = read(&stage.runtime(), &path);
        assert_eq!(all, bytes());
        let there = match goal {
            Goal::Managed(goal) => layout.as_ref() == Some(goal.layout()),
            _ => layout.is_none(),
        };
        assert!(there || !ended.finished);
        let done = run(&stage.runtime(), &path, goal).unwrap();
        assert_eq!(done == Migration::AlreadyThere, there);
        let (all, layout) = read(&stage.runtime(), &path);
        assert_eq!(all, bytes());
        assert!(if let Goal::Managed(goal) = goal {
            layout.as_ref() == Some(goal.layout())
        } else {
            layout.is_none()
        });
        assert_eq!(names(stage), ["f"]);
        // After a kill every object belongs to a file; after a power cut the newest ones may not.
        if !ended.cut {
            assert_eq!(stage.objects().len(), layout.map_or(0, |layout| layout.target_count() + 1));
        }
    });
}

#[test]
fn into_a_layout() {
    survives(plain, Goal::Managed(Shape::from(&small())));
}

#[test]
fn into_another_layout() {
    survives(managed, Goal::Managed(Shape::from(&other())));
}

#[test]
fn back_to_a_plain_file() {
    survives(managed, Goal::Plain);
}

#[test]
fn a_second_run_copies_only_what_the_first_did_not() {
    let stage = Stage::new(small());
    plain(&stage);
    let disk = Disk::new(stage.root.path(), Journal::Posix).unwrap();
    let process = Faulty::new(&disk, 0);
    let mut copied = Vec::new();
    let killed = migrate_in_chunks(
        &stage.runtime_on(process.clone()),
        &stage.path("f"),
        Goal::Managed(Shape::from(&small())),
        PACE,
        &mut |progress| {
            copied.push(progress.done);
            if progress.done == 200 {
                process.crash_at(process.calls() + 1);
            }
        },
    );
    assert!(killed.is_err() && copied == [100, 200], "{copied:?}");
    let mut copied = Vec::new();
    let tell = &mut |progress: crate::migrate::Progress| copied.push((progress.phase, progress.done));
    migrate_in_chunks(&stage.runtime(), &stage.path("f"), Goal::Managed(Shape::from(&small())), PACE, tell)
        .unwrap();
    let verified = [100, 200, 250].map(|done| (Phase::Verify, done));
    assert_eq!(copied[..2], [(Phase::Found, 200), (Phase::Copy, 250)], "the last chunk is copied");
    assert_eq!(copied[2..], verified, "all are verified");
}

#[test]
fn mode_times_and_holes_stay() {
    let stage = Stage::new(striped(&[0, 1], 1 << 20).unwrap());
    let (runtime, path) = (stage.runtime(), stage.path("f"));
    let file = std::fs::File::create(&path).unwrap();
    file.set_permissions(std::fs::Permissions::from_mode(0o4751)).unwrap();
    file.write_all_at(&pattern(1, 5000), 10 << 20).unwrap();
    file.write_all_at(&[0; 5000], 20 << 20).unwrap();
    file.set_len(1 << 30).unwrap();
    let hour = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::new(3600, 12_345);
    file.set_times(std::fs::FileTimes::new().set_modified(hour).set_accessed(hour)).unwrap();
    drop(file);
    let layout = striped(&[0, 1], 1 << 20).unwrap();
    for goal in [Goal::Managed(Shape::from(&layout)), Goal::Plain] {
        assert_eq!(migrate(&runtime, &path, goal, &mut |_| {}).unwrap(), Migration::Done(1 << 30));
        let file = Contents::open(&runtime, &path).unwrap();
        let stat = file.stat().unwrap();
        assert_eq!((stat.st_size, stat.st_mode & 0o7777), (1 << 30, 0o4751));
        assert_eq!((stat.st_mtime, stat.st_mtime_nsec), (3600, 12_345));
        assert!(stat.st_blocks < 1000, "{}", stat.st_blocks);
        let mut got = vec![0; 5000];
        file.read(&mut got, 10 << 20).unwrap();
        assert_eq!(got, pattern(1, 5000));
    }
}

/// The file is open elsewhere: in another process, as far as the kernel can tell.
#[test]
fn a_file_that_is_open_elsewhere_stays_where_it_is() {
    let stage = Stage::new(small());
    let path = stage.path("f");
    let in_use = Err(MigrateError::InUse(path.clone()));
    let place = || migrate(&stage.runtime(), &path, Goal::Managed(Shape::from(&small())), &mut |_| {});
    let export = || migrate(&stage.runtime(), &path, Goal::Plain, &mut |_| {});
    plain(&stage);
    let reader = std::fs::File::open(&path).unwrap();
    assert_eq!(place(), in_use);
    drop(reader);
    assert_eq!(place(), Ok(Migration::Done(bytes().len() as u64)));
    assert_eq!(place(), Ok(Migration::AlreadyThere));
    let opened = open(&stage.runtime(), &path, OFlags::RDWR).unwrap();
    assert_eq!(export(), in_use);
    opened.file.write(b"not lost", 0, 1).unwrap();
    drop(opened);
    // A program without stripewise counts too.
    let anchor = std::fs::File::open(&path).unwrap();
    assert_eq!(export(), in_use);
    drop(anchor);
    assert_eq!(names(&stage), ["f"]);
    assert_eq!(export(), Ok(Migration::Done(bytes().len() as u64)));
    assert_eq!(&std::fs::read(&path).unwrap()[..8], b"not lost");
}

#[test]
fn a_program_that_opens_the_file_meanwhile_is_noticed() {
    let stage = Stage::new(small());
    plain(&stage);
    let path = stage.path("f");
    let mut opened = None;
    let open = &mut |_| _ = opened.get_or_insert_with(|| std::fs::File::open(&path).unwrap());
    let result = migrate(&stage.runtime(), &path, Goal::Managed(Shape::from(&small())), open);
    assert_eq!(result, Err(MigrateError::InUse(path.clone())));
    assert_eq!((read(&stage.runtime(), &path), names(&stage)), ((bytes(), None), vec!["f".into()]));
}

#[test]
fn a_change_meanwhile_is_noticed() {
    let stage = Stage::new(small());
    plain(&stage);
    let path = stage.path("f");
    let change = &mut |_| std::fs::write(&path, "somebody else was here").unwrap();
    let result = migrate(&stage.runtime(), &path, Goal::Managed(Shape::from(&small())), change);
    assert_eq!(result, Err(MigrateError::Changed(path.clone())));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "somebody else was here");
    assert_eq!((names(&stage), stage.objects().len()), (vec!["f".to_owned()], 0));
}

#[test]
fn a_file_that_is_replaced_meanwhile_stays() {
    let stage = Stage::new(small());
    plain(&stage);
    let path = stage.path("f");
    let replace = &mut |_| {
        std::fs::write(stage.path("g"), "another").unwrap();
        std::fs::rename(stage.path("g"), &path).unwrap();
    };
    let mut first = Some(replace);
    let once = &mut |progress| first.take().into_iter().for_each(|replace| replace(progress));
    let result = migrate(&stage.runtime(), &path, Goal::Managed(Shape::from(&small())), once);
    assert_eq!(result, Err(MigrateError::Changed(path.clone())));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "another");
    assert_eq!((names(&stage), stage.objects().len()), (vec!["f".to_owned()], 0));
}

#[test]
fn chunks_are_copied_and_verified_several_at_once() {
    let stage = Stage::new(small());
    let (path, all) = (stage.path("f"), pattern(3, 5_555));
    std::fs::write(&path, &all).unwrap();
    let pace = Pace { chunk_bytes: 64, streams: 5 };
    for goal in [Goal::Managed(Shape::from(&small())), Goal::Plain] {
        let mut told = Vec::new();
        migrate_in_chunks(&stage.runtime(), &path, goal, pace, &mut |progress| told.push(progress.done))
            .unwrap();
        assert_eq!(read(&stage.runtime(), &path).0, all);
        let (copied, verified) = told.split_at(told.len() / 2);
        assert!(
            [copied, verified].iter().all(|told| told.is_sorted() && told.last() == Some(&5_555)),
            "{told:?}"
        );
    }
}

#[test]
fn failures_leave_the_old_file_and_nothing_else() {
    for (call, path) in
        [("pwrite", ".1"), ("fsync", ".2"), ("rename", "/f"), ("pwrite", "journal"), ("pread", ".0")]
    {
        let stage = Stage::new(small());
        plain(&stage);
        let disk = Disk::new(stage.root.path(), Journal::Posix).unwrap();
        let process = Faulty::new(&disk, 0);
        process.fail(call, path, Errno::NOSPC, 1);
        let result = run(&stage.runtime_on(process), &stage.path("f"), Goal::Managed(Shape::from(&small())));
        assert!(result.is_err(), "{call} {path}");
        assert_eq!(read(&stage.runtime(), &stage.path("f")), (bytes(), None));
        assert_eq!((names(&stage), stage.objects().len()), (vec!["f".to_owned()], 0), "{call} {path}");
    }
}

#[test]
fn bytes_that_do_not_arrive_are_noticed() {
    let stage = Stage::new(small());
    plain(&stage);
    let path = stage.path("f");
    let spoil = |_: crate::migrate::Progress| {
        let object = stage.objects().into_iter().find(|name| name.ends_with(".1"));
        if let Some(name) = object {
            let path = stage.root.path().join(format!("t1/stripewise/{}/{name}", home()));
            std::fs::OpenOptions::new().write(true).open(path).unwrap().write_all_at(b"?", 1).unwrap();
        }
    };
    let result = migrate(&stage.runtime(), &path, Goal::Managed(Shape::from(&small())), &mut { spoil });
    assert_eq!(result, Err(MigrateError::Damaged(path.clone())));
    assert_eq!(std::fs::read(&path).unwrap(), bytes());
}

#[test]
fn what_cannot_be_migrated() {
    let stage = Stage::new(small());
    plain(&stage);
    let goal = Goal::Managed(Shape::from(&stage.plan.rules[0].layouts[0]));
    std::fs::hard_link(stage.path("f"), stage.path("g")).unwrap();
    let runtime = stage.runtime();
    assert!(matches!(migrate(&runtime, &stage.path("f"), goal, &mut |_| {}), Err(MigrateError::Linked { .. })));
    assert!(matches!(migrate(&runtime, &stage.path(""), goal, &mut |_| {}), Err(MigrateError::NotRegular(_))));
    std::fs::remove_file(stage.path("g")).unwrap();
    let mut second = None;
    let again = &mut |_| second = Some(migrate(&stage.runtime(), &stage.path("f"), goal, &mut |_| {}));
    migrate(&runtime, &stage.path("f"), goal, again).unwrap();
    assert_eq!(second, Some(Err(MigrateError::Busy(stage.path("f")))));
}

#[test]
fn copies_between_all_kinds() {
    let stage = Stage::new(small());
    plain(&stage);
    let runtime = stage.runtime();
    let steps: [(&str, &str, Option<Layout>, Option<Layout>); 5] = [
        ("f", "a", Some(small()), Some(small())),
        ("a", "b", None, None),
        ("a", "c", Some(other()), Some(other())),
        ("b", "c", None, Some(other())),
        ("c", "a", Some(other()), Some(other())),
    ];
    for (from, to, layout, expected) in steps {
        let copied = copy_file(
            &runtime,
            &stage.path(from),
            &stage.path(to),
            layout.as_ref().map(Shape::from),
            &mut |_| {},
        );
        assert_eq!(copied, Ok(250));
        assert_eq!(read(&stage.runtime(), &stage.path(to)), (bytes(), expected), "{from} {to}");
    }
    assert_eq!(stage.objects().len(), 8, "what was replaced is gone");
    assert!(copy_file(&runtime, &stage.path("no"), &stage.path("a"), None, &mut |_| {}).is_err());
    assert!(copy_file(&runtime, &stage.path("f"), &stage.path(""), None, &mut |_| {}).is_err());
    assert_eq!(std::fs::metadata(stage.path("b")).unwrap().len(), 250);
    assert_eq!(names(&stage).len(), 4);
}
