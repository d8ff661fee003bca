//! Session bytes: which sessions are alive, and who may recover them.

use super::support::*;
use crate::nodes::{Batch, Engine, FileEngine, Log, Record, Session, recover};
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

/// A node that joins waits for a process that looks at a byte, and takes the file that has the name
/// then.
#[test]
fn a_session_locks_the_manifest_that_has_the_name() {
    use std::os::fd::AsFd;
    use stripewise_sys::{Mode, OFlags};
    let bed = Bed::new();
    let path = bed.dir.path().join("f.manifest");
    let repair = real().open(None, &path, OFlags::RDWR, Mode::empty()).unwrap();
    assert!(crate::nodes::lock_sessions(&real(), repair.as_fd()).unwrap());
    std::thread::scope(|scope| {
        let joins = scope.spawn(|| bed.join(1));
        // The join waits, or has not begun: in both cases it must not lock the old file.
        std::fs::write(path.with_extension("new"), b"").unwrap();
        std::fs::rename(path.with_extension("new"), &path).unwrap();
        drop(repair);
        let engine = joins.join().unwrap();
        assert!(!bed.join(2).lock_dead(engine.session()).unwrap());
    });
}

#[test]
fn numbers_are_not_used_twice() {
    let bed = Bed::new();
    let mut numbers = Vec::new();
    for round in 0..3 {
        let mut engine = bed.join(1);
        numbers.push(engine.session().0);
        if round == 1 {
            engine.rewrite().unwrap();
        }
        engine.leave().unwrap();
    }
    bed.join(1).rewrite().unwrap();
    numbers.push(bed.join(2).session().0);
    assert_eq!(numbers, [1, 2, 3, 5]);
    let records = vec![Record::Left(Session(9))];
    append(&mut bed.join(3), &records).unwrap();
}
