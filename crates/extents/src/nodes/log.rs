//! The state that the log's records give.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::ranges::Ranges;
use super::record::{Batch, Hold, HoldKind, Record, Session, decode_batch};
use crate::{CopyId, Mask, Node, Span};

/// The log's state after some of its batches: the same on every node that has read as many.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Log {
    default: Mask,
    masks: Ranges<Bits>,
    members: BTreeMap<Session, Member>,
    last: Session,
}

/// A session of the log.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Member {
    /// The machine, and its boot.
    pub node: Node,
    /// The ranges that the session has announced.
    pub holds: Vec<Hold>,
    /// The sessions that have acknowledged its eviction.
    pub(super) acknowledged: BTreeSet<Session>,
}

/// A mask as a value of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Bits(u8);

impl Log {
    /// The log of a file without changes. `default` are the valid copies of a byte that no record
    /// names; `last` is the highest session number given so far.
    pub fn new(default: Mask, last: Session) -> Self {
        Self { default, masks: Ranges::default(), members: BTreeMap::new(), last }
    }

    /// Applies the next batch. Never fails: a record of a session that has been recovered does
    /// nothing.
    pub fn apply(&mut self, batch: &Batch) {
        let Batch { author, record } = batch;
        let joins = matches!(record, Record::Joined(session, _) if session == author);
        if *author != Session::NONE && !joins && !self.members.contains_key(author) {
            return;
        }
        match record {
            Record::Changes(spans) => spans.iter().for_each(|&span| self.assign(span)),
            Record::Joined(session, node) => self.add(*author, *session, node),
            Record::Holds(session, holds) if *author == Session::NONE || author == session => {
                self.set_holds(*session, holds);
            }
            Record::Holds(..) => {}
            Record::Left(session) => drop(self.members.remove(session)),
        }
        self.acknowledge(*author);
    }

    fn assign(&mut self, span: Span) {
        if span.mask.is_empty() {
            return;
        }
        let listed = Some(Bits(span.mask.bits())).filter(|_| span.mask != self.default);
        self.masks.set(&span.range(), listed);
    }

    fn add(&mut self, author: Session, session: Session, node: &Node) {
        if session > self.last || author == Session::NONE {
            self.last = self.last.max(session);
            let member = Member { node: node.clone(), holds: Vec::new(), acknowledged: BTreeSet::new() };
            self.members.insert(session, member);
        }
    }

    fn set_holds(&mut self, session: Session, holds: &[Hold]) {
        let Some(member) = self.members.get_mut(&session) else { return };
        let new_evict = holds.iter().any(|hold| hold.kind == HoldKind::Evict && !member.holds.contains(hold));
        if new_evict || holds.iter().all(|hold| hold.kind != HoldKind::Evict) {
            member.acknowledged.clear();
        }
        member.holds = holds.to_vec();
    }

    /// The author of a record has read everything before it.
    fn acknowledge(&mut self, author: Session) {
        if author == Session::NONE || !self.members.contains_key(&author) {
            return;
        }
        for (&session, member) in &mut self.members {
            if session != author && member.holds.iter().any(|hold| hold.kind == HoldKind::Evict) {
                member.acknowledged.insert(author);
            }
        }
    }

    /// Applies the batches at the start of `bytes`, of which the first has sequence number `next`,
    /// and shows each to `see`. Returns their length in bytes; `next` becomes the number of the
    /// following batch. `copies` is the number of copies of the file.
    pub fn take(&mut self, bytes: &[u8], next: &mut u64, copies: u8, mut see: impl FnMut(&Batch)) -> usize {
        let mut at = 0;
        while let Some((batch, len)) = decode_batch(&bytes[at..], *next, copies) {
            self.apply(&batch);
            see(&batch);
            at += len;
            *next += 1;
        }
        at
    }

    /// The ranges whose mask is not the default one, in order.
    pub fn listed(&self) -> Vec<Span> {
        self.masks.iter().map(|(range, bits)| Span::new(range, Mask::from_bits(bits.0))).collect()
    }

    /// The batches of a rewritten log with the same state but for acknowledgements.
    pub fn restated(&self) -> Vec<Batch> {
        let mut records = Vec::new();
        for (&session, member) in &self.members {
            records.push(Record::Joined(session, member.node.clone()));
            records.push(Record::Holds(session, member.holds.clone()));
        }
        records.push(Record::Changes(self.listed()));
        records.into_iter().map(|record| Batch { author: Session::NONE, record }).collect()
    }

    /// Spans that cover `range` in order without gaps.
    pub fn spans(&self, range: &Range<u64>) -> Vec<Span> {
        let mask = |bits: Option<Bits>| bits.map_or(self.default, |bits| Mask::from_bits(bits.0));
        self.masks.pieces(range).into_iter().map(|(part, bits)| Span::new(part, mask(bits))).collect()
    }

    /// The valid copies of a byte that no record names.
    pub fn default_mask(&self) -> Mask {
        self.default
    }

    /// The sessions of the log, in the order of their numbers.
    pub fn members(&self) -> impl Iterator<Item = (Session, &Member)> {
        self.members.iter().map(|(&session, member)| (session, member))
    }

    /// A session of the log; `None` if it has left or was recovered.
    pub fn member(&self, session: Session) -> Option<&Member> {
        self.members.get(&session)
    }

    /// The highest session number given so far.
    pub fn last_session(&self) -> Session {
        self.last
    }

    /// The holds of all sessions but `own`.
    pub fn holds_of_others(&self, own: Session) -> impl Iterator<Item = &Hold> {
        self.holds_of_others_but(own, own)
    }

    /// The holds of all sessions but these two.
    pub fn holds_of_others_but(&self, own: Session, other: Session) -> impl Iterator<Item = &Hold> {
        let others = self.members.iter().filter(move |&(&session, _)| session != own && session != other);
        others.flat_map(|(_, member)| &member.holds)
    }

    /// Whether `copy` is valid for every byte of `range`.
    pub fn is_valid(&self, range: &Range<u64>, copy: CopyId) -> bool {
        self.spans(range).iter().all(|span| span.mask.contains(copy))
    }
}
