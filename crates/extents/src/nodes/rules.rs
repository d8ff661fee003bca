//! The decisions of the protocol on the log's state. The names H1 to H7 are those of
//! `docs/formats/nodes.md`.

use std::ops::Range;

use super::log::Log;
use super::record::{Hold, HoldKind, Record, Session};
use crate::{CopyId, Mask, Node, Span};

fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

/// The holds of a session; none if it is not in the log.
pub fn own_holds(log: &Log, own: Session) -> &[Hold] {
    log.member(own).map_or(&[], |member| &member.holds)
}

/// The number of a new session, and the records by which it joins.
pub fn join(log: &Log, node: &Node) -> (Session, Vec<Record>) {
    let session = Session(log.last_session().0 + 1);
    let mut records = vec![Record::Joined(session, node.clone())];
    if may_be_alone(log, session) {
        records.push(Record::Holds(session, vec![Hold::ALONE]));
    }
    (session, records)
}

/// Whether the session is alone.
pub fn is_alone(log: &Log, session: Session) -> bool {
    own_holds(log, session).iter().any(|hold| hold.kind == HoldKind::Alone)
}

/// Whether no other session is in the log (H4).
pub fn may_be_alone(log: &Log, own: Session) -> bool {
    log.members().all(|(session, _)| session == own)
}

/// Whether the session may read, and add holds: it is in the log, and no other one is alone (H5).
pub fn is_usable(log: &Log, own: Session) -> bool {
    log.member(own).is_some() && log.holds_of_others(own).all(|hold| hold.kind != HoldKind::Alone)
}

/// Whether the session may add a hold (H1 to H5).
pub fn may_add(log: &Log, own: Session, hold: &Hold) -> bool {
    may_add_beside(log, own, Session::NONE, hold)
}

/// [`may_add`], whatever holds `dead` has: its session byte is locked by the caller, who finishes
/// what it did there.
pub fn may_add_beside(log: &Log, own: Session, dead: Session, hold: &Hold) -> bool {
    let conflicts = |other: &Hold| {
        overlap(&other.range, &hold.range)
            && match hold.kind {
                HoldKind::Write(_) => other.kind != hold.kind,
                HoldKind::Exclusive => !matches!(other.kind, HoldKind::Write(_)),
                HoldKind::Evict | HoldKind::Alone => true,
            }
    };
    let alone = hold.kind != HoldKind::Alone || may_be_alone(log, own);
    alone && is_usable(log, own) && !log.holds_of_others_but(own, dead).any(conflicts)
}

/// The widest range around `range` and in `within`, which contains it, for which the session may
/// add `write` to `copy`. `None` if it may not in `range` itself.
pub fn widest_write(
    log: &Log,
    own: Session,
    range: &Range<u64>,
    within: Range<u64>,
    copy: CopyId,
) -> Option<Range<u64>> {
    let kind = HoldKind::Write(copy);
    if !may_add(log, own, &Hold { range: range.clone(), kind }) {
        return None;
    }
    let others = log.holds_of_others(own).filter(|other| other.kind != kind);
    Some(others.fold(within, |widest, other| match other.range.end <= range.start {
        true => widest.start.max(other.range.end)..widest.end,
        false => widest.start..widest.end.min(other.range.start),
    }))
}

/// Whether an `exclusive` or `evict` hold on `range` is granted: no other session has uncommitted
/// bytes or writes there (H2). Once true, it stays true as long as the hold is there, so the log
/// may be an earlier state.
pub fn is_granted(log: &Log, own: Session, range: &Range<u64>) -> bool {
    is_granted_beside(log, own, Session::NONE, range)
}

/// [`is_granted`], whatever holds `dead` has, as for [`may_add_beside`].
pub fn is_granted_beside(log: &Log, own: Session, dead: Session, range: &Range<u64>) -> bool {
    is_usable(log, own) && !log.holds_of_others_but(own, dead).any(|hold| overlap(&hold.range, range))
}

/// Whether another session waits for the session to give up one of its holds (H7).
pub fn is_asked(log: &Log, own: Session) -> bool {
    own_holds(log, own).iter().any(|mine| is_asked_for(log, own, mine))
}

/// Whether the session writes under this hold.
pub fn is_write(hold: &Hold) -> bool {
    matches!(hold.kind, HoldKind::Write(_))
}

/// Whether another session waits for the session to give up this hold.
pub fn is_asked_for(log: &Log, own: Session, mine: &Hold) -> bool {
    let waits = |other: &Hold| other.kind == HoldKind::Exclusive && overlap(&other.range, &mine.range);
    match mine.kind {
        HoldKind::Alone => !may_be_alone(log, own),
        HoldKind::Write(_) => log.holds_of_others(own).any(waits),
        HoldKind::Exclusive | HoldKind::Evict => false,
    }
}

/// The copies that other sessions may be writing to in `range`.
pub fn written_by_others(log: &Log, own: Session, range: &Range<u64>) -> Mask {
    let holds = log.holds_of_others(own).filter(|hold| overlap(&hold.range, range));
    holds.fold(Mask::NONE, |copies, hold| match hold.kind {
        HoldKind::Write(copy) => copies.with(copy),
        _ => copies,
    })
}

/// The evictions of other sessions that any append of this session acknowledges.
pub fn evictions_of_others(log: &Log, own: Session) -> Vec<Hold> {
    log.holds_of_others(own).filter(|hold| hold.kind == HoldKind::Evict).cloned().collect()
}

/// Whether another session's eviction waits for the session's acknowledgement. Before it gives it,
/// the node lets the reads in progress start over.
pub fn owes_acknowledgement(log: &Log, own: Session) -> bool {
    let evicts = |holds: &[Hold]| holds.iter().any(|hold| hold.kind == HoldKind::Evict);
    log.members()
        .any(|(session, other)| session != own && evicts(&other.holds) && !other.acknowledged.contains(&own))
}

/// Whether the session may punch in `range`: it holds it for an eviction, and every other session
/// has acknowledged that.
pub fn may_punch(log: &Log, own: Session, range: &Range<u64>) -> bool {
    let Some(member) = log.member(own) else { return false };
    let covers = |hold: &Hold| hold.range.start <= range.start && range.end <= hold.range.end;
    member.holds.iter().any(|hold| hold.kind == HoldKind::Evict && covers(hold))
        && log.members().all(|(session, _)| session == own || member.acknowledged.contains(&session))
}

/// The new masks of an eviction of `range` from `copy`: without it where another copy is valid.
pub fn evicted(log: &Log, range: &Range<u64>, copy: CopyId) -> Vec<Span> {
    let spans = log.spans(range).into_iter();
    let clean = spans.filter(|span| span.mask.contains(copy) && !span.mask.is_only(copy));
    clean.map(|span| Span { mask: span.mask.without(copy), ..span }).collect()
}

/// The new masks in the range of a dead session's hold: where copies may differ by what it had not
/// committed, the lowest of them is left.
pub fn collapse(log: &Log, hold: &Hold) -> Vec<Span> {
    let several = log.spans(&hold.range).into_iter().filter(|span| span.mask.len() > 1);
    match hold.kind {
        HoldKind::Write(_) | HoldKind::Alone => several.map(Span::in_lowest).collect(),
        HoldKind::Exclusive | HoldKind::Evict => Vec::new(),
    }
}

/// Whether a dead session may be recovered, or a truncate must be finished first: the file has a
/// truncate intent, and the session may be its author.
pub fn may_recover(log: &Log, dead: Session, has_intent: bool) -> bool {
    let cuts = |hold: &Hold| matches!(hold.kind, HoldKind::Exclusive | HoldKind::Alone);
    !(has_intent && own_holds(log, dead).iter().any(cuts))
}

/// The records that recover a dead session. The caller holds its session byte exclusively.
pub fn recover(log: &Log, dead: Session) -> Vec<Record> {
    // One record for each hold: those of a session may overlap.
    let changes = own_holds(log, dead).iter().map(|hold| Record::Changes(collapse(log, hold)));
    let changes = changes.filter(|record| *record != Record::Changes(Vec::new()));
    // The masks first: an append may be cut short.
    changes.chain([Record::Left(dead)]).collect()
}

/// The session's holds with one more.
pub fn with_hold(log: &Log, own: Session, hold: Hold) -> Record {
    let mut holds = own_holds(log, own).to_vec();
    if !holds.contains(&hold) {
        holds.push(hold);
    }
    Record::Holds(own, holds)
}

/// The session's holds without those that `given_up` names.
pub fn without_holds(log: &Log, own: Session, given_up: impl Fn(&Hold) -> bool) -> Record {
    let kept = own_holds(log, own).iter().filter(|hold| !given_up(hold));
    Record::Holds(own, kept.cloned().collect())
}
