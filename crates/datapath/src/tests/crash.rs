//! After a kill or a power cut at any moment, a file is in its old or its new state.
//!
//! Fault model: `stripewise_faulty`. Every call of every protocol is a moment to die. After a
//! power cut, several choices of what the disk kept are tried, for a journal that orders names and
//! for one that guarantees only what POSIX does.

use std::ops::ControlFlow;
use std::path::Path;

use stripewise_cluster::CacheMode;
use stripewise_faulty::{Disk, Faulty, Journal};
use stripewise_sys::OFlags;

use super::setup::Setup;
use super::support::*;
use crate::{Errno, Opened, Result, Runtime};

/// How a run ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// The operation had completed successfully before.
    pub finished: bool,
    /// The run ended in a power cut; otherwise the process was killed.
    pub cut: bool,
}

/// Power cuts to try. Without STRIPEWISE_LONG only the first three are used.
const CUTS: [(Journal, u64); 9] = [
    (Journal::Posix, 1),
    (Journal::Posix, 2),
    (Journal::Ordered, 3),
    (Journal::Posix, 4),
    (Journal::Posix, 5),
    (Journal::Posix, 6),
    (Journal::Posix, 7),
    (Journal::Ordered, 8),
    (Journal::Ordered, 9),
];

/// Kills `act` before each of its calls, with and without a power cut at that point. `check`
/// examines the result.
pub fn at_every_point(
    prepare: impl Fn(&Stage),
    act: impl Fn(&Runtime, &Path) -> Result<()>,
    check: impl Fn(&Stage, Ended),
) {
    at_every_point_of(&Setup::single(small()), prepare, act, check);
}

/// The same for files of any setup.
pub fn at_every_point_of(
    setup: &Setup,
    prepare: impl Fn(&Stage),
    act: impl Fn(&Runtime, &Path) -> Result<()>,
    check: impl Fn(&Stage, Ended),
) {
    // Files with copies make many calls: without STRIPEWISE_LONG, test every fifth one.
    let stride = if setup.overlay.is_none() || is_long() { 1 } else { 5 };
    for call in 0.. {
        let mut alive = false;
        let cuts = CUTS.iter().copied().take(if is_long() { CUTS.len() } else { 3 });
        let cuts = std::iter::once(None).chain(cuts.map(Some));
        for (_, cut) in (0..).zip(cuts).filter(|(number, _)| (call + 2 * number) % stride == 0) {
            let stage = Stage::of(setup);
            prepare(&stage);
            let journal = cut.map_or(Journal::Posix, |(journal, _)| journal);
            let disk = Disk::new(stage.root.path(), journal).unwrap();
            let process = Faulty::new(&disk, call);
            process.crash_at(call);
            let result = act(&stage.runtime_on(process.clone()), &stage.path("f"));
            alive = !process.is_dead();
            assert!(!alive || result.is_ok(), "{result:?} {:#?}", process.log());
            if let Some((_, seed)) = cut {
                stage.power_cut(&disk, call * 100 + seed);
            }
            let log = process.log();
            let last = log.last().cloned().unwrap_or_default();
            let told = Told(format!("killed at {last}, {cut:?}"));
            check(&stage, Ended { finished: alive, cut: cut.is_some() });
            std::mem::forget(told);
        }
        if alive {
            return;
        }
    }
}

/// Prints where the process was killed if a check fails.
struct Told(String);

impl Drop for Told {
    fn drop(&mut self) {
        eprintln!("{}", self.0);
    }
}

/// Creates a file with 300 bytes, synced.
fn with_file(name: &'static str) -> impl Fn(&Stage) {
    move |stage| {
        let opened = open(&stage.runtime(), &stage.path(name), CREATE).unwrap();
        opened.file.write(&old(), 0, 1).unwrap();
    }
}

fn old() -> Vec<u8> {
    pattern(1, 300)
}

fn new() -> Vec<u8> {
    pattern(2, 300)
}

/// The bytes of a managed file that must be complete; `None` if there is no file.
fn whole(stage: &Stage, name: &str) -> Option<Vec<u8>> {
    match open(&stage.runtime(), &stage.path(name), OFlags::RDWR) {
        Ok(opened) => Some(opened.file.all().unwrap()),
        Err(Errno::NOENT) => None,
        Err(error) => panic!("{name}: {error}"),
    }
}

/// Generates a test of each protocol for every kind of file.
macro_rules! of_every_kind {
    ($($name:ident)*) => {
        mod single {
            use super::*;
            $(#[test] fn $name() { super::$name(&Setup::single(small())); })*
        }
        mod replicas {
            use super::*;
            $(#[test] fn $name() { super::$name(&Setup::replicas()); })*
        }
        mod cache {
            use super::*;
            $(#[test] fn $name() { super::$name(&Setup::cache(CacheMode::Sla, 150)); })*
        }
        mod each_write {
            use super::*;
            $(#[test] fn $name() { super::$name(&Setup::cache(CacheMode::Nsca, 1000).each_write()); })*
        }
    };
}

of_every_kind!(create create_write_sync overwrite_and_sync copies_at_work truncate truncate_to_more
    finishing_a_truncate open_with_truncation write_after_a_failed_truncate append unlink replace);

fn create(setup: &Setup) {
    let act = |runtime: &Runtime, path: &Path| open(runtime, path, CREATE).map(drop);
    at_every_point_of(
        setup,
        |_| {},
        act,
        |stage, ended| {
            if !ended.cut {
                let bytes = whole(stage, "f");
                assert!(bytes == Some(Vec::new()) || (bytes.is_none() && !ended.finished));
            }
            // Whatever a power cut left of a file that was never synced, another program can create
            // it again.
            let runtime = stage.runtime();
            match runtime.open(None, &stage.path("f"), CREATE | OFlags::TRUNC, MODE).unwrap() {
                Opened::Managed(raw, file) => {
                    file.write(&new(), 0, 1).unwrap();
                    assert_eq!(file.all().unwrap(), new());
                    stripewise_sys::fd::close_public(raw);
                }
                // The name was kept without its contents.
                Opened::Plain(raw) => {
                    assert!(ended.cut);
                    stripewise_sys::fd::close_public(raw);
                }
            }
        },
    );
}

fn create_write_sync(setup: &Setup) {
    let act = |runtime: &Runtime, path: &Path| {
        let opened = open(runtime, path, CREATE)?;
        opened.file.write(&new(), 0, 1)?;
        opened.file.sync(false)
    };
    at_every_point_of(
        setup,
        |_| {},
        act,
        |stage, ended| {
            if ended.finished {
                assert_eq!(whole(stage, "f"), Some(new()));
            } else if !ended.cut {
                let bytes = whole(stage, "f").unwrap_or_default();
                assert!(bytes.iter().zip(new()).all(|(&is, written)| is == 0 || is == written));
            }
        },
    );
}

fn overwrite_and_sync(setup: &Setup) {
    let act = |runtime: &Runtime, path: &Path| {
        let opened = open(runtime, path, OFlags::RDWR)?;
        opened.file.write(&new(), 0, 1)?;
        opened.file.sync(true)
    };
    at_every_point_of(setup, with_file("f"), act, |stage, ended| {
        let bytes = whole(stage, "f").unwrap();
        assert_eq!(bytes.len(), 300);
        for (place, is) in bytes.into_iter().enumerate() {
            assert!(is == new()[place] || (!ended.finished && is == old()[place]), "{place}");
        }
    });
}

/// A file is overwritten, copied, evicted and drained in turn: each byte is as of the last sync or
/// newer.
fn copies_at_work(setup: &Setup) {
    let act = |runtime: &Runtime, path: &Path| {
        let opened = open(runtime, path, OFlags::RDWR)?;
        let file = &opened.file;
        file.write(&new()[..200], 0, 1)?;
        file.work_a_little()?;
        file.sync(true)?;
        file.work_a_little()?;
        file.write(&old()[50..100], 50, 1)?;
        file.work_a_little()?;
        file.write(&new()[50..100], 50, 1)?;
        file.write(&new()[200..], 200, 1)?;
        file.drain(&mut |_, _| ControlFlow::Continue(()))?;
        file.work_a_little()?;
        file.sync(true)
    };
    at_every_point_of(setup, with_file("f"), act, |stage, ended| {
        for _ in 0..2 {
            let opened = open(&stage.runtime(), &stage.path("f"), OFlags::RDWR).unwrap();
            let bytes = opened.file.all().unwrap();
            assert_eq!(bytes.len(), 300);
            for (place, is) in bytes.into_iter().enumerate() {
                assert!(is == new()[place] || (!ended.finished && is == old()[place]), "{place}");
            }
            let drained = opened.file.drain(&mut |_, _| ControlFlow::Continue(())).unwrap();
            assert_eq!(drained.left_bytes, 0);
            assert_eq!(opened.file.compare(&mut |_, _| ControlFlow::Continue(())), Ok(Vec::new()));
        }
    });
}

fn truncate(setup: &Setup) {
    for size in [0, 1, 99, 100, 120, 299] {
        let act = |runtime: &Runtime, path: &Path| open(runtime, path, OFlags::RDWR)?.file.truncate(size);
        at_every_point_of(setup, with_file("f"), act, |stage, ended| {
            let bytes = whole(stage, "f").unwrap();
            let cut = bytes == old()[..size as usize];
            assert!(cut || (bytes == old() && !ended.finished), "{} bytes", bytes.len());
        });
    }
}

fn truncate_to_more(setup: &Setup) {
    let act = |runtime: &Runtime, path: &Path| open(runtime, path, OFlags::RDWR)?.file.truncate(350);
    at_every_point_of(setup, with_file("f"), act, |stage, ended| {
        let bytes = whole(stage, "f").unwrap();
        assert!(bytes.len() == 350 || (bytes.len() == 300 && (ended.cut || !ended.finished)));
        assert_eq!(bytes[..300], old());
        assert!(bytes[300..].iter().all(|&byte| byte == 0));
    });
}

/// The process that finishes a dead process's truncate dies too.
fn finishing_a_truncate(setup: &Setup) {
    let first = |stage: &Stage| {
        with_file("f")(stage);
        let disk = Disk::new(stage.root.path(), Journal::Posix).unwrap();
        let process = Faulty::new(&disk, 0);
        let opened = open(&stage.runtime_on(process.clone()), &stage.path("f"), OFlags::RDWR).unwrap();
        process.fail("ftruncate", ".1", Errno::IO, u64::MAX);
        assert_eq!(opened.file.truncate(10), Err(Errno::IO));
        process.crash_at(0);
    };
    let act = |runtime: &Runtime, path: &Path| open(runtime, path, OFlags::RDWR).map(drop);
    at_every_point_of(setup, first, act, |stage, _| assert_eq!(whole(stage, "f").unwrap(), old()[..10]));
}

/// An error leaves a truncate undone, half done, or done. Later writes of the same process must
/// survive in every case.
fn write_after_a_failed_truncate(setup: &Setup) {
    for call in ["pwrite", "ftruncate", "fsync", "fdatasync"] {
        // A truncate makes no pwrite to an object.
        for path in [".manifest", ".0", ".1"].into_iter().take(if call == "pwrite" { 1 } else { 3 }) {
            let stage = Stage::of(setup);
            with_file("f")(&stage);
            let disk = Disk::new(stage.root.path(), Journal::Posix).unwrap();
            let process = Faulty::new(&disk, 0);
            let opened = open(&stage.runtime_on(process.clone()), &stage.path("f"), OFlags::RDWR).unwrap();
            process.fail(call, path, Errno::IO, 1);
            let _ = opened.file.truncate(10);
            opened.file.write(&new()[..64], 100, 1).unwrap();
            let expected = |bytes: &[u8]| {
                let (before, rest) = (&bytes[..100], &bytes[164..]);
                let whole = before == &old()[..100] && rest == &old()[164..];
                let cut = before[..10] == old()[..10] && before[10..] == [0; 90] && rest.is_empty();
                assert!(
                    bytes[100..164] == new()[..64] && (whole || cut),
                    "{call} of {path}: {} bytes",
                    bytes.len()
                );
            };
            expected(&opened.file.all().unwrap());
            drop(opened);
            expected(&whole(&stage, "f").unwrap());
        }
    }
}

fn open_with_truncation(setup: &Setup) {
    let act = |runtime: &Runtime, path: &Path| open(runtime, path, CREATE | OFlags::TRUNC).map(drop);
    at_every_point_of(setup, with_file("f"), act, |stage, ended| {
        let bytes = whole(stage, "f").unwrap();
        assert!(bytes.is_empty() || (bytes == old() && !ended.finished), "{} bytes", bytes.len());
    });
}

fn append(setup: &Setup) {
    let act =
        |runtime: &Runtime, path: &Path| open(runtime, path, OFlags::RDWR)?.file.append_bytes(&new()).map(drop);
    at_every_point_of(setup, with_file("f"), act, |stage, ended| {
        let bytes = whole(stage, "f").unwrap();
        assert_eq!(bytes[..300], old());
        let whole = ended.finished && !ended.cut;
        assert!(bytes.len() <= 600 && (!whole || bytes.len() == 600));
        assert!(bytes[300..].iter().zip(new()).all(|(&is, written)| is == written || (!whole && is == 0)));
    });
}

fn unlink(setup: &Setup) {
    let act = |runtime: &Runtime, path: &Path| runtime.unlink(None, path);
    at_every_point_of(setup, with_file("f"), act, |stage, ended| {
        let bytes = whole(stage, "f");
        assert!(bytes.is_none() || (bytes == Some(old()) && !ended.finished));
        assert!(!ended.finished || ended.cut || stage.objects().is_empty());
    });
}

/// The way programs save files: the new file is complete and synced, then replaces the old one.
fn replace(setup: &Setup) {
    let prepare = |stage: &Stage| {
        with_file("g")(stage);
        open(&stage.runtime(), &stage.path("f"), CREATE).unwrap().file.write(&new(), 0, 1).unwrap();
    };
    let act = |runtime: &Runtime, path: &Path| {
        let other = path.with_file_name("g");
        runtime.rename(None, path, None, &other, 0)
    };
    at_every_point_of(setup, prepare, act, |stage, ended| {
        let (one, other) = (whole(stage, "f"), whole(stage, "g"));
        let before = (Some(new()), Some(old()));
        assert!(
            (one, other) == (None, Some(new()))
                || (!ended.finished && before == (whole(stage, "f"), whole(stage, "g")))
        );
    });
}
