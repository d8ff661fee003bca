//! Regions of files with stripes of their own, after the published idea of HARL
//! (`docs/papers.md`, "HARL").
//!
//! Files are divided where the sizes of requests change. Each region gets the stripe pair with
//! which its heterogeneous requests cost least, as in PA. Neighbors with the same stripes become
//! one region. Every region has its share of the space in proportion to its size, like a file of
//! its own. Where that is full it goes on in homogeneous stripes.

mod division;
#[cfg(test)]
mod tests;

use stripewise_cluster::size;
use stripewise_layout::Layout;

use super::psa::{Pair, Search, Stripes, format_pair};
use crate::candidate::{Candidate, Proposal};
use crate::error::PlanError;
use crate::form::about;
use crate::problem::Problem;
use crate::regions::{Part, Piece, composed, divided};

const SCHEME: &str = "regions";

/// Proposes the layout of all regions together.
pub fn propose(problem: &Problem<'_>) -> Result<Proposal, PlanError> {
    let regions = regions(problem)?;
    let starts: Vec<u64> = regions.iter().map(|region| region.start).collect();
    let parts = divided(problem.set, &starts);
    let layout = |(part, region): (&Part, &Region)| region.stripes.layout(&of_part(problem, part));
    let layouts: Result<Vec<Layout>, PlanError> = parts.iter().zip(&regions).map(layout).collect();
    let layouts = layouts.map_err(PlanError::by(SCHEME))?;
    let piece = |(part, layout)| Piece { part, layouts: vec![(layout, 1.0)] };
    let pieces: Vec<Piece<'_>> = parts.iter().zip(&layouts).map(piece).collect();
    let layout = composed(&pieces, problem.set.largest(), problem.align());
    let layout = layout.ok_or_else(|| PlanError::new("regions: the regions do not make up one layout"))?;
    let pairs: Vec<String> = regions.iter().map(|region| format_pair(&region.pair)).collect();
    let mut candidate = Candidate::single(SCHEME, format!("{SCHEME} {}", pairs.join(" ")), layout);
    candidate.remarks.push(remark(&regions));
    Ok(Proposal { candidates: vec![candidate], pick: Some(0) })
}

/// A region of all files of a set.
struct Region {
    /// First byte.
    start: u64,
    /// The request size that moves the most bytes.
    size: u64,
    pair: Pair,
    stripes: Stripes,
}

/// The regions in file order; neighbors have different stripes.
fn regions(problem: &Problem<'_>) -> Result<Vec<Region>, PlanError> {
    let mut regions: Vec<Region> = Vec::new();
    for part in divided(problem.set, &division::starts(problem)) {
        let region = region(problem, &part)?;
        if regions.last().is_none_or(|last| last.stripes != region.stripes) {
            regions.push(region);
        }
    }
    Ok(regions)
}

/// The region with the stripe pair that is best for its requests.
fn region(problem: &Problem<'_>, part: &Part) -> Result<Region, PlanError> {
    let own = of_part(problem, part);
    let exact = Search::new(&own, SCHEME)?;
    // If no stripes of whole units add up to a request, a turn is somewhat longer than one.
    let wider = Problem { size: exact.next_possible_size(), ..of_part(problem, part) };
    let search = if pairs(&exact).is_empty() { Search::new(&wider, SCHEME)? } else { exact };
    let pairs = pairs(&search);
    let pair = pairs[search.fastest(&pairs).expect("there is a pair")];
    Ok(Region { start: part.start, size: own.size, pair, stripes: search.stripes(pair) })
}

/// The pairs to try, from no stripes on HServers on. The SServers get bytes in every pair.
fn pairs(search: &Search<'_>) -> Vec<Pair> {
    let mut pairs = vec![search.pair(0)];
    pairs.retain(|pair| pair.1 > 0);
    pairs.extend(search.below_most());
    search.possible(pairs)
}

/// The problem of a part of the files, as if it were files of its own among those of the plan.
fn of_part<'p>(problem: &Problem<'p>, part: &'p Part) -> Problem<'p> {
    let &Problem { cluster, servers, options, plan_bytes, .. } = problem;
    Problem::new(&part.set, cluster, servers, options, plan_bytes)
}

fn remark(regions: &[Region]) -> String {
    let of_region =
        |region: &Region| format!("{} from {} on", size::format(region.size), about(region.start as f64));
    let all: Vec<String> = regions.iter().map(of_region).collect();
    format!("the main size of requests is {}", all.join(", "))
}
