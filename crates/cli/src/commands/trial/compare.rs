//! What the runs before and after a change say.

use std::collections::BTreeSet;

use serde::Serialize;
use stripewise_report::trial::{Difference, Repeated, Verdict};

use super::measure::Run;

/// Runs before the change are enough if the spread of their mean is less than this fraction of it.
const PRECISE: f64 = 0.05;

/// Some time before and after.
#[derive(Clone, Debug, Serialize)]
pub struct Times {
    pub before: Repeated,
    pub after: Repeated,
    pub difference: Difference,
}

/// Everything that was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// The time of the process that is busiest with the planned files. It decides.
    pub io: Times,
    /// The time of the whole command.
    pub wall: Times,
    /// By pattern of files: the time of the process that is busiest with them.
    pub sets: Vec<SetTimes>,
}

/// The time of the files of one pattern.
#[derive(Clone, Debug, Serialize)]
pub struct SetTimes {
    pub pattern: String,
    #[serde(flatten)]
    pub times: Times,
}

impl Times {
    fn of(before: &[Run], after: &[Run], time_s: impl Fn(&Run) -> f64) -> Self {
        let repeated = |runs: &[Run]| Repeated::of(runs.iter().map(&time_s).collect());
        let (before, after) = (repeated(before), repeated(after));
        let difference = Difference::of(&before, &after);
        Self { before, after, difference }
    }
}

impl Compared {
    /// Compares the runs.
    pub fn of(before: &[Run], after: &[Run]) -> Self {
        let patterns: BTreeSet<&String> = before.iter().chain(after).flat_map(|run| run.sets.keys()).collect();
        let set = |pattern: &String| {
            let time_s = |run: &Run| run.sets.get(pattern).copied().unwrap_or_default();
            SetTimes { pattern: pattern.clone(), times: Times::of(before, after, time_s) }
        };
        let mut sets: Vec<SetTimes> = patterns.into_iter().map(set).collect();
        sets.sort_by(|one, other| other.times.before.mean_s.total_cmp(&one.times.before.mean_s));
        Self {
            io: Times::of(before, after, |run| run.io_s),
            wall: Times::of(before, after, |run| run.wall_s),
            sets,
        }
    }

    /// Whether the new layouts are worth keeping.
    pub fn is_faster(&self) -> bool {
        self.io.difference.verdict == Verdict::Faster
    }
}

/// Whether the mean of the runs is known well enough.
pub fn is_precise(runs: &[Run]) -> bool {
    let repeated = Repeated::of(runs.iter().map(|run| run.io_s).collect());
    repeated.spread_s.is_some_and(|spread_s| spread_s <= PRECISE * repeated.mean_s)
}

/// Whether the runs can tell which layout is faster, or that it makes hardly a difference.
pub fn is_clear(before: &[Run], after: &[Run]) -> bool {
    let io = Times::of(before, after, |run| run.io_s);
    let is_small = |spread_s: f64| spread_s <= PRECISE * io.before.mean_s;
    io.difference.verdict != Verdict::Same || io.difference.spread_s.is_some_and(is_small)
}
