//! DEF: the default layout of parallel file systems (PSA §4.1).

use super::{Planner, Proposal, Tiers, homogeneous};
use crate::candidate::Candidate;
use crate::error::PlanError;
use crate::problem::Problem;
use crate::space;

/// DEF's fixed stripe, bytes.
const STRIPE: u64 = 64 << 10;

/// Fixed stripes of 64 KiB over all servers until one of the faster servers is full, then stripes
/// of S/M over the M servers of the slowest class.
pub struct Def;

impl Planner for Def {
    fn name(&self) -> &'static str {
        "def"
    }

    fn propose(&self, problem: &Problem<'_>) -> Result<Proposal, PlanError> {
        let tiers = Tiers::of(problem);
        let all: Vec<(u32, u64)> = (0..problem.servers.count() as u32).map(|target| (target, STRIPE)).collect();
        let (slowest, faster) = tiers.by_speed.split_first().expect("a cluster has a tier");
        let faster: Vec<u32> = faster.iter().flat_map(|(_, targets)| targets).copied().collect();
        let layout = space::two_part(problem, &all, &faster, &homogeneous(problem, &slowest.1));
        let layout = layout.map_err(|error| PlanError::new(format!("def: {error}")))?;
        Ok(Proposal { candidates: vec![Candidate::single("def", "DEF", layout)], pick: Some(0) })
    }
}
