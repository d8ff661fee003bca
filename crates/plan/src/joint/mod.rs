//! One plan for all file sets: the space of the servers goes where it saves the most.
//!
//! First every set is planned as if it had a share of the space in proportion to its size. If the
//! space is scarce, every set is planned once more as if it had all of it, and gets one more
//! candidate that is composed of layouts for the regions of its files. All candidates are columns
//! of a linear program whose rows are the space of the servers (`stripewise_allocation`). Its
//! solution takes no longer than the sets with their shares do, and its bound tells how much longer
//! it takes than any other choice of these candidates could (`docs/decisions/0011-joint-plan.md`).

mod composed;
mod curve;
mod faster;
mod moving;
mod repair;
mod rows;
mod set;
mod space;
mod stages;
mod waits;

use stripewise_cluster::Cluster;

pub use curve::{SpaceCurve, SpacePoint};
pub use moving::MoveLimit;
pub use rows::SpaceValue;
pub(crate) use stages::{Placed, Stage, total_s};
pub use waits::{StageTimes, Waits};

use crate::candidate::Judged;
use crate::choose::{Decision, decide};
use crate::error::PlanError;
use crate::options::{Objective, Options};
use crate::problem::Problem;
use crate::servers::Servers;
use crate::workload::{FileSet, Workload};
use composed::compose;
use faster::{faster, seconds, solution};
use rows::Rows;
use set::{Set, moved_bytes};
use space::{limit_caches, sum};

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

/// Plans all sets together. `shared` are the decisions for sets that share the space in proportion
/// to their sizes; `fixed` tells which sets keep their present layout whatever is possible.
///
/// # Errors
/// A set that can be planned in its share cannot be planned in all of the space, which is a defect.
pub fn jointly(
    workload: &Workload,
    (cluster, servers): (&Cluster, &Servers),
    options: &Options,
    shared: Vec<Decision>,
    fixed: &[bool],
) -> Result<(Vec<Decision>, Option<Joint>), PlanError> {
    let all_bytes = workload.total_size();
    let is_scarce = is_scarce(all_bytes, (cluster, servers), options);
    // A set that shares nothing.
    let is_alone = shared.len() < 2 && !is_scarce;
    if !options.is_joint() || is_alone && options.move_at_most.is_none() {
        return Ok((shared, None));
    }
    // The share of a single set is all of the space.
    let has_shares = shared.len() > 1;
    let mut rows = Rows::new(cluster, servers, &workload.file_sets, options.objective);
    let problem = |set| Problem::new(set, cluster, servers, options, FileSet::total_size(set));
    let problems: Vec<Problem<'_>> = workload.file_sets.iter().map(problem).collect();
    let mut sets = Vec::with_capacity(shared.len());
    for (index, ((&problem, decision), &is_fixed)) in problems.iter().zip(shared).zip(fixed).enumerate() {
        let mut plans = vec![decision];
        if is_scarce && has_shares && !is_fixed {
            plans.push(decide(&problem)?);
        }
        sets.push(Set::new((index, problem), plans, &rows, (is_fixed, all_bytes)));
    }
    let space = space(&sets, &rows);
    if is_scarce {
        compose(&mut sets, &rows, &space);
    }
    let mut found = solution(&sets, &rows, &space);
    let shares: Vec<usize> = sets.iter().map(Set::share).collect();
    let joint = found.as_ref().filter(|_| !is_alone);
    let mut choices = joint.and_then(|solution| faster(&sets, &rows, &space, (solution, &shares)));
    let unlimited_bytes = match &choices {
        Some(choices) => moved_bytes(&sets, choices),
        None => sets.iter().map(Set::moved_in_its_share).fold(0, u64::saturating_add),
    };
    // The curves are of sets that only share space, and of which any may move.
    let shares_space_only = rows.stages.is_empty() && options.move_at_most.is_none() && options.with.is_empty();
    let curves = match shares_space_only && found.is_some() {
        true => curve::curves(&sets, &rows, (cluster, servers), &space),
        false => Vec::new(),
    };
    if let Some(limit) = options.move_at_most.filter(|&limit| limit < unlimited_bytes) {
        let within = moving::within(limit, &mut sets, &mut rows, (&space, is_scarce));
        (choices, found) = (Some(within.0), within.1);
    }
    let now_s = seconds(&sets, &rows, &vec![0; sets.len()]);
    let mut chosen: Vec<Decision> = match choices {
        None => sets.into_iter().map(Set::in_its_share).collect(),
        Some(choices) => sets.into_iter().zip(choices).map(|(set, choice)| set.chosen(choice)).collect(),
    };
    limit_caches(&mut chosen, &problems, &space);
    let Some(solution) = found else { return Ok((chosen, None)) };
    let placed = |of: fn(&Decision) -> &Judged| -> Vec<Placed<'_>> {
        problems.iter().zip(&chosen).map(|(problem, decision)| decision.placed(problem, of(decision))).collect()
    };
    let (now, planned) = (placed(|decision| &decision.present), placed(Decision::chosen));
    let planned_s = total_s(&rows.stages, &planned);
    let bound_s = solution.bound_s.min(planned_s);
    let waits = match options.objective {
        Objective::Elapsed => Waits::of(&rows.stages, &planned, bound_s),
        Objective::Cost => Waits::default(),
    };
    let stages = rows.stages.iter().map(|stage| StageTimes::of(stage, &now, &planned)).collect();
    let space = rows.values(cluster, servers, &solution.prices);
    let saves_s_per_byte = moving::price(&rows, &solution.prices);
    let moving = options.move_at_most.map(|bytes| MoveLimit { bytes, unlimited_bytes, saves_s_per_byte });
    let curves = curve::through(curves, planned_s);
    Ok((chosen, Some(Joint { now_s, planned_s, bound_s, space, waits, stages, moving, curves })))
}

/// Whether there is a tier on which not all files fit, with as many replicas as they may have.
fn is_scarce(bytes: u64, (cluster, servers): (&Cluster, &Servers), options: &Options) -> bool {
    let copies = if options.with.iter().any(|with| with == "replicas") { options.copies.most } else { 1 };
    let needed = bytes.saturating_mul(copies as u64);
    (0..cluster.tiers.len()).any(|tier| servers.space_of(cluster, tier) < needed)
}

/// The space of each server, bytes. What the files would use in their shares counts as fitting:
/// those that stay where they are may already use more than the capacity.
fn space(sets: &[Set<'_>], rows: &Rows) -> Vec<u64> {
    let used = sum(sets.iter().map(|set| set.bytes(set.share())));
    rows.capacities.iter().zip(used).map(|(&capacity, used)| capacity.max(used)).collect()
}
