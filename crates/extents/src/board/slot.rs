//! The copier's slot: what the one copier of the file is doing.
//!
//! Only the owner of the copier's lock makes it active; writers taint it. The state has the number of the work in it, so that nobody
//! mistakes one for the next.

use std::ops::Range;
use std::sync::atomic::{Ordering, fence};

use super::{Board, Word};
use crate::CopyId;

/// What the copier is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlotState {
    Idle,
    /// Its destination must not be written to.
    Active,
    /// The same, and somebody writes there: the map stays as it is. Also the state of an eviction that punches.
    Tainted,
    /// It changes the map: wait.
    Finishing,
}

const STATES: [SlotState; 4] = [SlotState::Idle, SlotState::Active, SlotState::Tainted, SlotState::Finishing];

/// Where the work is in its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Where the destination is not valid: a copy.
    WhereInvalid,
    /// An eviction, or a truncate.
    Everywhere,
}

/// In [`Word::SlotCopy`].
pub(super) const EVERYWHERE: u64 = 1 << 8;

/// What a writer meets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Met {
    Nobody,
    /// This copy, if one, must not be written to in this part of the range; work with this number is going on.
    Destination {
        copy: Option<CopyId>,
        part: Range<u64>,
        work: u64,
        extent: Extent,
    },
    /// To be asked again.
    Finishing,
}

/// The slot, as its owner has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot<'b>(pub &'b Board);

fn split(word: u64) -> (u64, SlotState) {
    (word >> 8, STATES[(word & 3) as usize])
}

fn joined(work: u64, state: SlotState) -> u64 {
    work << 8 | state as u64
}

impl Slot<'_> {
    fn load(self) -> (u64, SlotState) {
        split(self.0.word(Word::SlotState).load(Ordering::SeqCst))
    }

    /// By the owner: begins a work.
    pub fn begin(self, range: &Range<u64>, destination: Option<CopyId>, extent: Extent) {
        let (work, _) = self.load();
        // Idle first: who sees the new range in part sees that the state has changed.
        self.0.word(Word::SlotState).store(joined(work, SlotState::Idle), Ordering::SeqCst);
        self.0.set(Word::SlotStart, range.start);
        self.0.set(Word::SlotEnd, range.end);
        let everywhere = if extent == Extent::Everywhere { EVERYWHERE } else { 0 };
        self.0.set(Word::SlotCopy, everywhere | destination.map_or(0, |copy| copy.index() as u64 + 1));
        let active = joined(work + 1, SlotState::Active);
        self.0.word(Word::SlotState).store(active, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// By the owner: from active to finishing; false when somebody tainted it.
    pub fn finish(self) -> bool {
        let (work, _) = self.load();
        let (from, to) = (joined(work, SlotState::Active), joined(work, SlotState::Finishing));
        let word = self.0.word(Word::SlotState);
        word.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// By the owner.
    pub fn set(self, state: SlotState) {
        let (work, _) = self.load();
        self.0.word(Word::SlotState).store(joined(work, state), Ordering::SeqCst);
    }

    /// By the owner, before its first work: the last owner may have died in the middle of one.
    pub fn clear(self) {
        self.set(SlotState::Idle);
    }

    /// By a writer that has pinned `range`: taints the work that it overlaps, if that is everywhere. Otherwise it has to look at the map first.
    pub fn meet(self, range: &Range<u64>) -> Met {
        loop {
            let word = self.0.word(Word::SlotState).load(Ordering::SeqCst);
            let (work, state) = split(word);
            if state == SlotState::Idle {
                return Met::Nobody;
            }
            let part = self.0.get(Word::SlotStart).max(range.start)..self.0.get(Word::SlotEnd).min(range.end);
            let word_of_copy = self.0.get(Word::SlotCopy);
            let extent = if word_of_copy & EVERYWHERE == 0 { Extent::WhereInvalid } else { Extent::Everywhere };
            let copy = (word_of_copy & (EVERYWHERE - 1)).checked_sub(1);
            let copy = copy.map(|copy| CopyId::new(copy as usize % CopyId::LIMIT));
            if self.0.word(Word::SlotState).load(Ordering::SeqCst) != word {
                continue;
            }
            let met = match state {
                _ if part.is_empty() => Met::Nobody,
                SlotState::Finishing => Met::Finishing,
                SlotState::Active if extent == Extent::Everywhere && !self.taint(work) => continue,
                _ => Met::Destination { copy, part, work, extent },
            };
            return met;
        }
    }

    /// By a writer: whether the work will leave the map as it is. Not if it is finishing, or over.
    pub fn taint(self, work: u64) -> bool {
        let (from, to) = (joined(work, SlotState::Active), joined(work, SlotState::Tainted));
        let word = self.0.word(Word::SlotState);
        match word.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => true,
            Err(now) => now == to,
        }
    }

    /// The number of the work, if the slot is in `state`.
    pub fn work_in(self, state: SlotState) -> Option<u64> {
        let (work, now) = self.load();
        (now == state).then_some(work)
    }

    /// By whoever holds the copier's lock because the owner died: the end of that work, if no other has begun.
    pub fn bury(self, work: u64, state: SlotState) {
        let (from, to) = (joined(work, state), joined(work, SlotState::Idle));
        let word = self.0.word(Word::SlotState);
        let _ = word.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Whether a work is still going on.
    pub fn is_at(self, work: u64) -> bool {
        let (now, state) = self.load();
        now == work && state != SlotState::Idle
    }
}
