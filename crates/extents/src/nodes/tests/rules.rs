//! Single decisions, where the explorer would take long to say what is wrong.

use proptest::prelude::*;

use crate::nodes::*;
use crate::{CopyId, Mask, Node, Span};

fn copy(number: usize) -> CopyId {
    CopyId::new(number)
}

fn hold(range: std::ops::Range<u64>, kind: HoldKind) -> Hold {
    Hold { range, kind }
}

/// A log with three sessions, which have the given holds.
pub(crate) fn log(holds: [&[Hold]; 3]) -> Log {
    let mut log = Log::new(Mask::all(3), Session::NONE);
    for (number, holds) in (1..).zip(holds) {
        let session = Session(number);
        let node = Node { name: number.to_string(), boot: [0; 16] };
        let records = vec![Record::Joined(session, node), Record::Holds(session, holds.to_vec())];
        Batch::by(session, records).iter().for_each(|batch| log.apply(batch));
    }
    log
}

#[test]
fn holds_exclude_each_other_as_the_table_says() {
    use HoldKind::{Alone, Evict, Exclusive, Write};
    let kinds = [Write(copy(0)), Write(copy(1)), Exclusive, Evict, Alone];
    for other in kinds {
        let log = log([&[], &[hold(10..20, other)], &[]]);
        for new in kinds {
            let overlapping = may_add(&log, Session(1), &hold(19..30, new));
            let apart = may_add(&log, Session(1), &hold(20..30, new));
            let allowed = match (new, other) {
                (_, Alone) | (Alone, _) => (false, false),
                (Write(one), Write(two)) => (one == two, true),
                (Exclusive, Write(_)) => (true, true),
                _ => (false, true),
            };
            assert_eq!((overlapping, apart), allowed, "{new:?} with {other:?}");
        }
    }
    let exclusive = hold(0..15, Exclusive);
    for (held, granted) in
        [(&[hold(10..20, Write(copy(0)))][..], false), (&[hold(15..20, Write(copy(0)))], true)]
    {
        let log = log([std::slice::from_ref(&exclusive), held, &[]]);
        assert_eq!(is_granted(&log, Session(1), &exclusive.range), granted);
        assert_eq!(is_asked(&log, Session(2)), !granted);
    }
}

#[test]
fn an_eviction_waits_for_a_later_record_of_each_session() {
    let evict = hold(10..20, HoldKind::Evict);
    let mut log = log([&[], &[], &[]]);
    let say = |log: &mut Log, session, record| log.apply(&Batch { author: session, record });
    let holds = with_hold(&log, Session(1), evict.clone());
    say(&mut log, Session(1), holds);
    assert!(!may_punch(&log, Session(1), &(10..20)));
    assert!(owes_acknowledgement(&log, Session(2)) && !owes_acknowledgement(&log, Session(1)));
    say(&mut log, Session(2), Record::Changes(Vec::new()));
    assert!(!owes_acknowledgement(&log, Session(2)) && !may_punch(&log, Session(1), &(10..20)));
    // Restating the hold keeps what was acknowledged.
    let same = with_hold(&log, Session(1), evict.clone());
    say(&mut log, Session(1), same);
    say(&mut log, Session(3), Record::Left(Session(3)));
    assert!(may_punch(&log, Session(1), &(10..20)) && !may_punch(&log, Session(1), &(10..21)));
    // Another one takes it back.
    let more = with_hold(&log, Session(1), hold(30..40, HoldKind::Evict));
    say(&mut log, Session(1), more);
    assert!(!may_punch(&log, Session(1), &(10..20)) && owes_acknowledgement(&log, Session(2)));
}

#[test]
fn records_of_a_session_that_was_recovered_do_nothing() {
    let mut log = log([&[hold(0..u64::MAX, HoldKind::Write(copy(1)))], &[], &[]]);
    Batch::by(Session(2), recover(&log, Session(1))).iter().for_each(|batch| log.apply(batch));
    assert_eq!(log.spans(&(0..9)), [Span::new(0..9, Mask::only(copy(0)))]);
    let before = log.clone();
    let change = Record::Changes(vec![Span::new(0..5, Mask::only(copy(2)))]);
    let node = Node { name: "again".into(), boot: [0; 16] };
    for record in [change, Record::Joined(Session(1), node), Record::Left(Session(2))] {
        log.apply(&Batch { author: Session(1), record });
    }
    assert_eq!(log, before);
}

#[test]
fn recovery_leaves_one_copy_where_the_dead_session_may_have_written() {
    let holds = [hold(0..10, HoldKind::Write(copy(2))), hold(20..30, HoldKind::Exclusive)];
    let mut log = log([&holds, &[], &[]]);
    let single = Record::Changes(vec![Span::new(4..6, Mask::only(copy(1)))]);
    log.apply(&Batch { author: Session(2), record: single });
    Batch::by(Session(2), recover(&log, Session(1))).iter().for_each(|batch| log.apply(batch));
    let masks: Vec<_> =
        log.spans(&(0..30)).iter().map(|span| (span.start, span.end, span.mask.bits())).collect();
    assert_eq!(masks, [(0, 4, 0b001), (4, 6, 0b010), (6, 10, 0b001), (10, 30, 0b111)]);
}

#[test]
fn a_session_is_alone_only_if_it_is() {
    let empty = Log::new(Mask::ORIGINAL, Session(6));
    let node = Node { name: "first".into(), boot: [0; 16] };
    let (first, records) = join(&empty, &node);
    assert_eq!(first, Session(7));
    let mut log = empty;
    Batch::by(first, records).iter().for_each(|batch| log.apply(batch));
    assert!(Own::new(first).is_alone(&log) && is_usable(&log, first) && !is_asked(&log, first));
    let (second, records) = join(&log, &node);
    Batch::by(second, records).iter().for_each(|batch| log.apply(batch));
    assert!(!Own::new(second).is_alone(&log) && !is_usable(&log, second) && is_asked(&log, first));
}

proptest! {
    #[test]
    fn the_widest_hold_ends_where_the_next_byte_is_not_allowed(
        others in prop::collection::vec((0..20u64, 1..20u64, 0..4usize), 0..6),
        (start, len, to) in (0..20u64, 1..20u64, 0..2usize),
    ) {
        let kinds = [HoldKind::Write(copy(0)), HoldKind::Write(copy(1)), HoldKind::Exclusive, HoldKind::Evict];
        let others: Vec<_> =
            others.iter().map(|&(start, len, kind)| hold(start..start + len, kinds[kind])).collect();
        let (first, second) = others.split_at(others.len() / 2);
        let log = log([&[], first, second]);
        let range = start..start + len;
        let allowed = |range| may_add(&log, Session(1), &hold(range, HoldKind::Write(copy(to))));
        let mut widest = range.clone();
        while widest.start > 0 && allowed(widest.start - 1..widest.end) {
            widest.start -= 1;
        }
        while widest.end < 50 && allowed(widest.start..widest.end + 1) {
            widest.end += 1;
        }
        let found = widest_write(&log, Session(1), &range, 0..50, copy(to));
        prop_assert_eq!(found, allowed(range).then_some(widest));
    }
}
