//! The layouts that the sets of a kind may get: what they take for a second of work, and the bytes
//! of a set in them.

use std::borrow::Cow;
use std::collections::HashMap;

use rayon::prelude::*;
use stripewise_allocation::{Column, Region};
use stripewise_layout::Layout;
use stripewise_model::Cost;

use super::division::Division;
use super::kinds::{Kind, Work, work_of};
use crate::candidate::{Candidate, Judged, Method};
use crate::choose::{Decision, present};
use crate::client::CallTimes;
use crate::error::PlanError;
use crate::evaluate::{best_of, by_group, judge};
use crate::options::Objective;
use crate::present::Present;
use crate::problem::Problem;
use crate::serving::Serving;
use crate::spread::{layout_of, spread_for};
use crate::workload::FileSet;

/// Maximum number of layouts of a kind.
const COLUMNS_MAX: usize = 32;
/// Maximum number of layouts of a kind with the same parts of the files on each tier that are
/// looked at, the fastest ones for all its sets together.
const ALIKE_MAX: usize = 6;

/// A layout that the sets of a kind may get.
pub struct KindColumn {
    /// The layout, judged for the pooled set.
    pub judged: Judged,
    /// By group of the kind: the seconds and the overall cost of one second of work.
    rates: Vec<(f64, Cost)>,
    /// The mean time of the client's calls on a file.
    calls: CallTimes,
    /// How each of the layouts divides files.
    divisions: Vec<Division>,
}

/// What is known about a kind.
pub struct KindPlan {
    /// The kind.
    pub kind: Kind,
    /// The present layout first.
    pub columns: Vec<KindColumn>,
    /// Why candidates are missing.
    pub notes: Vec<String>,
}

/// What a set takes in a column.
#[derive(Clone, Copy, Default)]
pub struct Taken {
    /// Expected wall-clock time, seconds.
    pub elapsed_s: f64,
    /// The overall cost.
    pub cost: Cost,
}

impl Taken {
    /// The time or cost.
    pub fn seconds(&self, objective: Objective) -> f64 {
        match objective {
            Objective::Elapsed => self.elapsed_s,
            Objective::Cost => self.cost.total_s(),
        }
    }
}

impl KindColumn {
    fn new(problem: &Problem<'_>, kind: &Kind, judged: Judged, count: usize, tier_of: &[u32]) -> Self {
        let of_groups = match kind.is_sampled() {
            true => by_group(problem, &judged.candidate, count),
            // Nothing tells the layouts apart.
            false => Vec::new(),
        };
        let rates = (kind.work_s.iter().enumerate())
            .map(|(index, &work_s)| match of_groups.get(index) {
                Some(&(elapsed_s, cost)) => {
                    let inverse = 1.0 / work_s.max(f64::MIN_POSITIVE);
                    (elapsed_s * inverse, cost * inverse)
                }
                None => (1.0, Cost { io_s: 1.0, ..Cost::default() }),
            })
            .collect();
        let divisions = divisions(&judged.candidate.layouts.build(), tier_of);
        let calls = CallTimes::of(&Serving::new(problem, &judged.candidate));
        Self { judged, rates, calls, divisions }
    }

    /// What a set of the kind takes in this column.
    fn taken(&self, kind: &Kind, set: &FileSet, work: Work<'_>) -> Taken {
        let mut taken = Taken { elapsed_s: self.calls.seconds(&set.calls), ..Taken::default() };
        for group in &set.groups {
            let (elapsed_s, cost) = self.rates[kind.group_of(group)];
            let work_s = work_of(group, work);
            taken.elapsed_s += elapsed_s * work_s;
            taken.cost = taken.cost + cost * work_s;
        }
        taken
    }

    /// The bytes of a set on each of `tiers` tiers in this column.
    fn bytes(&self, set: &FileSet, tiers: usize) -> Vec<u64> {
        let spread = spread_for(&self.judged.candidate.spread, set);
        divided(set, &self.divisions, layout_of(set, &spread, self.divisions.len()), tiers)
    }

    /// Whether this column is in no group faster than another one.
    fn is_slower(&self, other: &Self, objective: Objective) -> bool {
        let seconds = |rate: &(f64, Cost)| match objective {
            Objective::Elapsed => rate.0,
            Objective::Cost => rate.1.total_s(),
        };
        self.rates.iter().zip(&other.rates).all(|(one, other)| seconds(one) >= seconds(other))
    }
}

impl KindPlan {
    /// A kind with its present layout only.
    pub fn present(problem: &Problem<'_>, kind: Kind, tier_of: &[u32]) -> Result<Self, PlanError> {
        let candidate = Candidate { notable: true, ..present(problem)? };
        let judged = match kind.is_sampled() {
            true => judge(problem, vec![candidate]).remove(0),
            false => Judged::unknown(candidate),
        };
        let columns = vec![KindColumn::new(problem, &kind, judged, 1, tier_of)];
        Ok(Self { kind, columns, notes: Vec::new() })
    }

    /// The kind with the candidates of a decision for the pooled set that may be best for some of
    /// its sets.
    pub fn with(self, problem: &Problem<'_>, decision: Decision, tier_of: &[u32]) -> Self {
        let (kind, count) = (self.kind, decision.candidates.len() + 1);
        let column = |judged: &Judged| KindColumn::new(problem, &kind, judged.clone(), count, tier_of);
        let picks = promising(problem, &decision, tier_of);
        let all: Vec<KindColumn> = picks.par_iter().map(|&pick| column(&decision.candidates[pick])).collect();
        let tiers = problem.cluster.tiers.len();
        let bytes: Vec<Vec<u64>> = all.iter().map(|column| column.bytes(problem.set, tiers)).collect();
        let is_small =
            |one: usize, other: usize| bytes[one].iter().zip(&bytes[other]).all(|(one, most)| one <= most);
        let objective = problem.options.objective;
        let mut kept: Vec<usize> = Vec::new();
        for index in 0..all.len() {
            let is_needless =
                |&known: &usize| is_small(known, index) && all[index].is_slower(&all[known], objective);
            if kept.len() < COLUMNS_MAX && !kept.iter().any(is_needless) {
                kept.push(index);
            }
        }
        // Of those that are as good and as small the rules for ties choose.
        let settled = |&index: &usize| {
            let alike = (0..all.len()).filter(|&other| is_small(other, index));
            let alike: Vec<usize> = alike.map(|other| picks[other]).collect();
            let best = best_of(problem, &decision.candidates, &alike);
            picks.iter().position(|&pick| pick == best).unwrap_or(index)
        };
        let mut kept: Vec<usize> = kept.iter().map(settled).collect();
        kept.sort_unstable();
        kept.dedup();
        let now = column(&decision.present);
        let mut all: Vec<Option<KindColumn>> = all.into_iter().map(Some).collect();
        let columns = kept.into_iter().filter_map(|index| all[index].take());
        Self { columns: std::iter::once(now).chain(columns).collect(), kind, notes: decision.notes }
    }

    /// What a set of the kind takes in each column.
    pub fn taken(&self, set: &FileSet, column: usize, work: Work<'_>) -> Taken {
        self.columns[column].taken(&self.kind, set, work)
    }

    /// The time (or cost) of all its sets in the present layout, seconds.
    pub fn now_s(&self, sets: &[FileSet], objective: Objective, work: Work<'_>) -> f64 {
        let of_set = |&member: &u32| self.taken(&sets[member as usize], 0, work).seconds(objective);
        self.kind.members.iter().map(of_set).sum()
    }

    /// The columns of a set that save enough, the present layout first, and the indices of the
    /// columns of the kind that these are.
    pub fn region(
        &self,
        set: &FileSet,
        (objective, min_gain): (Objective, f64),
        tiers: (usize, &[u32]),
        work: Work<'_>,
    ) -> (Region, Vec<u8>) {
        let now_s = self.taken(set, 0, work).seconds(objective);
        let (mut region, mut indices) = (Region::default(), Vec::new());
        for (index, column) in self.columns.iter().enumerate() {
            let seconds = self.taken(set, index, work).seconds(objective);
            if index == 0 || now_s > 0.0 && 1.0 - seconds / now_s >= min_gain {
                let bytes = match index {
                    0 => bytes_now(set, column, tiers),
                    _ => column.bytes(set, tiers.0),
                };
                let uses = (0..).zip(&bytes).filter(|(_, bytes)| **bytes > 0);
                let uses = uses.map(|(row, &bytes)| (row, bytes as f64)).collect();
                region.columns.push(Column { seconds, uses });
                indices.push(index as u8);
            }
        }
        (region, indices)
    }
}

/// Indices of the candidates of a decision that are worth a closer look: of those that put the same
/// parts of the files on each tier the fastest ones. First come those that are fastest of all with
/// the same parts.
fn promising(problem: &Problem<'_>, decision: &Decision, tier_of: &[u32]) -> Vec<usize> {
    let objective = problem.options.objective;
    let seconds = |pick: usize| objective.of(&decision.candidates[pick]);
    let is_judged = |&pick: &usize| {
        let judged = &decision.candidates[pick];
        (judged.method == Method::Full || objective == Objective::Cost) && judged.candidate.overlay.is_none()
    };
    let mut picks: Vec<usize> = decision.picks.iter().copied().filter(is_judged).collect();
    picks.sort_by(|&a, &b| seconds(a).total_cmp(&seconds(b)));
    let mut known: HashMap<Vec<u64>, usize> = HashMap::new();
    let ranked = |pick: usize| {
        let rank = known.entry(percents(problem, &decision.candidates[pick].candidate, tier_of)).or_default();
        *rank += 1;
        (*rank <= ALIKE_MAX).then_some((*rank, pick))
    };
    let mut ranked: Vec<(usize, usize)> = picks.into_iter().filter_map(ranked).collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().map(|(_, pick)| pick).collect()
}

/// The part of the files that a candidate puts on each tier, in percent.
fn percents(problem: &Problem<'_>, candidate: &Candidate, tier_of: &[u32]) -> Vec<u64> {
    let (set, layouts) = (problem.set, candidate.layouts.build());
    let tiers = problem.cluster.tiers.len();
    let bytes = divided(set, &divisions(&layouts, tier_of), candidate.layout_of(set), tiers);
    let percent = 0.01 * set.total_size().max(1) as f64;
    bytes.into_iter().map(|bytes| (bytes as f64 / percent).round() as u64).collect()
}

fn divisions(layouts: &[Layout], tier_of: &[u32]) -> Vec<Division> {
    layouts.iter().map(|layout| Division::new(layout, tier_of)).collect()
}

/// The bytes of a set on each of `tiers` tiers, if its files are divided like this.
fn divided(set: &FileSet, divisions: &[Division], layout_of: Vec<u32>, tiers: usize) -> Vec<u64> {
    let mut bytes = vec![0; tiers];
    for (file, layout) in set.files.iter().zip(layout_of) {
        divisions[layout as usize].add(file, &mut bytes);
    }
    bytes
}

/// The bytes of a set on each tier in its present layout.
fn bytes_now(set: &FileSet, column: &KindColumn, (tiers, tier_of): (usize, &[u32])) -> Vec<u64> {
    if !matches!(set.present, Present::Known { .. }) {
        return column.bytes(set, tiers);
    }
    let (layouts, layout_of) = layouts_now(set, column);
    divided(set, &divisions(&layouts, tier_of), layout_of, tiers)
}

/// The layouts of a set in its present state, and the index of the layout of each file.
pub fn layouts_now<'s>(set: &'s FileSet, column: &KindColumn) -> (Cow<'s, [Layout]>, Vec<u32>) {
    match &set.present {
        Present::Known { layouts, layout_of, .. } => {
            let of = |name| layout_of.as_ref().and_then(|of| of.get(name)).copied().unwrap_or(0);
            (layouts.into(), set.files.iter().map(|file| of(&file.name)).collect())
        }
        _ => {
            let candidate = &column.judged.candidate;
            let layouts = candidate.layouts.build();
            let of = layout_of(set, &candidate.spread, layouts.len());
            (layouts.into(), of)
        }
    }
}
