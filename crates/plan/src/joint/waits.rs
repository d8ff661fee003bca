//! Where the planned time goes beyond its bound, and the times of the stages.

use rayon::prelude::*;

use super::stages::{Placed, Stage};
use crate::options::Objective;

/// Costs below this fraction of the planned time are not worth a word.
const NOTABLE: f64 = 0.05;

/// Parts of the planned time in which neither a server nor a process works all the time, and what
/// it takes beyond its bound, seconds. If an overall cost is planned, all of them are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Waits {
    /// Every region gets one layout of few, where the bound allows fractions.
    pub rounding_s: f64,
    /// Requests wait in queues, because other requests came to the same server before them.
    pub queues_s: f64,
    /// Processes wait for the slowest one of a collective call. In stages this is in `queues_s`.
    pub rounds_s: f64,
}

/// File sets that different processes use at the same time.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct StageTimes {
    /// The patterns of the sets.
    pub patterns: Vec<String>,
    /// The time of all runs in the present layouts, seconds.
    pub now_s: f64,
    /// The time of all runs in the planned layouts, seconds.
    pub planned_s: f64,
}

impl Waits {
    /// The waits of these layouts. `bound_s` is the bound for all of them.
    pub fn of(stages: &[Stage], placed: &[Placed<'_>], bound_s: f64) -> Self {
        if placed.first().is_some_and(|placed| placed.problem.options.objective == Objective::Cost) {
            return Self::default();
        }
        let of_set = |placed: &Placed<'_>| {
            let load = placed.load(|group| !stages.iter().any(|stage| stage.has(group)));
            (load.elapsed_s, load.floor_s, load.rounds_s, placed.judged.client_s.unwrap_or(0.0))
        };
        let outside: Vec<(f64, f64, f64, f64)> = placed.par_iter().map(of_set).collect();
        let (mut waits, mut ideal_s) = (Self::default(), 0.0);
        for (elapsed_s, floor_s, rounds_s, client_s) in outside {
            waits.queues_s += (elapsed_s - floor_s - rounds_s).max(0.0);
            waits.rounds_s += rounds_s;
            ideal_s += elapsed_s + client_s;
        }
        for stage in stages {
            let load = stage.load(|index| placed[index]);
            waits.queues_s +=
                (stage.elapsed_s(|index| placed[index]) - load.busiest_s().max(load.floor_s)).max(0.0);
            ideal_s += load.busiest_s().max(load.elapsed_s);
        }
        Self { rounding_s: (ideal_s - bound_s).max(0.0), ..waits }
    }

    /// What costs a notable part of `planned_s`, with its seconds.
    pub fn notable(&self, planned_s: f64) -> impl Iterator<Item = (&'static str, f64)> + use<> {
        let all = [
            ("Whole regions instead of fractions", self.rounding_s),
            ("Waiting in queues", self.queues_s),
            ("Waiting in collective rounds", self.rounds_s),
        ];
        all.into_iter().filter(move |(_, seconds)| *seconds > NOTABLE * planned_s)
    }
}

impl StageTimes {
    /// The times of a stage in the layouts before and after.
    pub fn of(stage: &Stage, now: &[Placed<'_>], planned: &[Placed<'_>]) -> Self {
        let pattern = |index: usize| now[index].problem.set.pattern.clone();
        Self {
            patterns: stage.sets().into_iter().map(pattern).collect(),
            now_s: stage.elapsed_s(|index| now[index]),
            planned_s: stage.elapsed_s(|index| planned[index]),
        }
    }
}
