//! The layouts that the sets of a kind may get: what they take for a second of work, and the bytes
//! of a set in them.

use rayon::prelude::*;
use stripewise_allocation::{Column, Region};
use stripewise_cluster::Cluster;
use stripewise_layout::Layout;
use stripewise_model::Cost;

use super::division::Division;
use super::kinds::{Kind, Work, work_of};
use crate::candidate::{Candidate, Judged, Method};
use crate::choose::{Decision, present};
use crate::evaluate::{best_of, by_group, judge};
use crate::options::Objective;
use crate::present::Present;
use crate::problem::Problem;
use crate::spread::layout_of;
use crate::workload::FileSet;

/// Maximum number of layouts of a kind, the fastest ones for all its sets together.
const COLUMNS_MAX: usize = 24;

/// A layout that the sets of a kind may get.
pub struct KindColumn {
    /// The layout, judged for the pooled set.
    pub judged: Judged,
    /// By group of the kind: the seconds and the overall cost of one second of work.
    rates: Vec<(f64, Cost)>,
    /// How each of the layouts divides files.
    divisions: Vec<Division>,
}

/// What is known about a kind.
pub struct Planned {
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
        let layouts = judged.candidate.layouts.build();
        let divisions = layouts.iter().map(|layout| Division::new(layout, tier_of)).collect();
        Self { judged, rates, divisions }
    }

    /// What a set of the kind takes in this column.
    fn taken(&self, kind: &Kind, set: &FileSet, work: Work<'_>) -> Taken {
        let mut taken = Taken::default();
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
        let mut bytes = vec![0; tiers];
        let layout_of = layout_of(set, &self.judged.candidate.spread, self.divisions.len());
        for (file, layout) in set.files.iter().zip(layout_of) {
            self.divisions[layout as usize].add(file.size, &mut bytes);
        }
        bytes
    }

    /// Whether this column is never better than another one: in no group faster, and with no fewer
    /// bytes on any tier.
    fn is_needless(&self, other: &Self, set: &FileSet, tiers: usize, objective: Objective) -> bool {
        let seconds = |rate: &(f64, Cost)| match objective {
            Objective::Elapsed => rate.0,
            Objective::Cost => rate.1.total_s(),
        };
        let is_slower = self.rates.iter().zip(&other.rates).all(|(one, other)| seconds(one) >= seconds(other));
        is_slower
            && self.bytes(set, tiers).iter().zip(other.bytes(set, tiers)).all(|(one, other)| *one >= other)
    }
}

impl Planned {
    /// A kind with its present layout only.
    pub fn present(problem: &Problem<'_>, kind: Kind, tier_of: &[u32]) -> Result<Self, crate::PlanError> {
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
    pub fn with(self, problem: &Problem<'_>, decision: Decision, tier_of: &[u32], cluster: &Cluster) -> Self {
        let (kind, count) = (self.kind, decision.candidates.len() + 1);
        let objective = problem.options.objective;
        let is_judged = |judged: &Judged| judged.method == Method::Full || objective == Objective::Cost;
        let mut picks = decision.picks.clone();
        picks.retain(|&pick| {
            let judged = &decision.candidates[pick];
            is_judged(judged) && judged.candidate.overlay.is_none()
        });
        picks.sort_by(|&a, &b| {
            let seconds = |pick: usize| objective.of(&decision.candidates[pick]);
            seconds(a).total_cmp(&seconds(b))
        });
        picks.truncate(4 * COLUMNS_MAX);
        let column = |judged: &Judged| KindColumn::new(problem, &kind, judged.clone(), count, tier_of);
        let all: Vec<KindColumn> = picks.par_iter().map(|&pick| column(&decision.candidates[pick])).collect();
        let (tiers, set) = (cluster.tiers.len(), problem.set);
        let mut kept: Vec<usize> = Vec::new();
        for (index, column) in all.iter().enumerate() {
            let is_needless = kept.iter().any(|&known| column.is_needless(&all[known], set, tiers, objective));
            if !is_needless && kept.len() < COLUMNS_MAX {
                kept.push(index);
            }
        }
        // Of those that are as good and as small the rules for ties choose.
        let bytes: Vec<Vec<u64>> = all.iter().map(|column| column.bytes(set, tiers)).collect();
        let settled = |&index: &usize| {
            let is_small =
                |&other: &usize| bytes[other].iter().zip(&bytes[index]).all(|(one, most)| one <= most);
            let alike: Vec<usize> = (0..all.len()).filter(is_small).map(|other| picks[other]).collect();
            let best = best_of(problem, &decision.candidates, &alike);
            picks.iter().position(|&pick| pick == best).unwrap_or(index)
        };
        let mut kept: Vec<usize> = kept.iter().map(settled).collect();
        kept.sort_unstable();
        kept.dedup();
        let now = KindColumn::new(problem, &kind, decision.present, count, tier_of);
        let mut all: Vec<Option<KindColumn>> = all.into_iter().map(Some).collect();
        let columns = kept.into_iter().filter_map(|index| all[index].take());
        Self { kind, columns: std::iter::once(now).chain(columns).collect(), notes: decision.notes }
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

/// The bytes of a set on each tier in its present layout.
fn bytes_now(set: &FileSet, column: &KindColumn, (tiers, tier_of): (usize, &[u32])) -> Vec<u64> {
    let Present::Known { layouts, layout_of, .. } = &set.present else { return column.bytes(set, tiers) };
    let divisions: Vec<Division> = layouts.iter().map(|layout| Division::new(layout, tier_of)).collect();
    let mut bytes = vec![0; tiers];
    for file in &set.files {
        let layout = layout_of.as_ref().and_then(|of| of.get(&file.name)).copied().unwrap_or(0);
        divisions[layout as usize].add(file.size, &mut bytes);
    }
    bytes
}

/// The layouts of a set in its present state, and the index of the layout of each file.
pub fn layouts_now<'s>(set: &'s FileSet, column: &KindColumn) -> (std::borrow::Cow<'s, [Layout]>, Vec<u32>) {
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
