//! The planners, by name.

mod cache;
mod overall;
mod psa;
mod regions;
mod replicas;
mod tiers;

use crate::candidate::Proposal;
use crate::error::PlanError;
use crate::problem::Problem;

pub use cache::layouts as cache_layouts;
pub(crate) use psa::def;
pub(crate) use tiers::by_speed;

/// A scheme that proposes layouts for a file set.
pub struct Planner {
    /// The name by which users select it.
    pub name: &'static str,
    /// Whether `auto` runs it even if [`crate::Options::with`] does not name it.
    pub by_default: bool,
    /// Its candidates, and the one it picks; an error if it cannot plan for the problem's cluster.
    pub propose: fn(&Problem<'_>) -> Result<Proposal, PlanError>,
}

/// All planners, in the order in which they run.
pub const ALL: [Planner; 7] = [
    Planner { name: "overall", by_default: true, propose: overall::propose },
    Planner { name: "psa", by_default: true, propose: psa::psa },
    Planner { name: "pa", by_default: true, propose: psa::pa },
    Planner { name: "def", by_default: true, propose: psa::def },
    Planner { name: "replicas", by_default: false, propose: replicas::propose },
    Planner { name: "cache", by_default: false, propose: cache::propose },
    Planner { name: "regions", by_default: false, propose: regions::propose },
];

/// The planner with this name.
pub fn by_name(name: &str) -> Option<Planner> {
    ALL.into_iter().find(|planner| planner.name == name)
}
