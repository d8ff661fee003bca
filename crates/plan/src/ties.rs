//! Candidates between which the predictions cannot tell: they differ by less than the error of the
//! model. Among these the simplest one is chosen.
//!
//! The error is that of the measured parameters ([`stripewise_cluster::profile::Accuracy`]). With
//! parameters that were not measured there is none, and the least prediction decides.

use std::cmp::{Ordering, Reverse};

use crate::candidate::{Candidate, Judged};
use crate::evaluate::{best_of, competing};
use crate::native::OnlyNative;
use crate::problem::Problem;
use crate::serving::Serving;

/// Names that a tie tells at most.
const NAMES_MAX: usize = 4;

/// What ties with the chosen candidate of a file set.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Tie {
    /// The error of the best prediction, as a fraction of it.
    pub error: f64,
    /// The names of the candidates within the error of the best one, the simplest first. The
    /// present layout is not among them.
    pub between: Vec<String>,
    /// The present layout is also within the error, so it is kept.
    pub present: bool,
    /// The chosen layout is the simplest of them. If not, it is the one that fits into the space
    /// that other files leave.
    pub simplest: bool,
}

impl Tie {
    /// The tie that a chosen candidate, by its index, is part of; `None` if the predictions can
    /// tell it from all others.
    pub(crate) fn of(
        problem: &Problem<'_>,
        (candidates, present): (&[Judged], &Judged),
        picks: &[usize],
        chosen: usize,
    ) -> Option<Self> {
        let mut field = picks.to_vec();
        if !field.contains(&chosen) {
            field.push(chosen);
        }
        let mut of = Within::least(problem, candidates, &field)?;
        if !of.members.contains(&chosen) {
            // It is not the best one: the space of that one went to other files.
            of = Within::least(problem, candidates, &[chosen])?;
        }
        let present = competes(problem) && of.has(problem, present);
        let simplest = present || of.members.first() == Some(&chosen);
        let name = |&index: &usize| candidates[index].candidate.name.clone();
        let between: Vec<String> = of.members.iter().map(name).collect();
        (present || between.len() > 1).then_some(Self { error: of.error, between, present, simplest })
    }

    /// The tie in words, after the chosen layout.
    pub fn told(&self) -> String {
        let mut names: Vec<&str> = self.between.iter().take(NAMES_MAX).map(String::as_str).collect();
        if self.present {
            names.insert(0, "the present layout");
        }
        let more = self.between.len().saturating_sub(NAMES_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let which = if self.simplest { ", of which it is the simplest" } else { "" };
        format!(
            "a tie within the model's error of {:.1} % between {}{more}{which}",
            100.0 * self.error,
            names.join(", ")
        )
    }
}

/// Whether the present layout takes part in ties. It does not if the user accepts any gain.
fn competes(problem: &Problem<'_>) -> bool {
    problem.options.min_gain.is_finite()
}

/// Index of the candidate to choose: the simplest of those within the error of the best one.
pub fn simplest_of(problem: &Problem<'_>, candidates: &[Judged], picks: &[usize]) -> usize {
    let within = Within::least(problem, candidates, picks);
    within.map_or_else(|| best_of(problem, candidates, picks), |within| within.members[0])
}

/// Whether the present layout is within the error of a candidate, by its prediction alone.
pub fn equals_present(problem: &Problem<'_>, present: &Judged, candidate: &Judged) -> bool {
    let of = problem.options.objective;
    competes(problem) && of.of(present) <= of.of(candidate) * (1.0 + error_of(problem, candidate))
}

/// The candidates within the error of the best one.
struct Within {
    error: f64,
    least_s: f64,
    /// Indices, the simplest first; at least one.
    members: Vec<usize>,
}

impl Within {
    /// `None` if the error is 0.
    fn least(problem: &Problem<'_>, candidates: &[Judged], picks: &[usize]) -> Option<Self> {
        if problem.cluster.accuracy.is_exact() {
            return None;
        }
        let seconds = |index: usize| problem.options.objective.of(&candidates[index]);
        let picks = competing(problem, candidates, picks);
        let best = picks.iter().copied().min_by(|&a, &b| seconds(a).total_cmp(&seconds(b)))?;
        let (error, least_s) = (error_of(problem, &candidates[best]), seconds(best));
        if error <= 0.0 {
            return None;
        }
        let is_within = |&index: &usize| seconds(index) <= least_s * (1.0 + error);
        let keyed = |index: usize| (Simplicity::of(problem, &candidates[index].candidate), index);
        let mut members: Vec<(Simplicity, usize)> = picks.into_iter().filter(is_within).map(keyed).collect();
        members.sort_by(|(one, a), (other, b)| {
            let then = || by_prediction(problem, &candidates[*a], &candidates[*b]);
            one.cmp(other).then_with(then)
        });
        Some(Self { error, least_s, members: members.into_iter().map(|(_, index)| index).collect() })
    }

    fn has(&self, problem: &Problem<'_>, judged: &Judged) -> bool {
        problem.options.objective.of(judged) <= self.least_s * (1.0 + self.error)
    }
}

/// The order of equally simple candidates.
fn by_prediction(problem: &Problem<'_>, one: &Judged, other: &Judged) -> Ordering {
    let of = problem.options.objective;
    of.of(one).total_cmp(&of.of(other)).then_with(|| one.candidate.name.cmp(&other.candidate.name))
}

/// How simple a layout is; the simplest first. The present layout, which is not moved, comes before
/// all candidates.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Simplicity {
    keeper: Keeper,
    /// The number of servers.
    servers: usize,
    /// Its smallest stripe, bytes.
    stripe: Reverse<u64>,
}

/// What has to keep the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Keeper {
    /// The file system itself could.
    FileSystem,
    /// stripewise, with one copy.
    OneCopy,
    /// stripewise, which also keeps the copies in step.
    Copies,
}

impl Simplicity {
    fn of(problem: &Problem<'_>, candidate: &Candidate) -> Self {
        let native = |only: OnlyNative| only.native(candidate, problem.set, problem.cluster).is_ok();
        let keeper = match candidate.overlay {
            Some(_) => Keeper::Copies,
            None if OnlyNative::of(problem.cluster).is_ok_and(native) => Keeper::FileSystem,
            None => Keeper::OneCopy,
        };
        let stripe = Reverse(candidate.layouts.narrowest());
        Self { keeper, servers: candidate.targets(), stripe }
    }
}

/// The error of a candidate's prediction, as a fraction of it: that of the seconds that the
/// requests keep the servers busy.
fn error_of(problem: &Problem<'_>, judged: &Judged) -> f64 {
    if problem.cluster.accuracy.is_exact() {
        return 0.0;
    }
    let serving = Serving::new(problem, &judged.candidate);
    let (mut busy_s, mut error_s) = (0.0, 0.0);
    for group in &problem.set.groups {
        let sample = problem.cost_sample(group, ERROR_SHARE, &serving.copies);
        let (of_group_s, error_of_group_s) = serving.serve(group, &sample).mapped.busy(group, problem.servers);
        busy_s += of_group_s;
        error_s += error_of_group_s;
    }
    if busy_s > 0.0 { error_s / busy_s } else { 0.0 }
}

/// The error needs few requests: those that would be costed if there were so many candidates.
const ERROR_SHARE: usize = 1 << 12;

#[cfg(test)]
mod tests;
