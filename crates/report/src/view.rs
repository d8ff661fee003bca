//! Input of a page.

use std::path::Path;

use stripewise_cluster::{OverlayKind, Plan, Rule};
use stripewise_plan::{Background, Compared, Expected, Joint, Native, Promise, ServerLoad};

use crate::predictions::FilesPrediction;
use crate::{Activity, Candidate, FileStatistics, Predictions, Results};

/// Everything that a page shows. A section without input is replaced by a sentence that says how to
/// get the input.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// Date of the page, RFC 3339 in UTC.
    pub date: &'a str,
    /// The command line that makes the page.
    pub command: &'a str,
    /// The version of stripewise.
    pub version: &'a str,
    /// Traces to show.
    pub activities: &'a [Activity],
    /// A trace of the same program from before a change, to compare with the first of `activities`.
    pub before: Option<&'a Activity>,
    /// Plans to show.
    pub plans: &'a [PlanView],
    /// Predictions and measurements.
    pub results: Option<&'a Results>,
    /// Statistics of files with several copies.
    pub statistics: &'a [FileStatistics],
}

/// A section of the page whose input was not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingPart {
    /// Title of the section.
    pub title: &'static str,
    /// Statement of what is missing: `No trace was given: record one with`.
    pub what: &'static str,
    /// The command that produces the input.
    pub command: &'static str,
    /// The flags that pass the input to the report.
    pub flag: &'static str,
}

/// A plan, and additional information on its rules.
#[derive(Clone, Debug)]
pub struct PlanView {
    /// Display name: the plan file's name.
    pub name: String,
    /// The plan.
    pub plan: Plan,
    /// One entry per rule, in the plan's order.
    pub details: Vec<RuleDetails>,
    /// All files together, if they were planned jointly.
    pub joint: Option<Joint>,
    /// The planned times, held against the traced one, if that is known.
    pub promise: Option<Promise>,
    /// What every server has to do, if it is known.
    pub loads: Vec<ServerLoad>,
}

/// Information on a rule that is not in the plan file.
#[derive(Clone, Debug, Default)]
pub struct RuleDetails {
    /// Size in bytes of the largest file that matches the rule, if traces show it.
    pub file_bytes: Option<u64>,
    /// Every layout that the planner compared, the fastest first.
    pub candidates: Vec<Candidate>,
    /// Name of the chosen candidate.
    pub choice: String,
    /// Name of the candidate that is the files' present layout.
    pub present: String,
    /// Expected work of the rule's copies, if it has several.
    pub expected: Option<Expected>,
    /// The present layout's times in the trace and in the model, if they are known.
    pub compared: Option<Compared>,
    /// Background copying between the copies.
    pub background: Option<Background>,
    /// Equivalent commands of file systems with their own layouts.
    pub native: Vec<Native>,
}

impl PlanView {
    /// Creates the view, with the file sizes that the traces show.
    pub fn new(name: &str, plan: Plan, activities: &[Activity]) -> Self {
        let mut details = vec![RuleDetails::default(); plan.rules.len()];
        for file in activities.iter().flat_map(|activity| &activity.summary.files) {
            let matches = |rule: &Rule| rule.matches(Path::new(&file.name));
            if let Some(index) = plan.rules.iter().position(matches) {
                let known: &mut Option<u64> = &mut details[index].file_bytes;
                *known = (*known).max((file.extent_bytes > 0).then_some(file.extent_bytes));
            }
        }
        Self { name: name.to_owned(), plan, details, joint: None, promise: None, loads: Vec::new() }
    }

    /// Adds the planner's predictions for the patterns that the plan has, too.
    pub fn add_predictions(&mut self, predictions: &Predictions) {
        let are_of = |files: &FilesPrediction| self.plan.rules.iter().any(|rule| rule.pattern == files.pattern);
        if predictions.files.iter().all(are_of) {
            self.joint.clone_from(&predictions.joint);
            self.promise = predictions.promise;
            self.loads.clone_from(&predictions.loads);
        }
        for (rule, details) in self.plan.rules.iter().zip(&mut self.details) {
            if let Some(files) = predictions.of(&rule.pattern) {
                details.candidates = files.candidates(&self.plan.cluster);
                details.choice = files.chosen.name.clone();
                details.present = files.present.name.clone();
                details.compared.clone_from(&files.compared);
                // Expectations for copies of another plan are ignored.
                details.expected = files.expected.clone().filter(|expected| is_of(expected, rule));
                details.background = files.chosen.background.filter(|_| details.expected.is_some());
            }
        }
    }
}

/// Returns whether the expectations are for the copies of the rule.
fn is_of(expected: &Expected, rule: &Rule) -> bool {
    let Some(overlay) = &rule.overlay else { return false };
    let names = expected.copies.iter().skip(1).map(|copy| &copy.name);
    names.eq(overlay.copies.iter().map(|copy| &copy.name))
        && expected.cache.is_some() == matches!(overlay.kind, OverlayKind::Cache { .. })
}
