//! The copier: copies ranges between copies in the background, and evicts ranges from a copy.

use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

use stripewise_sys::LockKind;

use crate::error::{caller, io};
use crate::exclusive::Exclusive;
use crate::hooks::{self, reach};
use crate::index::{Entry, Marking};
use crate::joined::Joined;
use crate::journal::Locked;
use crate::shared::{COPIER_BYTE, Counter, Extent, SlotState, Word};
use crate::{CopyId, Map, Mask, Result, Span};

/// The right to copy and evict. One process of the node holds it per file, until it is dropped or
/// the process ends.
pub struct Copier<'m> {
    pub(crate) joined: &'m Joined,
    for_own_mapping: bool,
    _lock: Locked,
}

/// A copy operation in progress; dropping it gives the operation up. Meanwhile, writers of its
/// range write to another copy or wait, so the operation should be short and must not sleep.
pub struct CopyGuard<'c> {
    joined: &'c Joined,
    work: Work<'c>,
    /// Other nodes are kept out as well.
    exclusive: Option<Exclusive<'c>>,
    range: Range<u64>,
    to: CopyId,
    /// The ranges to copy, with the masks and numbers that they had when the operation began.
    noted: Vec<Entry>,
    parts: Vec<Range<u64>>,
}

/// An operation in the copier slot. Dropping it sets the slot to idle.
pub(crate) struct Work<'c>(&'c Joined);

impl Drop for Work<'_> {
    fn drop(&mut self) {
        if !hooks::dead() {
            self.0.shared.slot().set(SlotState::Idle);
        }
    }
}

impl Map {
    /// Becomes the copier of the file on this node; `None` if another process or thread already is.
    ///
    /// # Errors
    /// As [`Map::begin_write`], because copying declares the write intent.
    pub fn copier(&self) -> Result<Option<Copier<'_>>> {
        let joined = self.joined()?;
        joined.ensure_opened()?;
        let file = joined.open_board_lock()?;
        let taken = joined.sys.try_lock(file.as_fd(), COPIER_BYTE, 1, LockKind::Exclusive);
        if !taken.map_err(io(&joined.spec.run_dir, "lock"))? {
            return Ok(None);
        }
        let lock = Locked::new(&joined.place, file);
        // The previous copier may have died during an operation.
        joined.shared.slot().clear();
        Ok(Some(Copier { joined, for_own_mapping: false, _lock: lock }))
    }
}

impl Copier<'_> {
    /// Lets this copier work although this process has called [`Map::set_mapped`]. The process is
    /// about to map the file: all writes already go to one copy, no mapping exists yet, and the
    /// copier brings data that is valid elsewhere to that copy. Pins of other processes' mappings,
    /// and pins of writers, still stop the copier.
    pub fn copies_for_own_mapping(&mut self) {
        self.for_own_mapping = true;
    }

    /// Begins to copy the bytes of `range` (below the file's size) that are valid in `from` but not
    /// in `to`. `None` if there are no such bytes, or if a process writes to them or has the file
    /// mapped.
    pub fn begin(&mut self, range: Range<u64>, from: CopyId, to: CopyId) -> Result<Option<CopyGuard<'_>>> {
        let joined = self.joined;
        let is_due = |part: &Entry| part.mask.contains(from) && !part.mask.contains(to);
        // What is pending may be copied by a session that is alone: others see it committed.
        let committed = if joined.is_sharing() { joined.committed()? } else { u64::MAX };
        let is_due = |part: &Entry| is_due(part) && part.seq <= committed;
        reach("note map");
        let mut before = Vec::new();
        joined.each_part(range.clone(), |part| {
            before.extend(Some(part).filter(is_due));
            true
        })?;
        let parts = ranges(&before);
        let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return Ok(None) };
        let range = first.start..last.end;
        let exclusive = match joined.is_sharing().then(|| Exclusive::on(joined, &range)).transpose()? {
            Some(None) => return Ok(None),
            exclusive => exclusive.flatten(),
        };
        let Some(work) = self.work(&range, &parts, Some(to), Extent::WhereInvalid) else { return Ok(None) };
        reach("note map again");
        let mut noted = Vec::new();
        // The writer lock ensures that the map includes the transactions of processes that died
        // around their commit.
        let txn = joined.write()?;
        joined.index.map.parts(&txn, range.clone(), |part| {
            // A writer that has seen the slot, and has seen the destination as valid, writes to the
            // destination, so only ranges that were due before the slot was set may be copied.
            noted.extend(Some(part).filter(|part| is_due(part) && is_as_noted(&before, part)));
            true
        })?;
        drop(txn);
        let parts = ranges(&noted);
        if parts.is_empty() {
            return Ok(None);
        }
        Ok(Some(CopyGuard { joined, work, exclusive, range, to, noted, parts }))
    }

    /// Sets the slot, unless a live process has pinned bytes of `parts`, which are the ranges of
    /// `range` that are due.
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
        joined.shared.slot().begin(range, destination, extent);
        let work = Work(joined);
        reach("look at pins");
        let pinned = joined.shared.is_pinned(&joined.block, parts, self.for_own_mapping);
        if pinned {
            joined.shared.count(&joined.block, Counter::GivenUp, 1);
            return None;
        }
        Some(work)
    }

    /// Removes `copy` from the mask of `range` where another copy is valid, and frees the space of
    /// those bytes and of bytes that are no longer valid in `copy`. `sync_data`, as in
    /// [`Map::sync`], is called if a change in the range is not in the journal yet. `punch` frees
    /// the space of the given ranges. Returns the ranges that were valid in `copy` and no longer
    /// are; none if a process writes to the range or has the file mapped.
    ///
    /// # Errors
    /// Errors of the two callbacks ([`MapError::Caller`]), and those of [`Map::sync`]. If the
    /// journal cannot be written, no hole is punched.
    pub fn evict(
        &mut self,
        range: Range<u64>,
        copy: CopyId,
        sync_data: impl FnOnce() -> stripewise_sys::Result<()>,
        punch: impl FnOnce(&[Range<u64>]) -> stripewise_sys::Result<()>,
    ) -> Result<Vec<Range<u64>>> {
        let joined = self.joined;
        if joined.is_sharing() {
            return self.evict_beside(&range, copy, sync_data, punch);
        }
        let mut commit = joined.commit_to_sync()?;
        if joined.is_pending(&range)? {
            joined.sync_with(&mut commit, sync_data, false)?;
        }
        let all = std::slice::from_ref(&range);
        let Some(_work) = self.work(&range, all, Some(copy), Extent::Everywhere) else { return Ok(Vec::new()) };
        let Some(evicted) = joined.take_out(&range, copy)? else { return Ok(Vec::new()) };
        // From here on writers need not wait; they only avoid the copy.
        joined.shared.slot().set(SlotState::Tainted);
        let mut changes = commit.changes(false);
        evicted.changed.iter().for_each(|&span| changes.add(span));
        commit.put(changes, false, false)?;
        joined.shared.word(Word::Evictions).fetch_add(1, Ordering::SeqCst);
        reach("punch");
        if !evicted.punched.is_empty() {
            punch(&evicted.punched).map_err(caller("punch a hole"))?;
        }
        Ok(joined.count_evicted(&evicted.changed))
    }
}

/// The result of an eviction's transaction.
#[derive(Debug, Default)]
struct Evicted {
    /// Ranges removed from the copy, with the copies where they are still valid.
    changed: Vec<Span>,
    /// Ranges to punch: neither the map nor the journal names the copy there.
    punched: Vec<Range<u64>>,
}

impl Joined {
    /// Counts an eviction. Returns its ranges.
    pub(crate) fn count_evicted(&self, changed: &[Span]) -> Vec<Range<u64>> {
        self.shared.count(&self.block, Counter::Evictions, changed.len() as u64);
        self.shared.count(&self.block, Counter::EvictedBytes, changed.iter().map(Span::len).sum());
        changed.iter().map(Span::range).collect()
    }

    pub(crate) fn is_pending(&self, range: &Range<u64>) -> Result<bool> {
        let txn = self.read()?;
        let committed = self.index.state(&txn)?.committed;
        let mut pending = false;
        self.index.map.visit(&txn, range.clone(), |entry| {
            pending = entry.seq > committed;
            !pending
        })?;
        Ok(pending)
    }

    /// The transaction of an eviction. It leaves out changes since the last sync, because the
    /// journal may still name the copy there. `None` if a writer has tainted the operation.
    fn take_out(&self, range: &Range<u64>, copy: CopyId) -> Result<Option<Evicted>> {
        reach("finish");
        if !self.shared.slot().finish() {
            self.shared.count(&self.block, Counter::GivenUp, 1);
            return Ok(None);
        }
        reach("change");
        let mut txn = self.write()?;
        let committed = self.index.state(&txn)?.committed;
        let mut evicted = Evicted::default();
        let changed = self.index.change(&mut txn, range.clone(), Marking::Pending, |part| {
            if part.seq > committed || part.mask.is_only(copy) {
                return None;
            }
            let rest = part.mask.without(copy);
            if part.mask.contains(copy) {
                evicted.changed.push(Span::new(part.start..part.end, rest));
            }
            add_range(&mut evicted.punched, &part);
            Some(rest)
        })?;
        if !changed.is_empty() {
            self.commit_change(txn, &changed)?;
        }
        Ok(Some(evicted))
    }
}

/// The byte ranges of entries in order, with adjacent ones joined.
fn ranges(entries: &[Entry]) -> Vec<Range<u64>> {
    let mut ranges = Vec::new();
    entries.iter().for_each(|entry| add_range(&mut ranges, entry));
    ranges
}

/// Appends an entry's range, or extends the last one if it is adjacent.
pub(crate) fn add_range(ranges: &mut Vec<Range<u64>>, entry: &Entry) {
    match ranges.last_mut() {
        Some(last) if last.end == entry.start => last.end = entry.end,
        _ => ranges.push(entry.start..entry.end),
    }
}

/// Whether a range still has the mask and the number that were noted for it.
fn is_as_noted(noted: &[Entry], part: &Entry) -> bool {
    let behind = noted.partition_point(|noted| noted.start <= part.start);
    let Some(noted) = behind.checked_sub(1).map(|index| &noted[index]) else { return false };
    part.end <= noted.end && (noted.mask, noted.seq) == (part.mask, part.seq)
}

impl CopyGuard<'_> {
    /// The ranges to copy.
    pub fn parts(&self) -> &[Range<u64>] {
        &self.parts
    }

    /// Marks the ranges valid in the destination. The caller has copied all of their bytes, zeros
    /// included. Returns the ranges that became valid there: not those to which a process wrote
    /// meanwhile. `sync_copy` syncs the objects of the destination. It is called if other nodes
    /// have the file open: they learn at once that the copy is valid.
    ///
    /// # Errors
    /// Those of `sync_copy` ([`MapError::Caller`]), or if the map cannot be changed.
    pub fn finish(self, sync_copy: impl FnOnce() -> stripewise_sys::Result<()>) -> Result<Vec<Range<u64>>> {
        let joined = self.joined;
        if self.exclusive.is_some() {
            sync_copy().map_err(caller("sync a copy"))?;
        }
        reach("finish");
        if !joined.shared.slot().finish() {
            joined.shared.count(&joined.block, Counter::GivenUp, 1);
            return Ok(Vec::new());
        }
        let done = if self.exclusive.is_some() { self.add_beside() } else { self.add() };
        drop(self.work);
        done
    }

    fn add(&self) -> Result<Vec<Range<u64>>> {
        let joined = self.joined;
        reach("change");
        let mut txn = joined.write()?;
        let to = |part: Entry| is_as_noted(&self.noted, &part).then(|| part.mask.with(self.to));
        let changed = joined.index.change(&mut txn, self.range.clone(), Marking::Pending, to)?;
        for range in &changed {
            joined.index.remove_hints(&mut txn, range.clone(), Mask::only(self.to))?;
        }
        if !changed.is_empty() {
            joined.commit_change(txn, &changed)?;
        }
        Ok(self.counted(changed))
    }

    /// As [`CopyGuard::add`], beside other nodes: the log first, then the index.
    fn add_beside(&self) -> Result<Vec<Range<u64>>> {
        let joined = self.joined;
        reach("change");
        let mut added = Vec::new();
        joined.each_part(self.range.clone(), |part| {
            if is_as_noted(&self.noted, &part) {
                Span { mask: part.mask.with(self.to), ..part.span() }.add_to(&mut added);
            }
            true
        })?;
        if added.is_empty() || !joined.append_copied(&added)? {
            return Ok(Vec::new());
        }
        let mut txn = joined.write()?;
        for span in &added {
            joined.index.remove_hints(&mut txn, span.range(), Mask::only(self.to))?;
        }
        txn.commit()?;
        Ok(self.counted(added.iter().map(Span::range).collect()))
    }

    /// Counts what was copied. Returns it.
    fn counted(&self, copied: Vec<Range<u64>>) -> Vec<Range<u64>> {
        let bytes = copied.iter().map(|range| range.end - range.start).sum();
        self.joined.shared.count(&self.joined.block, Counter::Copied(self.to), bytes);
        copied
    }
}
