//! The index: the current map, in LMDB.
//!
//! Its tables, with their keys and values:
//!
//! - `map`: start of a range -> end, mask, number of the transaction that changed it.
//! - `pending`: number of a segment -> empty. An entry that starts in the segment has changed since
//!   the journal's last commit.
//! - `hints`: start of a range -> end, mask of the copies that should prefetch it.
//! - the unnamed table: `state` -> number of the last transaction that the journal contains; for
//!   each copy, the listed bytes, and those of them that another copy also has.
//!
//! A range is pending if its number is higher than the journal's. So a sync does not have to touch
//! the entries that it has synced.

mod entry;
mod intervals;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

pub(crate) use entry::{Entry, SEGMENT, SEGMENT_BITS};
pub(crate) use intervals::{Event, Intervals, Marking};

use crate::lmdb::{Env, Tables, Txn, WriteTxn};
use crate::shared::of_segment;
use crate::{CopyId, Mask, Result, Span};

const STATE: &[u8] = b"state";
/// Number of segments that one transaction of [`Index::committed`] processes.
pub(crate) const SEGMENTS_AT_ONCE: usize = 128;

/// The tables of the index.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    pub env: Arc<Env>,
    pub map: Intervals,
    pub hints: Intervals,
    tables: Tables,
}

/// The record `state`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    /// Number of the last transaction that the journal contains.
    pub committed: u64,
    /// Bytes of each copy that entries list as valid.
    pub listed: [u64; CopyId::LIMIT],
    /// Listed bytes of each copy where another copy is also valid.
    pub clean: [u64; CopyId::LIMIT],
}

impl Index {
    pub fn new(env: Arc<Env>, default: Mask) -> Self {
        let tables = env.tables();
        let map = Intervals { table: tables.map, default };
        let hints = Intervals { table: tables.hints, default: Mask::NONE };
        Self { env, map, hints, tables }
    }

    pub fn state(&self, txn: &Txn<'_>) -> Result<State> {
        Ok(txn.named(self.tables.state, STATE)?.map_or_else(State::default, State::load))
    }

    pub fn put_state(&self, txn: &mut WriteTxn<'_>, state: &State) -> Result<()> {
        txn.put_named(self.tables.state, STATE, &state.store())
    }

    /// Changes masks as [`Intervals::change`] does, and keeps `pending` and `state` up to date.
    pub fn change(
        &self,
        txn: &mut WriteTxn<'_>,
        range: Range<u64>,
        marking: Marking,
        to: impl FnMut(Entry) -> Option<Mask>,
    ) -> Result<Vec<Range<u64>>> {
        let mut state = self.state(txn)?;
        let before = state;
        let account = |txn: &mut WriteTxn<'_>, event| self.account(txn, &mut state, event);
        let changed = self.map.change(txn, range, marking, to, account)?;
        if state != before {
            self.put_state(txn, &state)?;
        }
        Ok(changed)
    }

    /// How an entry is marked that a process of a session in shared mode changes.
    pub fn pending_alone(&self, txn: &Txn<'_>) -> Result<Marking> {
        Ok(Marking::PendingAfter(self.state(txn)?.committed))
    }

    /// Sets the masks of `span`, as the log has it, where `stays` does not accept the entry.
    /// Returns the changed ranges.
    pub fn set_committed(
        &self,
        txn: &mut WriteTxn<'_>,
        span: Span,
        mut stays: impl FnMut(&Entry) -> bool,
    ) -> Result<Vec<Range<u64>>> {
        let marking = Marking::Committed(self.state(txn)?.committed);
        self.change(txn, span.range(), marking, |entry| (!stays(&entry)).then_some(span.mask))
    }

    fn account(&self, txn: &mut WriteTxn<'_>, state: &mut State, event: Event) -> Result<()> {
        match event {
            Event::Gone(entry) => state.count(&entry, u64::wrapping_sub),
            Event::Put(entry) => {
                state.count(&entry, u64::wrapping_add);
                if entry.seq > state.committed {
                    let segment = entry.start >> SEGMENT_BITS;
                    // The segment is usually present already, and looking it up is cheaper than
                    // writing.
                    if txn.cursor(self.tables.pending)?.seek(segment)?.is_none_or(|(key, _)| key != segment) {
                        txn.put(self.tables.pending, segment, &[])?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Numbers of the segments with pending entries.
    pub fn pending_segments(&self, txn: &Txn<'_>) -> Result<Vec<u64>> {
        let mut segments = Vec::new();
        let mut cursor = txn.cursor(self.tables.pending)?;
        let mut at = cursor.seek(0)?;
        while let Some((segment, _)) = at {
            segments.push(segment);
            at = cursor.next()?;
        }
        Ok(segments)
    }

    /// Calls `visit` with the pending entries that start in a segment, in order.
    pub fn pending_in(
        &self,
        txn: &Txn<'_>,
        segment: u64,
        committed: u64,
        mut visit: impl FnMut(Entry),
    ) -> Result<()> {
        self.map.visit(txn, of_segment(segment), |entry| {
            if entry.start >> SEGMENT_BITS == segment && entry.seq > committed {
                visit(entry);
            }
            true
        })
    }

    /// Records that the journal contains everything up to transaction `synced`. The caller calls
    /// this for some of the pending segments at a time until all are done.
    pub fn committed(&self, txn: &mut WriteTxn<'_>, synced: u64, segments: &[u64]) -> Result<()> {
        let mut state = self.state(txn)?;
        state.committed = state.committed.max(synced);
        let (mut needless, mut done) = (Vec::new(), Vec::new());
        for &segment in segments {
            let mut left = false;
            self.map.visit(txn, of_segment(segment), |entry| {
                if entry.start >> SEGMENT_BITS == segment {
                    match entry.seq > state.committed {
                        true => left = true,
                        // The journal contains the entry, and without the entry its bytes have the
                        // same mask.
                        false if entry.mask == self.map.default => needless.push(entry),
                        false => {}
                    }
                }
                true
            })?;
            if !left {
                done.push(segment);
            }
        }
        // A leaf per segment, which may be copied and merged with another.
        txn.room(64 + 3 * segments.len() as u64 + needless.len() as u64 / 8)?;
        for entry in needless {
            txn.delete(self.map.table, entry.start)?;
            state.count(&entry, u64::wrapping_sub);
        }
        for segment in done {
            txn.delete(self.tables.pending, segment)?;
        }
        self.put_state(txn, &state)
    }

    /// Adds `range` to the prefetch queue of `copy`.
    pub fn add_hint(&self, txn: &mut WriteTxn<'_>, range: Range<u64>, copy: CopyId) -> Result<()> {
        self.hints
            .change(txn, range, Marking::Pending, |part| Some(part.mask.with(copy)), |_, _| Ok(()))
            .map(drop)
    }

    /// Removes `range` from the prefetch queues of `copies`.
    pub fn remove_hints(&self, txn: &mut WriteTxn<'_>, range: Range<u64>, copies: Mask) -> Result<()> {
        let to = |part: Entry| Some(copies.iter().fold(part.mask, Mask::without));
        self.hints.change(txn, range.clone(), Marking::Pending, to, |_, _| Ok(()))?;
        self.hints.remove_defaults(txn, range)
    }

    /// Fills an empty index with the ranges of a journal, in order, all of them committed.
    pub fn fill(&self, txn: &mut WriteTxn<'_>, ranges: &[Span]) -> Result<()> {
        /// Entries, with their overhead, that fit in a page that is filled in key order.
        const ENTRIES_OF_PAGE: u64 = 100;
        txn.room(64 + ranges.len() as u64 / ENTRIES_OF_PAGE)?;
        let mut state = State { committed: txn.id(), ..State::default() };
        for span in ranges {
            let entry = Entry { start: span.start, end: span.end, mask: span.mask, seq: txn.id() };
            txn.append(self.tables.map, entry.start, entry.store().as_slice())?;
            state.count(&entry, u64::wrapping_add);
        }
        self.put_state(txn, &state)
    }

    /// Number of entries of the map, and bytes of the pages that hold them.
    pub fn size(&self, txn: &Txn<'_>) -> Result<(u64, u64)> {
        txn.size(self.tables.map)
    }
}

impl State {
    fn count(&mut self, entry: &Entry, with: impl Fn(u64, u64) -> u64) {
        let bytes = entry.end - entry.start;
        for copy in entry.mask.iter() {
            let add = |sum: &mut u64| *sum = with(*sum, bytes);
            add(&mut self.listed[copy.index()]);
            if !entry.mask.is_only(copy) {
                add(&mut self.clean[copy.index()]);
            }
        }
    }

    fn store(&self) -> Vec<u8> {
        let words = std::iter::once(self.committed).chain(self.listed).chain(self.clean);
        words.flat_map(u64::to_ne_bytes).collect()
    }

    fn load(bytes: &[u8]) -> Self {
        let mut words =
            bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default()));
        let mut next = || words.next().unwrap_or_default();
        Self {
            committed: next(),
            listed: std::array::from_fn(|_| next()),
            clean: std::array::from_fn(|_| next()),
        }
    }
}
