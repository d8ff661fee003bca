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

/// A scheme that proposes layouts for a file set.
pub trait Planner: Sync {
    /// The name by which users select it.
    fn name(&self) -> &'static str;

    /// Its candidates, and the one it picks.
    ///
    /// # Errors
    /// The planner cannot plan for this cluster; the text says why.
    fn propose(&self, problem: &Problem<'_>) -> Result<Proposal, PlanError>;

    /// Whether `auto` runs it by default. The others run only if [`crate::Options::with`] names
    /// them.
    fn unasked(&self) -> bool {
        true
    }
}

/// The candidates of a planner.
#[derive(Clone, Debug, Default)]
pub struct Proposal {
    /// At least one candidate.
    pub candidates: Vec<Candidate>,
    /// Index of the only candidate that competes; `None`: all of them compete.
    pub pick: Option<usize>,
}

/// All planners, in the order in which they run.
pub const ALL: [&dyn Planner; 6] =
    [&overall::Overall, &psa::Psa, &psa::Pa, &def::Def, &replicas::Replicas, &cache::Cache];

/// Formats a byte count for humans, with at most one decimal.
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
