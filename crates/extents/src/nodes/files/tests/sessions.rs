//! Session bytes: which sessions are alive, and who may recover them.

use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use stripewise_sys::{Errno, Fd, LockKind, Mode, OFlags, Real, Sys, SysRef};

use super::support::*;
use crate::joining::Start;
use crate::journal::{COMMIT_BYTE, JOIN_BYTE, Place};
use crate::nodes::{Batch, Engine, FileEngine, JoinLock, Log, Session, recover, session_states};
use crate::tests::support::real;

fn recover_with(engine: &mut FileEngine, dead: Session) {
    let author = engine.session();
    engine
        .append(&mut |log: &Log| {
            let records = if log.member(dead).is_some() { recover(log, dead) } else { Vec::new() };
            Batch::by(author, records)
        })
        .unwrap();
}

#[test]
fn a_session_lives_as_long_as_one_of_its_processes() {
    let bed = Bed::new();
    let (one, mut two) = (bed.join(1), bed.join(2));
    let session = one.session();
    let second = FileEngine::attach(&real(), &bed.spec(1), session).unwrap().unwrap();
    assert!(!two.lock_dead(session).unwrap());
    drop(one);
    assert!(!two.lock_dead(session).unwrap(), "its second process lives");
    drop(second);
    assert!(two.lock_dead(session).unwrap());
}

#[test]
fn a_session_is_not_dead_for_itself() {
    let bed = Bed::new();
    let mut engine = bed.join(1);
    let mut same = FileEngine::attach(&real(), &bed.spec(1), engine.session()).unwrap().unwrap();
    for _ in 0..2 {
        assert!(!engine.lock_dead(engine.session()).unwrap());
        assert!(!same.lock_dead(engine.session()).unwrap());
    }
    // Asking has not given up the own lock.
    let mut other = bed.join(2);
    assert!(!other.lock_dead(engine.session()).unwrap());
}

#[test]
fn one_node_at_a_time_recovers_a_session() {
    let bed = Bed::new();
    let (dead, mut one, mut two) = (bed.join(1), bed.join(2), bed.join(3));
    let session = dead.session();
    append(&mut one, &[changes(0, 10, 3)]).unwrap();
    drop(dead);
    assert!(one.lock_dead(session).unwrap());
    assert!(one.lock_dead(session).unwrap(), "it has the lock already");
    assert!(!two.lock_dead(session).unwrap(), "it is being recovered");
    recover_with(&mut one, session);
    assert_eq!(one.log().member(session), None);
    assert!(two.lock_dead(session).unwrap(), "the lock was given back");
    recover_with(&mut two, session);
    assert_eq!(two.log(), one.log());
}

#[test]
fn a_recovery_that_is_interrupted_is_made_by_another_node() {
    let bed = Bed::new();
    let (dead, mut one, mut two) = (bed.join(1), bed.join(2), bed.join(3));
    let session = dead.session();
    drop(dead);
    assert!(one.lock_dead(session).unwrap());
    drop(one);
    assert!(two.lock_dead(session).unwrap());
    recover_with(&mut two, session);
    assert_eq!(two.log().member(session), None);
}

#[test]
fn a_process_does_not_go_on_with_a_session_that_was_recovered() {
    let bed = Bed::new();
    let (dead, mut other) = (bed.join(1), bed.join(2));
    let session = dead.session();
    drop(dead);
    let again = FileEngine::attach(&real(), &bed.spec(1), session).unwrap();
    assert!(again.is_some_and(|again| again.session() == session), "not recovered yet");
    assert!(other.lock_dead(session).unwrap());
    recover_with(&mut other, session);
    assert!(FileEngine::attach(&real(), &bed.spec(1), session).unwrap().is_none());
    let others = FileEngine::attach(&real(), &bed.spec(1), other.session()).unwrap();
    assert!(others.is_none(), "another node's session");
}

#[test]
fn a_process_does_not_go_on_with_a_session_that_was_recovered_while_it_joined() {
    let bed = Bed::new();
    let (dead, mut other, spec) = (bed.join(1), bed.join(2), bed.spec(1));
    let (session, place) = (dead.session(), Arc::new(Place::new(&real(), &spec).unwrap()));
    let start = {
        let (joining, stat) = place.lock_join(false).unwrap();
        Start::of_joining(&spec, &place, &HEADER, (&joining, &stat)).unwrap()
    };
    drop(dead);
    let again = FileEngine::attach_at(&place, &spec, session, &start).unwrap();
    assert!(again.is_some(), "not recovered yet");
    drop(again);
    assert!(other.lock_dead(session).unwrap());
    recover_with(&mut other, session);
    assert!(FileEngine::attach_at(&place, &spec, session, &start).unwrap().is_none());
}

#[test]
fn a_process_that_leaves_has_the_join_lock_beyond_its_append() {
    let bed = Bed::new();
    let (mut engine, place) = (bed.join(1), Place::new(&real(), &bed.spec(2)).unwrap());
    let is_free = |byte| {
        let take = |fd: BorrowedFd<'_>| real().try_lock(fd, byte, 1, LockKind::Exclusive);
        place.lock_named(Path::new(&place.name), false, take).unwrap().is_some()
    };
    let join = engine.lock_join().unwrap().unwrap();
    let record = writes(engine.session(), 0, 10);
    engine.put(&mut |_| vec![record.clone()], JoinLock::Callers).unwrap();
    assert!(!is_free(JOIN_BYTE) && is_free(COMMIT_BYTE));
    drop(join);
    assert!(is_free(JOIN_BYTE));
    bed.join(2).rewrite().unwrap();
    assert!(engine.lock_join().unwrap().is_none(), "another file is the journal");
    assert!(is_free(JOIN_BYTE));
}

fn states(sys: &SysRef, bed: &Bed) -> Vec<(String, bool, Option<bool>)> {
    let found = session_states(sys, &bed.spec(9), &bed.log()).unwrap();
    found.into_iter().map(|state| (state.node.name, state.is_alone, state.is_alive.ok())).collect()
}

#[test]
fn a_tool_shows_sessions_that_are_alive_and_those_to_be_recovered() {
    let bed = Bed::new();
    assert_eq!(states(&real(), &bed), []);
    let (one, two) = (bed.join(1), bed.join(2));
    let named = |number: u8, alone, alive| (format!("node{number}"), alone, alive);
    let before = bed.bytes();
    assert_eq!(states(&real(), &bed), [named(1, true, Some(true)), named(2, false, Some(true))]);
    drop(one);
    assert_eq!(states(&real(), &bed), [named(1, true, Some(false)), named(2, false, Some(true))]);
    assert_eq!(bed.bytes(), before);
    // Nothing is locked any more.
    assert!(bed.join(3).lock_dead(Session(1)).unwrap());
    drop(two);
}

/// A kernel that has mounted the file system read-only.
struct ReadsOnly;

impl Sys for ReadsOnly {
    fn open_beneath(
        &self,
        dir: BorrowedFd<'_>,
        path: &Path,
        flags: OFlags,
        mode: Mode,
    ) -> stripewise_sys::Result<Fd> {
        if flags.contains(OFlags::RDWR) { Err(Errno::ROFS) } else { Real.open_beneath(dir, path, flags, mode) }
    }
}

#[test]
fn whether_a_session_is_alive_stays_unknown_on_a_read_only_mount() {
    let bed = Bed::new();
    let one = bed.join(1);
    let sys: SysRef = Arc::new(ReadsOnly);
    assert_eq!(states(&sys, &bed), [("node1".to_owned(), true, None)]);
    drop(one);
}

/// A kernel that replaces `ID.manifest` just before a session byte is locked.
struct Replaces {
    manifest: PathBuf,
    locks: AtomicU32,
}

impl Sys for Replaces {
    fn lock(&self, fd: BorrowedFd<'_>, start: u64, len: u64, kind: LockKind) -> stripewise_sys::Result<()> {
        // After the join lock and the commit lock.
        if self.locks.fetch_add(1, Ordering::Relaxed) == 2 {
            let new = self.manifest.with_extension("new");
            std::fs::write(&new, b"").unwrap();
            std::fs::rename(&new, &self.manifest).unwrap();
        }
        Real.lock(fd, start, len, kind)
    }
}

#[test]
fn a_session_locks_the_manifest_that_has_the_name() {
    let bed = Bed::new();
    let manifest = bed.dir.path().join("f.manifest");
    let replaces = Arc::new(Replaces { manifest, locks: AtomicU32::new(0) });
    let sys: SysRef = replaces.clone();
    let engine = bed.join_on(&sys, 1);
    assert_eq!(replaces.locks.load(Ordering::Relaxed), 4, "one of the new file as well");
    assert!(!bed.join(2).lock_dead(engine.session()).unwrap());
}

#[test]
fn numbers_are_not_used_twice() {
    let bed = Bed::new();
    let mut first = bed.join(1);
    bed.join(2).leave().unwrap();
    assert_eq!(bed.join(3).session(), Session(3));
    let fourth = bed.join(4);
    assert_eq!(fourth.session(), Session(4));
    fourth.leave().unwrap();
    // The new journal names no session with the highest number.
    first.rewrite().unwrap();
    assert_eq!(bed.log().last_session(), Session(4));
    assert_eq!(bed.join(5).session(), Session(5));
}
