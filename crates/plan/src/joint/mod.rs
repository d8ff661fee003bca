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
pub(crate) mod many;
mod moving;
mod repair;
mod rows;
mod set;
mod space;
mod stages;
mod waits;
mod whole;

use stripewise_cluster::Cluster;

pub use curve::{SpaceCurve, SpacePoint};
pub use moving::MoveLimit;
pub use rows::SpaceValue;
pub(crate) use stages::{Placed, Stage};
pub use waits::{StageTimes, Waits};
pub use whole::Joint;

use crate::choose::{Decision, decide};
use crate::error::PlanError;
use crate::options::Options;
use crate::problem::Problem;
use crate::servers::Servers;
use crate::workload::{FileSet, Workload};
use composed::{compose, divided};
use curve::{curves, through};
use faster::{faster, solution};
use rows::Rows;
use set::{Set, moved_bytes};
use space::{limit_caches, sum};

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
    let mut rows = Rows::new(cluster, servers, &workload.file_sets, options.objective);
    let problem = |set| Problem::new(set, cluster, servers, options, FileSet::total_size(set));
    let problems: Vec<Problem<'_>> = workload.file_sets.iter().map(problem).collect();
    let mut sets = sets(&problems, shared, &rows, (fixed, all_bytes, is_scarce))?;
    let space = space(&sets, &rows);
    let divided = divided(&sets, &rows);
    if is_scarce {
        compose(&mut sets, &divided, &rows, &space);
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
        true => curves((&sets, &divided), &rows, (cluster, servers), &space),
        false => Vec::new(),
    };
    if let Some(limit) = options.move_at_most.filter(|&limit| limit < unlimited_bytes) {
        let composing = is_scarce.then_some(&divided[..]);
        let within = moving::within(limit, (&mut sets, composing), &mut rows, &space);
        (choices, found) = (Some(within.0), within.1);
    }
    let mut chosen: Vec<Decision> = match choices {
        None => sets.into_iter().map(Set::in_its_share).collect(),
        Some(choices) => sets.into_iter().zip(choices).map(|(set, choice)| set.chosen(choice)).collect(),
    };
    limit_caches(&mut chosen, &problems, &space);
    let Some(solution) = found else { return Ok((chosen, None)) };
    let mut joint = Joint::of(&problems, &chosen, &rows, &solution);
    joint.space = rows.values(cluster, servers, &solution.prices);
    joint.moving = options.move_at_most.map(|limit| MoveLimit::of(limit, unlimited_bytes, &rows, &solution));
    joint.curves = through(curves, joint.planned_s);
    Ok((chosen, Some(joint)))
}

/// The sets with the candidates of their shares, and of all of the space if it is scarce.
fn sets<'p>(
    problems: &[Problem<'p>],
    shared: Vec<Decision>,
    rows: &Rows,
    (fixed, all_bytes, is_scarce): (&[bool], u64, bool),
) -> Result<Vec<Set<'p>>, PlanError> {
    // The share of a single set is all of the space.
    let has_shares = shared.len() > 1;
    let set = |(index, ((&problem, decision), &is_fixed)): (usize, ((&Problem<'p>, Decision), &bool))| {
        let mut plans = vec![decision];
        if is_scarce && has_shares && !is_fixed {
            plans.push(decide(&problem)?);
        }
        Ok(Set::new((index, problem), plans, rows, (is_fixed, all_bytes)))
    };
    problems.iter().zip(shared).zip(fixed).enumerate().map(set).collect()
}

/// Whether there is a tier on which not all files fit, with as many replicas as they may have.
pub fn is_scarce(bytes: u64, (cluster, servers): (&Cluster, &Servers), options: &Options) -> bool {
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
