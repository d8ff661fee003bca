//! A table that maps each byte to a mask.

use std::ops::Range;

use super::entry::Entry;
use crate::lmdb::{Table, Txn, WriteTxn};
use crate::{Mask, Result, Span};

/// A table of entries that never overlap. A byte without an entry has the mask `default` and
/// sequence number 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Intervals {
    pub table: Table,
    pub default: Mask,
}

/// The sequence number of a changed entry, and what it may be joined with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marking {
    /// The number of the transaction. Joined with any neighbor, which becomes pending as well.
    Pending,
    /// The number of the transaction. Not joined with entries up to this number, which are what the
    /// log says and may not be committed again.
    PendingAfter(u64),
    /// This number, the journal's: the entry is what the log says. Not joined with pending ones.
    Committed(u64),
}

impl Marking {
    fn seq(self, txn: u64) -> u64 {
        if let Self::Committed(seq) = self { seq } else { txn }
    }

    /// Whether an entry that keeps its mask is no longer pending.
    fn commits(self, entry: &Entry) -> bool {
        matches!(self, Self::Committed(committed) if entry.seq > committed)
    }

    fn may_join(self, old: &Entry, new: &Entry) -> bool {
        match self {
            Self::Pending => true,
            Self::PendingAfter(committed) | Self::Committed(committed) => {
                (old.seq > committed) == (new.seq > committed)
            }
        }
    }
}

/// A change of one entry, passed to the accounting of the caller.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    Put(Entry),
    Gone(Entry),
}

/// Upper bound of the pages that a change of adjacent entries writes: the paths from root to leaf
/// of all tables and of LMDB's free list, and the leaves of the entries, which may be a quarter
/// full, copied, and split in three.
fn pages(entries: usize) -> u64 {
    64 + entries as u64 / 8
}

fn load(txn: &Txn<'_>, found: Option<(u64, &[u8])>) -> Result<Option<Entry>> {
    found.map(|(start, value)| Entry::load(start, value).ok_or_else(|| txn.corrupt())).transpose()
}

impl Intervals {
    /// Calls `visit` with the entries that overlap `range`, uncut and in order, until it returns
    /// false.
    pub fn visit(&self, txn: &Txn<'_>, range: Range<u64>, mut visit: impl FnMut(Entry) -> bool) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let mut cursor = txn.cursor(self.table)?;
        let mut at = load(txn, cursor.seek(range.start)?)?;
        if at.is_none_or(|entry| entry.start > range.start) {
            // An entry that starts earlier may reach into the range.
            let before = if at.is_some() { load(txn, cursor.previous()?)? } else { load(txn, cursor.last()?)? };
            at = match before {
                Some(entry) if entry.end > range.start => before,
                _ if at.is_none() => None,
                Some(_) => load(txn, cursor.next()?)?,
                None => load(txn, cursor.seek(range.start)?)?,
            };
        }
        while let Some(entry) = at.filter(|entry| entry.start < range.end) {
            if !visit(entry) {
                break;
            }
            at = load(txn, cursor.next()?)?;
        }
        Ok(())
    }

    /// The end of the last entry; 0 if there is none.
    pub fn end(&self, txn: &Txn<'_>) -> Result<u64> {
        let mut cursor = txn.cursor(self.table)?;
        Ok(load(txn, cursor.last()?)?.map_or(0, |entry| entry.end))
    }

    /// Calls `visit` with entries that cover all of `range`, cut to it and in order, gaps included,
    /// until it returns false.
    pub fn parts(&self, txn: &Txn<'_>, range: Range<u64>, mut visit: impl FnMut(Entry) -> bool) -> Result<()> {
        let mut at = range.start;
        let mut more = true;
        let gap = |start, end| Entry { start, end, mask: self.default, seq: 0 };
        self.visit(txn, range.clone(), |entry| {
            if entry.start > at {
                more = visit(gap(at, entry.start));
            }
            let start = entry.start.max(at);
            at = entry.end.min(range.end);
            more = more && visit(Entry { start, end: at, ..entry });
            more
        })?;
        if more && at < range.end {
            visit(gap(at, range.end));
        }
        Ok(())
    }

    /// Sets the mask of every entry in `range`, cut to it and gaps included, to the one that `to`
    /// returns, with the number that `marking` says. `None` leaves the entry unchanged, and an
    /// entry that already has the mask keeps its number. Returns the changed ranges.
    pub fn change(
        &self,
        txn: &mut WriteTxn<'_>,
        range: Range<u64>,
        marking: Marking,
        mut to: impl FnMut(Entry) -> Option<Mask>,
        mut note: impl FnMut(&mut WriteTxn<'_>, Event) -> Result<()>,
    ) -> Result<Vec<Range<u64>>> {
        let (mut changes, mut entries) = (Vec::new(), 0);
        self.parts(txn, range, |part| {
            entries += 1;
            if let Some(mask) = to(part).filter(|&mask| mask != part.mask || marking.commits(&part)) {
                Span { mask, ..part.span() }.add_to(&mut changes);
            }
            true
        })?;
        if !changes.is_empty() {
            txn.room(pages(entries))?;
        }
        for change in &changes {
            self.assign(txn, change.range(), change.mask, marking, &mut note)?;
        }
        Ok(changes.iter().map(Span::range).collect())
    }

    /// Removes the entries in `range` that have the default mask, which their bytes keep.
    pub fn remove_defaults(&self, txn: &mut WriteTxn<'_>, range: Range<u64>) -> Result<()> {
        let mut gone = Vec::new();
        self.visit(txn, range, |entry| {
            gone.extend(Some(entry).filter(|entry| entry.mask == self.default));
            true
        })?;
        if !gone.is_empty() {
            txn.room(pages(gone.len()))?;
        }
        for entry in gone {
            txn.delete(self.table, entry.start)?;
        }
        Ok(())
    }

    fn assign(
        &self,
        txn: &mut WriteTxn<'_>,
        range: Range<u64>,
        mask: Mask,
        marking: Marking,
        note: &mut impl FnMut(&mut WriteTxn<'_>, Event) -> Result<()>,
    ) -> Result<()> {
        let mut new = Entry { start: range.start, end: range.end, mask, seq: marking.seq(txn.id()) };
        // Includes the neighboring entries, which may be joined.
        let around = range.start.saturating_sub(1)..range.end.saturating_add(1);
        let mut old = Vec::new();
        self.visit(txn, around, |entry| {
            old.push(entry);
            true
        })?;
        let mut put = Vec::new();
        for entry in old {
            let left = Entry { end: entry.end.min(range.start), ..entry };
            let right = Entry { start: entry.start.max(range.end), ..entry };
            let (mut left, mut right) =
                ((left.start < left.end).then_some(left), (right.start < right.end).then_some(right));
            if left.is_some_and(|left| left.joins(&new) && marking.may_join(&left, &new)) {
                new.start = left.take().map_or(new.start, |left| left.start);
            }
            if right.is_some_and(|right| new.joins(&right) && marking.may_join(&right, &new)) {
                new.end = right.take().map_or(new.end, |right| right.end);
            }
            if left == Some(entry) || right == Some(entry) {
                continue;
            }
            txn.delete(self.table, entry.start)?;
            note(txn, Event::Gone(entry))?;
            put.extend(left);
            put.extend(right);
        }
        for entry in put.into_iter().chain([new]) {
            txn.put(self.table, entry.start, entry.store().as_slice())?;
            note(txn, Event::Put(entry))?;
        }
        Ok(())
    }
}
