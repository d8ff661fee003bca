//! PSA's Algorithm 1, and PA and DEF, the schemes that it is compared with.
//!
//! PSA and PA lay a file out in two regions. Heterogeneous requests lie on all servers, with
//! stripes of h bytes on each of the M HServers and s bytes on each of the N SServers, `M·h + N·s =
//! S`. When the SServers are full, homogeneous requests follow on the HServers with stripes of S/M.
//! S is the request size that moves the most bytes; requests of other sizes are costed by their
//! real place in the layout.
//!
//! **Tie rule** (PSA and PA): of stripe pairs whose costs agree to a relative 1e-12, the one with
//! the larger h wins, because it takes less space on the SServers. With this rule the search gives
//! the paper's result, <120K,8K>.

use rayon::prelude::*;

use stripewise_cluster::size;
use stripewise_layout::constructors;

use super::tiers::{self, divide, homogeneous};
use crate::candidate::{Candidate, Proposal};
use crate::error::PlanError;
use crate::problem::Problem;
use crate::space;

/// Costs that differ by less than this fraction are equal.
const TIE: f64 = 1e-12;

/// Maximum number of stripe pairs to try; the step grows to stay below it.
const PAIRS_MAX: u64 = 4096;
/// Maximum number of stripes in the cycles of all pairs, for clusters with many servers.
const STRIPES_MAX: u64 = 1 << 20;
/// That many pairs are tried with any number of servers.
const PAIRS_LEAST: u64 = 64;

/// PSA, performance and space: h from S/(M+N) to S/M. Picks the pair with the least total cost of
/// all requests.
pub fn psa(problem: &Problem<'_>) -> Result<Proposal, PlanError> {
    let search = Search::new(problem, "psa")?;
    let pairs = search.that_there_are(search.pairs(search.even()..=search.most()))?;
    let candidates = search.candidates("PSA", &pairs)?;
    let cost_s = |candidate: &Candidate| problem.cost(candidate, pairs.len()).total_s();
    let pick = cheapest(candidates.par_iter().map(cost_s).collect());
    Ok(Proposal { candidates, pick })
}

/// PA, performance alone: any h below S/M. Picks the pair with which a heterogeneous request costs
/// least, however fast it fills the SServers.
pub fn pa(problem: &Problem<'_>) -> Result<Proposal, PlanError> {
    let search = Search::new(problem, "pa")?;
    let step = search.step(search.most());
    // PSA's grid, continued below S/(M+N). The SServers get bytes in every pair.
    let below = search.even() % step;
    let from = if below == 0 { step.min(search.most()) } else { below };
    let mut pairs = search.pairs(from..=search.most());
    pairs.retain(|pair| pair.1 > 0);
    if pairs.is_empty() {
        pairs.push(search.pair(search.even()));
    }
    let pairs = search.that_there_are(pairs)?;
    let candidates = search.candidates("PA", &pairs)?;
    let cost_s = |&pair: &(u64, u64)| {
        let heterogeneous = constructors::varied(&search.cycle(pair)).expect("a cycle of S bytes has a stripe");
        problem.cost(&Candidate::single("pa", "", heterogeneous), pairs.len()).total_s()
    };
    let pick = cheapest(pairs.par_iter().map(cost_s).collect());
    Ok(Proposal { candidates, pick })
}

/// DEF, the default layout of parallel file systems (PSA §4.1): stripes of 64 KiB over all servers
/// until one of the faster servers is full, then stripes of S/M over the M servers of the slowest
/// class.
pub fn def(problem: &Problem<'_>) -> Result<Proposal, PlanError> {
    let all: Vec<(u32, u64)> = (0..problem.servers.count() as u32).map(|target| (target, 64 << 10)).collect();
    let tiers = tiers::by_speed(problem);
    let (slowest, faster) = tiers.split_first().expect("a cluster has a tier");
    let faster: Vec<u32> = faster.iter().flat_map(|(_, targets)| targets).copied().collect();
    let layout = space::two_part(problem, &all, &faster, &homogeneous(problem, &slowest.1));
    let layout = layout.map_err(PlanError::by("def"))?;
    Ok(Proposal { candidates: vec![Candidate::single("def", "DEF", layout)], pick: Some(0) })
}

/// The index of the least cost. Among equal ones ([`TIE`]) the last, which has the largest h.
fn cheapest(costs: Vec<f64>) -> Option<usize> {
    let least = costs.iter().copied().min_by(f64::total_cmp)?;
    costs.iter().rposition(|&cost| cost <= least * (1.0 + TIE))
}

/// The search over the stripe pairs of one problem; `h` and `s` are the HServers and the SServers.
struct Search<'p> {
    problem: &'p Problem<'p>,
    scheme: &'static str,
    h: Vec<u32>,
    s: Vec<u32>,
}

impl<'p> Search<'p> {
    fn new(problem: &'p Problem<'p>, scheme: &'static str) -> Result<Self, PlanError> {
        let (h, s) = tiers::two(problem, scheme)?;
        Ok(Self { problem, scheme, h, s })
    }

    /// S/(M+N): the same stripe on all servers, at least 1 byte.
    fn even(&self) -> u64 {
        (self.problem.size / (self.h.len() + self.s.len()) as u64).max(1)
    }

    /// S/M: HServers alone.
    fn most(&self) -> u64 {
        (self.problem.size / self.h.len() as u64).max(1)
    }

    /// The step of a search over a range of `to` bytes.
    fn step(&self, to: u64) -> u64 {
        let servers = (self.h.len() + self.s.len()) as u64;
        let pairs = (STRIPES_MAX / servers).clamp(PAIRS_LEAST, PAIRS_MAX);
        let step = self.problem.options.step.max(1).max(to / pairs);
        self.problem.width_unit().map_or(step, |unit| step.next_multiple_of(unit))
    }

    /// The pairs <h, s> for every step of h in `range`, and for h = S/M.
    fn pairs(&self, range: std::ops::RangeInclusive<u64>) -> Vec<(u64, u64)> {
        let step = self.step(range.end() - range.start());
        let range = match self.problem.width_unit() {
            None => range,
            Some(_) => range.start().next_multiple_of(step)..=*range.end(),
        };
        let mut pairs: Vec<(u64, u64)> = range.step_by(step as usize).map(|h| self.pair(h)).collect();
        if pairs.last().is_none_or(|last| last.0 != self.most()) {
            pairs.push(self.pair(self.most()));
        }
        pairs
    }

    /// <h, s> with `s = (S - M·h)/N`, rounded down.
    fn pair(&self, h: u64) -> (u64, u64) {
        let rest = self.problem.size.saturating_sub(self.h.len() as u64 * h);
        (h, rest / self.s.len() as u64)
    }

    /// The pairs that are possible where a file system stripes over a pool or programs map the
    /// files: stripes are multiples of the width unit and add up to S exactly.
    fn that_there_are(&self, mut pairs: Vec<(u64, u64)>) -> Result<Vec<(u64, u64)>, PlanError> {
        let Some(unit) = self.problem.width_unit() else { return Ok(pairs) };
        let size = self.problem.size;
        let exact = |(h, s): (u64, u64)| h * self.h.len() as u64 + s * self.s.len() as u64 == size;
        pairs.retain(|&(h, s)| h.is_multiple_of(unit) && s.is_multiple_of(unit) && exact((h, s)));
        if pairs.is_empty() {
            let (size, unit) = (size::format(size), size::format(unit));
            let why = match self.problem.is_mapped() {
                true => "as files that are mapped into memory need; use --scheme overall",
                false => {
                    "which is all that the file system has over a pool; describe the servers one by one \
                     (servers = [...]), or use --scheme overall"
                }
            };
            return Err(PlanError::new(format!(
                "{}: requests of {size} do not divide over {} and {} servers in stripes that are multiples of \
                 {unit}, {why}",
                self.scheme,
                self.h.len(),
                self.s.len()
            )));
        }
        Ok(pairs)
    }

    /// One cycle of heterogeneous requests: S bytes, in the order of the targets. The remainders of
    /// the divisions go to the first servers, one byte each.
    fn cycle(&self, (h, s): (u64, u64)) -> Vec<(u32, u64)> {
        let size = self.problem.size;
        let mut cycle = if s == 0 {
            divide(&self.h, size)
        } else {
            let on_h = h * self.h.len() as u64;
            let mut cycle: Vec<(u32, u64)> = self.h.iter().map(|&target| (target, h)).collect();
            cycle.extend(divide(&self.s, size - on_h));
            cycle
        };
        cycle.sort_by_key(|stripe| stripe.0);
        cycle
    }

    /// Per pair: the layout that is heterogeneous for the first `j = ⌊C_s/s⌋` requests, then
    /// homogeneous.
    fn candidates(&self, title: &str, pairs: &[(u64, u64)]) -> Result<Vec<Candidate>, PlanError> {
        let second = homogeneous(self.problem, &self.h);
        let candidate = |&(h, s): &(u64, u64)| {
            let name = format!("{title} <{},{}>", size::format(h), size::format(s));
            let layout = space::two_part(self.problem, &self.cycle((h, s)), &self.s, &second);
            Ok(Candidate::single(self.scheme, name, layout.map_err(PlanError::by(self.scheme))?))
        };
        pairs.iter().map(candidate).collect()
    }
}
