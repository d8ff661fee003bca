//! The files of a trace that are planned, and what is left out.

use serde::{Deserialize, Serialize};
use stripewise_trace::{Busy, Flags, Op, Request as Call};

/// Requests that take no part in planning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Number of files of which all or some requests were left out.
    pub files: usize,
    /// Time of the reads and writes that were left out, summed over processes, nanoseconds.
    pub ns: u64,
    /// The same of all reads and writes.
    pub all_ns: u64,
}

impl LeftOut {
    /// What several traces leave out, each with the number of its runs.
    pub fn join(&mut self, other: Self, times: u64) {
        self.files += other.files;
        self.ns = self.ns.saturating_add(other.ns.saturating_mul(times));
        self.all_ns = self.all_ns.saturating_add(other.all_ns.saturating_mul(times));
    }

    /// Share of the time of all reads and writes, 0 to 1.
    pub fn share(&self) -> f64 {
        self.ns as f64 / self.all_ns.max(1) as f64
    }
}

/// The time that a process reads, writes, syncs and closes, of the process where it is longest,
/// nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Busiest {
    /// Of all these calls.
    pub ns: u64,
    /// Of those that are planned.
    pub planned_ns: u64,
}

/// Some of the files of a trace, and their numbers among these. 3 bits for each file.
#[derive(Debug, Default)]
pub(super) struct Subset {
    /// By 64 files: a bit for each that is in the subset, and the number of those before.
    words: Vec<(u64, u32)>,
    files: usize,
    count: u32,
}

impl Subset {
    /// Adds the next file of the trace.
    pub fn push(&mut self, is_in: bool) {
        let bit = self.files % 64;
        if bit == 0 {
            self.words.push((0, self.count));
        }
        if let Some((word, _)) = self.words.last_mut() {
            *word |= u64::from(is_in) << bit;
        }
        self.files += 1;
        self.count += u32::from(is_in);
    }

    /// Number of files in the subset.
    pub fn count(&self) -> usize {
        self.count as usize
    }

    fn number(&self, file: u32) -> Option<u32> {
        let (word, before) = self.words[file as usize / 64];
        let bit = 1u64 << (file % 64);
        (word & bit != 0).then(|| before + (word & (bit - 1)).count_ones())
    }
}

/// Tells what is planned, and counts what is not.
#[derive(Debug, Default)]
pub(super) struct Scope {
    /// `None`: all files.
    wanted: Option<Subset>,
    leaves_out_output: bool,
    left_out: LeftOut,
    /// By process: the time of its I/O, and of the planned one.
    times: Vec<[Busy; 2]>,
    /// A bit for each file of which requests were left out.
    seen: Vec<u64>,
}

impl Scope {
    /// Only these files.
    pub fn of(wanted: Subset) -> Self {
        let all = wanted.count() == wanted.files;
        Self { wanted: (!all).then_some(wanted), ..Self::default() }
    }

    /// Leaves out writes to standard output and standard error, too.
    pub fn leave_out_output(&mut self) {
        self.leaves_out_output = true;
    }

    /// The number of the call's file among the wanted ones; `None` if the call is left out.
    #[inline]
    pub fn number(&mut self, call: &Call) -> Option<u32> {
        let ns = if call.op.is_data() { call.end_ns.saturating_sub(call.start_ns) } else { 0 };
        self.left_out.all_ns = self.left_out.all_ns.saturating_add(ns);
        let number = self.wanted.as_ref().map_or(Some(call.file), |wanted| wanted.number(call.file));
        let is_output = self.leaves_out_output && call.flags.has(Flags::OUTPUT);
        let number = number.filter(|_| !is_output);
        // What is written may reach the servers only when it is synced, or the file is closed.
        if call.op.is_data() || matches!(call.op, Op::Sync | Op::Close) {
            self.add_time(call, number.is_some());
        }
        if number.is_none() && call.op.is_data() {
            self.note(call.file, ns);
        }
        number
    }

    fn note(&mut self, file: u32, ns: u64) {
        let (word, bit) = (file as usize / 64, 1u64 << (file % 64));
        if self.seen.len() <= word {
            self.seen.resize(word + 1, 0);
        }
        self.left_out.files += usize::from(self.seen[word] & bit == 0);
        self.seen[word] |= bit;
        self.left_out.ns = self.left_out.ns.saturating_add(ns);
    }

    #[inline]
    fn add_time(&mut self, call: &Call, is_planned: bool) {
        let process = call.process as usize;
        if self.times.len() <= process {
            self.times.resize(process + 1, Default::default());
        }
        let [all, planned] = &mut self.times[process];
        all.add(call);
        if is_planned {
            planned.add(call);
        }
    }

    pub fn left_out(&self) -> LeftOut {
        self.left_out
    }

    pub fn busiest(&self) -> Busiest {
        let most = |which: usize| self.times.iter().map(|times| times[which].ns()).max().unwrap_or(0);
        Busiest { ns: most(0), planned_ns: most(1) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn files_are_numbered_among_the_wanted_ones(wanted in prop::collection::vec(any::<bool>(), 0..300)) {
            let mut subset = Subset::default();
            wanted.iter().for_each(|&is_in| subset.push(is_in));
            let mut count = 0;
            for (file, &is_in) in (0..).zip(&wanted) {
                prop_assert_eq!(subset.number(file), is_in.then_some(count));
                count += u32::from(is_in);
            }
            prop_assert_eq!(subset.count(), count as usize);
        }
    }
}
