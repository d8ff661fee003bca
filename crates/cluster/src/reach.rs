//! A cheap test whether some rule of a plan may apply to a path.

use crate::pattern::literal_prefix;
use crate::plan::Plan;

/// The prefixes of all paths to which rules of a plan may apply. Rules without layouts apply to no
/// file.
#[derive(Clone, Debug, Default)]
pub struct Reach {
    /// Sorted; none is a prefix of another.
    beginnings: Vec<Box<[u8]>>,
}

impl Reach {
    /// The prefixes of all rules of the plan.
    pub fn of(plan: &Plan) -> Self {
        let rules = plan.rules.iter().filter(|rule| !rule.layouts.is_empty());
        let mut beginnings: Vec<Box<[u8]>> =
            rules.map(|rule| literal_prefix(rule.pattern.as_bytes()).into()).collect();
        beginnings.sort_unstable();
        // After sorting, a string follows its prefixes.
        beginnings.dedup_by(|longer, shorter| longer.starts_with(shorter));
        Self { beginnings }
    }

    /// Whether a rule may apply to the file at this absolute path; `false`: certainly none does.
    /// Takes O(log rules), allocates nothing.
    pub fn has(&self, path: &[u8]) -> bool {
        // A prefix of the path is not greater than the path, and every string between the two
        // begins with it.
        let after = self.beginnings.partition_point(|beginning| **beginning <= *path);
        self.beginnings[..after].last().is_some_and(|beginning| path.starts_with(beginning))
    }
}
