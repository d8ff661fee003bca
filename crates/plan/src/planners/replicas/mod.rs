//! Hybrid replication (CIL §5): several copies with different layouts; the cheapest copy serves
//! each request.

mod search;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use rayon::prelude::*;
use stripewise_cluster::{CopySpec, MAX_COPIES, OverlayKind};

use super::{overall, psa};
use crate::candidate::{Candidate, Judged, Placement, Proposal, bytes_by_target};
use crate::error::PlanError;
use crate::evaluate::{best_of, judge};
use crate::form::about;
use crate::mapping::Mapped;
use crate::present::Present;
use crate::problem::Problem;
use crate::serving::Classes;
use crate::workload::{Group, Request};
use search::{Found, best_set};

/// Approximate number of sampled requests, over all groups.
const REQUESTS: usize = 1 << 14;
/// Minimum number of sampled requests of a group.
const GROUP_LEAST: usize = 16;
/// Neighboring requests per window of a sample.
const WINDOW: usize = 128;

/// Considers, for every allowed number of copies, the cheapest set of the other planners' layouts.
/// Picks the smallest of these sets such that no larger one saves at least
/// [`crate::Options::min_gain`] more.
pub fn propose(problem: &Problem<'_>) -> Result<Proposal, PlanError> {
    let singles = singles(problem)?;
    let rows = rows(problem, &singles);
    let space = Space::of(problem, &singles);
    let most = problem.options.copies.most.clamp(1, MAX_COPIES);
    let mut sets = sets(&rows, most, &space);
    let judged = judge(problem, singles.clone());
    let picks: Vec<usize> = (0..judged.len()).collect();
    let best = best_of(problem, &judged, &picks);
    // The formula may be wrong about the best single layout, so the set that complements it
    // best is judged, too.
    if let Some(largest) = sets.last().map(|set| set.members.len()) {
        let with_best = |set: &[usize]| space.fits(set) && (set.contains(&best) || set.len() < largest);
        sets.extend(best_set(&rows, largest, space.work(), with_best));
    }
    let mut candidates = vec![singles[best].clone()];
    for found in &sets {
        let candidate = together(problem, &singles, &judged, found);
        if candidates.iter().all(|known| known.name != candidate.name) {
            candidates.push(candidate);
        }
    }
    let judged = judge(problem, candidates.clone());
    let pick = fewest_worthwhile(problem, &judged);
    for (candidate, of_set) in candidates.iter_mut().zip(&judged).skip(1) {
        candidate.remarks.splice(0..0, [saving(problem, &judged[0], of_set), upkeep(of_set)]);
    }
    candidates[0].scheme = "replicas";
    candidates[0].remarks = vec![not_worthwhile(problem, &judged)];
    Ok(Proposal { candidates, pick: Some(pick) })
}

/// Per candidate: the cost of every row, seconds. A row is all requests of a group that begin in
/// the same regions of all candidates' layouts. The same copy serves them, whichever candidates
/// become copies ([`Classes`]).
fn rows(problem: &Problem<'_>, candidates: &[Candidate]) -> Vec<Vec<f64>> {
    // Candidates of one region do not distinguish requests.
    let parted = candidates.iter().filter(|candidate| candidate.layouts.have_regions());
    let parted: Vec<Placement<'_>> = parted.map(|candidate| candidate.original(problem.set)).collect();
    let samples: Vec<(&Group, Cow<'_, [Request]>, Classes)> = (problem.set.groups.iter())
        .zip(samples(problem, candidates))
        .map(|(group, sample)| {
            let classes = Classes::of(&sample, &parted);
            (group, sample, classes)
        })
        .collect();
    let of_candidate = |candidate: &Candidate| -> Vec<f64> {
        let copy = candidate.original(problem.set);
        let of_group = |(group, sample, classes): &(&Group, Cow<'_, [Request]>, Classes)| {
            let costs = Mapped::new(sample, &copy).costs(group, problem.servers);
            let weight = group.weight(sample.len());
            classes.sums(&costs).into_iter().map(|sum_s| weight * sum_s).collect::<Vec<f64>>()
        };
        samples.iter().flat_map(of_group).collect()
    };
    candidates.par_iter().map(of_candidate).collect()
}

/// By group: a sample with a bounded number of pieces, whichever candidate it is mapped to. The
/// same requests are costed for all candidates, because their costs are compared row by row.
fn samples<'s>(problem: &Problem<'s>, candidates: &[Candidate]) -> Vec<Cow<'s, [Request]>> {
    let groups = &problem.set.groups;
    let of_each = (REQUESTS / groups.len().max(1)).max(GROUP_LEAST);
    let mut samples: Vec<Cow<'_, [Request]>> =
        groups.iter().map(|group| group.windows(of_each, WINDOW)).collect();
    for candidate in candidates.iter().filter(|_| problem.is_large()) {
        let copy = [candidate.original(problem.set)];
        for (group, sample) in groups.iter().zip(&mut samples) {
            *sample = problem.bounded_windows(group, &copy, sample.len(), WINDOW.min(sample.len()));
        }
    }
    samples
}

/// The best set of every size from two on, as long as one more copy makes any request cheaper.
fn sets(rows: &[Vec<f64>], most: usize, space: &Space) -> Vec<Found> {
    let mut sets: Vec<Found> = Vec::new();
    let mut least =
        best_set(rows, 1, space.work(), |set| space.fits(set)).map_or(f64::INFINITY, |single| single.total);
    for copies in 2..=most {
        match best_set(rows, copies, space.work(), |set| space.fits(set)) {
            Some(found) if found.total < least * (1.0 - 1e-9) => {
                least = found.total;
                sets.push(found);
            }
            _ => break,
        }
    }
    sets
}

/// The layouts that may be copies: all of `overall`'s, and the picks of the other planners.
fn singles(problem: &Problem<'_>) -> Result<Vec<Candidate>, PlanError> {
    let mut singles = Vec::new();
    for propose in [overall::propose, psa::psa, psa::pa, psa::def] {
        match propose(problem) {
            Ok(Proposal { mut candidates, pick: Some(pick) }) => singles.push(candidates.swap_remove(pick)),
            Ok(Proposal { candidates, pick: None }) => singles.extend(candidates),
            // Some planners need exactly two classes of servers.
            Err(_) => {}
        }
    }
    if singles.is_empty() {
        return Err(PlanError::new("replicas: no layout fits on the servers; raise capacity_per_server"));
    }
    let mut distinct: Vec<Candidate> = Vec::with_capacity(singles.len());
    for single in singles {
        if !distinct.iter().any(|known| known.layouts == single.layouts && known.spread == single.spread) {
            distinct.push(single);
        }
    }
    Ok(distinct)
}

/// Index of the candidate with the fewest copies such that no other is better by more than
/// `min_gain`.
fn fewest_worthwhile(problem: &Problem<'_>, judged: &[Judged]) -> usize {
    let seconds = |index: usize| problem.options.objective.of(&judged[index]);
    let mut order: Vec<usize> = (0..judged.len()).collect();
    order.sort_by_key(|&index| judged[index].candidate.copies().len());
    let least = order.iter().copied().min_by(|&a, &b| seconds(a).total_cmp(&seconds(b))).unwrap_or(0);
    let enough = |index: &usize| seconds(*index) * (1.0 - problem.options.min_gain) <= seconds(least);
    order.into_iter().find(enough).unwrap_or(least)
}

/// Combines the members of a set into one candidate. The original is the present layout if that is
/// a member, else the member that is best by itself.
fn together(problem: &Problem<'_>, singles: &[Candidate], judged: &[Judged], found: &Found) -> Candidate {
    let is_present = |member: &usize| match &problem.set.present {
        Present::Known { layouts, layout_of: Some(_), .. } => singles[*member].layouts == layouts[..].into(),
        _ => false,
    };
    let mut members = found.members.clone();
    let seconds = |member: &usize| problem.options.objective.of(&judged[*member]);
    members.sort_by(|a, b| {
        is_present(b).cmp(&is_present(a)).then(seconds(a).total_cmp(&seconds(b))).then(a.cmp(b))
    });
    let copy = |&member: &usize| {
        let Candidate { name, layouts, spread, .. } = singles[member].clone();
        CopySpec { name, layouts: layouts.build(), spread, groups: 1 }
    };
    let names: Vec<&str> = members.iter().map(|&member| singles[member].name.as_str()).collect();
    let original = &singles[members[0]];
    let overlay = problem.overlay(OverlayKind::Replicas, members[1..].iter().map(copy).collect());
    let together = original.with_copies("replicas", format!("replicas {}", names.join(" + ")), overlay);
    Candidate { remarks: if found.exact { Vec::new() } else { vec![CUT_SHORT.to_owned()] }, ..together }
}

const CUT_SHORT: &str = "there are too many sets of layouts to try them all: another one may be better";

fn saving(problem: &Problem<'_>, single: &Judged, of_set: &Judged) -> String {
    let (one, several) = (problem.options.objective.of(single), problem.options.objective.of(of_set));
    let saved = 100.0 * (1.0 - several / one.max(f64::MIN_POSITIVE));
    let less = if saved < 0.0 { "more" } else { "less" };
    format!(
        "{} copies take {:.1} % {less} {} than one copy in the best single layout, {} ({several:.3} s instead of {one:.3} s)",
        of_set.candidate.copies().len() + 1,
        saved.abs(),
        problem.options.objective.name(),
        single.candidate.name,
    )
}

fn upkeep(of_set: &Judged) -> String {
    let background = of_set.background;
    let overlay = of_set.candidate.overlay.as_ref();
    if background.bytes == 0 {
        return "nothing is written, so nothing has to be copied between the copies once they are made"
            .to_owned();
    }
    let close = match overlay.is_some_and(|overlay| overlay.lazy_close) {
        true => "close does not wait for that, and it is not counted in the elapsed time",
        false => "close waits for that, and it is counted in the elapsed time",
    };
    format!(
        "what is written is copied to the other copies in the background: {}, {:.3} s of the busiest server; {close}",
        about(background.bytes as f64),
        background.seconds,
    )
}

fn not_worthwhile(problem: &Problem<'_>, judged: &[Judged]) -> String {
    let seconds = |judged: &Judged| problem.options.objective.of(judged);
    let sets = judged.iter().skip(1).min_by(|a, b| seconds(a).total_cmp(&seconds(b)));
    match sets {
        None => "no second copy that fits on the servers would make any request cheaper".to_owned(),
        Some(best) => format!(
            "more copies are not worth it: {}; a change must save {:.1} %; to have them anyway: --with replicas --scheme \"{}\"",
            saving(problem, &judged[0], best),
            100.0 * problem.options.min_gain,
            best.candidate.name,
        ),
    }
}

/// The space that every candidate takes on the servers.
struct Space {
    /// By candidate and target, bytes.
    used: Vec<Vec<u64>>,
    /// By target: bytes that the files of the set may fill.
    allowed: Vec<u64>,
}

impl Space {
    fn of(problem: &Problem<'_>, candidates: &[Candidate]) -> Self {
        let servers = problem.servers.count();
        let used = |candidate: &Candidate| {
            let layout_of = candidate.layout_of(problem.set);
            bytes_by_target(&problem.set.files, (&candidate.layouts.build(), &layout_of), servers)
        };
        Self { used: candidates.iter().map(used).collect(), allowed: problem.space_for_set() }
    }

    /// Number of additions that [`Space::fits`] takes for each member of a set.
    fn work(&self) -> u64 {
        self.allowed.len() as u64
    }

    fn fits(&self, set: &[usize]) -> bool {
        let here = |target: usize| set.iter().fold(0u64, |sum, &c| sum.saturating_add(self.used[c][target]));
        self.allowed.iter().enumerate().all(|(target, &allowed)| here(target) <= allowed)
    }
}
