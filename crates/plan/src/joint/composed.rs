//! A further candidate for every set: layouts of the regions of its files, put together.
//!
//! Each region is planned as if it were a file. All regions of all sets share the space in one
//! linear program, which may cut a region, because its work is even. So the candidates suit one
//! another; each is then judged by a replay of all requests of its set.

use stripewise_allocation::{Choice, Column, Region, solve};
use stripewise_layout::Layout;

use super::rows::Rows;
use super::set::{Set, column};
use crate::candidate::{Candidate, Method, Proposal, bytes_by_target};
use crate::choose::{Decision, decide};
use crate::evaluate::judge_among;
use crate::feasible;
use crate::options::Objective;
use crate::problem::Problem;
use crate::regions::{Part, Piece, composed, parts};
use crate::workload::FileSet;

/// Maximum number of regions of all sets together, each of which is planned like a file set. The
/// sets with the most bytes of requests are divided first.
const PARTS_MAX: usize = 64;

/// The regions of all sets.
pub fn divided(sets: &[Set<'_>], rows: &Rows) -> Vec<Divided> {
    let mut left = PARTS_MAX;
    sets.iter().map(|set| Divided::new(set, rows, &mut left)).collect()
}

/// Adds to the sets the candidates of their regions that share `space` best, bytes by server.
pub fn compose(sets: &mut [Set<'_>], divided: &[Divided], rows: &Rows, space: &[u64]) {
    let regions: Vec<Vec<Region>> = sets.iter().zip(divided).map(|(set, of)| of.regions_of(set)).collect();
    let space = rows.sums(space).into_iter().map(|bytes| bytes as f64);
    let Ok(solution) = solve(&rows.program(space, regions.iter().flatten().cloned().collect())) else { return };
    let mut choices = &solution.choices[..];
    for ((set, divided), regions) in sets.iter_mut().zip(divided).zip(&regions) {
        let (own, others) = choices.split_at(regions.len());
        choices = others;
        let is_fixed = set.is_fixed;
        let candidate = divided.candidate(&set.problem, own).filter(|it| !is_fixed && !set.has(it));
        let known = set.plans.last().map_or(0, |plan| plan.candidates.len());
        // With the present layout, as the others were.
        let judged = candidate.and_then(|new| judge_among(&set.problem, vec![new], known + 1).pop());
        judged.into_iter().for_each(|judged| set.add(judged, rows));
    }
}

/// The regions of a set's files.
#[derive(Default)]
pub struct Divided {
    /// Empty if the files are not divided.
    pub parts: Vec<Part>,
    /// By part and column of its region.
    pub layouts: Vec<Vec<Layout>>,
    /// One for each part.
    pub regions: Vec<Region>,
}

impl Divided {
    /// The regions of a set, if not more than `left` are needed; `left` is what remains then.
    fn new(set: &Set<'_>, rows: &Rows, left: &mut usize) -> Self {
        let problem = &set.problem;
        let mut divided = Self::default();
        // Layouts of private files differ from file to file; in large clusters planning takes long.
        let is_divided = *left > 0 && !set.is_fixed && !problem.set.private && !problem.is_large();
        let mut parts = if is_divided { parts(problem) } else { Vec::new() };
        if parts.len() > *left {
            parts.clear();
        }
        *left -= parts.len();
        let is_whole = parts.len() == 1;
        for mut part in parts {
            let of_whole = is_whole || part.set.groups.is_empty();
            let of_part = if of_whole { None } else { planned(problem, &part) };
            let decision = if of_whole { set.plans.last() } else { of_part.as_ref() };
            let (layouts, columns) = decision.map(|of| columns(problem, &part, of, rows)).unwrap_or_default();
            divided.layouts.push(layouts);
            divided.regions.push(Region { columns, divisible: true });
            // Its requests are not needed any more.
            part.set = FileSet::default();
            divided.parts.push(part);
        }
        let is_possible = divided.regions.iter().all(|region| !region.columns.is_empty());
        if is_possible { divided } else { Self::default() }
    }

    /// The regions as those of a program; the whole set as one region if it is not divided.
    fn regions_of(&self, set: &Set<'_>) -> Vec<Region> {
        if set.is_fixed || self.parts.is_empty() { vec![set.region()] } else { self.regions.clone() }
    }

    /// The candidate for these choices; `None` if there is none that is possible.
    pub fn candidate(&self, problem: &Problem<'_>, choices: &[Choice]) -> Option<Candidate> {
        if self.parts.is_empty() || self.parts.len() != choices.len() {
            return None;
        }
        let of_parts = self.parts.iter().zip(&self.layouts).zip(&self.regions).zip(choices);
        let pieces: Vec<Piece<'_>> =
            of_parts.map(|(((part, layouts), region), choice)| piece(part, layouts, region, choice)).collect();
        candidate(problem, &pieces)
    }
}

/// The candidate that consists of these pieces; `None` if it is not possible.
fn candidate(problem: &Problem<'_>, pieces: &[Piece<'_>]) -> Option<Candidate> {
    let layout = composed(pieces, problem.set.largest(), problem.align())?;
    let name = match layout.regions().len() {
        1 => "1 region".to_owned(),
        several => format!("{several} regions"),
    };
    let mut candidate = Candidate::single("joint", name, layout);
    candidate.notable = true;
    let mut proposal = Proposal { candidates: vec![candidate], pick: None };
    feasible::filter(problem, "joint", &mut proposal);
    proposal.candidates.pop()
}

/// A part in the layouts of a choice. If it is cut, the faster layout comes first: where the cut is
/// rounded down, it gets less of the space that it needs, not more. (If files differ in size, a
/// fraction of the largest one is not that fraction of all bytes, and the candidate may not fit.)
fn piece<'l>(part: &'l Part, layouts: &'l [Layout], region: &Region, choice: &Choice) -> Piece<'l> {
    let (other, fraction) = choice.other.unwrap_or((choice.column, 0.0));
    let mut both = vec![(other, fraction), (choice.column, 1.0 - fraction)];
    both.retain(|(_, fraction)| *fraction > 0.0);
    both.sort_by(|a, b| region.columns[a.0 as usize].seconds.total_cmp(&region.columns[b.0 as usize].seconds));
    let of = |(column, fraction): (u32, f64)| (&layouts[column as usize], fraction);
    Piece { part, layouts: both.into_iter().map(of).collect() }
}

/// A plan for a part as if it were a file of its own with all the space.
fn planned(problem: &Problem<'_>, part: &Part) -> Option<Decision> {
    let &Problem { cluster, servers, options, .. } = problem;
    decide(&Problem::new(&part.set, cluster, servers, options, part.set.total_size())).ok()
}

/// The layouts that a part may get, and their columns. Requests on a part without any take no time.
fn columns(problem: &Problem<'_>, part: &Part, decision: &Decision, rows: &Rows) -> (Vec<Layout>, Vec<Column>) {
    let objective = problem.options.objective;
    let (mut layouts, mut columns) = (Vec::new(), Vec::new());
    for judged in decision.picks.iter().map(|&pick| &decision.candidates[pick]) {
        let is_judged = judged.method == Method::Full || objective == Objective::Cost;
        if !is_judged || judged.candidate.layouts.len() != 1 || judged.candidate.overlay.is_some() {
            continue;
        }
        let all = judged.candidate.layouts.build();
        let layout_of = vec![0; part.set.files.len()];
        let bytes = bytes_by_target(&part.set.files, (&all, &layout_of), rows.capacities.len());
        let seconds = if part.set.groups.is_empty() { 0.0 } else { objective.of(judged) };
        columns.push(column(seconds, &rows.sums(&bytes)));
        layouts.extend(all);
    }
    (layouts, columns)
}
