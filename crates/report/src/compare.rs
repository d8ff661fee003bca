//! Compares a run before a change with one after it, phase by phase.

use serde::Serialize;
use stripewise_trace::Op;
use stripewise_trace::summary::{Group, Phase};

use crate::Activity;

/// File groups with more phases than this are compared as one phase per operation.
const PHASES_MAX: usize = 8;

/// I/O of one phase (or of all phases of one operation) of one file group, in both runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// The files, by the pattern of their names.
    pub pattern: String,
    /// `write`, or with its number among the group's phases `write 2`.
    pub phase: String,
    /// I/O in the run before, if it had the phase.
    pub before: Option<Moved>,
    /// I/O in the run after, if it had the phase.
    pub after: Option<Moved>,
}

/// Bytes moved, and the time that took.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Moved {
    /// Number of bytes.
    pub bytes: u64,
    /// Seconds from the start of the first request to the end of the last; for several phases, the
    /// sum.
    pub seconds: f64,
}

impl Moved {
    /// Bytes per second; `None` if the time is 0.
    pub fn rate(&self) -> Option<f64> {
        (self.seconds > 0.0).then(|| self.bytes as f64 / self.seconds)
    }
}

impl Compared {
    /// Throughput after divided by throughput before; `None` if either is missing.
    pub fn speed_up(&self) -> Option<f64> {
        let rate = |moved: Option<Moved>| moved.and_then(|moved| moved.rate()).filter(|rate| *rate > 0.0);
        Some(rate(self.after)? / rate(self.before)?)
    }
}

/// Duration of a run in seconds: that of the command if it was recorded, else from the first call
/// to the last.
pub fn elapsed_s(activity: &Activity) -> f64 {
    activity.meta.wall_s.unwrap_or(activity.summary.span_s)
}

/// Compares all phases of files of either run. Those of the run after the change come first.
pub fn compare(before: &Activity, after: &Activity) -> Vec<Compared> {
    let moving = |activity: &Activity| -> Vec<Group> {
        let groups = activity.summary.groups.iter().filter(|group| group.read.bytes + group.write.bytes > 0);
        groups.cloned().collect()
    };
    let (before, after) = (moving(before), moving(after));
    let named = |groups: &[Group], pattern: &str| groups.iter().position(|group| group.pattern == pattern);
    let mut rows = Vec::new();
    for group in &after {
        let other = named(&before, &group.pattern).map(|index| &before[index]);
        rows.extend(of_group(&group.pattern, other, Some(group)));
    }
    for group in before.iter().filter(|group| named(&after, &group.pattern).is_none()) {
        rows.extend(of_group(&group.pattern, Some(group), None));
    }
    rows
}

fn of_group(pattern: &str, before: Option<&Group>, after: Option<&Group>) -> Vec<Compared> {
    let ops = |group: Option<&Group>| -> Vec<Op> { phases(group).iter().map(|phase| phase.op).collect() };
    let row = |phase: String, before: Option<Moved>, after: Option<Moved>| Compared {
        pattern: pattern.to_owned(),
        phase,
        before,
        after,
    };
    let (one, other) = (ops(before), ops(after));
    // The program did the same in both runs, so the comparison is phase by phase.
    if one == other && (2..=PHASES_MAX).contains(&one.len()) {
        let pairs = phases(before).iter().zip(phases(after)).enumerate();
        let number = |(index, (before, after)): (usize, (&Phase, &Phase))| {
            row(format!("{} {}", name(after.op), index + 1), Some(moved([before])), Some(moved([after])))
        };
        return pairs.map(number).collect();
    }
    [Op::Read, Op::Write]
        .into_iter()
        .filter(|op| one.contains(op) || other.contains(op))
        .map(|op| row(name(op).to_owned(), all_of(before, op), all_of(after, op)))
        .collect()
}

fn phases(group: Option<&Group>) -> &[Phase] {
    group.map_or(&[], |group| &group.phases.first)
}

fn all_of(group: Option<&Group>, op: Op) -> Option<Moved> {
    let of_op = || phases(group).iter().filter(|phase| phase.op == op);
    of_op().next()?;
    Some(moved(of_op()))
}

fn moved<'a>(phases: impl IntoIterator<Item = &'a Phase>) -> Moved {
    let mut sum = Moved { bytes: 0, seconds: 0.0 };
    for phase in phases {
        sum.bytes += phase.bytes;
        sum.seconds += phase.end_ns.saturating_sub(phase.start_ns) as f64 * 1e-9;
    }
    sum
}

fn name(op: Op) -> &'static str {
    if op == Op::Read { "read" } else { "write" }
}
