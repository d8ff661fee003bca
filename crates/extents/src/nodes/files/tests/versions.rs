//! Journals of one node and of several, and the repairs of both.

use stripewise_sys::{Errno, LockKind, Mode, OFlags};

use super::support::*;
use crate::journal::Journal;
use crate::nodes::{Engine, FileEngine, Hold, HoldKind, Record, Session};
use crate::tests::support::{SMALL, mask, node, nothing, only, real, write};
use crate::{CopyId, Map, MapError, MapSpec, Mask, Span, repair};
use std::os::fd::AsFd;

/// A closed journal of version 1, written by the map, and what it lists.
pub fn of_one_node() -> (Bed, Vec<Span>) {
    let (bed, map) = open_on_one_node();
    map.leave(nothing).unwrap();
    let spans = Journal::read(&real(), &bed.spec(1)).unwrap().spans;
    assert_eq!(spans.len(), 2);
    (bed, spans)
}

fn open_on_one_node() -> (Bed, Map) {
    let bed = Bed::new();
    std::fs::remove_file(bed.path()).unwrap();
    let map = Map::join_tuned(real(), MapSpec { create: true, ..bed.spec(1) }, SMALL).unwrap();
    write(&map, 0..10, 1);
    write(&map, 20..30, 2);
    map.sync(nothing).unwrap();
    (bed, map)
}

fn refused(bed: &Bed, spec: &MapSpec) -> MapError {
    let before = bed.bytes();
    let error = FileEngine::join(&real(), spec).unwrap_err();
    assert_eq!(bed.bytes(), before, "{error}");
    error
}

#[test]
fn a_closed_journal_of_one_node_becomes_one_of_several() {
    let (bed, spans) = of_one_node();
    let engine = bed.join(2);
    assert_eq!(engine.log().listed(), spans);
    let journal = Journal::read(&real(), &bed.spec(9)).unwrap();
    assert_eq!((journal.spans, journal.opened), (spans, Some(bed.spec(2).node)));
    assert_eq!(&bed.bytes()[8..12], [2, 0, 0, 0]);
    engine.leave().unwrap();
    assert_eq!(Journal::read(&real(), &bed.spec(9)).unwrap().opened, None);
}

#[test]
fn a_journal_of_one_node_that_is_open_is_not_shared() {
    let (bed, map) = open_on_one_node();
    assert!(matches!(refused(&bed, &bed.spec(2)), MapError::OtherNode { .. }), "another node has it open");
    assert_eq!(refused(&bed, &bed.spec(1)).errno(), Errno::BUSY, "this node has it open");
    drop(map);
    assert_eq!(refused(&bed, &bed.spec(1)).errno(), Errno::BUSY, "the map is newer than the journal");
    std::fs::remove_dir_all(bed.spec(1).run_dir).unwrap();
    assert!(matches!(refused(&bed, &bed.spec(1)), MapError::Lost { .. }));
    // Another boot: what was not synced may differ between the copies.
    let mut spec = bed.spec(1);
    spec.node.boot = [42; 16];
    let engine = FileEngine::join(&real(), &spec).unwrap();
    assert_eq!(engine.log().spans(&(0..40)).len(), 4);
}

#[test]
fn a_reader_of_one_node_does_not_write_to_the_journal_of_several() {
    let (bed, _) = of_one_node();
    let map = Map::join_tuned(real(), bed.spec(1), SMALL).unwrap();
    let mut engine = bed.join(2);
    let error = map.begin_write(0..1).err().unwrap();
    assert!(matches!(error, MapError::Changed { .. }), "{error}");
    append(&mut engine, &[changes(50, 60, 2)]).unwrap();
    assert_eq!(bed.log(), *engine.log());
}

#[test]
fn a_journal_of_another_file_is_refused() {
    let bed = Bed::new();
    let foreign = MapSpec { id: [9; 16], ..bed.spec(1) };
    assert!(matches!(refused(&bed, &foreign), MapError::Foreign { .. }));
    let mut engine = bed.join(1);
    std::fs::remove_file(bed.path()).unwrap();
    let header = crate::journal::Header { id: [9; 16], ..HEADER };
    std::fs::write(bed.path(), header.encode()).unwrap();
    assert!(matches!(engine.read(), Err(MapError::Changed { .. })));
    assert!(engine.is_over());
}

/// A file that two nodes use.
fn used() -> (Bed, FileEngine, FileEngine) {
    let bed = Bed::new();
    let (mut one, mut two) = (bed.join(1), bed.join(2));
    let (first, second) = (one.session(), two.session());
    append(&mut one, &[Record::Holds(first, vec![]), changes(0, 100, 3)]).unwrap();
    append(&mut two, &[writes(second, 10, 20)]).unwrap();
    (bed, one, two)
}

type Repair = fn(&MapSpec) -> crate::Result<repair::Report>;
const REPAIRS: [Repair; 5] = [
    |spec| repair::collapse(&real(), spec),
    |spec| repair::take_over(&real(), spec),
    |spec| repair::reset(&real(), spec, nothing),
    |spec| repair::trim(&real(), spec),
    |spec| repair::forget(&real(), spec, CopyId::new(1), 1000, true),
];

#[test]
fn nothing_is_repaired_while_a_session_lives() {
    let (bed, one, two) = used();
    drop(two);
    let before = bed.bytes();
    for repair in REPAIRS {
        let error = repair(&bed.spec(9)).unwrap_err();
        assert_eq!(error.errno(), Errno::BUSY, "{error}");
        assert!(error.to_string().contains("while a node has the file open"), "{error}");
    }
    // Not even if it is damaged: what the sessions append would be lost.
    std::fs::write(bed.path(), b"damaged").unwrap();
    assert_eq!(REPAIRS[2](&bed.spec(9)).unwrap_err().errno(), Errno::BUSY);
    assert_eq!(bed.bytes(), b"damaged");
    drop(one);
    std::fs::write(bed.path(), before).unwrap();
    assert!(REPAIRS[0](&bed.spec(9)).unwrap().repaired);
}

#[test]
fn a_repair_recovers_dead_sessions_and_keeps_the_version() {
    for repair in &REPAIRS[..2] {
        let (bed, one, two) = used();
        drop((one, two));
        let report = repair(&bed.spec(9)).unwrap();
        assert_eq!(report.fell_back, [Span::new(10..20, only(0))], "the announced range alone");
        let journal = Journal::read(&real(), &bed.spec(9)).unwrap();
        let log = journal.nodes.unwrap();
        assert_eq!((journal.opened, log.members().count(), log.last_session()), (None, 0, Session(2)));
        let expected = [(0..10, mask(&[0, 1])), (10..20, only(0)), (20..100, mask(&[0, 1]))];
        assert_eq!(log.spans(&(0..100)), expected.map(|(range, mask)| Span::new(range, mask)));
        assert!(!repair(&bed.spec(9)).unwrap().repaired);
        assert_eq!(bed.join(3).session(), Session(3), "no number is used twice");
    }
}

#[test]
fn sessions_are_not_recovered_without_the_file_that_they_lock() {
    let (bed, one, two) = used();
    std::fs::remove_file(bed.dir.path().join("f.manifest")).unwrap();
    let before = bed.bytes();
    assert_eq!(repair::take_over(&real(), &bed.spec(9)).unwrap_err().errno(), Errno::NOENT);
    assert_eq!(bed.bytes(), before);
    drop((one, two));
}

#[test]
fn a_closed_journal_of_several_nodes_is_trimmed_and_forgets_a_copy() {
    let bed = Bed::new();
    let mut engine = bed.join(1);
    append(&mut engine, &[changes(0, 10, 2)]).unwrap();
    engine.leave().unwrap();
    bed.leave_behind(b"swb\x02 a batch that was never finished");
    assert!(repair::trim(&real(), &bed.spec(1)).unwrap().repaired);
    let journal = Journal::read(&real(), &bed.spec(1)).unwrap();
    assert_eq!((journal.cut_bytes, journal.spans), (0, vec![Span::new(0..10, only(1))]));
    let report = repair::forget(&real(), &bed.spec(1), CopyId::new(1), 100, true).unwrap();
    assert_eq!(report.fell_back, [Span::new(0..10, only(1))]);
    assert_eq!(bed.log().listed(), []);
    assert_eq!(bed.log().last_session(), Session(1));
}

/// A repair holds all session bytes while it writes, and a session does not begin meanwhile.
#[test]
fn the_lock_of_all_sessions_excludes_each() {
    let bed = Bed::new();
    let manifest = || {
        let path = bed.dir.path().join("f.manifest");
        real().open(None, &path, OFlags::RDWR, Mode::empty()).unwrap()
    };
    let (all, one) = (manifest(), manifest());
    assert!(crate::nodes::lock_sessions(&real(), all.as_fd()).unwrap());
    for session in [1u64, 2, u32::MAX.into()] {
        let taken = real().try_lock(one.as_fd(), (1 << 32) + session, 1, LockKind::Shared).unwrap();
        assert!(!taken, "{session}");
    }
    // The size lock is another one.
    assert!(real().try_lock(one.as_fd(), 0, 1, LockKind::Exclusive).unwrap());
}

#[test]
fn the_default_mask_and_holds_without_end_survive_a_conversion() {
    let bed = Bed::new();
    let header = crate::journal::Header { default: Mask::all(3), last_session: None, ..HEADER };
    std::fs::write(bed.path(), header.encode()).unwrap();
    let mut engine = bed.join(1);
    assert_eq!(engine.log().default_mask(), Mask::all(3));
    engine.rewrite().unwrap();
    let alone = Hold { range: 0..u64::MAX, kind: HoldKind::Alone };
    assert_eq!(bed.log().member(Session(1)).unwrap().holds, [alone]);
    assert_eq!(node("node1", 1), bed.log().member(Session(1)).unwrap().node);
}
