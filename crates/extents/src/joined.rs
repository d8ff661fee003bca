//! The state that a process keeps for a map that it has joined.

use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

use stripewise_sys::{Fd, ForkLock, Mode, OFlags, SysRef};

use crate::cache::{Cache, Known};
use crate::error::io;
use crate::hooks::{self, reach};
use crate::index::{Entry, Index, Marking};
use crate::journal::{Header, Place, Writer};
use crate::lmdb::{CHANGE, ReadTxn, Space, WriteTxn};
use crate::nodes::FileEngine;
use crate::shared::{self, Block, Pin, SharedState, Stamp, Word, of_segment, segments};
use crate::spec::SHARED_FILE;
use crate::wait::Wait;
use crate::{MapSpec, Mask, Result, Span};

/// A request that touches more segments than this bypasses the cache and reads the index once.
const SEGMENTS_MAX: u64 = 256;
/// Maximum number of entries that [`Joined::each_part`] visits in one read transaction.
const LISTED_AT_ONCE: usize = 4096;

/// This process's access to the session of its node. Empty in a forked child that found the lock
/// taken by its parent.
pub(crate) type NodeSession = ForkLock<Option<FileEngine>>;

pub(crate) struct Joined {
    pub sys: SysRef,
    /// The parameters, with the node's name as the journal and the other processes of this boot
    /// have it.
    pub spec: MapSpec,
    pub header: Header,
    pub place: Arc<Place>,
    /// `None`: the one-node protocol.
    pub session: Option<NodeSession>,
    pub block: Block,
    /// When this process joined, ns.
    pub since_ns: u64,
    pub shared: SharedState,
    pub index: Index,
    pub cache: Cache,
}

/// A pin of a range, released on drop.
pub(crate) struct Pinned<'m> {
    joined: &'m Joined,
    pin: Pin,
}

impl Drop for Pinned<'_> {
    fn drop(&mut self) {
        if !hooks::dead() {
            self.joined.shared.unpin(&self.joined.block, &self.pin);
        }
    }
}

impl Joined {
    /// Closes inherited descriptors in a forked child. The rest belongs to the parent and is
    /// leaked.
    pub fn abandon(&self) {
        self.place.held.close_inherited();
        let own = [self.block.lock.as_raw_fd(), self.place.dir.as_raw_fd(), self.shared.raw_fd()];
        own.into_iter().for_each(stripewise_sys::fd::close_inherited);
        self.index.env.abandon();
    }

    pub fn read(&self) -> Result<ReadTxn<'_>> {
        self.index.env.read()
    }

    pub fn write(&self) -> Result<WriteTxn<'_>> {
        let space = Space { sys: &self.sys, allocated: self.shared.word(Word::Allocated) };
        self.index.env.write(space, CHANGE)
    }

    /// Stores in the shared state what could be evicted after this change.
    pub fn tell_clean(&self, txn: &WriteTxn<'_>) -> Result<()> {
        self.shared.set_clean(&self.index.state(txn)?.clean);
        Ok(())
    }

    /// Commits a transaction that changes the map in `ranges`.
    pub fn commit_change(&self, txn: WriteTxn<'_>, ranges: &[Range<u64>]) -> Result<()> {
        self.tell_clean(&txn)?;
        let marks = self.shared.mark(ranges);
        reach("commit");
        txn.commit()?;
        reach("committed");
        self.shared.settle(marks);
        Ok(())
    }

    /// How a change of the map is marked.
    pub fn marking(&self, txn: &WriteTxn<'_>) -> Result<Marking> {
        if self.is_sharing() { self.index.pending_alone(txn) } else { Ok(Marking::Pending) }
    }

    /// Sets the mask of every entry in `range` to the one that `to` returns for it; `None` leaves
    /// it unchanged. Returns the masks that `range` then has, and whether anything changed.
    pub fn change(
        &self,
        range: Range<u64>,
        to: impl FnMut(Entry) -> Option<Mask>,
    ) -> Result<(Vec<Span>, bool)> {
        reach("change");
        let mut txn = self.write()?;
        let marking = self.marking(&txn)?;
        let changed = self.index.change(&mut txn, range.clone(), marking, to)?;
        let mut spans = Vec::new();
        self.index.map.parts(&txn, range, |part| collect(&mut spans, part))?;
        if !changed.is_empty() {
            self.commit_change(txn, &changed)?;
        }
        Ok((spans, !changed.is_empty()))
    }

    /// The masks of `range`, and the seqlock stamp that they were read under. With `for_write`,
    /// changes of processes that died around their commit are taken into account, since they may
    /// become part of the map with the next commit.
    pub fn spans(&self, range: &Range<u64>, for_write: bool) -> Result<(Vec<Span>, Stamp)> {
        reach("read map");
        let mut stamp = self.shared.stamp(range);
        if for_write && !stamp.is_certain() {
            self.heal(range)?;
            stamp = self.shared.stamp(range);
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
        let stamp = self.shared.stamp(part);
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
                // The entries read may be cached under this seqlock value only if it has not
                // changed since.
                if self.shared.stamp(part).equals(stamp) {
                    self.cache.keep(segment, stamp, &all);
                }
                all.into_iter().filter_map(|span| span.cut(part)).for_each(|span| span.add_to(spans));
                Ok(())
            }
        }
    }

    /// Adds the spans of `range` as the index has them.
    fn ask(&self, range: &Range<u64>, spans: &mut Vec<Span>) -> Result<()> {
        let txn = self.read()?;
        self.index.map.parts(&txn, range.clone(), |part| collect(spans, part))
    }

    /// Waits until no commit is in progress, and makes odd seqlocks even.
    fn heal(&self, range: &Range<u64>) -> Result<()> {
        let txn = self.write()?;
        self.shared.heal(range);
        drop(txn);
        Ok(())
    }

    /// Pins a non-empty range.
    pub fn pin(&self, range: &Range<u64>) -> Pinned<'_> {
        let mut wait = Wait::new(&self.sys);
        loop {
            if let Some(pin) = self.shared.pin(&self.block, range) {
                return Pinned { joined: self, pin };
            }
            wait.pause();
        }
    }

    /// Opens `board.lock` with a description of its own, because all threads share the one that
    /// holds the block.
    pub fn open_board_lock(&self) -> Result<Fd> {
        let path = self.spec.run_dir.join(shared::LOCK);
        let file = self.sys.open(None, &path, OFlags::RDWR, Mode::empty()).map_err(io(&path, "open"))?;
        let identity = |fd| self.sys.stat(fd).map(|stat| (stat.st_dev, stat.st_ino)).map_err(io(&path, "stat"));
        if identity(file.as_fd())? != identity(self.block.lock.as_fd())? {
            return Err(self.spec.lost());
        }
        Ok(file)
    }

    /// Checks that the shared state still has its name. If it was removed, other processes cannot
    /// find it and would create their own, so no process may begin to write under this one.
    pub fn shared_state_has_its_name(&self) -> Result<()> {
        let path = self.spec.run_dir.join(SHARED_FILE);
        let named = self.sys.stat_at(None, &path, false).map_err(|_| self.spec.lost())?;
        let own = self.shared.identity(&self.sys).map_err(io(&path, "stat"))?;
        if (named.st_dev, named.st_ino) == own { Ok(()) } else { Err(self.spec.lost()) }
    }

    /// Calls `visit` with entries that cover all of `range`, gaps included, until it returns false.
    /// Reads them in batches, each from a snapshot of its own.
    pub fn each_part(&self, range: Range<u64>, mut visit: impl FnMut(Entry) -> bool) -> Result<()> {
        let mut at = range.start;
        let mut more = true;
        while more && at < range.end {
            // Snapshots are short because the pages of old snapshots cannot be reused.
            let txn = self.read()?;
            let mut count = 0;
            self.index.map.parts(&txn, at..range.end, |part| {
                at = part.end;
                count += 1;
                more = visit(part);
                more && count < LISTED_AT_ONCE
            })?;
        }
        Ok(())
    }
}

/// For `visit` and `parts`: collects spans.
pub(crate) fn collect(spans: &mut Vec<Span>, part: Entry) -> bool {
    part.span().add_to(spans);
    true
}

/// Adds everything that a new journal has to list.
pub(crate) fn put_all(writer: &mut Writer, spans: &[Span], default: Mask) {
    for span in spans.iter().filter(|span| span.mask != default) {
        writer.change(*span);
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        if !hooks::dead() {
            self.shared.release(&self.block);
        }
    }
}
