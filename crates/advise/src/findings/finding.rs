//! A finding, and what findings are derived from.

use serde::Serialize;

use super::thresholds::{NOTABLE_SHARE, SEVERE_SHARE};
use crate::commands::Command;
use crate::facts::{Facts, FileFacts};
use crate::layouts::LayoutAdvice;
use crate::storage::Storage;
use crate::text::base_name;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It concerns a large share of the run.
    High,
    /// It concerns a share of the run that is worth the work.
    Medium,
    /// It concerns little of the run, or the log does not tell how much.
    Note,
}

/// Something that makes a job's I/O slow.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// Its kind, for programs: `small-requests`.
    pub code: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// What is observed, in a few words.
    pub what: String,
    /// Why that is slow.
    pub why: String,
    /// What to do, in a few words.
    pub remedy: String,
    /// What to type, if there is a command.
    pub commands: Vec<Command>,
    /// The time that it concerns in the busiest process, seconds: no remedy saves more.
    pub at_most_s: f64,
    /// The same as a share of the run, 0 to 1; `None` if the run time is not known.
    pub at_most_share: Option<f64>,
    /// How many times as fast the model predicts the I/O that it concerns; `None` without a model.
    pub speedup: Option<f64>,
}

/// What findings are derived from.
pub(crate) struct Job<'a> {
    pub facts: &'a Facts,
    pub storage: &'a Storage,
    pub layouts: &'a [LayoutAdvice],
}

/// The text of a finding.
pub(crate) struct Said {
    pub code: &'static str,
    pub what: String,
    pub why: String,
    pub remedy: String,
    pub commands: Vec<Command>,
}

impl Job<'_> {
    /// A finding about so many seconds of the busiest process.
    pub fn finding(&self, said: Said, at_most_s: f64) -> Finding {
        let Said { code, what, why, remedy, commands } = said;
        let at_most_share = self.facts.share_of(at_most_s);
        let severity = match at_most_share {
            Some(share) if share >= SEVERE_SHARE => Severity::High,
            Some(share) if share >= NOTABLE_SHARE => Severity::Medium,
            _ => Severity::Note,
        };
        Finding { code, severity, what, why, remedy, commands, at_most_s, at_most_share, speedup: None }
    }

    /// The name of the file that spends most time by a measure, and how many others there are.
    pub fn named(&self, files: &[&FileFacts], time_s: impl Fn(&FileFacts) -> f64) -> String {
        let Some(first) = files.iter().max_by(|a, b| time_s(a).total_cmp(&time_s(b))) else {
            return String::new();
        };
        let name = base_name(&first.name, 28);
        if files.len() > 1 { format!("{name} and {} more", files.len() - 1) } else { name }
    }

    /// The stripe width that files have or are to get, bytes, for hints and alignment.
    pub fn stripe(&self) -> u64 {
        let known =
            self.facts.files.iter().filter_map(|file| file.striping.as_ref()).map(|striping| striping.width);
        known.max().unwrap_or(DEFAULT_STRIPE)
    }
}

/// Stripe width where none is known: Lustre's default, and a multiple of all other ones' units.
const DEFAULT_STRIPE: u64 = 1 << 20;
