//! What sets may get if a tier has another size.

use std::collections::HashSet;

use stripewise_allocation::Region;
use stripewise_layout::Layout;

use super::sizes::{Step, steps};
use super::tier::Tier;
use crate::candidate::{Candidate, Judged, Method};
use crate::evaluate::judge_among;
use crate::feasible;
use crate::joint::composed::Divided;
use crate::joint::set::{Set, column};
use crate::joint::space::needed;
use crate::layouts::Layouts;
use crate::options::Objective;
use crate::planners;
use crate::problem::Problem;
use crate::regions::{Outline, Part, outline};
use crate::servers::Servers;
use crate::workload::FileSet;

/// Number of candidates that do not fit now and are judged as if they did: of those on the tier
/// alone, and of those on several tiers. They are the fastest ones in their present form.
const ENTIRE: [usize; 2] = [3, 1];

/// The largest file has at least so many stripe cycles of a fine layout.
const FINE: u64 = 128;
/// Layouts count as equally even over the servers if no server has more bytes than in the other
/// one by this part.
const UNEVEN: u64 = 64;

/// A layout that a set may get.
pub struct Alternative {
    /// The time (or cost).
    pub seconds: f64,
    /// The bytes of each row of the program.
    rows: Vec<u64>,
    /// The bytes on each server of the tier.
    pub on_tier: Vec<u64>,
    /// The layout, if a part of the files can have it: it is a single one, of one region.
    layout: Option<Layout>,
    /// That layout is so fine that it divides a part over the servers as it does the whole.
    is_fine: bool,
}

impl Alternative {
    fn new(set: &Set<'_>, (candidate, seconds): (&Candidate, f64), tier: &Tier<'_>) -> Self {
        let bytes = needed(&set.problem, candidate);
        let layouts = &candidate.layouts;
        let is_even = layouts.len() == 1 && !layouts.have_regions() && candidate.overlay.is_none();
        let layout = if is_even && is_divisible(&set.problem) { layouts.first() } else { None };
        let most = set.problem.set.largest() / FINE;
        let is_fine = layout.as_ref().is_some_and(|layout| layout.regions()[0].cycle_len() <= most);
        Self { seconds, rows: tier.rows.sums(&bytes), on_tier: tier.on_it(&bytes), layout, is_fine }
    }

    /// Nothing at all.
    fn none(tier: &Tier<'_>) -> Self {
        let bytes = vec![0; tier.servers.count()];
        Self {
            seconds: 0.0,
            rows: tier.rows.sums(&bytes),
            on_tier: tier.on_it(&bytes),
            layout: None,
            is_fine: false,
        }
    }

    /// Both together.
    fn with(self, other: &Self) -> Self {
        let sum = |one: Vec<u64>, other: &[u64]| -> Vec<u64> {
            one.iter().zip(other).map(|(one, other)| one.saturating_add(*other)).collect()
        };
        let (rows, on_tier) = (sum(self.rows, &other.rows), sum(self.on_tier, &other.on_tier));
        Self { seconds: self.seconds + other.seconds, rows, on_tier, layout: None, is_fine: false }
    }

    /// Whether it takes no more time than another one, and hardly more of any row, and is as fine.
    fn is_as_good_as(&self, other: &Self) -> bool {
        let is_no_more = |(one, other): (&u64, &u64)| *one <= other.saturating_add(other / UNEVEN);
        self.seconds <= other.seconds
            && self.is_fine >= other.is_fine
            && self.rows.iter().zip(&other.rows).all(is_no_more)
    }
}

/// Whether parts of the files can have layouts of their own, as in [`composed`].
fn is_divisible(problem: &Problem<'_>) -> bool {
    !problem.set.private && !problem.is_large()
}

/// The alternatives as columns of the program.
pub fn region(alternatives: &[Alternative]) -> Region {
    let columns = alternatives.iter().map(|it| column(it.seconds, &it.rows)).collect();
    Region { columns, divisible: false }
}

/// What more and more space of the tier saves a part of the files, which has these fractions of the
/// bytes and of the work.
pub fn steps_of<'a>(
    alternatives: impl Iterator<Item = &'a Alternative>,
    tier: &Tier<'_>,
    (bytes, work): (f64, f64),
) -> Vec<Step> {
    let scaled = |it: &Alternative| (tier.size_for(&it.on_tier) as f64 * bytes, it.seconds * work);
    steps(alternatives.map(scaled).collect())
}

/// A set that may move.
pub struct Member<'s, 'p> {
    pub set: &'s Set<'p>,
    /// None of them is as good as another one.
    pub alternatives: Vec<Alternative>,
    /// The layouts that were judged.
    known: HashSet<Layouts>,
    /// The parts of the files.
    parts: Vec<Outline>,
}

impl<'s, 'p> Member<'s, 'p> {
    /// A set with its options, and those that only other sizes of the tier make possible.
    pub fn new(set: &'s Set<'p>, tier: &Tier<'_>) -> Self {
        let options = set.options.iter().enumerate();
        let options = options.map(|(index, option)| (set.candidate(index), option.seconds));
        let entire = entire(set, tier);
        let entire = entire.iter().map(|judged| (&judged.candidate, set.problem.options.objective.of(judged)));
        let all = options.chain(spare(set, tier)).chain(entire.filter(|(_, seconds)| gains(set, *seconds)));
        let all: Vec<(&Candidate, f64)> = all.collect();
        let known = all.iter().map(|(candidate, _)| candidate.layouts.clone()).collect();
        let alternatives = pruned(all.into_iter().map(|it| Alternative::new(set, it, tier)).collect());
        let parts = if is_divisible(&set.problem) { outline(&set.problem) } else { Vec::new() };
        Self { set, alternatives, known, parts }
    }

    /// Joins the parts if there are more than `most`. Returns how many there are.
    pub fn divide(&mut self, most: usize) -> usize {
        if self.parts.len() > most.max(1) {
            self.parts = vec![Outline { start: 0, end: None, work: 1.0, bytes: 1.0 }];
        }
        self.parts.len()
    }

    /// The parts, each in any layout, or any fine one, that the whole files may have: its time is
    /// in proportion to its work, and its bytes to its size.
    pub fn evenly(&self, is_fine: bool) -> Divided {
        let layouts: Vec<&Alternative> =
            self.layouts().into_iter().filter(|it| it.is_fine >= is_fine).collect();
        if layouts.len() < 2 {
            return Divided::default();
        }
        let region = |part: &Outline| {
            let scaled = |it: &&Alternative| {
                let mut column = column(it.seconds * part.work, &it.rows);
                column.uses.iter_mut().for_each(|(_, used)| *used *= part.bytes);
                column
            };
            Region { columns: layouts.iter().map(scaled).collect(), divisible: true }
        };
        let part = |of: &Outline| Part { start: of.start, end: of.end, set: FileSet::default() };
        let own: Vec<Layout> = layouts.iter().filter_map(|it| it.layout.clone()).collect();
        Divided {
            parts: self.parts.iter().map(part).collect(),
            layouts: vec![own; self.parts.len()],
            regions: self.parts.iter().map(region).collect(),
        }
    }

    /// What more and more space of the tier saves, part by part.
    pub fn steps(&self, tier: &Tier<'_>) -> Vec<Step> {
        let layouts = self.layouts();
        if self.parts.is_empty() || layouts.len() < 2 {
            return steps_of(self.alternatives.iter(), tier, (1.0, 1.0));
        }
        let of = |part: &Outline| steps_of(layouts.iter().copied(), tier, (part.bytes, part.work));
        self.parts.iter().flat_map(of).collect()
    }

    /// The alternatives that parts can have.
    fn layouts(&self) -> Vec<&Alternative> {
        self.alternatives.iter().filter(|it| it.layout.is_some()).collect()
    }

    /// Judges more candidates, and adds those that gain.
    pub fn add(&mut self, mut candidates: Vec<Candidate>, tier: &Tier<'_>) {
        candidates.retain(|candidate| self.known.insert(candidate.layouts.clone()));
        let of = |judged: &Judged| self.set.problem.options.objective.of(judged);
        let judged = judged(self.set, candidates);
        let gain = judged.iter().filter(|judged| gains(self.set, of(judged)));
        let new = gain.map(|judged| Alternative::new(self.set, (&judged.candidate, of(judged)), tier));
        let all = std::mem::take(&mut self.alternatives).into_iter().chain(new).collect();
        self.alternatives = pruned(all);
    }
}

/// What the sets that stay where they are may get, together: their present layouts, or layouts
/// without the tier.
pub fn resting(sets: &[&Set<'_>], tier: &Tier<'_>) -> Vec<Alternative> {
    let stays = |set: &Set<'_>| Alternative::new(set, (set.candidate(0), set.options[0].seconds), tier);
    let leaves = |set: &Set<'_>| match stays(set) {
        stays if stays.on_tier.iter().all(|&bytes| bytes == 0) => Some(stays),
        _ => spare(set, tier).map(|spare| Alternative::new(set, spare, tier)),
    };
    let sum = |sum: Alternative, one: Option<Alternative>| Some(sum.with(&one?));
    let staying = sets.iter().map(|set| Some(stays(set))).try_fold(Alternative::none(tier), sum);
    let leaving = sets.iter().map(|set| leaves(set)).try_fold(Alternative::none(tier), sum);
    pruned([staying, leaving].into_iter().flatten().collect())
}

/// The alternatives of which none is as good as another one, the fastest first.
fn pruned(mut all: Vec<Alternative>) -> Vec<Alternative> {
    all.sort_by(|one, other| one.seconds.total_cmp(&other.seconds));
    let mut kept: Vec<Alternative> = Vec::new();
    for one in all {
        if !kept.iter().any(|known| known.is_as_good_as(&one)) {
            kept.push(one);
        }
    }
    kept
}

/// Whether a time is worth a change.
fn gains(set: &Set<'_>, seconds: f64) -> bool {
    seconds <= set.options[0].seconds * (1.0 - set.problem.options.min_gain)
}

/// The fastest candidate that does not use the tier, and its time: files that must leave the tier
/// get it even if it saves too little for a change, and then it counts as saving nothing.
fn spare<'s>(set: &'s Set<'_>, tier: &Tier<'_>) -> Option<(&'s Candidate, f64)> {
    let objective = set.problem.options.objective;
    let is_off = |judged: &&Judged| judged.candidate.layouts.targets().all(|it| !tier.targets.contains(&it));
    let all = competing(set).filter(is_off).map(|judged| (&judged.candidate, objective.of(judged)));
    let (candidate, seconds) = all.min_by(|one, other| one.1.total_cmp(&other.1))?;
    Some((candidate, seconds.max(set.options[0].seconds)))
}

/// The candidates of a set with all of the space, as far as their time is known.
fn competing<'s>(set: &'s Set<'_>) -> impl Iterator<Item = &'s Judged> {
    let plan = set.plans.last();
    let all = plan.into_iter().flat_map(|plan| plan.picks.iter().map(|&pick| &plan.candidates[pick]));
    all.filter(|judged| judged.method == Method::Full || set.problem.options.objective == Objective::Cost)
}

/// Candidates that do not fit now, in a tier in which they do.
fn entire(set: &Set<'_>, tier: &Tier<'_>) -> Vec<Judged> {
    let objective = set.problem.options.objective;
    let mut cut: Vec<&Judged> = competing(set).filter(|it| !it.candidate.form.overflow.is_empty()).collect();
    cut.sort_by(|one, other| objective.of(one).total_cmp(&objective.of(other)));
    let on = [Some(tier.name), None].into_iter().zip(ENTIRE);
    let titles: Vec<String> = on
        .flat_map(|(name, count)| {
            let is_there = |it: &&&Judged| it.candidate.form.tier.as_deref() == name;
            cut.iter().filter(is_there).take(count).map(|it| it.candidate.form.title()).collect::<Vec<_>>()
        })
        .collect();
    if titles.is_empty() {
        return Vec::new();
    }
    let bytes = set.problem.set.total_size();
    let mut servers: Servers = tier.servers.clone();
    servers.capacities[tier.targets.start as usize..tier.targets.end as usize].fill(bytes);
    let problem = Problem::new(set.problem.set, tier.cluster, &servers, set.problem.options, bytes);
    let Some(Ok(mut proposal)) = planners::by_name("overall").map(|it| (it.propose)(&problem)) else {
        return Vec::new();
    };
    proposal.candidates.retain(|it| it.form.overflow.is_empty() && titles.contains(&it.form.title()));
    feasible::filter(&problem, "overall", &mut proposal);
    judged(set, proposal.candidates)
}

/// Judges candidates by the requests by which those of the set were judged.
fn judged(set: &Set<'_>, candidates: Vec<Candidate>) -> Vec<Judged> {
    let known = set.plans.last().map_or(0, |plan| plan.candidates.len());
    let count = known + candidates.len();
    judge_among(&set.problem, candidates, count)
}
