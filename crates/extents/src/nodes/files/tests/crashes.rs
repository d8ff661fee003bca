//! A node that dies at any system call, or in the middle of a write.

use stripewise_faulty::{Disk, Faulty, Journal as Names};
use stripewise_sys::SysRef;

use super::support::*;
use super::versions;
use crate::journal::Journal;
use crate::nodes::{Batch, Engine, FileEngine, Log, Record, encode_batches};
use crate::tests::support::real;
use crate::{Mask, Span};

/// What a node may be doing when it dies, with its engine if it has joined.
type Work = fn(&Bed, &SysRef, Option<FileEngine>);

const WORKS: [(&str, Work); 4] = [
    ("append", |_, _, engine| drop(append(&mut engine.unwrap(), &records()))),
    ("rewrite", |_, _, engine| drop(engine.unwrap().rewrite())),
    ("join", |bed, sys, _| drop(FileEngine::join(sys, &bed.spec(3)))),
    ("leave", |_, _, engine| drop(engine.unwrap().leave())),
];

fn records() -> Vec<Record> {
    (0..3).map(|at| changes(at * 10, at * 10 + 5, 2)).collect()
}

/// The states that a node may leave that dies in `work`, without acknowledgements.
fn possible(before: &Log, work: &str, bed: &Bed) -> Vec<Log> {
    let author = before.members().last().unwrap().0;
    let batches = match work {
        "append" => Batch::by(author, records()),
        "leave" => Batch::by(author, vec![Record::Left(author)]),
        "join" => {
            let (session, records) = crate::nodes::join(before, &bed.spec(3).node);
            Batch::by(session, records)
        }
        _ => Vec::new(),
    };
    let mut states = vec![before.clone()];
    for batch in &batches {
        let mut next = states.last().unwrap().clone();
        next.apply(batch);
        states.push(next);
    }
    states.iter().map(rewritten).collect()
}

/// Runs `work` on a node that dies at its call number `call`. Returns whether it died, and which of
/// the possible states it left.
fn dies_at(call: u64, name: &str, work: Work) -> (bool, usize) {
    let bed = Bed::new();
    let mut other = bed.join(1);
    let disk = Disk::new(bed.dir.path(), Names::Ordered).unwrap();
    let faulty = Faulty::new(&disk, call);
    let sys: SysRef = faulty.clone();
    let engine = (name != "join").then(|| bed.join_on(&sys, 2));
    append(&mut other, &[changes(100, 110, 4)]).unwrap();
    let before = bed.log();
    faulty.crash_at(faulty.calls() + call);
    work(&bed, &sys, engine);
    let found = rewritten(&bed.log());
    let states = possible(&before, name, &bed);
    let left = states.iter().position(|state| *state == found);
    let left = left.unwrap_or_else(|| panic!("{name}, call {call}: {found:?}"));
    other.read().unwrap();
    assert_eq!(rewritten(other.log()), found, "{name}, call {call}");
    // The others go on, and all see it.
    append(&mut other, &[changes(200, 210, 4)]).unwrap();
    assert_eq!(bed.log(), *other.log(), "{name}, call {call}");
    bed.join(4);
    other.read().unwrap();
    assert_eq!(bed.log(), *other.log(), "{name}, call {call}");
    (faulty.is_dead(), left)
}

#[test]
fn a_node_that_dies_at_any_call_leaves_a_first_part_of_what_it_appends() {
    for (name, work) in WORKS {
        let mut left = std::collections::BTreeSet::new();
        let calls = (0..).take_while(|&call| {
            let (died, state) = dies_at(call, name, work);
            left.insert(state);
            died
        });
        let calls = calls.count();
        assert!(calls > 5, "{name}: {calls}");
        assert!(name == "rewrite" || left.len() > 1, "{name}: {left:?}");
        println!("{name}: {calls} calls");
    }
}

/// The write of an append is cut short after any byte. The next writer cuts the rest off, also if
/// its own batch is shorter.
#[test]
fn an_append_that_is_cut_at_any_byte_leaves_the_batches_before() {
    let bed = Bed::new();
    let (author, other) = (bed.join(1), bed.join(2));
    let (log, whole) = (bed.log(), bed.bytes());
    let next = Journal::read(&real(), &bed.spec(9)).unwrap().next;
    // The last one is longer than what the next writer appends.
    let long = (0..40).map(|at| Span::new(at * 20..at * 20 + 10, Mask::from_bits(4))).collect();
    let records = [records(), vec![Record::Changes(long)]].concat();
    let batches = Batch::by(author.session(), records);
    let (bytes, _) = encode_batches(&batches, next);
    let end = |count: usize| encode_batches(&batches[..count], next).0.len();
    let acknowledges = Record::Holds(other.session(), vec![]);
    let short = encode_batches(&Batch::by(other.session(), vec![acknowledges.clone()]), 1).0.len();
    for cut in 0..=bytes.len() {
        std::fs::write(bed.path(), [&whole[..], &bytes[..cut]].concat()).unwrap();
        let complete = (0..=batches.len()).rfind(|&count| end(count) <= cut).unwrap();
        let mut expected = log.clone();
        batches[..complete].iter().for_each(|batch| expected.apply(batch));
        assert_eq!(bed.log(), expected, "cut at {cut}");
        let mut other = FileEngine::attach(&real(), &bed.spec(2), other.session()).unwrap().unwrap();
        append(&mut other, std::slice::from_ref(&acknowledges)).unwrap();
        assert_eq!(bed.log(), *other.log(), "cut at {cut}");
        assert_eq!(bed.bytes().len(), whole.len() + end(complete) + short, "cut at {cut}");
    }
}

/// Two nodes convert a journal of version 1, of which the first dies anywhere.
#[test]
fn a_conversion_that_is_interrupted_is_made_by_the_next_node() {
    let died = (0..).take_while(|&call| {
        let (bed, spans) = versions::of_one_node();
        let disk = Disk::new(bed.dir.path(), Names::Ordered).unwrap();
        let faulty = Faulty::new(&disk, call);
        let sys: SysRef = faulty.clone();
        faulty.crash_at(call);
        drop(FileEngine::join(&sys, &bed.spec(1)));
        let engine = bed.join(2);
        assert_eq!(engine.log().listed(), spans, "call {call}");
        faulty.is_dead()
    });
    assert!(died.count() > 10);
}
