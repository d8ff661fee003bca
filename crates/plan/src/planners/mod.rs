//! The planners, by name.

mod cache;
mod def;
mod overall;
mod psa;
mod replicas;
mod tiers;

use crate::candidate::Candidate;
use crate::error::PlanError;
use crate::problem::Problem;

pub use cache::layouts as cache_layouts;
pub use tiers::{Tiers, divide, homogeneous};

/// Proposes layouts for a file set.
pub trait Planner: Sync {
    /// What users call it.
    fn name(&self) -> &'static str;

    /// Its candidates, and which of them it picks.
    ///
    /// # Errors
    /// It cannot plan for this cluster, and why.
    fn propose(&self, problem: &Problem<'_>) -> Result<Proposal, PlanError>;

    /// Whether `auto` asks it without being told to ([`crate::Options::with`]).
    fn unasked(&self) -> bool {
        true
    }
}

/// What a planner proposes.
#[derive(Clone, Debug, Default)]
pub struct Proposal {
    /// At least one.
    pub candidates: Vec<Candidate>,
    /// The one that counts; `None`: all of them, the caller compares.
    pub pick: Option<usize>,
}

/// All planners, in the order in which they are asked.
pub const ALL: [&dyn Planner; 6] =
    [&overall::Overall, &psa::Psa, &psa::Pa, &def::Def, &replicas::Replicas, &cache::Cache];

/// Bytes for people: at most one digit after the point.
fn about(bytes: f64) -> String {
    let units = ["", "K", "M", "G", "T", "P", "E"];
    let power = (bytes.max(1.0).log2() / 10.0) as usize;
    let number = format!("{:.1}", bytes / (1u64 << (10 * power.min(6))) as f64);
    format!("{}{}", number.strip_suffix(".0").unwrap_or(&number), units[power.min(6)])
}

/// The planner with this name.
pub fn by_name(name: &str) -> Option<&'static dyn Planner> {
    ALL.into_iter().find(|planner| planner.name() == name)
}
