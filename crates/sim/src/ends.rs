//! Tracks which accesses are sequential: those that continue, in an object, where the last access
//! of the same process ended.

use std::ops::Range;

use stripewise_layout::Layout;

use crate::placed::Sub;

/// The ends of the last accesses of all handles. A handle is a process's use of a file.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    /// For handles that are tracked exactly: the end of the last access to each object of all
    /// copies.
    table: Vec<u64>,
    /// For the other handles: the last run of consecutive requests, per copy.
    runs: Vec<Run>,
}

/// A run of file bytes that one process accessed consecutively, and the start of the last access.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    start: u64,
    last: u64,
    end: u64,
}

/// How the order of one handle's accesses is tracked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Not at all: no server distinguishes sequential access.
    Ignored,
    /// Exactly, in the table from this index on.
    Table(usize),
    /// In the runs from this index on, one per copy. This is exact for consecutive requests; all
    /// others count as random.
    Runs(usize),
}

/// Table entry of an object that was never accessed.
const NOWHERE: u64 = u64::MAX;

impl Ends {
    /// Adds a handle of a file with these numbers of objects and copies; at most `memory` bytes are
    /// used in all.
    pub fn add(&mut self, objects: usize, copies: usize, memory: usize) -> Order {
        let first = self.table.len();
        if (first + objects).saturating_mul(size_of::<u64>()) <= memory {
            self.table.resize(first + objects, NOWHERE);
            Order::Table(first)
        } else {
            self.runs.resize(self.runs.len() + copies, Run::default());
            Order::Runs(self.runs.len() - copies)
        }
    }

    /// Forgets all handles.
    pub fn clear(&mut self) {
        self.table.clear();
        self.runs.clear();
    }

    /// Begins an access to a range of a copy. [`Ends::is_sequential`] is called for its
    /// sub-requests next.
    #[inline]
    pub fn go_on(&mut self, order: Order, copy: usize, range: Range<u64>) {
        let Order::Runs(first) = order else { return };
        let run = &mut self.runs[first + copy];
        let start = if run.end == range.start { run.start } else { range.start };
        *run = Run { start, last: range.start, end: range.end };
    }

    /// Whether a sub-request is sequential; also records it. `base` is the number of objects of the
    /// copies before this one.
    #[inline]
    pub fn is_sequential(
        &mut self,
        order: Order,
        copy: usize,
        base: usize,
        sub: &Sub,
        layout: &Layout,
    ) -> bool {
        match order {
            Order::Ignored => false,
            Order::Table(first) => {
                let end = &mut self.table[first + base + sub.object as usize];
                std::mem::replace(end, sub.offset + sub.bytes) == sub.offset
            }
            Order::Runs(first) => {
                let run = &self.runs[first + copy];
                // The bytes accessed before in this run include bytes of this object.
                run.start < run.last && layout.object_size(sub.object, run.start) < sub.offset
            }
        }
    }
}
