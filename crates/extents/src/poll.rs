//! What a node does for the others in the background: it reads the log, gives up what they wait
//! for, acknowledges evictions, and recovers sessions that have died (`docs/formats/nodes.md`,
//! "Polling").

use std::os::fd::AsFd;

use stripewise_sys::LockKind;

use crate::error::io;
use crate::holding::{SyncData, cuts, is_truncated, others};
use crate::hooks::reach;
use crate::joined::Joined;
use crate::journal::Locked;
use crate::nodelog::Appended;
use crate::nodes::{
    Engine, Hold, Log, Record, Session, is_alone, is_asked_for, is_write, may_be_alone, owes_acknowledgement,
    own_holds,
};
use crate::shared::{COPIER_BYTE, POLL_BYTE, Word};
use crate::{Map, Result};

/// Time between two looks at the log by the processes of a node, ns.
const POLL_NS: u64 = 1_000_000_000;
/// The same while the session is alone and young: the nodes of a job open a file at the same time.
const YOUNG_POLL_NS: u64 = 50_000_000;
/// Age up to which a session is young, ns.
const YOUNG_NS: u64 = 5_000_000_000;

/// What a look at the log finds to do.
#[derive(Default)]
struct Found {
    /// Another session has joined one that is alone.
    must_share: bool,
    /// The session is the only one left.
    is_last: bool,
    /// Others wait for these holds.
    asked: Vec<Hold>,
    owes: bool,
    suspect: bool,
    /// The session has a copier's hold, or the slot an operation.
    copies: bool,
    /// The session has the hold of a copy or a truncate.
    cuts: bool,
    /// Another session truncates. It has the size lock, and finishes the truncate of this one
    /// first.
    is_truncated: bool,
}

impl Map {
    /// Does what other nodes wait for; a program calls this many times a second while it has the
    /// file open, and most calls do nothing. `sync_data` as in [`Map::sync`]. `finish_truncate`
    /// finishes a truncate whose node has died, if the file has one.
    ///
    /// # Errors
    /// As [`Map::sync`].
    pub fn poll(&self, sync_data: SyncData<'_>, finish_truncate: SyncData<'_>) -> Result<()> {
        let joined = self.joined()?;
        if joined.session.is_none() || !joined.is_due() {
            return Ok(());
        }
        let Some(_poll) = joined.try_lock_board(POLL_BYTE)? else { return Ok(()) };
        joined.shared.set_polled(joined.sys.now_ns());
        self.poll_now(sync_data, finish_truncate)
    }

    /// [`Map::poll`], whenever the last one was.
    pub(crate) fn poll_now(&self, sync_data: SyncData<'_>, finish_truncate: SyncData<'_>) -> Result<()> {
        let joined = self.joined()?;
        if joined.shared.is(Word::Unlinked) {
            return Ok(());
        }
        reach("poll");
        let found = joined.look_at_log()?;
        if found.must_share {
            return joined.end_alone(sync_data);
        }
        if found.suspect {
            self.sync(sync_data)?;
        }
        if found.is_last {
            return joined.begin_alone();
        }
        if !found.asked.is_empty() {
            joined.give_up(|held| found.asked.contains(&held.hold()), sync_data)?;
        }
        if found.owes {
            joined.acknowledge()?;
        }
        if found.copies {
            joined.end_dead_copier(found.cuts && !found.is_truncated, finish_truncate)?;
        }
        joined.watch(finish_truncate)
    }
}

impl Joined {
    fn is_due(&self) -> bool {
        let now_ns = self.sys.now_ns();
        let polled_ns = self.shared.polled_ns();
        let is_young = now_ns.saturating_sub(self.since_ns) < YOUNG_NS;
        let pause_ns = if is_young && self.shared.is_alone() { YOUNG_POLL_NS } else { POLL_NS };
        // Another boot's clock may be ahead.
        now_ns < polled_ns || now_ns - polled_ns >= pause_ns
    }

    pub fn try_lock_board(&self, byte: u64) -> Result<Option<Locked>> {
        let file = self.open_board_lock()?;
        let taken = self.sys.try_lock(file.as_fd(), byte, 1, LockKind::Exclusive);
        let taken = taken.map_err(io(&self.spec.run_dir, "lock"))?;
        Ok(taken.then(|| Locked::new(&self.place, file)))
    }

    fn look_at_log(&self) -> Result<Found> {
        let _node = self.lock_node()?;
        self.with_engine(|engine| {
            self.read_log(engine)?;
            let (log, own) = (engine.log(), engine.session());
            let is_only = may_be_alone(log, own);
            if self.shared.is_alone() {
                return Ok(Found { must_share: !is_only, ..Found::default() });
            }
            let holds = own_holds(log, own);
            Ok(Found {
                // The process that ended it has died.
                must_share: is_alone(log, own),
                is_last: is_only,
                asked: holds.iter().filter(|hold| is_asked_for(log, own, hold)).cloned().collect(),
                owes: owes_acknowledgement(log, own),
                suspect: self.shared.is(Word::Appending),
                copies: !holds.iter().all(is_write) || !self.shared.slot().is_idle(),
                cuts: cuts(log, own),
                is_truncated: is_truncated(log, &[own]),
            })
        })
    }

    /// Shared mode begins.
    pub fn end_alone(&self, sync_data: SyncData<'_>) -> Result<()> {
        // The copier first, as an eviction takes the locks in this order.
        let _copier = self.lock_board(COPIER_BYTE)?;
        self.shared.set_alone(false);
        if self.shared.is_everything_pinned(&self.block) {
            // Others cannot see stores through a mapping: they are refused.
            self.shared.set_alone(true);
            return Ok(());
        }
        reach("no longer alone");
        self.wait_for_pins(|_| true);
        self.shared.slot().clear();
        let mut commit = self.commit_to_sync()?;
        if !self.is_alone_in_log()? {
            return Ok(());
        }
        commit.gives_up(vec![Hold::ALONE]);
        let ended = self.sync_with(&mut commit, sync_data, false);
        if ended.is_err() && self.is_alone_in_log().unwrap_or(false) {
            self.shared.set_alone(true);
        }
        ended
    }

    /// Ends what a copier has left that has died. If it may have been cutting the file, the
    /// truncate is finished first: until then its hold keeps others off the range.
    fn end_dead_copier(&self, cuts: bool, finish_truncate: SyncData<'_>) -> Result<()> {
        if self.try_lock_board(COPIER_BYTE)?.is_none() || cuts && finish_truncate().is_err() {
            return Ok(());
        }
        if let Some(_copier) = self.try_lock_board(COPIER_BYTE)? {
            self.shared.slot().clear();
            self.drop_exclusive()?;
        }
        Ok(())
    }

    fn is_alone_in_log(&self) -> Result<bool> {
        self.with_engine(|engine| Ok(is_alone(engine.log(), engine.session())))
    }

    /// Shared mode ends, unless a process copies.
    fn begin_alone(&self) -> Result<()> {
        let Some(_copier) = self.try_lock_board(COPIER_BYTE)? else { return Ok(()) };
        let _node = self.lock_node()?;
        self.with_engine(|engine| {
            let own = engine.session();
            let alone = Record::Holds(own, vec![Hold::ALONE]);
            let decide = &mut |log: &Log| may_be_alone(log, own).then(|| alone.clone()).into_iter().collect();
            if let Appended::Suspect = self.append_marked(engine, decide)? {
                return Ok(());
            }
            if is_alone(engine.log(), own) {
                self.shared.set_holds(&[]);
                self.shared.set_alone(true);
            }
            self.end_append();
            Ok(())
        })
    }

    /// States the holds again: the append is the acknowledgement.
    fn acknowledge(&self) -> Result<()> {
        let _node = self.lock_node()?;
        self.with_engine(|engine| {
            let own = engine.session();
            let decide = &mut |log: &Log| match owes_acknowledgement(log, own) {
                true => vec![Record::Holds(own, own_holds(log, own).to_vec())],
                false => Vec::new(),
            };
            self.append(engine, decide).map(drop)
        })
    }

    /// Recovers the next session, in a circle, if it is dead.
    fn watch(&self, finish_truncate: SyncData<'_>) -> Result<()> {
        let Some(next) = self.lock_next_dead()? else { return Ok(()) };
        let is_cutting = self.with_engine(|engine| {
            let (log, own) = (engine.log(), engine.session());
            Ok(cuts(log, next) && !is_truncated(log, &[own, next]))
        })?;
        // Meanwhile the dead session keeps its hold, and others off the range.
        if is_cutting && finish_truncate().is_err() {
            return Ok(());
        }
        let _node = self.lock_node()?;
        self.with_engine(|engine| match engine.lock_dead(next)? {
            true => self.recover(engine, next).map(drop),
            false => Ok(()),
        })
    }

    fn lock_next_dead(&self) -> Result<Option<Session>> {
        let _node = self.lock_node()?;
        self.with_engine(|engine| {
            let (own, others) = (engine.session(), others(engine));
            let next = others.iter().find(|&&session| session > own).or(others.first()).copied();
            Ok(match next {
                Some(next) if engine.lock_dead(next)? => Some(next),
                _ => None,
            })
        })
    }
}
