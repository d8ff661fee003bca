//! The selective, layout-aware cache (SLA). The files stay on the slow servers; the data that gains
//! most from the fast servers is kept there, in the layout in which it gains most.

use std::collections::HashSet;

use stripewise_cluster::{CacheMode, CopySpec, Overlay, OverlayKind, size};
use stripewise_layout::{Layout, LayoutError, constructors};

use super::overall;
use super::tiers::by_speed;
use crate::candidate::{Candidate, Proposal};
use crate::counts::group_counts;
use crate::error::PlanError;
use crate::form::{Form, Shape, about};
use crate::present::Present;
use crate::problem::Problem;
use crate::serving::Admission;
use crate::serving::cached::{CacheLayout, ExpectedCache};
use crate::space;
use crate::spread::choose_spread;

/// The fixed stripe of parallel file systems, bytes. SLA uses it for the original and for the 1-DH
/// copy.
const STRIPE: u64 = 64 << 10;

/// Proposes originals on the slowest class of servers: in their present layout, in stripes of 64
/// KiB, and in the layout of least overall cost. Each original has cache copies in 1-DH, 1-DV and
/// 2-D on the fastest class. The 2-D copy has the group count that costs least by SLA's model.
pub fn propose(problem: &Problem<'_>) -> Result<Proposal, PlanError> {
    let by_speed = by_speed(problem);
    let [(_, slow), .., (_, fast)] = &by_speed[..] else {
        let problem = "cache needs a faster class of servers than the one that the files are on, and the cluster has \
                       one class only; describe one, or use --scheme overall";
        return Err(PlanError::new(problem));
    };
    let capacity = capacity(problem, fast)?;
    let originals = originals(problem, slow)?;
    let candidates = originals.into_iter().map(|original| cached(problem, original, fast, capacity));
    let candidates = candidates.collect::<Result<_, _>>().map_err(PlanError::by("cache"))?;
    Ok(Proposal { candidates, pick: None })
}

/// Bytes that cached data may fill on each of the fast servers.
fn capacity(problem: &Problem<'_>, fast: &[u32]) -> Result<u64, PlanError> {
    let targets = problem.cluster.targets();
    let smallest = fast.iter().map(|&target| &targets[target as usize]).min_by_key(|target| target.capacity);
    let allowed = smallest.map_or(0, |target| target.capacity);
    match (problem.options.copies.cache_capacity, smallest) {
        (Some(wanted), Some(target)) if wanted > allowed => Err(PlanError::new(format!(
            "cache: {} may be filled to {} only, and {} were asked for; lower the cache's capacity, or raise \
             capacity_per_server in the cluster file",
            target.name,
            size::format(allowed),
            size::format(wanted),
        ))),
        (wanted, _) => Ok(wanted.unwrap_or(allowed)),
    }
}

/// The layouts of the original to consider: those on slow servers alone on which the files fit.
fn originals(problem: &Problem<'_>, slow: &[u32]) -> Result<Vec<Candidate>, PlanError> {
    let slow_targets: HashSet<u32> = slow.iter().copied().collect();
    let on_slow =
        |candidate: &Candidate| candidate.layouts.targets().all(|target| slow_targets.contains(&target));
    let mut originals = Vec::new();
    if let Present::Known { name, layouts, .. } = &problem.set.present
        && let [layout] = &layouts[..]
    {
        originals.push(Candidate::single("cache", name.as_str(), layout.clone()));
    }
    let striped = constructors::striped(slow, STRIPE).map_err(PlanError::by("cache"))?;
    let striped = Candidate::single("cache", Form::new(Shape::Striped(STRIPE), None), striped);
    let everywhere = vec![0; problem.set.files.len()];
    if space::fit(problem, striped.layouts.build(), &everywhere, |_, _| None).is_some() {
        originals.push(striped);
    }
    let overall = overall::propose(problem).map(|proposal| proposal.candidates).unwrap_or_default();
    let overall: Vec<Candidate> = overall.into_iter().filter(on_slow).collect();
    let cost_s = |candidate: &Candidate| problem.cost(candidate, overall.len()).total_s();
    let costs = overall.iter().map(|candidate| (cost_s(candidate), candidate));
    originals.extend(costs.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, candidate)| candidate.clone()));
    originals.retain(on_slow);
    let mut distinct: Vec<Candidate> = Vec::new();
    for original in originals {
        if distinct.iter().all(|known| known.layouts != original.layouts) {
            distinct.push(original);
        }
    }
    if distinct.is_empty() {
        return Err(PlanError::new(
            "cache: the files do not fit on the slow servers; raise capacity_per_server",
        ));
    }
    Ok(distinct)
}

/// The group counts to consider for a cache copy on `n` servers.
fn counts(problem: &Problem<'_>, n: usize) -> Vec<usize> {
    group_counts(n, &problem.sharers())
}

/// The original with its cache copies, and remarks on what the cache does.
fn cached(
    problem: &Problem<'_>,
    original: Candidate,
    fast: &[u32],
    capacity: u64,
) -> Result<Candidate, LayoutError> {
    let n = fast.len();
    let mut copies = vec![copy(problem, fast, 1)?];
    if n > 1 {
        copies.push(copy(problem, fast, n)?);
    }
    let mut best: Option<(f64, Candidate)> = None;
    // With at most two servers there is no group count between those of 1-DH and 1-DV.
    let between = counts(problem, n).into_iter().filter(|&groups| 1 < groups && groups < n);
    for groups in between.map(Some).chain([None].into_iter().filter(|_| n <= 2)) {
        let of_two_d = groups.map(|groups| copy(problem, fast, groups)).transpose()?;
        let copies = copies.iter().cloned().chain(of_two_d).collect();
        let mut candidate = with_copies(problem, &original, copies, capacity);
        let Admission { requests, effect, .. } = Admission::of(problem, &candidate).expect("it has a cache");
        if best.as_ref().is_none_or(|(least_s, _)| effect.cached_s < least_s * (1.0 - 1e-12)) {
            candidate.remarks = remarks(problem, &candidate, requests, &effect);
            best = Some((effect.cached_s, candidate));
        }
    }
    Ok(best.expect("one at least was tried").1)
}

/// The predicted cost with a single layout in the cache, for every layout that is considered for
/// it. It shows what the choice of layouts is worth.
pub fn layouts(problem: &Problem<'_>, candidate: &Candidate) -> Vec<CacheLayout> {
    let Some(Overlay { kind: OverlayKind::Cache { mode, capacity_per_server, .. }, copies, .. }) =
        &candidate.overlay
    else {
        return Vec::new();
    };
    let fast: Vec<u32> = copies.first().map(CopySpec::targets).unwrap_or_default();
    // The other modes use 1-DH alone, so there is nothing to compare.
    let counts = if *mode == CacheMode::Sla { counts(problem, fast.len()) } else { Vec::new() };
    let layout = |groups: usize| {
        let only = copy(problem, &fast, groups).ok()?;
        let (name, of_plan) = (only.name.clone(), copies.iter().any(|copy| copy.groups == only.groups));
        let alone = with_copies(problem, candidate, vec![only], *capacity_per_server);
        let cached_s = Admission::of(problem, &alone)?.effect.cached_s;
        Some(CacheLayout { name, chosen: of_plan, cached_s })
    };
    counts.into_iter().filter_map(layout).collect()
}

fn with_copies(
    problem: &Problem<'_>,
    original: &Candidate,
    copies: Vec<CopySpec>,
    capacity_per_server: u64,
) -> Candidate {
    let options = &problem.options.copies;
    let mode = options.cache_mode;
    let title = if mode == CacheMode::Sla { "cache".to_owned() } else { format!("cache ({})", mode.name()) };
    let kind = OverlayKind::Cache { mode, admission: options.cache_admission, capacity_per_server };
    original.with_copies("cache", format!("{title} over {}", original.name), problem.overlay(kind, copies))
}

/// A cache copy on `fast` in `groups` groups. 1-DH has fixed stripes, as in SLA. In the other
/// layouts every request, or every file that a single process uses, lies in one group.
fn copy(problem: &Problem<'_>, fast: &[u32], groups: usize) -> Result<CopySpec, LayoutError> {
    let name = Shape::grouped(groups, fast.len()).to_string();
    let layouts: Vec<Layout> = if groups == 1 {
        vec![constructors::striped(fast, STRIPE)?]
    } else if problem.set.private {
        let on_group = |group| constructors::striped(constructors::group_members(fast, groups, group), STRIPE);
        (0..groups).map(on_group).collect::<Result<_, _>>()?
    } else {
        vec![constructors::two_d(fast, groups, problem.size, problem.align())?]
    };
    Ok(CopySpec { name, spread: choose_spread(problem.set, layouts.len()), layouts, groups: groups as u32 })
}

fn remarks(problem: &Problem<'_>, candidate: &Candidate, requests: f64, effect: &ExpectedCache) -> Vec<String> {
    let copies: Vec<&str> = candidate.copies().iter().map(|copy| copy.name.as_str()).collect();
    let mode = problem.options.copies.cache_mode;
    let what = match mode {
        CacheMode::Nsca => "requests are cached whatever they gain",
        CacheMode::Off => "requests are cached",
        CacheMode::Sla | CacheMode::Sca => "requests are performance-critical",
    };
    vec![
        format!(
            "{:.1} % of the {what}, on {} of data of which {:.1} % fit into the cache",
            100.0 * effect.critical_requests / requests.max(f64::MIN_POSITIVE),
            about(effect.critical_bytes),
            100.0 * effect.fits,
        ),
        format!(
            "by SLA's model, without the network, the requests cost {:.3} s with the copies {} and {:.3} s without, \
             once the cache is filled: reads find in it what an earlier run like this one read",
            effect.cached_s,
            copies.join(", "),
            effect.original_s,
        ),
    ]
}
