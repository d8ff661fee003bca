//! The `write` holds of the node's session, and whether it is alone (`docs/formats/nodes.md`,
//! "What the node keeps").
//!
//! The table is changed only by the owner of the node lock, under a seqlock. Writers look at it
//! after they have pinned their range; who takes a hold out of force changes the table before it
//! looks at the pins. All of these accesses are sequentially consistent, so one of them sees the
//! other.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{FIRST_HOLD, HOLD_WORDS, HOLDS_MAX, SharedState};
use crate::hooks::reach;
use crate::nodes::{Hold, HoldKind, Ranges};
use crate::{CopyId, Mask};

/// Words before the table.
#[derive(Clone, Copy)]
enum At {
    /// 1 while the session is alone, and does not end that.
    Alone,
    /// The table's seqlock.
    Seqlock,
    Count,
    /// Inode of the journal that the index was last brought up to, and the number of its next
    /// batch.
    AppliedInode,
    AppliedNext,
    /// When a process last looked at the log in the background, ns.
    Polled,
}

const GIVEN_UP: u64 = 1 << 8;
const FORCED: u64 = 1 << 9;

/// A `write` hold of the node's session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub range: Range<u64>,
    pub copy: CopyId,
    /// It is being given up: no write begins under it.
    pub is_given_up: bool,
    /// Other sessions write to this copy somewhere there, so no other copy is chosen.
    pub is_forced: bool,
}

impl Held {
    pub fn hold(&self) -> Hold {
        Hold { range: self.range.clone(), kind: HoldKind::Write(self.copy) }
    }

    pub fn overlaps(&self, range: &Range<u64>) -> bool {
        self.range.start < range.end && range.start < self.range.end
    }

    fn flags(&self) -> u64 {
        let flag = |set: bool, flag: u64| if set { flag } else { 0 };
        self.copy.index() as u64 | flag(self.is_given_up, GIVEN_UP) | flag(self.is_forced, FORCED)
    }

    fn load(words: &[AtomicU64]) -> Self {
        let word = |at: usize| words[at].load(Ordering::SeqCst);
        Self {
            range: word(0)..word(1),
            copy: CopyId::new(word(2) as usize % CopyId::LIMIT),
            is_given_up: word(2) & GIVEN_UP != 0,
            is_forced: word(2) & FORCED != 0,
        }
    }
}

impl SharedState {
    fn of_holds(&self, at: usize) -> &AtomicU64 {
        &self.words.words()[self.geometry.words_before_holds() + at]
    }

    fn holds_word(&self, at: At) -> &AtomicU64 {
        self.of_holds(at as usize)
    }

    /// Whether the session is alone. A writer asks after it has pinned its range.
    pub fn is_alone(&self) -> bool {
        self.holds_word(At::Alone).load(Ordering::SeqCst) != 0
    }

    pub fn set_alone(&self, alone: bool) {
        reach("change alone");
        self.holds_word(At::Alone).store(alone.into(), Ordering::SeqCst);
    }

    /// The journal's inode and next batch up to which the log was applied to the index.
    pub fn applied(&self) -> (u64, u64) {
        let word = |at| self.holds_word(at).load(Ordering::Acquire);
        (word(At::AppliedInode), word(At::AppliedNext))
    }

    pub fn set_applied(&self, (inode, next): (u64, u64)) {
        self.holds_word(At::AppliedInode).store(inode, Ordering::Release);
        self.holds_word(At::AppliedNext).store(next, Ordering::Release);
    }

    pub fn polled_ns(&self) -> u64 {
        self.holds_word(At::Polled).load(Ordering::Relaxed)
    }

    pub fn set_polled(&self, now_ns: u64) {
        self.holds_word(At::Polled).store(now_ns, Ordering::Relaxed);
    }

    /// The table. For the owner of the node lock.
    pub fn holds(&self) -> Vec<Held> {
        let count = (self.holds_word(At::Count).load(Ordering::SeqCst) as usize).min(HOLDS_MAX);
        (0..count).map(|number| self.hold(number)).collect()
    }

    fn hold(&self, number: usize) -> Held {
        let first = self.geometry.words_before_holds() + FIRST_HOLD + number * HOLD_WORDS;
        Held::load(&self.words.words()[first..first + HOLD_WORDS])
    }

    /// Whether more holds fit.
    pub fn has_room(&self, holds: &[Held]) -> bool {
        holds.len() < HOLDS_MAX
    }

    /// Replaces the table, by at most as many holds as fit. Only the owner of the node lock may
    /// call this.
    pub fn set_holds(&self, holds: &[Held]) {
        let seqlock = self.holds_word(At::Seqlock);
        let odd = seqlock.load(Ordering::SeqCst) | 1;
        seqlock.store(odd, Ordering::SeqCst);
        for (number, held) in holds.iter().take(HOLDS_MAX).enumerate() {
            let words = [held.range.start, held.range.end, held.flags()];
            for (at, word) in words.into_iter().enumerate() {
                self.of_holds(FIRST_HOLD + number * HOLD_WORDS + at).store(word, Ordering::SeqCst);
                reach("change holds");
            }
        }
        self.holds_word(At::Count).store(holds.len().min(HOLDS_MAX) as u64, Ordering::SeqCst);
        seqlock.store(odd + 1, Ordering::SeqCst);
    }

    /// Looks at the table without the node lock; `None` while it is being changed, or if the
    /// process that changed it has died.
    fn look_at_holds<T>(&self, look: impl FnOnce(&[Held]) -> T) -> Option<T> {
        let seqlock = self.holds_word(At::Seqlock);
        let before = seqlock.load(Ordering::SeqCst);
        let found = look(&self.holds());
        (before.is_multiple_of(2) && seqlock.load(Ordering::SeqCst) == before).then_some(found)
    }

    /// Whether holds in force cover a write of `range` to `copy`.
    pub fn is_held(&self, range: &Range<u64>, copy: CopyId) -> bool {
        let covered = self.look_at_holds(|holds| {
            let mut at = range.start;
            let covers =
                |held: &&Held, at: u64| held.range.contains(&at) && held.copy == copy && !held.is_given_up;
            while at < range.end {
                match holds.iter().find(|held| covers(held, at)) {
                    Some(held) => at = held.range.end,
                    None => return false,
                }
            }
            true
        });
        covered == Some(true)
    }

    /// The parts of `range` where other sessions may write, or did when the hold was added, with
    /// the copies that they write to.
    pub fn forced(&self, range: &Range<u64>) -> Ranges<Mask> {
        let forced = |holds: &[Held]| {
            let mut copies = Ranges::default();
            for held in holds.iter().filter(|held| held.is_forced && held.overlaps(range)) {
                for (part, known) in copies.pieces(&held.range) {
                    copies.set(&part, Some(known.unwrap_or(Mask::NONE).with(held.copy)));
                }
            }
            copies
        };
        self.look_at_holds(forced).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::support::*;

    fn held(range: Range<u64>, to: usize) -> Held {
        Held { range, copy: copy(to), is_given_up: false, is_forced: false }
    }

    #[test]
    fn holds_cover_what_they_are_in_force_for() {
        let stage = Stage::cached();
        let map = stage.join();
        let shared = &map.joined().unwrap().shared;
        assert!(!shared.is_alone());
        shared.set_holds(&[held(10..20, 1), held(20..30, 1), Held { is_forced: true, ..held(40..50, 0) }]);
        assert!(shared.is_held(&(12..28), copy(1)) && shared.is_held(&(10..30), copy(1)));
        assert!(!shared.is_held(&(12..28), copy(0)) && !shared.is_held(&(9..12), copy(1)));
        assert!(!shared.is_held(&(28..31), copy(1)));
        let forced = |range| shared.forced(&range).iter().collect::<Vec<_>>();
        assert_eq!(forced(0..41), [(40..50, only(0))]);
        assert_eq!(forced(0..40), []);
        let both = [(40..50, 0), (45..60, 1)].map(|(range, to)| Held { is_forced: true, ..held(range, to) });
        shared.set_holds(&both);
        assert_eq!(forced(0..100), [(40..45, only(0)), (45..50, mask(&[0, 1])), (50..60, only(1))]);
        shared.set_holds(&[Held { is_given_up: true, ..held(10..20, 1) }]);
        assert!(!shared.is_held(&(10..20), copy(1)) && !shared.is_held(&(40..50), copy(0)));
        // A process dies while it changes the table.
        shared.set_holds(&[held(10..20, 1)]);
        shared.holds_word(At::Seqlock).fetch_add(1, Ordering::SeqCst);
        assert!(!shared.is_held(&(10..20), copy(1)));
        let all: Vec<Held> = (0..100).map(|number| held(number..number + 1, 1)).collect();
        shared.set_holds(&all);
        assert_eq!(shared.holds(), all[..64]);
        assert!(!shared.has_room(&shared.holds()) && shared.is_held(&(63..64), copy(1)));
        shared.set_applied((5, 7));
        assert_eq!(shared.applied(), (5, 7));
    }
}
