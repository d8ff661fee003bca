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
mod rows;
mod set;

use stripewise_allocation::{Program, Row, Solution, solve};
use stripewise_cluster::Cluster;

pub use curve::{SpaceCurve, SpacePoint};
pub use rows::SpaceValue;

use crate::candidate::Judged;
use crate::choose::{Decision, decide};
use crate::error::PlanError;
use crate::options::{Options, Scheme};
use crate::problem::Problem;
use crate::servers::Servers;
use crate::workload::{FileSet, Workload};
use composed::compose;
use rows::Rows;
use set::Set;

/// Fractions of the space to plan for, one after the other, where it counts by tier, until the
/// files fit on every server.
const SPACES: [f64; 3] = [1.0, 0.9, 0.75];

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
    let is_for_all = options.scheme == Scheme::Auto && options.native.is_none() && options.with.is_empty();
    let is_scarce = is_scarce(workload, cluster, servers);
    if !is_for_all || shared.len() < 2 && !is_scarce {
        return Ok((shared, None));
    }
    // The share of a single set is all of the space.
    let has_shares = shared.len() > 1;
    let rows = Rows::new(cluster, servers, shared.len());
    let mut sets = Vec::with_capacity(shared.len());
    for ((set, decision), &is_fixed) in workload.file_sets.iter().zip(shared).zip(fixed) {
        let problem = Problem::new(set, cluster, servers, options, set.total_size());
        let mut plans = vec![decision];
        if is_scarce && has_shares && !is_fixed {
            plans.push(decide(&problem)?);
        }
        sets.push(Set::new(problem, plans, &rows, is_fixed));
    }
    let space = space(&sets, &rows);
    if is_scarce {
        compose(&mut sets, &rows, &space);
    }
    let Some(solution) = solution(&sets, &rows, &space) else {
        return Ok((sets.into_iter().map(Set::in_its_share).collect(), None));
    };
    let curves = curve::curves(&sets, &rows, (cluster, servers), &space);
    let shares_s: f64 = sets.iter().map(|set| set.options[set.share()].seconds).sum();
    let chosen: Vec<Decision> = match shares_s <= solution.seconds {
        true => sets.into_iter().map(Set::in_its_share).collect(),
        false => sets.into_iter().zip(&solution.choices).map(|(set, choice)| set.chosen(*choice)).collect(),
    };
    let sum = |of: fn(&Decision) -> &Judged| chosen.iter().map(|it| options.objective.of(of(it))).sum::<f64>();
    let (now_s, planned_s) = (sum(|decision| &decision.present), sum(Decision::chosen));
    let bound_s = solution.bound_s.min(planned_s);
    let space = rows.values(cluster, servers, &solution.prices);
    let curves = curve::through(curves, planned_s);
    Ok((chosen, Some(Joint { now_s, planned_s, bound_s, space, curves })))
}

/// Whether there is a tier on which not all files fit.
fn is_scarce(workload: &Workload, cluster: &Cluster, servers: &Servers) -> bool {
    let needed = workload.file_sets.iter().map(FileSet::total_size).fold(0, u64::saturating_add);
    (0..cluster.tiers.len()).any(|tier| servers.space_of(cluster, tier) < needed)
}

/// The space of each server, bytes. What the files would use in their shares counts as fitting:
/// those that stay where they are may already use more than the capacity.
fn space(sets: &[Set<'_>], rows: &Rows) -> Vec<u64> {
    let used = rows.used(sets.iter().map(|set| set.bytes(set.share())));
    rows.capacities.iter().zip(used).map(|(&capacity, used)| capacity.max(used)).collect()
}

/// The solution, if one is found whose files fit on every server.
fn solution(sets: &[Set<'_>], rows: &Rows, space: &[u64]) -> Option<Solution> {
    let sums = rows.sums(space);
    let regions = sets.iter().map(Set::region).collect();
    let mut program = Program { weights: Vec::new(), rows: Vec::new(), regions };
    let mut bound_s = None;
    for fraction in SPACES {
        program.rows = sums.iter().map(|&bytes| Row::Space { bytes: bytes as f64 * fraction }).collect();
        let solution = solve(&program).ok()?;
        let bound_s = *bound_s.get_or_insert(solution.bound_s);
        let chosen = sets.iter().zip(&solution.choices);
        let used = rows.used(chosen.map(|(set, choice)| set.bytes(choice.column as usize)));
        if used.iter().zip(space).all(|(used, space)| used <= space) {
            return Some(Solution { bound_s, ..solution });
        }
    }
    None
}
