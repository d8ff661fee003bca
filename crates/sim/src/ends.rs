//! Which accesses are sequential: those that go on, in a component, where the last access of the same process ended.

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

/// A run of file bytes that one process went through.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    start: u64,
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

    /// What the runs say of an access to `start..end` of a copy, which is noted: where the last one began if this goes on
    /// where it ended.
    pub fn go_on(&mut self, order: Order, copy: usize, start: u64, end: u64) -> Option<u64> {
        let Order::Runs(first) = order else { return None };
        let run = &mut self.runs[first + copy];
        if run.end == start && run.end > run.start {
            run.end = end;
            return Some(run.start);
        }
        *run = Run { start, end };
        None
    }

    /// Whether a sub-request is sequential; it is noted. `base`: components of the copies before; `went_on`: what
    /// [`Ends::go_on`] said of the access.
    #[inline]
    pub fn is_sequential(
        &mut self,
        order: Order,
        base: usize,
        sub: &Sub,
        layout: &Layout,
        went_on: Option<u64>,
    ) -> bool {
        match order {
            Order::Ignored => false,
            Order::Table(first) => {
                let end = &mut self.table[first + base + sub.component as usize];
                std::mem::replace(end, sub.offset + sub.bytes) == sub.offset
            }
            // The run has bytes of this component.
            Order::Runs(_) => {
                went_on.is_some_and(|start| layout.component_size(sub.component, start) < sub.offset)
            }
        }
    }
}
