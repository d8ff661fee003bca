//! What a process has of a map that it has joined.

use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::sync::Arc;

use stripewise_sys::{Fd, SysRef};

use crate::board::{self, Block, Board, OPENED, Pin, Stamp, Word, of_segment, segments};
use crate::cache::{self, Cache, Known};
use crate::error::{index_error, io};
use crate::hooks::{self, reach};
use crate::index::{Entry, Index};
use crate::journal::{Commit, Header, Held, Place, Writer};
use crate::lmdb::{Failure, ReadTxn, Space, WriteTxn};
use crate::wait::Wait;
use crate::{MapError, MapSpec, Mask, Result, Span};

/// Requests that touch more segments ask the index for all of it at once.
const SEGMENTS_MAX: u64 = 256;
/// Work that is begun anew because of what others did is put off a little after so many times.
const LISTED_AT_ONCE: usize = 4096;

pub(crate) struct Joined {
    pub sys: SysRef,
    pub spec: Arc<MapSpec>,
    pub header: Header,
    pub place: Place,
    pub held: Held,
    /// The description of `board.lock` that holds the block.
    pub lock: Fd,
    pub board: Board,
    pub block: Block,
    pub index: Index,
    pub cache: Cache,
}

impl Joined {
    /// In a forked child: closes what it inherited. What is left is leaked: it is the parent's.
    pub fn abandon(&self) {
        self.held.close_inherited();
        let own = [self.lock.as_raw_fd(), self.place.dir.as_raw_fd(), self.board.raw_fd()];
        own.into_iter().for_each(stripewise_sys::fd::close_inherited);
        self.index.env.abandon();
    }

    /// For `map_err`: the index failed.
    pub fn failed(&self, what: &'static str) -> impl Fn(Failure) -> MapError {
        move |failure| index_error(&self.spec.run_dir, what, failure)
    }

    pub fn read(&self) -> Result<ReadTxn<'_>> {
        self.index.env.read().map_err(self.failed("read the index"))
    }

    pub fn write(&self) -> Result<WriteTxn<'_>> {
        let space = Space { sys: &self.sys, allocated: self.board.word(Word::Allocated) };
        self.index.env.write(space).map_err(self.failed("change the index"))
    }

    /// Tells the board what could be evicted after this change.
    pub fn tell_clean(&self, txn: &WriteTxn<'_>) -> Result<()> {
        let state = self.index.state(txn).map_err(self.failed("read the index"))?;
        self.board.set_clean(&state.clean);
        Ok(())
    }

    /// Commits a change of the map in `ranges`.
    pub fn commit_change(&self, txn: WriteTxn<'_>, ranges: &[Range<u64>]) -> Result<()> {
        self.tell_clean(&txn)?;
        let marks = self.board.mark(ranges);
        reach("commit");
        txn.commit().map_err(self.failed("change the index"))?;
        reach("committed");
        self.board.settle(marks);
        Ok(())
    }

    /// Gives the parts of `range` the masks that `to` says, and returns the masks that `range` then has. Whether anything was changed comes second.
    pub fn change(
        &self,
        range: Range<u64>,
        to: impl FnMut(Entry) -> Option<Mask>,
    ) -> Result<(Vec<Span>, bool)> {
        reach("change");
        let failed = self.failed("change the index");
        let mut txn = self.write()?;
        let changed = self.index.change(&mut txn, range.clone(), to).map_err(&failed)?;
        let mut spans = Vec::new();
        self.index.map.parts(&txn, range, |part| collect(&mut spans, part)).map_err(failed)?;
        if !changed.is_empty() {
            self.commit_change(txn, &changed)?;
        }
        Ok((spans, !changed.is_empty()))
    }

    /// The masks of `range`, and what stands for nothing having changed since. A writer must know what a process that died
    /// beside its commit has left: it may become part of the map with the next commit.
    pub fn spans(&self, range: &Range<u64>, for_write: bool) -> Result<(Vec<Span>, Stamp)> {
        reach("read map");
        let mut stamp = self.board.stamp(range);
        if for_write && !stamp.is_certain() {
            self.heal(range)?;
            stamp = self.board.stamp(range);
        }
        let mut spans = Vec::with_capacity(4);
        let segments = segments(range);
        if segments.end - segments.start > SEGMENTS_MAX {
            self.ask(range, &mut spans)?;
            return Ok((spans, stamp));
        }
        for segment in segments {
            let whole = of_segment(segment);
            let part = range.start.max(whole.start)..range.end.min(whole.end);
            self.spans_in(segment, &part, &mut spans)?;
        }
        Ok((spans, stamp))
    }

    fn spans_in(&self, segment: u64, part: &Range<u64>, spans: &mut Vec<Span>) -> Result<()> {
        let stamp = self.board.stamp(part);
        match self.cache.look(segment, part, stamp, spans) {
            Known::Yes => Ok(()),
            Known::No => self.ask(part, spans),
            Known::Stuck => {
                self.heal(part)?;
                self.ask(part, spans)
            }
            Known::Load => {
                let (mut all, whole) = (Vec::new(), of_segment(segment));
                self.ask(&whole, &mut all)?;
                // What was read is what the generation stands for only if that is still the same.
                if self.board.stamp(part).equals(stamp) {
                    self.cache.keep(segment, stamp, &all);
                }
                for span in all {
                    let span = Span { start: span.start.max(part.start), end: span.end.min(part.end), ..span };
                    if !span.is_empty() {
                        cache::add(spans, span);
                    }
                }
                Ok(())
            }
        }
    }

    /// Adds what the index says.
    fn ask(&self, range: &Range<u64>, spans: &mut Vec<Span>) -> Result<()> {
        let txn = self.read()?;
        let parts = self.index.map.parts(&txn, range.clone(), |part| collect(spans, part));
        parts.map_err(self.failed("read the index"))
    }

    /// Waits until nobody is in the middle of a commit, and makes odd generations even.
    fn heal(&self, range: &Range<u64>) -> Result<()> {
        let txn = self.write()?;
        self.board.heal(range);
        drop(txn);
        Ok(())
    }

    /// Pins a range that is not empty.
    pub fn pin(&self, range: &Range<u64>) -> Pin {
        let mut wait = Wait::new(&self.sys);
        loop {
            if let Some(pin) = self.board.pin(&self.block, range) {
                return pin;
            }
            wait.pause();
        }
    }

    pub fn unpin(&self, pin: &Pin) {
        if !hooks::dead() {
            self.board.unpin(&self.block, pin);
        }
    }

    /// The commit lock.
    pub fn commit(&self, has_join_lock: bool) -> Result<Commit<'_, '_>> {
        Commit::begin(&self.place, &self.board, &self.held, self.header, &self.spec.node, has_join_lock)
    }

    /// The commit lock for a sync, which may have to write the journal anew, and so waits until nobody joins or leaves.
    pub fn commit_to_sync(&self) -> Result<Commit<'_, '_>> {
        let mut wait = Wait::new(&self.sys);
        reach("commit lock");
        loop {
            let mut commit = self.commit(false)?;
            if !commit.is_broken() || commit.may_rewrite()? {
                return Ok(commit);
            }
            // Who leaves has the join lock and waits for this one.
            drop(commit);
            wait.pause();
        }
    }

    /// The write intent: the journal says that this node writes the file before it does.
    pub fn ensure_opened(&self) -> Result<()> {
        let is_opened = || self.board.get(Word::Opened) == OPENED;
        if is_opened() {
            return Ok(());
        }
        self.board_has_its_name()?;
        let mut commit = self.commit_to_sync()?;
        if is_opened() {
            return Ok(());
        }
        if commit.is_broken() {
            return commit.reopen();
        }
        let mut writer = commit.writer(false);
        writer.opened(&self.spec.node);
        commit.put(writer, false)
    }

    /// Others could not find a board that was removed, and would make one of their own: then nobody may begin to write here.
    fn board_has_its_name(&self) -> Result<()> {
        let lost = || MapError::Lost { path: self.place.path.clone(), run_dir: self.spec.run_dir.clone() };
        let path = self.spec.run_dir.join(board::BOARD);
        let named = self.sys.stat_at(None, &path, false).map_err(|_| lost())?;
        let own = self.board.identity(&self.sys).map_err(io(&path, "stat"))?;
        if (named.st_dev, named.st_ino) == own { Ok(()) } else { Err(lost()) }
    }

    /// The entries of the map from `from` on, some at a time, until `visit` returns false.
    pub fn each_part(&self, range: Range<u64>, mut visit: impl FnMut(Entry) -> bool) -> Result<()> {
        let mut at = range.start;
        let mut more = true;
        while more && at < range.end {
            // Snapshots are kept short: the pages of older ones cannot be used again.
            let txn = self.read()?;
            let mut count = 0;
            let parts = self.index.map.parts(&txn, at..range.end, |part| {
                at = part.end;
                count += 1;
                more = visit(part);
                more && count < LISTED_AT_ONCE
            });
            parts.map_err(self.failed("read the index"))?;
        }
        Ok(())
    }
}

/// For `visit` and `parts`: collects masks.
pub(crate) fn collect(spans: &mut Vec<Span>, part: Entry) -> bool {
    cache::add(spans, Span::new(part.start..part.end, part.mask));
    true
}

/// Everything that a new journal needs to say.
pub(crate) fn put_all(writer: &mut Writer, spans: &[Span], default: Mask) {
    for span in spans.iter().filter(|span| span.mask != default) {
        writer.change(span.range(), span.mask);
    }
}

/// Whether there is something at `path`.
pub(crate) fn exists(sys: &SysRef, path: &Path) -> bool {
    sys.stat_at(None, path, false).is_ok()
}

impl Drop for Joined {
    fn drop(&mut self) {
        if !hooks::dead() {
            self.board.release(&self.sys, self.lock.as_fd(), &self.block);
        }
    }
}
