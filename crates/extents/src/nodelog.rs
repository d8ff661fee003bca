//! How the processes of a node use the log together: one at a time, and the index follows it
//! (`docs/formats/nodes.md`, "What the node keeps").

use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

use stripewise_sys::LockKind;

use crate::error::io;
use crate::hooks::reach;
use crate::index::Entry;
use crate::joined::Joined;
use crate::journal::{JOIN_BYTE, Locked};
use crate::nodes::{
    Engine, FileEngine, HoldKind, JoinLock, Log, Record, Touched, evictions_of_others, own_holds,
};
use crate::shared::{Held, NODE_BYTE, Word};
use crate::{CopyId, Mask, Result, Span};

/// Number of spans of the log that one transaction applies.
const SPANS_AT_ONCE: usize = 1024;

/// The result of an append that other processes of the node may have to repair first.
#[derive(Debug)]
pub(crate) enum Appended {
    /// The records are in the log, and the index shows it.
    Done,
    /// A process of the node died while it appended: a commit has to write the journal anew first.
    Suspect,
}

impl Joined {
    /// Whether the file is used by several nodes now.
    pub fn is_sharing(&self) -> bool {
        self.session.is_some() && !self.shared.is_alone()
    }

    /// The right to use the log.
    pub fn lock_node(&self) -> Result<Locked> {
        self.lock_board(NODE_BYTE)
    }

    /// Waits for the join lock. A session takes it by the description that its engine has of the
    /// journal, so that the journal need not be opened again. A session that is over cannot.
    pub fn lock_join(&self) -> Result<Locked> {
        if let Some(session) = &self.session
            && let Some(engine) = session.lock().as_mut()
        {
            match engine.lock_join() {
                Ok(Some(locked)) => return Ok(locked),
                Err(error) if !engine.is_over() => return Err(error),
                _ => {}
            }
        }
        self.place.lock(JOIN_BYTE, false)
    }

    /// Waits for the exclusive lock of a byte of `board.lock`.
    pub fn lock_board(&self, byte: u64) -> Result<Locked> {
        let file = self.open_board_lock()?;
        let locked = self.sys.lock(file.as_fd(), byte, 1, LockKind::Exclusive);
        locked.map_err(io(&self.spec.run_dir, "lock"))?;
        Ok(Locked::new(&self.place, file))
    }

    /// Calls `act` with this process's access to the session.
    ///
    /// # Errors
    /// EIO if the session is over.
    pub fn with_engine<T>(&self, act: impl FnOnce(&mut FileEngine) -> Result<T>) -> Result<T> {
        let session = self.session.as_ref().ok_or_else(|| self.spec.over())?;
        let mut engine = session.lock();
        if self.is_over() {
            return Err(self.spec.over());
        }
        act(engine.as_mut().ok_or_else(|| self.spec.over())?)
    }

    /// Reads the log to its end and brings the index up to it: the node acquires. A session that is
    /// alone has nothing to read.
    ///
    /// # Errors
    /// If the log cannot be read, or the index cannot grow; EIO if the session is over.
    pub fn acquire(&self) -> Result<()> {
        if !self.is_sharing() || self.shared.is(Word::Unlinked) {
            return Ok(());
        }
        let _node = self.lock_node()?;
        self.with_engine(|engine| self.read_log(engine))
    }

    /// [`Joined::acquire`], for the owner of the node lock. While the session is alone, the index
    /// is ahead of the log, and stays as it is.
    pub fn read_log(&self, engine: &mut FileEngine) -> Result<()> {
        if self.shared.is(Word::Appending) && self.is_sharing() {
            return self.reconcile(engine);
        }
        engine.read()?;
        self.apply(engine)
    }

    /// Appends what `decide` makes of the log's state. The caller has the node lock. An append
    /// acknowledges every eviction before it, so the index is brought up to the log first.
    pub fn append(
        &self,
        engine: &mut FileEngine,
        decide: &mut dyn FnMut(&Log) -> Vec<Record>,
    ) -> Result<Appended> {
        let done = self.append_marked(engine, decide)?;
        if let Appended::Done = done {
            self.end_append();
        }
        Ok(done)
    }

    /// As [`Joined::append`], but leaves the mark that an append is in progress. The caller changes
    /// the table as the log has been, and then calls [`Joined::end_append`]: if it dies before, the
    /// table is made from the log.
    pub fn append_marked(
        &self,
        engine: &mut FileEngine,
        decide: &mut dyn FnMut(&Log) -> Vec<Record>,
    ) -> Result<Appended> {
        if self.shared.is(Word::Appending) {
            return Ok(Appended::Suspect);
        }
        self.append_with(engine, decide, JoinLock::Perhaps)?;
        Ok(Appended::Done)
    }

    /// Removes the mark that an append is in progress.
    pub fn end_append(&self) {
        reach("end append");
        self.shared.set(Word::Appending, 0);
    }

    /// As [`Joined::append`], but leaves the mark that an append is in progress. Returns the
    /// journal, with both locks, if it was written anew. Beside other nodes, `decide` is also asked
    /// before the commit lock is taken, and if there is nothing to append, the lock is not taken.
    pub fn append_with(
        &self,
        engine: &mut FileEngine,
        decide: &mut dyn FnMut(&Log) -> Vec<Record>,
        lock: JoinLock,
    ) -> Result<Option<Locked>> {
        let own = engine.session();
        loop {
            let mut known = None;
            if self.is_sharing() {
                engine.read()?;
                self.apply(engine)?;
                if decide(engine.log()).is_empty() {
                    return Ok(None);
                }
                known = Some(evictions_of_others(engine.log(), own));
            }
            self.shared.set(Word::Appending, 1);
            reach("mark append");
            let mut is_current = false;
            let decide = &mut |log: &Log| {
                is_current = known.as_ref().is_none_or(|known| *known == evictions_of_others(log, own));
                if is_current { decide(log) } else { Vec::new() }
            };
            let new = engine.put(decide, lock)?;
            if is_current {
                self.apply(engine)?;
                return Ok(new);
            }
        }
    }

    /// Brings the index up to what the engine has read. What is pending stays.
    fn apply(&self, engine: &mut FileEngine) -> Result<()> {
        let touched = engine.take_touched();
        if !self.is_sharing() {
            return Ok(());
        }
        let position = engine.position();
        let ranges = match touched {
            Touched::All if self.shared.applied() == position => return Ok(()),
            Touched::All => std::iter::once(0..u64::MAX).collect(),
            Touched::Ranges(ranges) => ranges,
        };
        reach("apply log");
        let log = engine.log();
        for range in &ranges {
            self.set_committed(&log.spans(range), |entry, committed| entry.seq > committed)?;
        }
        self.shared.set_applied(position);
        Ok(())
    }

    /// Sets masks that the log has, except of entries that `stays` accepts (with the number of the
    /// last transaction that the log contains).
    fn set_committed(&self, spans: &[Span], stays: impl Fn(&Entry, u64) -> bool) -> Result<()> {
        for spans in spans.chunks(SPANS_AT_ONCE) {
            let mut txn = self.write()?;
            let committed = self.index.state(&txn)?.committed;
            let (mut changed, mut loses) = (Vec::new(), false);
            for &span in spans {
                let ranges = self.index.set_committed(&mut txn, span, |entry| {
                    let stays = stays(entry, committed);
                    loses |= !stays && !entry.mask.minus(span.mask).is_empty();
                    stays
                })?;
                changed.extend(ranges);
            }
            if changed.is_empty() {
                continue;
            }
            if loses {
                // So that reads in progress, which may use a copy that is evicted, start over.
                self.shared.word(Word::Evictions).fetch_add(1, Ordering::SeqCst);
            }
            self.commit_change(txn, &changed)?;
        }
        Ok(())
    }

    /// After a process of the node died between an append and the end of what belongs to it. What
    /// is pending outside of the session's holds was committed, and others may have changed it
    /// since. The table is made from the log's holds; all of them are given up by the next commit.
    pub fn reconcile(&self, engine: &mut FileEngine) -> Result<()> {
        engine.read()?;
        let own = own_holds(engine.log(), engine.session()).to_vec();
        for range in self.pending_outside(&own.iter().map(|hold| hold.range.clone()).collect::<Vec<_>>())? {
            self.set_committed(&engine.log().spans(&range), |_, _| false)?;
        }
        let holds = own.into_iter().filter_map(|hold| match hold.kind {
            HoldKind::Write(copy) => {
                Some(Held { range: hold.range, copy, is_given_up: true, is_forced: false })
            }
            _ => None,
        });
        self.shared.set_holds(&holds.collect::<Vec<_>>());
        self.apply(engine)
    }

    fn pending_outside(&self, holds: &[Range<u64>]) -> Result<Vec<Range<u64>>> {
        let txn = self.read()?;
        let committed = self.index.state(&txn)?.committed;
        let mut held = crate::nodes::Ranges::default();
        holds.iter().for_each(|range| held.set(range, Some(())));
        let mut outside = Vec::new();
        for segment in self.index.pending_segments(&txn)? {
            self.index.pending_in(&txn, segment, committed, |entry| {
                let pieces = held.pieces(&(entry.start..entry.end));
                outside.extend(pieces.into_iter().filter(|(_, held)| held.is_none()).map(|(part, _)| part));
            })?;
        }
        Ok(outside)
    }

    /// The copies that may not be written to in a range, because other nodes write to another one.
    pub fn forced(&self, range: &Range<u64>) -> Vec<(Range<u64>, Mask)> {
        if !self.is_sharing() {
            return Vec::new();
        }
        let all = Mask::all(CopyId::LIMIT);
        self.shared.forced(range).iter().map(|(part, copies)| (part, all.minus(copies))).collect()
    }
}
