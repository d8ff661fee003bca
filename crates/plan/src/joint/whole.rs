//! What a plan does to the whole workload.

use stripewise_allocation::Solution;

use super::curve::SpaceCurve;
use super::moving::MoveLimit;
use super::rows::{Rows, SpaceValue};
use super::stages::{Placed, total_s};
use super::waits::{StageTimes, Waits};
use crate::candidate::Judged;
use crate::choose::Decision;
use crate::problem::Problem;

/// The whole workload under a plan.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Joint {
    /// The time (or cost) in the present layouts, seconds.
    pub now_s: f64,
    /// The time (or cost) in the planned layouts, seconds.
    pub planned_s: f64,
    /// No choice of the changes that are worth it takes less, seconds: of the candidates that save
    /// `min_gain` of their files' time, for files that take 1 % of all time.
    pub bound_s: f64,
    /// What more space is worth.
    pub space: Vec<SpaceValue>,
    /// Where requests wait in the planned layouts.
    #[serde(default)]
    pub waits: Waits,
    /// The sets that different processes use at the same time.
    #[serde(default)]
    pub stages: Vec<StageTimes>,
    /// The limit on moving, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moving: Option<MoveLimit>,
    /// The time over the space of each tier that another size changes; earlier versions did not
    /// write it.
    #[serde(default)]
    pub curves: Vec<SpaceCurve>,
}

impl Joint {
    /// The times of these decisions, of which `solution` has the bound.
    pub(super) fn of(problems: &[Problem<'_>], chosen: &[Decision], rows: &Rows, solution: &Solution) -> Self {
        let placed = |of: fn(&Decision) -> &Judged| -> Vec<Placed<'_>> {
            let both = problems.iter().zip(chosen);
            both.map(|(problem, decision)| decision.placed(problem, of(decision))).collect()
        };
        let (now, planned) = (placed(|decision| &decision.present), placed(Decision::chosen));
        let planned_s = total_s(&rows.stages, &planned);
        let bound_s = solution.bound_s.min(planned_s);
        Self {
            now_s: total_s(&rows.stages, &now),
            planned_s,
            bound_s,
            space: Vec::new(),
            waits: Waits::of(&rows.stages, &planned, bound_s),
            stages: rows.stages.iter().map(|stage| StageTimes::of(stage, &now, &planned)).collect(),
            moving: None,
            curves: Vec::new(),
        }
    }
}
