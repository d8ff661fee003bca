//! Copying in the background, and taking copies away.

use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

use stripewise_sys::{LockKind, Mode, OFlags};

use crate::board::{self, COPIER_BYTE, Counter, Extent, SlotState, Word};
use crate::error::{caller, io};
use crate::hooks::{self, reach};
use crate::index::Entry;
use crate::joined::Joined;
use crate::journal::Locked;
use crate::{CopyId, Map, MapError, Mask, Result};

/// The right to copy: one process of the node has it for a file. Given back on drop, or with the process.
pub struct Copier<'m> {
    joined: &'m Joined,
    for_own_mapping: bool,
    _lock: Locked<'m>,
}

/// A copy on its way; dropped, it is given up. Writers of its range write elsewhere or wait: make it short, and do not sleep with it.
pub struct CopyGuard<'c> {
    joined: &'c Joined,
    work: Work<'c>,
    range: Range<u64>,
    to: CopyId,
    /// As they were when the copy began.
    noted: Vec<Entry>,
    parts: Vec<Range<u64>>,
}

/// The slot is idle again when this is dropped.
pub(crate) struct Work<'c>(&'c Joined);

impl Drop for Work<'_> {
    fn drop(&mut self) {
        if !hooks::dead() {
            self.0.board.slot().set(SlotState::Idle);
        }
    }
}

impl Map {
    /// Becomes the one copier of the file on this node; `None`: somebody else is.
    ///
    /// # Errors
    /// As [`Map::begin_write`]: whoever copies has the file open for writing.
    pub fn copier(&self) -> Result<Option<Copier<'_>>> {
        let joined = self.joined()?;
        joined.ensure_opened()?;
        let path = joined.spec.run_dir.join(board::LOCK);
        // A description of its own: the block's is shared by all threads.
        let file = joined.sys.open(None, &path, OFlags::RDWR, Mode::empty()).map_err(io(&path, "open"))?;
        let same = joined.is_lock(&file).map_err(io(&path, "stat"))?;
        if !same {
            return Err(MapError::Lost {
                path: joined.place.path.clone(),
                run_dir: joined.spec.run_dir.clone(),
            });
        }
        let taken = joined.sys.try_lock(file.as_fd(), COPIER_BYTE, 1, LockKind::Exclusive);
        if !taken.map_err(io(&path, "lock"))? {
            return Ok(None);
        }
        let lock = Locked::new(&joined.sys, &joined.held, file);
        // The last one may have died at work.
        joined.board.slot().clear();
        Ok(Some(Copier { joined, for_own_mapping: false, _lock: lock }))
    }
}

impl<'m> Copier<'m> {
    pub(crate) fn joined(&self) -> &'m Joined {
        self.joined
    }

    /// This process is about to map the file: it has called [`Map::set_mapped`], by which all that
    /// is written goes to one copy, has no mapping yet, and brings what is elsewhere to that copy.
    /// Its own call does not stop this copier from here on; those of other processes, and pins of
    /// writers, do.
    pub fn copies_for_own_mapping(&mut self) {
        self.for_own_mapping = true;
    }

    /// Begins to copy `range` (below the file's size) from one copy to another: the parts where the one is valid and the
    /// other is not. `None`: there are none, or somebody writes to those or has the file mapped.
    ///
    /// # Errors
    /// When the index is gone.
    pub fn begin(&mut self, range: Range<u64>, from: CopyId, to: CopyId) -> Result<Option<CopyGuard<'_>>> {
        let joined = self.joined;
        let is_due = |part: &Entry| part.mask.contains(from) && !part.mask.contains(to);
        reach("note map");
        let mut before = Vec::new();
        joined.each_part(range.clone(), |part| {
            before.extend(Some(part).filter(is_due));
            true
        })?;
        let parts = ranges(&before);
        let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return Ok(None) };
        let range = first.start..last.end;
        let Some(work) = self.work(&range, &parts, Some(to), Extent::WhereInvalid) else { return Ok(None) };
        reach("note map again");
        let mut noted = Vec::new();
        // With the writer's lock: what a process left that died beside its commit has come into the map by then.
        let txn = joined.write()?;
        let visited = joined.index.map.parts(&txn, range.clone(), |part| {
            // A writer that has seen the slot, and the destination as valid, writes to it: only what was to be copied before the
            // slot was set.
            noted.extend(Some(part).filter(|part| is_due(part) && is_as_noted(&before, part)));
            true
        });
        drop(txn);
        visited.map_err(joined.failed("read the index"))?;
        let parts = ranges(&noted);
        if parts.is_empty() {
            return Ok(None);
        }
        Ok(Some(CopyGuard { joined, work, range, to, noted, parts }))
    }

    /// Sets the slot, unless somebody has pinned some of the `parts` of `range`.
    pub(crate) fn work(
        &self,
        range: &Range<u64>,
        parts: &[Range<u64>],
        destination: Option<CopyId>,
        extent: Extent,
    ) -> Option<Work<'_>> {
        let joined = self.joined;
        if range.is_empty() {
            return None;
        }
        reach("set slot");
        joined.board.slot().begin(range, destination, extent);
        let work = Work(joined);
        reach("look at pins");
        let pinned = joined.board.is_pinned(
            &joined.sys,
            joined.lock.as_fd(),
            &joined.block,
            parts,
            self.for_own_mapping,
        );
        if pinned {
            joined.board.count(&joined.block, Counter::GivenUp, 1);
            return None;
        }
        Some(work)
    }

    /// Takes `range` out of `copy` where another copy is valid, and gives its space back, also that of bytes which are not
    /// valid there any more. `sync_data` as in [`Map::sync`]; it is called if something of the range is not in the
    /// journal yet. `punch` gives the space of these parts back. Returns the number of bytes that were valid and are not any more; 0
    /// if somebody writes there or has the file mapped.
    ///
    /// # Errors
    /// Of the two ([`MapError::Caller`]), or as [`Map::sync`]. When the journal fails nothing is punched.
    pub fn evict(
        &mut self,
        range: Range<u64>,
        copy: CopyId,
        sync_data: impl FnOnce() -> stripewise_sys::Result<()>,
        punch: impl FnOnce(&[Range<u64>]) -> stripewise_sys::Result<()>,
    ) -> Result<u64> {
        let joined = self.joined;
        let mut commit = joined.commit_to_sync()?;
        if joined.is_pending(&range)? {
            joined.sync_with(&mut commit, sync_data, false)?;
        }
        let all = std::slice::from_ref(&range);
        let Some(_work) = self.work(&range, all, Some(copy), Extent::Everywhere) else { return Ok(0) };
        let Some(evicted) = joined.take_out(&range, copy)? else { return Ok(0) };
        // From here on writers need not wait, only keep away from the copy.
        joined.board.slot().set(SlotState::Tainted);
        let mut writer = commit.writer(false);
        evicted.changed.iter().for_each(|(range, mask)| writer.change(range.clone(), *mask));
        commit.put(writer, false)?;
        joined.board.word(Word::Evictions).fetch_add(1, Ordering::SeqCst);
        reach("punch");
        if !evicted.punched.is_empty() {
            punch(&evicted.punched).map_err(caller("punch a hole"))?;
        }
        joined.board.count(&joined.block, Counter::Evictions, evicted.changed.len() as u64);
        joined.board.count(&joined.block, Counter::EvictedBytes, evicted.bytes());
        Ok(evicted.bytes())
    }
}

/// What an eviction takes.
#[derive(Debug, Default)]
struct Evicted {
    /// What was valid, and the copies that still are.
    changed: Vec<(Range<u64>, Mask)>,
    /// What no mask names, neither the journal's.
    punched: Vec<Range<u64>>,
}

impl Evicted {
    fn bytes(&self) -> u64 {
        self.changed.iter().map(|(range, _)| range.end - range.start).sum()
    }
}

impl Joined {
    fn is_lock(&self, file: &stripewise_sys::Fd) -> stripewise_sys::Result<bool> {
        let (one, other) = (self.sys.stat(file.as_fd())?, self.sys.stat(self.lock.as_fd())?);
        Ok((one.st_dev, one.st_ino) == (other.st_dev, other.st_ino))
    }

    fn is_pending(&self, range: &Range<u64>) -> Result<bool> {
        let failed = self.failed("read the index");
        let txn = self.read()?;
        let committed = self.index.state(&txn).map_err(&failed)?.committed;
        let mut pending = false;
        let visited = self.index.map.visit(&txn, range.clone(), |entry| {
            pending = entry.seq > committed;
            !pending
        });
        visited.map_err(failed)?;
        Ok(pending)
    }

    /// The transaction of an eviction. What was changed since the last sync is left out: the journal may count on the copy there.
    /// `None`: a writer came.
    fn take_out(&self, range: &Range<u64>, copy: CopyId) -> Result<Option<Evicted>> {
        reach("finish");
        if !self.board.slot().finish() {
            self.board.count(&self.block, Counter::GivenUp, 1);
            return Ok(None);
        }
        reach("change");
        let failed = self.failed("change the index");
        let mut txn = self.write()?;
        let committed = self.index.state(&txn).map_err(&failed)?.committed;
        let mut evicted = Evicted::default();
        let changed = self.index.change(&mut txn, range.clone(), |part| {
            if part.seq > committed || part.mask.is_only(copy) {
                return None;
            }
            let rest = part.mask.without(copy);
            if part.mask.contains(copy) {
                evicted.changed.push((part.start..part.end, rest));
            }
            match evicted.punched.last_mut() {
                Some(last) if last.end == part.start => last.end = part.end,
                _ => evicted.punched.push(part.start..part.end),
            }
            Some(rest)
        });
        let changed = changed.map_err(failed)?;
        if !changed.is_empty() {
            self.commit_change(txn, &changed)?;
        }
        Ok(Some(evicted))
    }
}

/// The bytes of entries in order.
fn ranges(entries: &[Entry]) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for entry in entries {
        match ranges.last_mut() {
            Some(last) if last.end == entry.start => last.end = entry.end,
            _ => ranges.push(entry.start..entry.end),
        }
    }
    ranges
}

/// Whether nobody has changed a part since it was noted.
fn is_as_noted(noted: &[Entry], part: &Entry) -> bool {
    let behind = noted.partition_point(|noted| noted.start <= part.start);
    let Some(noted) = behind.checked_sub(1).map(|index| &noted[index]) else { return false };
    part.end <= noted.end && (noted.mask, noted.seq) == (part.mask, part.seq)
}

impl CopyGuard<'_> {
    /// What is to be copied.
    pub fn parts(&self) -> &[Range<u64>] {
        &self.parts
    }

    /// The parts were copied, all of their bytes (zeros, too). Whether all of them are valid in the destination now: not if somebody
    /// wrote there meanwhile.
    ///
    /// # Errors
    /// When the index cannot be changed.
    pub fn finish(self) -> Result<bool> {
        let joined = self.joined;
        reach("finish");
        if !joined.board.slot().finish() {
            joined.board.count(&joined.block, Counter::GivenUp, 1);
            return Ok(false);
        }
        let done = self.add();
        drop(self.work);
        done
    }

    fn add(&self) -> Result<bool> {
        let joined = self.joined;
        reach("change");
        let failed = joined.failed("change the index");
        let mut txn = joined.write()?;
        let to = |part: Entry| is_as_noted(&self.noted, &part).then(|| part.mask.with(self.to));
        let changed = joined.index.change(&mut txn, self.range.clone(), to).map_err(&failed)?;
        for range in &changed {
            joined.index.want(&mut txn, range.clone(), self.to, false).map_err(&failed)?;
        }
        let bytes = |ranges: &[Range<u64>]| ranges.iter().map(|range| range.end - range.start).sum::<u64>();
        if !changed.is_empty() {
            joined.commit_change(txn, &changed)?;
            joined.board.count(&joined.block, Counter::Copied(self.to), bytes(&changed));
        }
        Ok(bytes(&changed) == bytes(&self.parts))
    }
}
