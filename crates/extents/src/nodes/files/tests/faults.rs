//! System calls that fail: once, or all of them from one on, as on a node that was cut off.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use stripewise_faulty::{Disk, Faulty, Journal as Names};
use stripewise_sys::{Dir, Errno, LockKind, Real, Stat, Sys, SysRef};

use super::support::*;
use crate::journal::{COMMIT_BYTE, JOIN_BYTE, Place};
use crate::nodes::{Batch, Engine, FileEngine, Record};
use crate::tests::support::real;

/// A kernel whose calls fail from one on.
struct Fails {
    /// Number of calls before it; negative after it.
    left: AtomicI64,
    is_once: bool,
    errno: Errno,
}

impl Fails {
    fn with(errno: Errno, is_once: bool) -> Arc<Self> {
        Arc::new(Self { left: AtomicI64::new(i64::MAX), is_once, errno })
    }

    fn at(&self, call: i64) {
        self.left.store(call, Ordering::Relaxed);
    }

    fn has_failed(&self) -> bool {
        self.left.load(Ordering::Relaxed) < 0
    }

    fn before(&self, call: &'static str) -> stripewise_sys::Result<()> {
        if matches!(call, "unlock" | "close") {
            return Ok(());
        }
        let left = self.left.fetch_sub(1, Ordering::Relaxed);
        if left == 0 || (left < 0 && !self.is_once) { Err(self.errno) } else { Ok(()) }
    }
}

impl Sys for Fails {
    stripewise_faulty::delegate!(before);

    fn lock(&self, fd: BorrowedFd<'_>, start: u64, len: u64, kind: LockKind) -> stripewise_sys::Result<()> {
        self.before("lock").and_then(|()| Real.lock(fd, start, len, kind))
    }

    fn stat(&self, fd: BorrowedFd<'_>) -> stripewise_sys::Result<Stat> {
        self.before("stat").and_then(|()| Real.stat(fd))
    }

    fn stat_at(&self, dir: Dir<'_>, path: &Path, follow: bool) -> stripewise_sys::Result<Stat> {
        self.before("stat").and_then(|()| Real.stat_at(dir, path, follow))
    }
}

fn record() -> Record {
    changes(0, 10, 2)
}

type Work = fn(&mut FileEngine) -> crate::Result<()>;
const WORKS: [(&str, Work); 4] = [
    ("read", |engine| engine.read()),
    ("append", |engine| append(engine, &[record()])),
    ("rewrite", |engine| engine.rewrite()),
    ("lock", |engine| engine.lock_dead(engine.session()).map(drop)),
];

struct Outcome {
    done: crate::Result<()>,
    has_failed: bool,
    is_over: bool,
}

/// Does `work` on a node whose call number `call` fails, and checks that the others go on.
fn fails_at(call: i64, fails: &Arc<Fails>, (name, work): (&str, Work)) -> Outcome {
    let bed = Bed::new();
    fails.at(i64::MAX);
    let sys: SysRef = fails.clone();
    let (mut engine, mut other) = (bed.join_on(&sys, 1), bed.join(2));
    other.rewrite().unwrap();
    append(&mut other, &[changes(100, 110, 4)]).unwrap();
    let before = bed.log();
    fails.at(call);
    let done = work(&mut engine);
    let has_failed = fails.has_failed();
    let mut after = before.clone();
    after.apply(&Batch { author: engine.session(), record: record() });
    let (found, states) = (rewritten(&bed.log()), [rewritten(&before), rewritten(&after)]);
    let case = format!("{name}, call {call}, {:?}", fails.errno);
    if name == "append" && done.is_ok() {
        assert_eq!(found, states[1], "{case}");
    } else {
        let is_possible = if name == "append" { states.contains(&found) } else { found == states[0] };
        assert!(is_possible, "{case}: {found:?}");
    }
    // The failure is over; a session that is over stays so.
    let is_over = engine.is_over();
    fails.at(i64::MAX);
    let (journal, inode) = (bed.bytes(), bed.inode());
    let again: Vec<_> = WORKS.iter().map(|(_, work)| work(&mut engine)).collect();
    if is_over {
        let ends = |done: &crate::Result<()>| done.as_ref().is_err_and(|error| error.errno() == Errno::IO);
        assert!(again.iter().all(ends), "{case}: {again:?}");
        assert_eq!((bed.bytes(), bed.inode()), (journal, inode), "{case}: a session that is over writes");
    } else {
        again.into_iter().for_each(|done| done.unwrap_or_else(|error| panic!("{case}: {error}")));
    }
    let session = engine.session();
    assert!(!other.lock_dead(session).unwrap(), "{case}: it may still write");
    drop(engine);
    assert!(other.lock_dead(session).unwrap(), "{case}");
    append(&mut other, &[changes(200, 210, 4)]).unwrap();
    assert_eq!(bed.log(), *other.log(), "{case}");
    Outcome { done, has_failed, is_over }
}

fn all(fails: &Arc<Fails>, work: (&str, Work), check: impl Fn(i64, &Outcome)) -> i64 {
    for call in 0.. {
        let outcome = fails_at(call, fails, work);
        if !outcome.has_failed {
            assert!(outcome.done.is_ok());
            return call;
        }
        check(call, &outcome);
    }
    unreachable!()
}

#[test]
fn a_call_that_fails_once_ends_the_session_or_changes_nothing() {
    let fails = Fails::with(Errno::IO, true);
    for work in WORKS {
        let calls = all(&fails, work, |call, outcome| {
            let is_told = outcome.done.is_err() == outcome.is_over;
            assert!(is_told, "{}, call {call}: {:?}", work.0, outcome.done);
        });
        println!("{}: {calls} calls", work.0);
    }
}

#[test]
fn a_node_that_is_cut_off_at_any_call_has_no_session() {
    let fails = Fails::with(Errno::IO, false);
    for work in WORKS {
        all(&fails, work, |call, outcome| {
            assert!(outcome.is_over, "{}, call {call}: {:?}", work.0, outcome.done);
        });
    }
}

/// A node's engine whose calls on certain files fail.
fn faulty(bed: &Bed) -> (Arc<Faulty>, FileEngine) {
    let disk = Disk::new(bed.dir.path(), Names::Ordered).unwrap();
    let faulty = Faulty::new(&disk, 1);
    let sys: SysRef = faulty.clone();
    let engine = bed.join_on(&sys, 1);
    (faulty, engine)
}

#[test]
fn a_journal_that_cannot_be_written_anew_goes_on_as_it_is() {
    let bed = Bed::new();
    let (faulty, mut engine) = faulty(&bed);
    for (call, name) in [("open", ".new"), ("pwrite", ".new"), ("fsync", ".new"), ("rename", "f.extents")] {
        faulty.fail(call, name, Errno::NOSPC, 1);
        assert_eq!(engine.rewrite().unwrap_err().errno(), Errno::NOSPC, "{call}");
        assert!(!engine.is_over(), "{call}");
        append(&mut engine, &[record()]).unwrap();
    }
    // Also where it has become too long.
    let inode = bed.inode();
    faulty.fail("pwrite", "f.extents.new", Errno::NOSPC, u64::MAX);
    (0..50).for_each(|_| append(&mut engine, &[record()]).unwrap());
    assert_eq!((bed.inode(), bed.log()), (inode, engine.log().clone()));
}

/// A kernel that cannot sync the directory after a rename.
#[derive(Default)]
struct ForgetsNames {
    has_renamed: AtomicBool,
}

impl ForgetsNames {
    fn before(&self, call: &'static str) -> stripewise_sys::Result<()> {
        match call {
            "rename" => self.has_renamed.store(true, Ordering::Relaxed),
            "fsync" if self.has_renamed.load(Ordering::Relaxed) => return Err(Errno::NOSPC),
            _ => {}
        }
        Ok(())
    }
}

impl Sys for ForgetsNames {
    stripewise_faulty::delegate!(before);
}

/// After a power cut, either of the journals may have the name.
#[test]
fn a_rename_that_is_not_durable_ends_the_session() {
    let bed = Bed::new();
    let forgets: SysRef = Arc::new(ForgetsNames::default());
    let mut engine = bed.join_on(&forgets, 1);
    assert_eq!(engine.rewrite().unwrap_err().errno(), Errno::NOSPC);
    assert!(engine.is_over());
}

/// A sync that failed proves nothing later, but a journal that was written anew does not need it.
#[test]
fn an_append_whose_sync_fails_is_in_a_new_journal() {
    let bed = Bed::new();
    let (faulty, mut engine) = faulty(&bed);
    for call in ["fsync", "pwrite"] {
        let before = bed.inode();
        faulty.fail(call, "f.extents", Errno::IO, 1);
        append(&mut engine, &[record()]).unwrap();
        assert_ne!(bed.inode(), before, "{call}");
        assert_eq!(bed.log(), *engine.log());
    }
}

/// While another process joins, the journal cannot be written anew.
#[test]
fn an_append_that_fails_while_a_node_joins_ends_the_session() {
    let bed = Bed::new();
    let fails = Fails::with(Errno::IO, true);
    let sys: SysRef = fails.clone();
    let mut engine = bed.join_on(&sys, 1);
    let place = Place::new(&real(), &bed.spec(2)).unwrap();
    let joins = place.lock(JOIN_BYTE, false).unwrap();
    let calls = |work: &mut dyn FnMut()| {
        fails.at(1 << 40);
        work();
        (1 << 40) - fails.left.load(Ordering::Relaxed)
    };
    let sync = calls(&mut || append(&mut engine, &[record()]).unwrap()) - 1;
    fails.at(sync);
    append(&mut engine, &[record()]).unwrap_err();
    assert!(engine.is_over());
    // Other processes of the machine must learn it before they append.
    let is_free = || {
        let fd = joins.as_fd();
        let is_free = real().try_lock(fd, COMMIT_BYTE, 1, LockKind::Exclusive).unwrap();
        real().unlock(fd, COMMIT_BYTE, 1).unwrap();
        is_free
    };
    assert!(!is_free());
    drop(engine);
    assert!(is_free());
}
