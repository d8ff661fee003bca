//! What a page is made from.

use std::path::Path;

use stripewise_cluster::{OverlayKind, Plan, Rule};

use crate::expected::{Background, Expected};
use crate::{Activity, Candidate, FileStatistics, Predictions, Results};

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
    /// A trace of the same before something was changed, to compare the first of `activities` with.
    pub before: Option<&'a Activity>,
    /// Plans.
    pub plans: &'a [PlanView],
    /// Measurements.
    pub results: Option<&'a Results>,
    /// What was counted of files with several copies.
    pub statistics: &'a [FileStatistics],
}

/// A part of the page whose input was not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingPart {
    /// Its title.
    pub title: &'static str,
    /// What is missing: `No trace was given: record one with`.
    pub what: &'static str,
    /// The command that makes it.
    pub command: &'static str,
    /// The flags that then give it to the report.
    pub flag: &'static str,
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
    /// Every layout that the planner compared, the fastest first.
    pub candidates: Vec<Candidate>,
    /// Name of the candidate that was chosen.
    pub choice: String,
    /// Name of the candidate that is the files' present layout.
    pub present: String,
    /// What its copies are expected to do, if it has several.
    pub expected: Option<Expected>,
    /// What is copied between them.
    pub background: Option<Background>,
    /// How file systems would be told the same.
    pub native: Vec<NativeCommands>,
}

/// The commands of one file system for a layout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NativeCommands {
    /// The file system.
    pub system: String,
    /// In order; empty where the layout cannot be expressed.
    pub commands: Vec<String>,
    /// Why there are none, or what to know about them.
    pub note: Option<String>,
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

    /// Adds what the planner predicted, for the patterns that the plan has too.
    pub fn add_predictions(&mut self, predictions: &Predictions) {
        for (rule, details) in self.plan.rules.iter().zip(&mut self.details) {
            if let Some(files) = predictions.of(&rule.pattern) {
                details.candidates = files.candidates(&self.plan.cluster);
                details.choice = files.name.clone();
                details.present = files.present_name().to_owned();
                // Of the plan's copies, and not those of another plan.
                details.expected = files.expected.clone().filter(|expected| is_of(expected, rule));
                details.background = files.background.filter(|_| details.expected.is_some());
            }
        }
    }
}

/// Whether the copies are those of the rule.
fn is_of(expected: &Expected, rule: &Rule) -> bool {
    let Some(overlay) = &rule.overlay else { return false };
    let names = expected.copies.iter().skip(1).map(|copy| &copy.name);
    names.eq(overlay.copies.iter().map(|copy| &copy.name))
        && expected.cache.is_some() == matches!(overlay.kind, OverlayKind::Cache { .. })
}
