//! The copier slot: the operation that the one copier of the file is performing.
//!
//! Only the owner of the copier lock makes the slot active; writers taint it. The state word
//! contains the operation's number, so that no process mistakes one operation for the next.

use std::ops::Range;
use std::sync::atomic::{Ordering, fence};

use super::{SharedState, Word};
use crate::CopyId;

/// State of the copier's operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlotState {
    Idle,
    /// The destination must not be written to.
    Active,
    /// As [`SlotState::Active`], but a writer has met the operation, which therefore leaves the map
    /// as it is. An eviction is also in this state while it punches holes.
    Tainted,
    /// The copier is changing the map; writers wait.
    Finishing,
}

const STATES: [SlotState; 4] = [SlotState::Idle, SlotState::Active, SlotState::Tainted, SlotState::Finishing];

/// The bytes of its range that an operation covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// The bytes where the destination is not valid: the operation is a copy.
    WhereInvalid,
    /// All bytes: the operation is an eviction or a truncate.
    Everywhere,
}

/// Flag in [`Word::SlotCopy`]: [`Extent::Everywhere`].
pub(super) const EVERYWHERE: u64 = 1 << 8;

/// What a writer finds in the slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Met {
    Nobody,
    Destination(Working),
    /// The copier is changing the map: look again.
    Finishing,
}

/// A copier operation in progress that overlaps a pinned range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Working {
    /// The copy that the operation writes to or evicts from; `None` if no copy may be changed.
    pub copy: Option<CopyId>,
    /// The common part of the operation's range and the pinned one.
    pub part: Range<u64>,
    /// Number of the operation.
    pub work: u64,
    pub extent: Extent,
}

/// The copier slot of a shared state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot<'b>(pub &'b SharedState);

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

    /// Begins an operation. Only the owner of the copier lock may call this.
    pub fn begin(self, range: &Range<u64>, destination: Option<CopyId>, extent: Extent) {
        let (work, _) = self.load();
        // Idle first: a reader that sees a partly updated range also sees that the state has
        // changed.
        self.0.word(Word::SlotState).store(joined(work, SlotState::Idle), Ordering::SeqCst);
        self.0.set(Word::SlotStart, range.start);
        self.0.set(Word::SlotEnd, range.end);
        let everywhere = if extent == Extent::Everywhere { EVERYWHERE } else { 0 };
        self.0.set(Word::SlotCopy, everywhere | destination.map_or(0, |copy| copy.index() as u64 + 1));
        let active = joined(work + 1, SlotState::Active);
        self.0.word(Word::SlotState).store(active, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Moves from active to finishing; false if a writer has tainted the operation. Only the owner
    /// may call this.
    pub fn finish(self) -> bool {
        let (work, _) = self.load();
        let (from, to) = (joined(work, SlotState::Active), joined(work, SlotState::Finishing));
        let word = self.0.word(Word::SlotState);
        word.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Sets the state. Only the owner may call this.
    pub fn set(self, state: SlotState) {
        let (work, _) = self.load();
        self.0.word(Word::SlotState).store(joined(work, state), Ordering::SeqCst);
    }

    /// Sets the slot to idle before the new owner's first operation, because the last owner may
    /// have died during one.
    pub fn clear(self) {
        self.set(SlotState::Idle);
    }

    /// Looks for an operation that overlaps `range`. The caller is a writer that has pinned
    /// `range`. An operation that covers all of its range is tainted at once; before the writer
    /// taints a copy it must look at the map.
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
                _ => Met::Destination(Working { copy, part, work, extent }),
            };
            return met;
        }
    }

    /// Taints an operation on behalf of a writer. Returns whether the operation will leave the map
    /// as it is: false if it is finishing or over.
    pub fn taint(self, work: u64) -> bool {
        let (from, to) = (joined(work, SlotState::Active), joined(work, SlotState::Tainted));
        let word = self.0.word(Word::SlotState);
        match word.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => true,
            Err(now) => now == to,
        }
    }

    /// The number of the operation, if the slot is in `state`.
    pub fn work_in(self, state: SlotState) -> Option<u64> {
        let (work, now) = self.load();
        (now == state).then_some(work)
    }

    pub fn is_idle(self) -> bool {
        self.load().1 == SlotState::Idle
    }

    /// Ends an operation whose owner has died, unless another one has begun. The caller holds the
    /// copier lock.
    pub fn bury(self, work: u64, state: SlotState) {
        let (from, to) = (joined(work, state), joined(work, SlotState::Idle));
        let word = self.0.word(Word::SlotState);
        let _ = word.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Whether the operation is still in progress.
    pub fn is_at(self, work: u64) -> bool {
        let (now, state) = self.load();
        now == work && state != SlotState::Idle
    }
}
