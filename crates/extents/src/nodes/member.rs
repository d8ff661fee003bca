//! What a node knows beyond the log: the ranges that it has noted.

use std::ops::Range;

use super::log::Log;
use super::ranges::Ranges;
use super::record::{Hold, HoldKind, Record, Session};
use super::rules;
use crate::{CopyId, Mask, Span};

/// A session on its own node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Own {
    /// Its number in the log.
    pub session: Session,
    /// The ranges whose newest bytes the node has put into a copy, and that the log does not know.
    noted: Ranges<CopyId>,
    commit: Option<Commit>,
}

/// A commit in progress.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Commit {
    listed: Ranges<CopyId>,
    /// The ranges that were noted after the list was made.
    noted_again: Ranges<()>,
    /// The holds that are given up with it. No write may begin under them.
    given_up: Vec<Hold>,
}

impl Own {
    /// A session that has changed nothing.
    pub fn new(session: Session) -> Self {
        Self { session, noted: Ranges::default(), commit: None }
    }

    /// Begins another session after the node was cut off. What it had noted is lost: its bytes may
    /// be, and other nodes have recovered its ranges.
    pub fn rejoin(&mut self, session: Session) {
        *self = Self::new(session);
    }

    /// The node's view: the log's masks with the noted ranges on top.
    pub fn spans(&self, log: &Log, range: &Range<u64>) -> Vec<Span> {
        let mut spans = Vec::new();
        for (part, noted) in self.noted.pieces(range) {
            match noted {
                Some(copy) => Span::new(part, Mask::only(copy)).add_to(&mut spans),
                None => log.spans(&part).into_iter().for_each(|span| span.add_to(&mut spans)),
            }
        }
        spans
    }

    /// Whether the session's holds cover a write of `range` to `copy`.
    pub fn may_write(&self, log: &Log, range: &Range<u64>, copy: CopyId) -> bool {
        let given_up = |hold: &Hold| self.commit.as_ref().is_some_and(|commit| commit.given_up.contains(hold));
        let writes = |hold: &&Hold| match hold.kind {
            HoldKind::Write(to) => to == copy && !given_up(hold),
            kind => kind == HoldKind::Alone,
        };
        let mut held = Ranges::default();
        rules::own_holds(log, self.session)
            .iter()
            .filter(writes)
            .for_each(|hold| held.set(&hold.range, Some(())));
        held.covers(range)
    }

    /// Notes that a write of `range` to `copy` begins: where other copies are valid as well, they
    /// are no longer.
    pub fn shrink(&mut self, log: &Log, range: &Range<u64>, copy: CopyId) {
        for span in self.spans(log, range) {
            if span.mask.contains(copy) && !span.mask.is_only(copy) {
                self.note(&span.range(), copy);
            }
        }
    }

    /// Notes that `range` was written to `copy`.
    pub fn wrote(&mut self, log: &Log, range: &Range<u64>, copy: CopyId) {
        for span in self.spans(log, range) {
            if !span.mask.is_only(copy) {
                self.note(&span.range(), copy);
            }
        }
    }

    fn note(&mut self, range: &Range<u64>, copy: CopyId) {
        self.noted.set(range, Some(copy));
        if let Some(commit) = &mut self.commit {
            commit.noted_again.set(range, Some(()));
        }
    }

    /// Whether the session is alone.
    pub fn is_alone(&self, log: &Log) -> bool {
        rules::is_alone(log, self.session)
    }

    /// Whether anything in `range` is noted.
    pub fn is_noted(&self, range: &Range<u64>) -> bool {
        self.noted.overlaps(range)
    }

    /// Begins a commit, which gives up the `write` holds that `gives_up` names. No write is in
    /// progress under them. The caller then syncs the data, and appends what [`Own::commit`]
    /// returns.
    pub fn list(&mut self, log: &Log, gives_up: impl Fn(&Hold) -> bool) {
        let writes = |hold: &&Hold| matches!(hold.kind, HoldKind::Write(_)) && gives_up(hold);
        let given_up = rules::own_holds(log, self.session).iter().filter(writes).cloned().collect();
        self.commit = Some(Commit { listed: self.noted.clone(), noted_again: Ranges::default(), given_up });
    }

    /// Whether a commit is in progress.
    pub fn is_committing(&self) -> bool {
        self.commit.is_some()
    }

    /// The records of the commit in progress, by the log's state under the commit lock. There may
    /// be none.
    pub fn commit(&self, log: &Log) -> Vec<Record> {
        let Some(Commit { listed, given_up, .. }) = &self.commit else { return Vec::new() };
        let mut records = Vec::new();
        if !listed.is_empty() {
            let spans = listed.iter().map(|(range, copy)| Span::new(range, Mask::only(copy)));
            records.push(Record::Changes(spans.collect()));
        }
        if !given_up.is_empty() {
            records.push(rules::without_holds(log, self.session, |hold| given_up.contains(hold)));
        }
        records
    }

    /// Ends the commit after its records were appended.
    pub fn committed(&mut self) {
        let Some(Commit { listed, noted_again, .. }) = self.commit.take() else { return };
        for (range, _) in listed.iter() {
            for (part, again) in noted_again.pieces(&range) {
                if again.is_none() {
                    self.noted.set(&part, None);
                }
            }
        }
    }
}
