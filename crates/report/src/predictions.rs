//! The part of the output of `stripewise plan --json --candidates` that the page shows: every
//! candidate of every pattern.

use serde::Deserialize;
use stripewise_cluster::{Cluster, format_cycle, size};
use stripewise_layout::Stripe;

use crate::expected::{Background, Expected};
use crate::results::{Candidate, ResultsError};

/// The output of `plan --json`. Unused keys are skipped.
#[derive(Clone, Debug, Deserialize)]
pub struct Predictions {
    /// The plan file written by the same command.
    pub plan: String,
    /// One entry per file-name pattern.
    pub files: Vec<FilesPrediction>,
}

/// The files of one pattern.
#[derive(Clone, Debug, Deserialize)]
pub struct FilesPrediction {
    /// The pattern, as in the plan file.
    pub pattern: String,
    /// Name of the chosen candidate.
    pub name: String,
    present: PredictedLayout,
    /// Expected work of the copies, if the files have several.
    #[serde(default)]
    pub expected: Option<Expected>,
    /// Background copying between the copies.
    #[serde(default)]
    pub background: Option<Background>,
    /// All candidates; only with `--candidates`.
    #[serde(default)]
    candidates: Option<Vec<PredictedLayout>>,
}

/// A candidate and its predicted cost.
#[derive(Clone, Debug, Deserialize)]
struct PredictedLayout {
    name: String,
    predicted_s: f64,
    elapsed_s: f64,
    regions: Vec<PredictedRegion>,
}

#[derive(Clone, Debug, Deserialize)]
struct PredictedRegion {
    end: Option<u64>,
    cycle: Vec<PredictedStripe>,
}

#[derive(Clone, Debug, Deserialize)]
struct PredictedStripe {
    target: String,
    bytes: u64,
}

impl Predictions {
    /// Parses the output of `plan --json`; `file_name` is only used in messages.
    ///
    /// # Errors
    /// The text is not such an output.
    pub fn parse(text: &str, file_name: &str) -> Result<Self, ResultsError> {
        let wrong = |problem: String| ResultsError {
            file: file_name.to_owned(),
            problem: format!("not the output of `stripewise plan --json --candidates`: {problem}"),
        };
        let read: Self = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        match read.files.iter().find(|files| files.expected.as_ref().is_some_and(|e| !e.is_complete())) {
            None => Ok(read),
            Some(files) => {
                let key = "expected.classes: cost_s, served and critical need an entry for every copy";
                Err(wrong(format!("{}: {key}", files.pattern)))
            }
        }
    }

    /// Returns the prediction for the files of this pattern.
    pub fn of(&self, pattern: &str) -> Option<&FilesPrediction> {
        self.files.iter().find(|files| files.pattern == pattern)
    }
}

impl FilesPrediction {
    /// Returns the name of the present layout of the files.
    pub fn present_name(&self) -> &str {
        &self.present.name
    }

    /// Returns the present layout and all others as candidates without measurements, the fastest
    /// first.
    pub fn candidates(&self, cluster: &Cluster) -> Vec<Candidate> {
        let others = self.candidates.iter().flatten().filter(|layout| layout.name != self.present.name);
        let mut all: Vec<Candidate> =
            std::iter::once(&self.present).chain(others).map(|layout| layout.to_candidate(cluster)).collect();
        all.sort_by(|a, b| a.elapsed_s.unwrap_or(0.0).total_cmp(&b.elapsed_s.unwrap_or(0.0)));
        all
    }
}

impl PredictedLayout {
    fn to_candidate(&self, cluster: &Cluster) -> Candidate {
        let region = |region: &PredictedRegion| {
            let end = region.end.map_or(String::new(), |end| format!(" until {}", size::format(end)));
            format!("{}{end}", cycle_text(&region.cycle, cluster))
        };
        Candidate {
            name: self.name.clone(),
            layout: self.regions.iter().map(region).collect::<Vec<_>>().join(", then "),
            predicted_s: Some(self.predicted_s),
            elapsed_s: Some(self.elapsed_s),
            measured_s: Vec::new(),
            verified: None,
        }
    }
}

/// Formats a cycle in plan-file notation if the cluster has all its targets, else stripe by stripe.
fn cycle_text(cycle: &[PredictedStripe], cluster: &Cluster) -> String {
    let stripe =
        |s: &PredictedStripe| Some(Stripe { target: cluster.target_index(&s.target)?, width: s.bytes });
    match cycle.iter().map(stripe).collect::<Option<Vec<_>>>() {
        Some(stripes) => format_cycle(&stripes, cluster),
        None => {
            let words = cycle.iter().map(|s| format!("{}:{}", s.target, size::format(s.bytes)));
            words.collect::<Vec<_>>().join(" ")
        }
    }
}
