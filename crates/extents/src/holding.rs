//! Writing beside other nodes: the holds of the session (`docs/formats/nodes.md`, "Holds" and
//! "Shared mode").

use std::ops::Range;

use crate::joined::Joined;
use crate::nodelog::Appended;
use crate::nodes::{
    Engine, FileEngine, Hold, HoldKind, Log, Record, Session, is_alone, is_asked_for, is_granted_beside,
    is_usable, is_write, may_add_beside, own_holds, widest_write, with_hold, without_holds, written_by_others,
};
use crate::session::Patience;
use crate::shared::{COPIER_BYTE, Held, Word};
use crate::wait::Wait;
use crate::{CopyId, Map, MapError, Mask, Result};

/// A hold is rounded up to whole blocks of this size, as far as others allow, so that a node that
/// goes through a file appends to the log once per block.
const BLOCK_BYTES: u64 = if cfg!(test) { 4096 } else { 64 << 20 };

/// Syncs the objects of all copies, as for [`Map::sync`].
pub type SyncData<'a> = &'a dyn Fn() -> stripewise_sys::Result<()>;

/// What stands in the way of a `write` hold.
enum Answer {
    Held,
    /// The hold is being given up.
    GivenUp,
    /// Others wait for these holds there: they are given up first.
    Asked(Vec<Held>),
    /// No more holds fit into the table.
    Full,
    /// The session was alone, and has not given that up in the log.
    StillAlone,
    Suspect,
    /// Other sessions write to another copy, which cannot be used here.
    OtherCopy,
    /// Another session copies, evicts or truncates.
    Busy,
}

impl Map {
    /// Announces to other nodes that this one writes `range` to `copy`, or to the one of `usable`
    /// that they write to. The caller, who has no [`crate::WriteGuard`], then begins its write
    /// anew. Waits until other nodes have committed what is in the way.
    ///
    /// # Errors
    /// EINTR; those of [`Map::sync`], since holds may have to be given up.
    pub fn announce(
        &self,
        range: Range<u64>,
        copy: CopyId,
        usable: Mask,
        sync_data: SyncData<'_>,
    ) -> Result<()> {
        let joined = self.joined()?;
        let mut patience = Patience::new(&joined.sys);
        loop {
            match joined.try_to_hold(&range, copy, usable)? {
                Answer::Held => return Ok(()),
                Answer::GivenUp => joined.give_up(|held| held.is_given_up, sync_data)?,
                Answer::Asked(asked) => joined.give_up(|held| asked.contains(held), sync_data)?,
                Answer::Full => joined.give_up(|_| true, sync_data)?,
                Answer::StillAlone => joined.end_alone(sync_data)?,
                Answer::Suspect => self.sync(sync_data)?,
                Answer::OtherCopy if joined.claim(&range, copy, sync_data)? => return Ok(()),
                Answer::OtherCopy | Answer::Busy => {
                    joined.recover_some(false)?;
                    patience.pause().map_err(crate::error::caller("wait for another node"))?;
                }
            }
        }
    }
}

impl Map {
    /// Commits what is pending in a range if other nodes have the file open: only what is committed
    /// is copied then.
    ///
    /// # Errors
    /// As [`Map::sync`].
    pub fn commit_to_copy(&self, range: &Range<u64>, sync_data: SyncData<'_>) -> Result<()> {
        let joined = self.joined()?;
        if joined.is_sharing() && joined.is_pending(range)? { self.sync(sync_data) } else { Ok(()) }
    }
}

fn rounded(range: &Range<u64>) -> Range<u64> {
    let end = range.end.div_ceil(BLOCK_BYTES).saturating_mul(BLOCK_BYTES);
    range.start / BLOCK_BYTES * BLOCK_BYTES..end
}

/// The `write` hold to add for a write of `range`: to `copy`, or where others write to one that is
/// usable, to theirs.
fn hold_for(log: &Log, own: Session, range: &Range<u64>, copy: CopyId, usable: Mask) -> Option<Held> {
    let others = written_by_others(log, own, range);
    let copy = match others.lowest() {
        Some(theirs) if usable.contains(theirs) => theirs,
        Some(_) => return None,
        None => copy,
    };
    let range = widest_write(log, own, range, rounded(range), copy)?;
    let is_forced = !written_by_others(log, own, &range).is_empty();
    Some(Held { range, copy, is_given_up: false, is_forced })
}

impl Joined {
    fn try_to_hold(&self, range: &Range<u64>, copy: CopyId, usable: Mask) -> Result<Answer> {
        let _node = self.lock_node()?;
        if self.shared.is_alone() || self.shared.is_held(range, copy) {
            return Ok(Answer::Held);
        }
        let holds = self.shared.holds();
        if !self.shared.has_room(&holds) {
            return Ok(Answer::Full);
        }
        self.with_engine(|engine| {
            let own = engine.session();
            let (mut answer, mut added) = (Answer::Busy, None);
            let decide = &mut |log: &Log| {
                (answer, added) = self.decide_hold(log, own, range, copy, usable, &holds);
                added.iter().map(|held: &Held| with_hold(log, own, held.hold())).collect()
            };
            if let Appended::Suspect = self.append_marked(engine, decide)? {
                return Ok(Answer::Suspect);
            }
            if let Some(held) = added {
                let mut holds = holds;
                holds.retain(|old| old.hold() != held.hold());
                holds.push(held);
                self.shared.set_holds(&holds);
            }
            self.end_append();
            Ok(answer)
        })
    }

    fn decide_hold(
        &self,
        log: &Log,
        own: Session,
        range: &Range<u64>,
        copy: CopyId,
        usable: Mask,
        holds: &[Held],
    ) -> (Answer, Option<Held>) {
        let Some(hold) = hold_for(log, own, range, copy, usable) else {
            let others = written_by_others(log, own, range);
            let is_other = !others.is_empty() && (others.len() > 1 || others.and(usable).is_empty());
            return (if is_other { Answer::OtherCopy } else { Answer::Busy }, None);
        };
        let is_given_up = |held: &Held| held.is_given_up && held.hold() == hold.hold();
        let is_asked = |held: &Held| held.overlaps(range) && is_asked_for(log, own, &held.hold());
        let asked: Vec<_> = holds.iter().filter(|held| is_asked(held)).cloned().collect();
        match () {
            () if is_alone(log, own) => (Answer::StillAlone, None),
            () if holds.iter().any(is_given_up) => (Answer::GivenUp, None),
            () if !asked.is_empty() => (Answer::Asked(asked), None),
            () => (Answer::Held, Some(hold)),
        }
    }

    /// Commits, and gives up the holds that `which` names.
    pub fn give_up(&self, which: impl Fn(&Held) -> bool, sync_data: SyncData<'_>) -> Result<()> {
        let marked = self.mark_given_up(which)?;
        // Without a lock: a writer may wait for the sync lock with its range pinned.
        self.wait_for_pins(|range| marked.iter().any(|held| held.overlaps(range)));
        let mut commit = self.commit_to_sync()?;
        let now = self.shared.holds();
        let still = marked.iter().filter(|held| now.contains(held)).map(Held::hold).collect::<Vec<_>>();
        if still.is_empty() {
            return Ok(());
        }
        commit.gives_up(still);
        self.sync_with(&mut commit, sync_data, false).inspect_err(|_| drop(self.unmark(&marked)))
    }

    fn mark_given_up(&self, which: impl Fn(&Held) -> bool) -> Result<Vec<Held>> {
        let _node = self.lock_node()?;
        if self.shared.is(Word::Appending) {
            // A process may have died while it changed the table.
            self.with_engine(|engine| self.reconcile(engine))?;
        }
        let mut holds = self.shared.holds();
        holds.iter_mut().filter(|held| which(held)).for_each(|held| held.is_given_up = true);
        self.shared.set_holds(&holds);
        holds.retain(|held| held.is_given_up && which(held));
        Ok(holds)
    }

    /// Puts holds in force again that could not be given up.
    fn unmark(&self, marked: &[Held]) -> Result<()> {
        let _node = self.lock_node()?;
        if self.shared.is(Word::Appending) {
            // The next commit makes the journal anew, and the table says that all are given up.
            return Ok(());
        }
        let mut holds = self.shared.holds();
        holds.iter_mut().filter(|held| marked.contains(held)).for_each(|held| held.is_given_up = false);
        self.shared.set_holds(&holds);
        Ok(())
    }

    /// Gets a `write` hold for a copy to which others do not write: they give up theirs. False if
    /// the background thread first has to end what a process did that has died.
    fn claim(&self, range: &Range<u64>, copy: CopyId, sync_data: SyncData<'_>) -> Result<bool> {
        let is_full = !self.shared.has_room(&self.shared.holds());
        self.give_up(|held| is_full || held.overlaps(range), sync_data)?;
        let _copier = self.lock_board(COPIER_BYTE)?;
        if !self.is_sharing() {
            return Ok(true);
        }
        if self.has_dead_copier()? {
            return Ok(false);
        }
        if !self.try_claim(range, copy)? {
            // If others get the same copy meanwhile, they need not give it up.
            self.ask_for_exclusive(range, |_| self.try_claim(range, copy))?;
        }
        Ok(true)
    }

    /// Adds a `write` hold for a copy, in place of `exclusive`, unless others write to another one.
    /// Returns whether it did.
    fn try_claim(&self, range: &Range<u64>, copy: CopyId) -> Result<bool> {
        let _node = self.lock_node()?;
        self.with_engine(|engine| {
            let (own, mut claimed) = (engine.session(), None);
            let decide = &mut |log: &Log| {
                claimed = hold_for(log, own, range, copy, Mask::only(copy));
                let writes = own_holds(log, own).iter().filter(|hold| is_write(hold)).cloned();
                let record = |held: &Held| Record::Holds(own, writes.chain([held.hold()]).collect());
                claimed.as_ref().map(record).into_iter().collect()
            };
            let Appended::Done = self.append_marked(engine, decide)? else { return Ok(false) };
            let is_claimed = claimed.is_some();
            if is_claimed {
                let mut holds = self.shared.holds();
                holds.extend(claimed);
                self.shared.set_holds(&holds);
            }
            self.end_append();
            Ok(is_claimed)
        })
    }

    /// Whether a process of the node has died while it copied, evicted or truncated. The caller is
    /// the copier.
    fn has_dead_copier(&self) -> Result<bool> {
        let _node = self.lock_node()?;
        self.with_engine(|engine| {
            self.read_log(engine)?;
            Ok(!own_holds(engine.log(), engine.session()).iter().all(is_write))
        })
    }

    /// Adds `exclusive` on a range, and waits until it is granted. The caller is the copier.
    pub fn wait_for_exclusive(&self, range: &Range<u64>) -> Result<()> {
        self.ask_for_exclusive(range, Ok)
    }

    /// Adds `exclusive` on a range, and looks at the log until `is_done`, which is told whether it
    /// is granted. The caller is the copier.
    fn ask_for_exclusive(&self, range: &Range<u64>, is_done: impl Fn(bool) -> Result<bool>) -> Result<()> {
        let mut patience = Patience::new(&self.sys);
        while !is_done(self.try_exclusive(range, true)?)? {
            self.end_dead_append()?;
            self.recover_some(false)?;
            let paused = patience.pause().map_err(crate::error::caller("wait for another node"));
            paused.inspect_err(|_| drop(self.drop_exclusive()))?;
        }
        Ok(())
    }

    /// Writes the journal anew if a process of the node has died while it appended. What is pending
    /// stays: nothing else is committed.
    fn end_dead_append(&self) -> Result<()> {
        if !self.shared.is(Word::Appending) {
            return Ok(());
        }
        let mut commit = self.commit_to_sync()?;
        let nothing = commit.changes(false);
        commit.put(nothing, false, false)?;
        commit.settle();
        Ok(())
    }

    /// Adds `exclusive` on a range if the session does not have it. Returns whether it is granted.
    /// The caller is the copier, and any other such hold of the session is that of a process that
    /// has died. With `asks`, it is replaced, and the hold is added even if it is not granted at
    /// once: others give up theirs. Without, nothing is added: the dead process may have been
    /// cutting the file.
    pub fn try_exclusive(&self, range: &Range<u64>, asks: bool) -> Result<bool> {
        let hold = Hold { range: range.clone(), kind: HoldKind::Exclusive };
        let _node = self.lock_node()?;
        self.with_engine(|engine| {
            self.read_log(engine)?;
            let (own, dead) = (engine.session(), engine.dead().unwrap_or(Session::NONE));
            let has = |log: &Log| own_holds(log, own).contains(&hold);
            if !asks && !own_holds(engine.log(), own).iter().all(is_write) {
                return Ok(false);
            }
            if !has(engine.log()) {
                let decide = &mut |log: &Log| {
                    let mut holds = own_holds(log, own).to_vec();
                    holds.retain(is_write);
                    let before = holds.len();
                    let is_useful = asks || is_granted_beside(log, own, dead, range);
                    if is_useful && may_add_beside(log, own, dead, &hold) {
                        holds.push(hold.clone());
                    }
                    let is_news = holds.len() > before || own_holds(log, own).len() > before;
                    is_news.then_some(Record::Holds(own, holds)).into_iter().collect()
                };
                self.append(engine, decide)?;
            }
            let log = engine.log();
            Ok(has(log) && is_granted_beside(log, own, dead, range))
        })
    }

    /// Gives up `exclusive` and `evict` holds. If that fails, the next copier does.
    pub fn drop_exclusive(&self) -> Result<()> {
        let _node = self.lock_node()?;
        self.with_engine(|engine| {
            let own = engine.session();
            let decide = &mut |log: &Log| match own_holds(log, own).iter().all(is_write) {
                true => Vec::new(),
                false => vec![without_holds(log, own, |hold| !is_write(hold))],
            };
            self.append(engine, decide).map(drop)
        })
    }

    /// Recovers one session that is dead, if there is one; with `even_cutting` also one that may
    /// have been cutting the file.
    pub fn recover_some(&self, even_cutting: bool) -> Result<bool> {
        let _node = self.lock_node()?;
        self.with_engine(|engine| {
            // Who finishes a truncate of a dead session keeps its byte locked.
            let watched = engine.dead();
            for session in others(engine) {
                if cuts(engine.log(), session) && !even_cutting || !engine.lock_dead(session)? {
                    continue;
                }
                let done = self.recover(engine, session);
                if let Some(watched) = watched.filter(|&watched| engine.log().member(watched).is_some()) {
                    engine.lock_dead(watched)?;
                }
                return done;
            }
            Ok(false)
        })
    }

    /// Recovers a dead session whose byte the engine has locked. The caller has the node lock.
    pub fn recover(&self, engine: &mut FileEngine, dead: Session) -> Result<bool> {
        let decide = &mut |log: &Log| match log.member(dead) {
            Some(_) => crate::nodes::recover(log, dead),
            None => Vec::new(),
        };
        self.append(engine, decide).map(|done| matches!(done, Appended::Done))
    }

    /// Waits until every pin that is set now and that `which` names has been released, or its
    /// process has died.
    pub fn wait_for_pins(&self, which: impl Fn(&Range<u64>) -> bool) {
        let mut wait = Wait::new(&self.sys);
        for pin in self.shared.pins().into_iter().filter(|pin| which(pin.range())) {
            while self.shared.is_still_set(&self.block, &pin) {
                wait.pause();
            }
        }
    }

    /// Waits until no other session is alone, so that this one may read and write.
    ///
    /// # Errors
    /// [`MapError::InUse`] after a while: the other node is stopped, or has the file mapped.
    pub fn wait_until_usable(&self) -> Result<()> {
        let mut patience = Patience::new(&self.sys);
        while self.is_sharing() {
            self.acquire()?;
            let (usable, alone) = self.with_engine(|engine| {
                let (log, own) = (engine.log(), engine.session());
                let alone = log.members().find(|&(session, _)| is_alone(log, session));
                Ok((is_usable(log, own), alone.map(|(_, member)| member.node.name.clone())))
            })?;
            if usable {
                break;
            }
            // The program that opens the file finishes a truncate before it writes.
            if self.recover_some(true)? {
                continue;
            }
            if patience.is_over() {
                let node = alone.unwrap_or_default();
                return Err(MapError::InUse { path: self.place.path.clone(), node });
            }
            patience.pause().map_err(crate::error::io(&self.place.path, "wait for another node with"))?;
        }
        Ok(())
    }
}

/// The other sessions of the log.
pub(crate) fn others(engine: &FileEngine) -> Vec<Session> {
    let sessions = engine.log().members().map(|(session, _)| session);
    sessions.filter(|&session| session != engine.session()).collect()
}

/// Whether a session, `except` some, has the hold of a truncate, or waits for it.
pub(crate) fn is_truncated(log: &Log, except: &[Session]) -> bool {
    let truncates = |hold: &Hold| hold.kind == HoldKind::Exclusive && hold.range.end == u64::MAX;
    log.members().any(|(session, member)| !except.contains(&session) && member.holds.iter().any(truncates))
}

/// Whether a dead session may have been cutting the file.
pub(crate) fn cuts(log: &Log, session: Session) -> bool {
    own_holds(log, session).iter().any(|hold| matches!(hold.kind, HoldKind::Exclusive | HoldKind::Alone))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::tests::rules::log;

    #[test]
    fn a_hold_reaches_up_to_those_of_others_with_another_copy() {
        let [original, other] = [0, 1].map(CopyId::new);
        let write = |range| Hold { range, kind: HoldKind::Write(other) };
        let log = log([&[], &[write(0..64), write(1000..1100)], &[write(2 * BLOCK_BYTES..3 * BLOCK_BYTES)]]);
        let found = |range, usable| hold_for(&log, Session(1), &range, original, usable);
        let held = |range, copy, is_forced| Some(Held { range, copy, is_given_up: false, is_forced });
        assert_eq!(found(200..300, Mask::all(2)), held(64..1000, original, false));
        assert_eq!(found(2000..2001, Mask::all(2)), held(1100..BLOCK_BYTES, original, false));
        assert_eq!(
            found(BLOCK_BYTES + 1..BLOCK_BYTES + 2, Mask::all(2)),
            held(BLOCK_BYTES..2 * BLOCK_BYTES, original, false)
        );
        assert_eq!(found(10..20, Mask::all(2)), held(0..BLOCK_BYTES, other, true));
        assert_eq!(found(10..20, Mask::ORIGINAL), None);
    }
}
