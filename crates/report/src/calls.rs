//! How long calls took and when they were made, by what they do.

use stripewise_trace::Op;

use crate::density;

/// Slots of the chart over time.
pub const SLOTS: usize = density::COLUMNS;

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Opens and closes.
    Open,
    /// Makes data durable.
    Sync,
    /// Asks for or sets attributes, sizes, offsets and mappings, or removes a name.
    Other,
}

impl Work {
    /// All, in the order of [`Calls`].
    pub const ALL: [Self; 5] = [Self::Read, Self::Write, Self::Open, Self::Sync, Self::Other];
    /// Those that move no bytes.
    pub const METADATA: [Self; 3] = [Self::Open, Self::Sync, Self::Other];

    /// `None` for a collective call, which contains other calls.
    pub fn of(op: Op) -> Option<Self> {
        match op {
            Op::Read => Some(Self::Read),
            Op::Write => Some(Self::Write),
            Op::Open | Op::Close => Some(Self::Open),
            Op::Sync => Some(Self::Sync),
            Op::Resize | Op::Seek | Op::Stat | Op::Map | Op::Unlink => Some(Self::Other),
            Op::Mark => None,
        }
    }

    /// Returns the class that colors it, and what a legend says of it.
    pub fn legend(self) -> (&'static str, &'static str) {
        match self {
            Self::Read => ("read", "read"),
            Self::Write => ("write", "write"),
            Self::Open => ("t0", "open and close"),
            Self::Sync => ("t4", "sync"),
            Self::Other => ("t1", "stat, truncate, seek, map and unlink"),
        }
    }
}

/// Calls of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Their number.
    pub calls: u64,
    /// Sum of their durations over all processes, ns.
    pub ns: u64,
}

/// The calls of a trace, in the order of [`Work::ALL`].
#[derive(Clone, Debug, Default)]
pub struct Calls {
    /// By group of files.
    pub of_group: Vec<[Spent; Work::ALL.len()]>,
    /// Number of calls that began in each of [`SLOTS`] equal parts of the time.
    pub over_time: Vec<[u64; Work::ALL.len()]>,
}

impl Calls {
    /// Without calls, for `groups` groups of files.
    pub fn new(groups: usize) -> Self {
        Self { of_group: vec![Default::default(); groups], over_time: vec![Default::default(); SLOTS] }
    }

    /// Adds a call of a group that took `spent_ns` nanoseconds of the `span_ns` shown, and began at
    /// `began_ns` in them; `None`: before them.
    pub fn add(&mut self, group: usize, op: Op, spent_ns: u64, began_ns: Option<u64>, span_ns: u64) {
        let Some(work) = Work::of(op) else { return };
        let spent = &mut self.of_group[group][work as usize];
        spent.calls += 1;
        spent.ns = spent.ns.saturating_add(spent_ns);
        if let Some(began_ns) = began_ns {
            let (slot, _) = density::cells(began_ns..began_ns, span_ns.max(1), SLOTS);
            self.over_time[slot][work as usize] += 1;
        }
    }

    /// Sum over the kinds of a group's calls, ns.
    pub fn ns_of(&self, group: usize) -> u64 {
        self.of_group[group].iter().fold(0, |sum, spent| sum.saturating_add(spent.ns))
    }
}
