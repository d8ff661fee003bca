//! What space is worth: the time of all files over the space of a tier.
//!
//! The program of the joint plan is solved again for other sizes of the tier. Its columns were made
//! for the present size, so each set gets a few more: layouts that are wholly on the tier although
//! they do not fit there now, layouts without the tier, and for each size layouts of regions of
//! which as much is on the tier as the relaxed program has there. A replay judges them, as it does
//! all others. Planners do not run again (`docs/decisions/0011-joint-plan.md`, "What space is
//! worth").

mod alternatives;
mod sizes;
#[cfg(test)]
mod tests;
mod tier;

use rayon::prelude::*;
use stripewise_allocation::{Choice, Program, Region, Row, Solution, solve};
use stripewise_cluster::Cluster;

use self::alternatives::{Alternative, Member, region, resting, steps_of};
use self::sizes::{Step, sizes};
use self::tier::Tier;
use super::composed::Divided;
use super::rows::Rows;
use super::set::Set;
use crate::candidate::Candidate;
use crate::servers::Servers;

/// A size tells something if it changes the time by more than this fraction.
const CHANGE: f64 = 0.01;
/// Files are cut for each size and for less by this part of it, because a cut is at a whole stripe
/// cycle and may leave more on the tier than was counted.
const SPARE: u64 = 32;
/// Maximum number of parts of all files together that are counted one by one. The sets with the
/// most bytes of requests are divided first.
const PARTS_MAX: usize = 64;

/// The time of all files over the space of a tier.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct SpaceCurve {
    /// The tier.
    pub tier: String,
    /// The space that it has now, bytes.
    pub bytes: u64,
    /// By size, the smallest first. More space never takes more time. All files that gain fit into
    /// the last size; the present one is among the sizes.
    pub points: Vec<SpacePoint>,
}

/// The time with another size of a tier.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct SpacePoint {
    /// The space of the tier, bytes.
    pub bytes: u64,
    /// The time (or cost) of a plan for this size, seconds. A better one may exist.
    pub planned_s: f64,
    /// No choice of the candidates takes less with this size, seconds.
    pub bound_s: f64,
}

impl SpaceCurve {
    /// The sizes that tell most: the next smaller and the next larger one that change the time by
    /// more than 1 %, and the one that is [`enough`](Self::enough), if it is larger still.
    pub fn telling(&self) -> Vec<SpacePoint> {
        let Some(now) = self.points.iter().find(|point| point.bytes == self.bytes) else { return Vec::new() };
        let is_less = |it: &&SpacePoint| it.bytes < now.bytes && it.planned_s > now.planned_s * (1.0 + CHANGE);
        let is_more = |it: &&SpacePoint| it.bytes > now.bytes && it.planned_s < now.planned_s * (1.0 - CHANGE);
        let less = self.points.iter().rfind(is_less);
        let more = self.points.iter().find(is_more);
        let enough = self.enough().filter(|enough| more.is_some_and(|more| enough.bytes > more.bytes));
        less.into_iter().chain(more).chain(enough).copied().collect()
    }

    /// The least size from which on more space saves no more than 1 % of the time.
    pub fn enough(&self) -> Option<&SpacePoint> {
        let least_s = self.points.last()?.planned_s;
        self.points.iter().find(|point| point.planned_s * (1.0 - CHANGE) <= least_s)
    }
}

/// The curves of the tiers, if the plan of the present sizes takes `planned_s` seconds: those that
/// another size of the tier changes.
pub fn through(curves: Vec<SpaceCurve>, planned_s: f64) -> Vec<SpaceCurve> {
    let all = curves.into_iter().map(|curve| monotone(curve, planned_s));
    all.filter(|curve| {
        let time = |point: Option<&SpacePoint>| point.map_or(0.0, |point| point.planned_s);
        time(curve.points.first()) - time(curve.points.last()) > CHANGE * planned_s
    })
    .collect()
}

/// The curve with `planned_s` seconds at the present size, without the chance of rounding: with
/// more space the plan for less is possible, and what no plan for more space takes none for less
/// takes.
fn monotone(mut curve: SpaceCurve, planned_s: f64) -> SpaceCurve {
    let (mut least_s, mut bound_s) = (f64::INFINITY, 0.0f64);
    for point in &mut curve.points {
        point.planned_s = match point.bytes.cmp(&curve.bytes) {
            std::cmp::Ordering::Less => point.planned_s.max(planned_s),
            std::cmp::Ordering::Equal => planned_s,
            std::cmp::Ordering::Greater => point.planned_s.min(planned_s),
        };
        least_s = least_s.min(point.planned_s);
        point.planned_s = least_s;
    }
    for point in curve.points.iter_mut().rev() {
        bound_s = bound_s.max(point.bound_s);
        point.bound_s = bound_s.min(point.planned_s);
    }
    curve
}

/// The times over the space of every tier, for sets that share `space`, bytes by server. `planned`
/// are their regions.
pub fn curves(
    (sets, planned): (&[Set<'_>], &[Divided]),
    rows: &Rows,
    (cluster, servers): (&Cluster, &Servers),
    space: &[u64],
) -> Vec<SpaceCurve> {
    let tiers = (0..cluster.tiers.len()).map(|tier| Tier::new((cluster, servers), tier, rows, space));
    tiers.filter_map(|tier| Field::new(sets, tier).curve(planned)).collect()
}

/// All sets, and what they may get in a tier of other sizes.
struct Field<'s, 'p> {
    tier: Tier<'s>,
    /// The sets that may move. Each takes 1 % of the time at least, so they are few.
    members: Vec<Member<'s, 'p>>,
    /// What all other sets may get together.
    resting: Vec<Alternative>,
    /// The bytes of all files.
    bytes: u64,
}

impl<'s, 'p> Field<'s, 'p> {
    fn new(sets: &'s [Set<'p>], tier: Tier<'s>) -> Self {
        let (fixed, free): (Vec<_>, Vec<_>) = sets.iter().partition(|set| set.is_fixed);
        let mut members: Vec<Member> = free.into_par_iter().map(|set| Member::new(set, &tier)).collect();
        let mut left = PARTS_MAX;
        for member in &mut members {
            left = left.saturating_sub(member.divide(left));
        }
        let resting = resting(&fixed, &tier);
        let bytes = sets.iter().map(|set| set.problem.set.total_size()).fold(0, u64::saturating_add);
        Self { tier, members, resting, bytes }
    }

    /// The times, not yet monotone; `None` if no file needs the tier however large it is.
    fn curve(mut self, planned: &[Divided]) -> Option<SpaceCurve> {
        let needed = self.needed().filter(|&needed| needed > 0)?;
        let now = self.tier.bytes;
        let mut sizes = sizes(now, needed, self.steps());
        let space_of_all = |bytes| self.tier.space_at(bytes).into_iter().fold(0, u64::saturating_add);
        sizes.retain(|&bytes| bytes == now || space_of_all(bytes) >= self.bytes);
        self.cut(&sizes, planned);
        let point = |&bytes: &u64| match self.solution(&self.tier.space_at(bytes)) {
            Some(Solution { seconds: planned_s, bound_s, .. }) => {
                Some(SpacePoint { bytes, planned_s, bound_s })
            }
            // There is the present plan, whose layouts may be among those that were left out.
            None => (bytes == now).then_some(SpacePoint { bytes, planned_s: f64::INFINITY, bound_s: 0.0 }),
        };
        let points: Vec<SpacePoint> = sizes.par_iter().filter_map(point).collect();
        Some(SpaceCurve { tier: self.tier.name.to_owned(), bytes: now, points })
    }

    /// Which size of the tier suffices, because more does not help; `None` if there is no plan.
    fn needed(&self) -> Option<u64> {
        let solution = self.solution(&self.tier.space_of_each(self.bytes))?;
        let chosen =
            self.all().zip(&solution.choices).map(|(all, choice)| &all[choice.column as usize].on_tier);
        let used = chosen.fold(vec![0u64; self.tier.targets.len()], |mut sums, bytes| {
            sums.iter_mut().zip(bytes).for_each(|(sum, bytes)| *sum = sum.saturating_add(*bytes));
            sums
        });
        Some(self.tier.size_for(&used))
    }

    /// What each set may get, those that rest last.
    fn all(&self) -> impl Iterator<Item = &[Alternative]> {
        self.members.iter().map(|member| &member.alternatives[..]).chain([&self.resting[..]])
    }

    /// The plan for this space, bytes by server.
    fn solution(&self, space: &[u64]) -> Option<Solution> {
        solve(&self.program(space, self.all().map(region).collect())).ok()
    }

    fn program(&self, space: &[u64], regions: Vec<Region>) -> Program {
        let rows = self.tier.rows.sums(space).into_iter().map(|bytes| Row::Space { bytes: bytes as f64 });
        Program { weights: Vec::new(), rows: rows.collect(), regions }
    }

    /// What more space saves, set by set and part by part.
    fn steps(&self) -> Vec<Step> {
        let of_members = self.members.iter().flat_map(|member| member.steps(&self.tier));
        of_members.chain(steps_of(self.resting.iter(), &self.tier, (1.0, 1.0))).collect()
    }

    /// Adds layouts of which as much is on the tier as there is space in each size: cut from those
    /// of whole files, from the fine ones alone, and from those that were planned for regions.
    fn cut(&mut self, sizes: &[u64], planned: &[Divided]) {
        let less = sizes.iter().map(|size| size - size / SPARE);
        let sizes: Vec<u64> = sizes.iter().copied().chain(less).collect();
        let [of_any, of_fine] = [false, true].map(|is_fine| -> Vec<Divided> {
            self.members.iter().map(|member| member.evenly(is_fine)).collect()
        });
        let planned = self.members.iter().map(|member| &planned[member.set.index]).collect();
        let mut candidates = vec![Vec::new(); self.members.len()];
        for divided in [of_any.iter().collect(), of_fine.iter().collect(), planned] {
            let more = self.candidates(&sizes, divided);
            candidates.iter_mut().zip(more).for_each(|(all, more)| all.extend(more));
        }
        let tier = &self.tier;
        self.members.par_iter_mut().zip(candidates).for_each(|(member, all)| member.add(all, tier));
    }

    /// For each member the candidates of its regions for these sizes.
    fn candidates(&self, sizes: &[u64], divided: Vec<&Divided>) -> Vec<Vec<Candidate>> {
        let of_member = |(member, divided): (&Member<'_, '_>, &&Divided)| match divided.parts.is_empty() {
            true => vec![region(&member.alternatives)],
            false => divided.regions.clone(),
        };
        let regions: Vec<Vec<Region>> = self.members.iter().zip(&divided).map(of_member).collect();
        let all: Vec<Region> = regions.iter().flatten().cloned().chain([region(&self.resting)]).collect();
        let choices =
            |&bytes: &u64| Some(solve(&self.program(&self.tier.space_at(bytes), all.clone())).ok()?.choices);
        let by_size: Vec<Vec<Choice>> = sizes.par_iter().filter_map(choices).collect();
        let mut first = 0;
        let of_member = |((member, regions), divided): ((&Member<'_, '_>, &Vec<Region>), &&Divided)| {
            let own = first..first + regions.len();
            first = own.end;
            let of_size = |choices: &Vec<Choice>| divided.candidate(&member.set.problem, &choices[own.clone()]);
            by_size.iter().filter_map(of_size).collect()
        };
        self.members.iter().zip(&regions).zip(&divided).map(of_member).collect()
    }
}
