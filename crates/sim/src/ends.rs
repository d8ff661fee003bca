//! Which accesses are sequential: those that go on, in a component, where the last access of the same process ended.

use std::ops::Range;

use stripewise_layout::Layout;

use crate::placed::Sub;

/// Where the last accesses of all handles (a process's use of a file) ended.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    /// Of handles that are told exactly: per component of all copies.
    table: Vec<u64>,
    /// Of the others: the last run of requests that followed one another, per copy.
    runs: Vec<Run>,
}

/// A run of file bytes that one process went through, and where the last access began.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    start: u64,
    last: u64,
    end: u64,
}

/// How the order of one handle's accesses is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// No server asks.
    Ignored,
    /// From this place of the table on.
    Table(usize),
    /// From this place of the runs on, one for each copy. Exact for requests that follow one another; others count as random.
    Runs(usize),
}

/// No access ended here yet.
const NOWHERE: u64 = u64::MAX;

impl Ends {
    /// For a new handle of a file with so many components and copies; `memory` bytes may be used in all.
    pub fn add(&mut self, components: usize, copies: usize, memory: usize) -> Order {
        let first = self.table.len();
        if (first + components).saturating_mul(size_of::<u64>()) <= memory {
            self.table.resize(first + components, NOWHERE);
            Order::Table(first)
        } else {
            self.runs.resize(self.runs.len() + copies, Run::default());
            Order::Runs(self.runs.len() - copies)
        }
    }

    /// Forgets everything: all handles are closed.
    pub fn clear(&mut self) {
        self.table.clear();
        self.runs.clear();
    }

    /// An access to a range of a copy begins: its sub-requests are asked for next.
    #[inline]
    pub fn go_on(&mut self, order: Order, copy: usize, range: Range<u64>) {
        let Order::Runs(first) = order else { return };
        let run = &mut self.runs[first + copy];
        let start = if run.end == range.start { run.start } else { range.start };
        *run = Run { start, last: range.start, end: range.end };
    }

    /// Whether a sub-request is sequential; it is noted. `base`: components of the copies before.
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
                let end = &mut self.table[first + base + sub.component as usize];
                std::mem::replace(end, sub.offset + sub.bytes) == sub.offset
            }
            Order::Runs(first) => {
                let run = &self.runs[first + copy];
                // What was gone through before has bytes of this component.
                run.start < run.last && layout.component_size(sub.component, run.start) < sub.offset
            }
        }
    }
}
