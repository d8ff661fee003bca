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
use stripewise_layout::{Layout, constructors};

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
    let pairs = search.that_there_are(search.below_most())?;
    let candidates = search.candidates("PA", &pairs)?;
    Ok(Proposal { candidates, pick: search.fastest(&pairs) })
}

/// DEF, the default layout of parallel file systems (PSA §4.1): stripes of 64 KiB over all servers
/// until one of the faster servers is full, then stripes of S/M over the M servers of the slowest
/// class.
pub fn def(problem: &Problem<'_>) -> Result<Proposal, PlanError> {
    let all: Vec<(u32, u64)> = (0..problem.servers.count() as u32).map(|target| (target, 64 << 10)).collect();
    let tiers = tiers::by_speed(problem);
    let (slowest, faster) = tiers.split_first().expect("a cluster has a tier");
    let faster: Vec<u32> = faster.iter().flat_map(|(_, targets)| targets).copied().collect();
    let stripes = Stripes { first: all, bounding: faster, second: homogeneous(problem, &slowest.1) };
    let layout = stripes.layout(problem).map_err(PlanError::by("def"))?;
    Ok(Proposal { candidates: vec![Candidate::single("def", "DEF", layout)], pick: Some(0) })
}

/// The index of the least cost. Among equal ones ([`TIE`]) the last, which has the largest h.
fn cheapest(costs: Vec<f64>) -> Option<usize> {
    let least = costs.iter().copied().min_by(f64::total_cmp)?;
    costs.iter().rposition(|&cost| cost <= least * (1.0 + TIE))
}

/// A layout without its boundary: `first` until a server of `bounding` is full, then `second`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stripes {
    first: Vec<(u32, u64)>,
    bounding: Vec<u32>,
    second: Vec<(u32, u64)>,
}

impl Stripes {
    /// The layout of a problem's files.
    pub fn layout(&self, problem: &Problem<'_>) -> Result<Layout, PlanError> {
        space::two_part(problem, &self.first, &self.bounding, &self.second)
    }
}

/// A stripe on an HServer and one on an SServer, bytes.
pub type Pair = (u64, u64);

/// `<h,s>`
pub fn format_pair(&(h, s): &Pair) -> String {
    format!("<{},{}>", size::format(h), size::format(s))
}

/// The search over the stripe pairs of one problem; `h` and `s` are the HServers and the SServers.
pub struct Search<'p> {
    problem: &'p Problem<'p>,
    scheme: &'static str,
    h: Vec<u32>,
    s: Vec<u32>,
}

impl<'p> Search<'p> {
    /// The search for the layout of a problem's files.
    pub fn new(problem: &'p Problem<'p>, scheme: &'static str) -> Result<Self, PlanError> {
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
    fn pairs(&self, range: std::ops::RangeInclusive<u64>) -> Vec<Pair> {
        let step = self.step(range.end() - range.start());
        let range = match self.problem.width_unit() {
            None => range,
            Some(_) => range.start().next_multiple_of(step)..=*range.end(),
        };
        let mut pairs: Vec<Pair> = range.step_by(step as usize).map(|h| self.pair(h)).collect();
        if pairs.last().is_none_or(|last| last.0 != self.most()) {
            pairs.push(self.pair(self.most()));
        }
        pairs
    }

    /// The pairs <h, s> with any h below S/M: PSA's grid, continued below S/(M+N). The SServers get
    /// bytes in every pair.
    pub fn below_most(&self) -> Vec<Pair> {
        let step = self.step(self.most());
        let below = self.even() % step;
        let from = if below == 0 { step.min(self.most()) } else { below };
        let mut pairs = self.pairs(from..=self.most());
        pairs.retain(|pair| pair.1 > 0);
        if pairs.is_empty() {
            pairs.push(self.pair(self.even()));
        }
        pairs
    }

    /// <h, s> with `s = (S - M·h)/N`, rounded down.
    pub fn pair(&self, h: u64) -> Pair {
        let rest = self.problem.size.saturating_sub(self.h.len() as u64 * h);
        (h, rest / self.s.len() as u64)
    }

    /// The pairs that are possible. Where a file system stripes over a pool or programs map the
    /// files, not every width is, and stripes must add up to S exactly.
    pub fn possible(&self, mut pairs: Vec<Pair>) -> Vec<Pair> {
        if self.problem.width_unit().is_some() {
            let sum = |(h, s): Pair| h * self.h.len() as u64 + s * self.s.len() as u64;
            let is_width = |width: u64| width == 0 || self.problem.width_above(width) == width;
            pairs.retain(|&(h, s)| is_width(h) && is_width(s) && sum((h, s)) == self.problem.size);
        }
        pairs
    }

    /// The smallest size of requests from S on for which a pair without stripes on HServers is
    /// possible.
    pub fn next_possible_size(&self) -> u64 {
        let n = self.s.len() as u64;
        n * self.problem.width_above(self.problem.size.div_ceil(n))
    }

    /// As [`Self::possible`]; an error if there are none.
    fn that_there_are(&self, pairs: Vec<Pair>) -> Result<Vec<Pair>, PlanError> {
        let pairs = self.possible(pairs);
        if pairs.is_empty() {
            let size = size::format(self.problem.size);
            let why = match self.problem.systems().next() {
                Some(system) if !self.problem.is_mapped() => format!(
                    ": {}; describe the servers one by one (servers = [...]), or use --scheme overall",
                    system.width_rule()
                ),
                _ => format!(
                    " in stripes that are multiples of {}, as files that are mapped into memory need; use --scheme overall",
                    size::format(self.problem.align())
                ),
            };
            return Err(PlanError::new(format!(
                "{}: requests of {size} do not divide over {} and {} servers{why}",
                self.scheme,
                self.h.len(),
                self.s.len()
            )));
        }
        Ok(pairs)
    }

    /// One cycle of heterogeneous requests: S bytes, in the order of the targets. The remainders of
    /// the divisions go to the first servers, one byte each.
    fn cycle(&self, (h, s): Pair) -> Vec<(u32, u64)> {
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

    /// The index of the pair with which heterogeneous requests cost least.
    pub fn fastest(&self, pairs: &[Pair]) -> Option<usize> {
        let cost_s = |&pair: &Pair| {
            let heterogeneous =
                constructors::varied(&self.cycle(pair)).expect("a cycle of S bytes has a stripe");
            self.problem.cost(&Candidate::single(self.scheme, "", heterogeneous), pairs.len()).total_s()
        };
        cheapest(pairs.par_iter().map(cost_s).collect())
    }

    /// Heterogeneous requests, then homogeneous ones.
    pub fn stripes(&self, pair: Pair) -> Stripes {
        let second = homogeneous(self.problem, &self.h);
        Stripes { first: self.cycle(pair), bounding: self.s.clone(), second }
    }

    /// Per pair: the layout that is heterogeneous for the first `j = ⌊C_s/s⌋` requests, then
    /// homogeneous.
    fn candidates(&self, title: &str, pairs: &[Pair]) -> Result<Vec<Candidate>, PlanError> {
        let candidate = |pair: &Pair| {
            let layout = self.stripes(*pair).layout(self.problem).map_err(PlanError::by(self.scheme))?;
            Ok(Candidate::single(self.scheme, format!("{title} {}", format_pair(pair)), layout))
        };
        pairs.iter().map(candidate).collect()
    }
}
