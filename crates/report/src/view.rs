//! What a page is made from.

use std::path::Path;

use stripewise_cluster::{Plan, Rule};

use crate::{Activity, Candidate, Results};

/// Everything that a page shows. Parts that are empty are replaced by a sentence that says how to get them.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// When the page is made: RFC 3339, UTC.
    pub date: &'a str,
    /// The command line that makes it.
    pub command: &'a str,
    /// The version of stripewise.
    pub version: &'a str,
    /// Traces.
    pub activities: &'a [Activity],
    /// Plans.
    pub plans: &'a [PlanView],
    /// Measurements.
    pub results: Option<&'a Results>,
}

/// A plan, and what else is known of its rules.
#[derive(Clone, Debug)]
pub struct PlanView {
    /// What to call it: the plan file's name.
    pub name: String,
    /// The plan.
    pub plan: Plan,
    /// Per rule, in the plan's order.
    pub details: Vec<RuleDetails>,
}

/// What is known of a rule besides the plan file.
#[derive(Clone, Debug, Default)]
pub struct RuleDetails {
    /// Size of the largest file that the rule is for, as far as traces tell.
    pub file_bytes: Option<u64>,
    /// Every layout that the planner compared.
    pub candidates: Vec<Candidate>,
    /// Commands of file systems that would do the same: (file system, lines).
    pub native: Vec<(String, Vec<String>)>,
}

impl PlanView {
    /// A plan with the file sizes that the traces tell.
    pub fn new(name: &str, plan: Plan, activities: &[Activity]) -> Self {
        let mut details = vec![RuleDetails::default(); plan.rules.len()];
        for file in activities.iter().flat_map(|activity| &activity.summary.files) {
            let matches = |rule: &Rule| rule.matches(Path::new(&file.name));
            if let Some(index) = plan.rules.iter().position(matches) {
                let known: &mut Option<u64> = &mut details[index].file_bytes;
                *known = (*known).max((file.extent_bytes > 0).then_some(file.extent_bytes));
            }
        }
        Self { name: name.to_owned(), plan, details }
    }
}
