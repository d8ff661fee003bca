//! The output of `stripewise plan --json`, as it is written and as it is read again.
//!
//! Keys that the page does not need may be absent; unknown keys are skipped.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use stripewise_cluster::{Cluster, format_cycle, size};
use stripewise_layout::Stripe;
use stripewise_model::Cost;
use stripewise_plan::{
    ApplicationTimes, Background, Busiest, Compared, Expected, FromMemory, Joint, LeftOut, Method, Native,
    Promise, ServerLoad, Tie,
};

use crate::{Candidate, InputError};

/// The output of `plan --json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Predictions {
    /// The traces.
    #[serde(default)]
    pub trace: String,
    /// The applications, if there are several.
    #[serde(default)]
    pub applications: Vec<PredictedApplication>,
    /// The cluster file.
    #[serde(default)]
    pub cluster: String,
    /// The profile, if there is one.
    #[serde(default)]
    pub profile: Option<String>,
    /// The plan file written by the same command.
    pub plan: String,
    /// `--scheme`.
    #[serde(default)]
    pub scheme: String,
    /// The prediction that decides: `elapsed` or `cost`.
    #[serde(default)]
    pub objective: String,
    /// `--min-gain`; `None` for no minimum.
    #[serde(default)]
    pub min_gain: Option<f64>,
    /// Why calls are missing from the trace, if some are.
    #[serde(default)]
    pub incomplete: Option<String>,
    /// How the traced program failed, if it did.
    #[serde(default)]
    pub failed: Option<String>,
    /// Tiers whose servers are paced by parameters instead of by devices.
    #[serde(default)]
    pub emulated: Vec<String>,
    /// All files together, if their patterns were planned jointly.
    #[serde(default)]
    pub joint: Option<Joint>,
    /// What every server has to do, in the order of the targets.
    #[serde(default)]
    pub loads: Vec<ServerLoad>,
    /// What `place` moves, if it is known.
    #[serde(default)]
    pub moves: Option<Moves>,
    /// What the plan does not concern.
    #[serde(default)]
    pub left_out: LeftOut,
    /// The planned times, held against the traced one; `None` if nothing was recorded, or if costs
    /// are compared.
    #[serde(default)]
    pub promise: Option<Promise>,
    /// What the traces say of the present time, one entry per trace.
    #[serde(default)]
    pub traced: Vec<Traced>,
    /// One entry per file-name pattern.
    pub files: Vec<FilesPrediction>,
}

/// The time that a trace shows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Traced {
    /// The trace.
    pub trace: String,
    /// Run time of the command, seconds; `None` if it was not watched.
    pub wall_s: Option<f64>,
    /// How long its busiest process reads and writes.
    pub busiest: Busiest,
}

/// The existing files that `place` moves.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moves {
    /// Number of files.
    pub files: usize,
    /// Sum of their sizes, bytes.
    pub bytes: u64,
}

/// One of several applications that are planned together.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PredictedApplication {
    /// Its trace.
    pub trace: String,
    /// How often it runs.
    pub times: u64,
    /// The time of all its runs.
    #[serde(flatten)]
    pub seconds: ApplicationTimes,
}

/// The files of one pattern.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FilesPrediction {
    /// The pattern, as in the plan file.
    pub pattern: String,
    /// Number of files in the trace that match.
    #[serde(default)]
    pub count: usize,
    /// The first of these files.
    #[serde(default)]
    pub first: String,
    /// Bytes of these files.
    #[serde(default)]
    pub bytes: u64,
    /// Number of requests.
    #[serde(default)]
    pub requests: u64,
    /// Requests that memory served; they are not among the others.
    #[serde(default)]
    pub memory: FromMemory,
    /// The present layout's times in the trace and in the model, by kind of request; `None` if the
    /// trace does not have true times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared: Option<Compared>,
    /// Mean bytes of a request.
    #[serde(default)]
    pub request_size: u64,
    /// The planner whose candidate was chosen, or `keep`.
    #[serde(default)]
    pub scheme: String,
    /// Whether the files keep their present layout.
    #[serde(default)]
    pub keep: bool,
    /// Fraction of the present layout's time (or cost) that the best candidate saves.
    #[serde(default)]
    pub gain: f64,
    /// Reason for the choice.
    #[serde(default)]
    pub reason: String,
    /// The layouts between which the model cannot tell, if the chosen one is among several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tie: Option<Tie>,
    /// Further remarks on the best candidate.
    #[serde(default)]
    pub remarks: Vec<String>,
    /// The chosen candidate.
    #[serde(flatten)]
    pub chosen: PredictedLayout,
    /// The layout that the files have now.
    pub present: PredictedLayout,
    /// Equivalent commands of parallel file systems.
    #[serde(default)]
    pub native: Vec<Native>,
    /// Remarks on the files.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Warning about existing files that are executable: they cannot be run once they are managed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executables: Option<String>,
    /// Expected work of the best candidate's copies, if it has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<Expected>,
    /// All candidates; only with `--candidates`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidates: Option<Vec<PredictedScheme>>,
}

/// A candidate and the planner that proposed it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PredictedScheme {
    /// Name of the planner.
    #[serde(default)]
    pub scheme: String,
    /// The candidate.
    #[serde(flatten)]
    pub layout: PredictedLayout,
}

/// A candidate and its predicted cost.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PredictedLayout {
    /// Name of the candidate.
    pub name: String,
    /// Its shape and place; earlier versions did not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<stripewise_plan::Form>,
    /// Regions of the first layout.
    pub regions: Vec<PredictedRegion>,
    /// Stripe sizes of the first layout's first region, by class.
    #[serde(default)]
    pub stripes: BTreeMap<String, u64>,
    /// All layouts, if the files are spread over several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layouts: Vec<Vec<PredictedRegion>>,
    /// The papers' overall cost, process-seconds.
    pub predicted_s: f64,
    /// Its terms.
    #[serde(default)]
    pub cost: Cost,
    /// Expected wall-clock seconds.
    pub elapsed_s: f64,
    /// The part of them in which calls keep the client busy and no server works; absent if it was
    /// not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_s: Option<f64>,
    /// How much of the trace was replayed to find them.
    #[serde(default)]
    pub elapsed_by: Method,
    /// Extra copies, if there are any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub copies: Vec<PredictedCopy>,
    /// Copying between the copies in addition to serving requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<Background>,
}

/// An extra copy.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PredictedCopy {
    /// Name of the copy in the plan.
    pub name: String,
    /// Its layouts.
    pub layouts: Vec<Vec<PredictedRegion>>,
}

/// A region of a layout.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PredictedRegion {
    /// First byte of the region.
    #[serde(default)]
    pub start: u64,
    /// End of the region; `None` for the last one.
    pub end: Option<u64>,
    /// The stripes of one turn.
    pub cycle: Vec<PredictedStripe>,
    /// Bytes per server of each class in one turn of the cycle.
    #[serde(default)]
    pub stripes: BTreeMap<String, u64>,
}

/// A stripe.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PredictedStripe {
    /// Name of the target. In a long cycle also a range of neighbors with stripes of the same
    /// width, as in a plan: `hdd/0-4999`.
    pub target: String,
    /// Bytes of the stripe; of each one in a range.
    pub bytes: u64,
}

impl Predictions {
    /// Parses the output of `plan --json`; `file_name` is only used in messages.
    ///
    /// # Errors
    /// The text is not such an output.
    pub fn parse(text: &str, file_name: &str) -> Result<Self, InputError> {
        let wrong = |problem: String| InputError {
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

    /// Returns the elapsed times of all files in the present and in the planned layouts, seconds.
    pub fn totals_s(&self) -> (f64, f64) {
        match &self.joint {
            Some(joint) => (joint.now_s, joint.planned_s),
            None => self.files.iter().fold((0.0, 0.0), |(now_s, planned_s), files| {
                (now_s + files.present.elapsed_s, planned_s + files.chosen.elapsed_s)
            }),
        }
    }

    /// Returns the prediction for the files of this pattern.
    pub fn of(&self, pattern: &str) -> Option<&FilesPrediction> {
        self.files.iter().find(|files| files.pattern == pattern)
    }
}

impl FilesPrediction {
    /// Returns the present layout and all others as candidates without measurements, the fastest
    /// first.
    pub fn candidates(&self, cluster: &Cluster) -> Vec<Candidate> {
        let others = self.candidates.iter().flatten().map(|scheme| &scheme.layout);
        let others = others.filter(|layout| layout.name != self.present.name);
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

/// Formats a cycle in plan-file notation if the cluster has all its targets, else as it was
/// written, stripe by stripe or range by range.
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
