//! Where the files of a plan can be: a cheap answer to "may a rule be for this path?".

use crate::pattern::literal_prefix;
use crate::plan::Plan;

/// The beginnings of all paths that the rules of a plan can be for. Rules without layouts are for
/// no file.
#[derive(Clone, Debug, Default)]
pub struct Reach {
    /// Sorted, and none is the beginning of another one.
    beginnings: Vec<Box<[u8]>>,
}

impl Reach {
    /// Of all rules of the plan.
    pub fn of(plan: &Plan) -> Self {
        let rules = plan.rules.iter().filter(|rule| !rule.layouts.is_empty());
        let mut beginnings: Vec<Box<[u8]>> =
            rules.map(|rule| literal_prefix(rule.pattern.as_bytes()).into()).collect();
        beginnings.sort_unstable();
        // After sorting, what begins with another one follows it.
        beginnings.dedup_by(|longer, shorter| longer.starts_with(shorter));
        Self { beginnings }
    }

    /// Whether a rule may be for the file at this absolute path; `false`: certainly none is. Takes
    /// O(log rules), allocates nothing.
    pub fn has(&self, path: &[u8]) -> bool {
        // A beginning of the path is not greater than the path, and what lies between the two
        // begins with it.
        let after = self.beginnings.partition_point(|beginning| **beginning <= *path);
        self.beginnings[..after].last().is_some_and(|beginning| path.starts_with(beginning))
    }
}
