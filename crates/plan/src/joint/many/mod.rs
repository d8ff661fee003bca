//! One plan for more file sets than can be planned one by one.
//!
//! Sets that are accessed alike form kinds. Candidates are proposed and judged for each kind, by
//! the pooled requests of some of its sets: what they take for a second of work. Each set is then a
//! region of the linear program with the columns of its kind, by its own work and its own bytes. So
//! the time is that of some kinds, and a small one for each set
//! (`docs/decisions/0011-joint-plan.md`, "Many file sets").

mod chosen;
mod columns;
mod division;
mod field;
mod kinds;
mod servers;
#[cfg(test)]
mod tests;

use rayon::prelude::*;
use stripewise_allocation::{Program, Region, Row, Solution, solve};
use stripewise_cluster::Cluster;

use self::chosen::decision;
use self::columns::KindPlan;
use self::field::{Field, Place};
use self::kinds::{Kind, Work, kinds};
use self::servers::bytes_by_server;
use super::rows::Rows;
use super::waits::Waits;
use super::whole::Joint;
use crate::choose::{Decision, NEGLIGIBLE, decide};
use crate::error::PlanError;
use crate::options::{Objective, Options};
use crate::servers::Servers;
use crate::workload::Workload;

/// Maximum number of solutions that are tried, each for less space where files did not fit.
const ATTEMPTS: usize = 5;
/// What is left of the space for rounding.
const SPARE: f64 = 0.999;

/// Maximum number of sets of kinds of several that are planned by their own requests, because they
/// alone take a notable part of the time.
const ALONE_MAX: usize = 32;

/// Plans all sets of a workload together.
///
/// # Errors
/// The present layout cannot be made for this cluster.
pub fn plan(
    workload: &Workload,
    (cluster, servers): (&Cluster, &Servers),
    options: &Options,
) -> Result<(Vec<Decision>, Joint), PlanError> {
    plan_with(workload, (cluster, servers), options, ALONE_MAX)
}

/// As [`plan`], with that many sets of their own kind at most.
fn plan_with(
    workload: &Workload,
    (cluster, servers): (&Cluster, &Servers),
    options: &Options,
    alone_max: usize,
) -> Result<(Vec<Decision>, Joint), PlanError> {
    let tier_of = (0..servers.count() as u32).map(|server| cluster.tier_of(server).unwrap_or(0) as u32);
    let tier_of = tier_of.collect();
    let field = Field { sets: &workload.file_sets, cluster, servers, options, tier_of, alone_max };
    let kinds = field.kinds()?;
    Ok(field.assigned(&kinds))
}

impl Field<'_> {
    /// The kinds with the columns of those that take a notable part of the time.
    fn kinds(&self) -> Result<Vec<KindPlan>, PlanError> {
        let work: Work<'_> = &self.work();
        let present = |kind: Kind| KindPlan::present(&self.problem(&kind.pooled.clone()), kind, &self.tier_of);
        let found = kinds(self.sets, &self.tier_of, work).into_iter().map(present);
        let mut found = found.collect::<Result<Vec<KindPlan>, PlanError>>()?;
        let now_s = |kind: &KindPlan| kind.now_s(self.sets, self.options.objective, work);
        let least_s = found.iter().map(now_s).sum::<f64>() * NEGLIGIBLE;
        for alone in self.take_alone(&mut found, least_s) {
            found.push(present(alone)?);
        }
        let decided = |kind: KindPlan| match now_s(&kind) >= least_s && kind.kind.is_sampled() {
            true => self.decided(kind),
            false => kind,
        };
        Ok(found.into_par_iter().map(decided).collect())
    }

    /// The kind with the candidates of all planners.
    fn decided(&self, kind: KindPlan) -> KindPlan {
        let pooled = kind.kind.pooled.clone();
        let problem = self.problem(&pooled);
        match decide(&problem) {
            Ok(decision) => kind.with(&problem, decision, &self.tier_of),
            Err(error) => KindPlan { notes: vec![error.to_string()], ..kind },
        }
    }

    /// Takes the sets out of the kinds that alone take `least_s` seconds and whose requests are
    /// sampled, the slowest first.
    fn take_alone(&self, kinds: &mut [KindPlan], least_s: f64) -> Vec<Kind> {
        let work: Work<'_> = &self.work();
        let mut alone: Vec<(f64, usize, u32)> = Vec::new();
        for (index, kind) in kinds.iter().enumerate().filter(|(_, kind)| kind.kind.members.len() > 1) {
            for &member in &kind.kind.members {
                let set = &self.sets[member as usize];
                let seconds = kind.taken(set, 0, work).seconds(self.options.objective);
                if seconds >= least_s && set.groups.iter().all(|group| !group.sample.is_empty()) {
                    alone.push((seconds, index, member));
                }
            }
        }
        alone.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.2.cmp(&b.2)));
        alone.truncate(self.alone_max);
        for &(_, index, member) in &alone {
            kinds[index].kind.members.retain(|&other| other != member);
        }
        alone.into_iter().map(|(_, _, member)| Kind::of_one(self.sets, member, work)).collect()
    }

    /// The decisions for all sets.
    fn assigned(&self, kinds: &[KindPlan]) -> (Vec<Decision>, Joint) {
        let mut places = vec![Place::default(); self.sets.len()];
        for (index, kind) in (0..).zip(kinds) {
            for (member, &set) in (0..).zip(&kind.kind.members) {
                places[set as usize] = Place { kind: index, member, column: 0 };
            }
        }
        let (regions, columns) = self.regions(kinds, &places);
        let now: Vec<f64> = regions.iter().map(|region| region.columns[0].seconds).collect();
        let rows = Rows::of_tiers(self.cluster, self.servers);
        let present = bytes_by_server(self, kinds, &places);
        let space: Vec<u64> =
            rows.capacities.iter().zip(present).map(|(&capacity, used)| capacity.max(used)).collect();
        let program = rows.program(std::iter::empty(), regions);
        let solution = self.solution((program, &columns), kinds, &mut places, (&rows, &space));
        let total_s: f64 = now.iter().sum();
        let found = solution.filter(|solution| solution.seconds < total_s);
        if found.is_none() {
            places.iter_mut().for_each(|place| place.column = 0);
        }
        let decided = (self.sets.par_iter().zip(&places).zip(&now))
            .map(|((set, &place), &now_s)| decision(self, kinds, (set, place), now_s / total_s));
        (decided.collect(), self.joint(total_s, found, &rows))
    }

    /// The regions of the program, one for each set, and the columns of the kind that each has.
    fn regions(&self, kinds: &[KindPlan], places: &[Place]) -> (Vec<Region>, Vec<Vec<u8>>) {
        let (tiers, work) = ((self.cluster.tiers.len(), &self.tier_of[..]), self.work());
        let gain = (self.options.objective, self.options.min_gain);
        let all = self.sets.par_iter().zip(places);
        all.map(|(set, place)| kinds[place.kind as usize].region(set, gain, tiers, &work)).unzip()
    }

    /// The solution, if one is found whose files fit on every server, and its columns in `places`.
    fn solution(
        &self,
        (mut program, columns): (Program, &[Vec<u8>]),
        kinds: &[KindPlan],
        places: &mut [Place],
        (rows, space): (&Rows, &[u64]),
    ) -> Option<Solution> {
        let mut sums: Vec<f64> = rows.sums(space).into_iter().map(|bytes| bytes as f64).collect();
        let mut bound_s = None;
        for _ in 0..ATTEMPTS {
            program.rows = sums.iter().map(|&bytes| Row::Space { bytes }).collect();
            let solution = solve(&program).ok()?;
            let bound_s = *bound_s.get_or_insert(solution.bound_s);
            for ((place, columns), choice) in places.iter_mut().zip(columns).zip(&solution.choices) {
                place.column = columns[choice.column as usize];
            }
            let used = bytes_by_server(self, kinds, places);
            if used.iter().zip(space).all(|(used, space)| used <= space) {
                return Some(Solution { bound_s, ..solution });
            }
            for (sum, full) in sums.iter_mut().zip(self.fullest(&used, space)).filter(|(_, full)| *full > 1.0) {
                *sum *= SPARE / full;
            }
        }
        None
    }

    /// By tier: the part of the space that is used of the server on which it is the most.
    fn fullest(&self, used: &[u64], space: &[u64]) -> Vec<f64> {
        let mut fullest = vec![0.0f64; self.cluster.tiers.len()];
        for ((&used, &space), &tier) in used.iter().zip(space).zip(&self.tier_of) {
            let full = &mut fullest[tier as usize];
            *full = full.max(used as f64 / space.max(1) as f64);
        }
        fullest
    }

    /// The whole workload under the plan.
    fn joint(&self, now_s: f64, found: Option<Solution>, rows: &Rows) -> Joint {
        let (planned_s, bound_s, space) = match &found {
            Some(solution) => {
                let space = rows.values(self.cluster, self.servers, &solution.prices);
                (solution.seconds, solution.bound_s.min(solution.seconds), space)
            }
            None => (now_s, 0.0, Vec::new()),
        };
        let rounding_s = match self.options.objective {
            Objective::Elapsed if found.is_some() => planned_s - bound_s,
            _ => 0.0,
        };
        Joint {
            now_s,
            planned_s,
            bound_s,
            space,
            waits: Waits { rounding_s, ..Waits::default() },
            stages: Vec::new(),
            moving: None,
            curves: Vec::new(),
        }
    }
}
