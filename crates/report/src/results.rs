//! `results.json`: predictions and measurements. Format: `docs/formats/results.md`.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

/// The format version that this crate reads and writes.
pub const RESULTS_VERSION: u32 = 1;

/// Measurements of one or more workloads on one machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Results {
    /// Format version: [`RESULTS_VERSION`].
    pub version: u32,
    /// Start of the measurements, RFC 3339 in UTC.
    pub date: String,
    /// The command line that produced these results.
    pub command: String,
    /// The machine on which the results were produced.
    pub machine: Machine,
    /// The measured storage, one entry per tier of the cluster file.
    pub servers: Vec<Servers>,
    /// The workloads that were run.
    pub workloads: Vec<Workload>,
}

/// The machine that ran the workloads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Host name.
    pub host: String,
    /// Processor model as the system names it.
    pub cpu: String,
    /// Number of processors available to the workloads.
    pub cores: u32,
    /// Main memory in bytes.
    pub memory_bytes: u64,
    /// Operating system and version.
    pub system: String,
}

/// The servers of one tier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Servers {
    /// Name of the tier in the cluster file.
    pub tier: String,
    /// Class of device.
    pub class: String,
    /// Number of servers.
    pub count: u32,
    /// Whether every access was paced by parameters instead of by a device.
    pub emulated: bool,
}

/// One program with one set of parameters, run under several layouts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Short name, unique in the results, such as `ior read 64K`.
    pub name: String,
    /// Description in one sentence.
    pub description: String,
    /// The workload's command line.
    pub command: String,
    /// Number of processes that do I/O.
    pub processes: u32,
    /// Bytes that the measured phase of one run moves.
    pub bytes: u64,
    /// Why the trace behind the plan is incomplete; `None` if it is complete.
    #[serde(default)]
    pub trace_incomplete: Option<String>,
    /// Path of the trace, relative to the results file.
    #[serde(default)]
    pub trace: Option<String>,
    /// Path of the plan with the planner's choice, relative to the results file.
    #[serde(default)]
    pub plan: Option<String>,
    /// Name of the candidate that is the layout without a plan, the baseline of speedups.
    pub present: String,
    /// Name of the candidate that the planner chose (the present one if it decided to keep that).
    pub choice: String,
    /// Reason for the choice, in one sentence.
    pub reason: String,
    /// Every layout that was predicted or measured.
    pub candidates: Vec<Candidate>,
}

/// One layout of a workload's files.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    /// Name, unique in the workload, such as `1-DH`, `2-D g=4` or `PSA`.
    pub name: String,
    /// The layout in `plan.toml` notation, such as `hdd/0-3:64K`; for display only.
    pub layout: String,
    /// The papers' overall cost in process-seconds; `None` if not predicted.
    #[serde(default)]
    pub predicted_s: Option<f64>,
    /// Expected wall-clock seconds of one run, to which `measured_s` is compared.
    #[serde(default)]
    pub elapsed_s: Option<f64>,
    /// Wall-clock seconds of each run, in order; empty if not measured.
    #[serde(default)]
    pub measured_s: Vec<f64>,
    /// Whether a comparison of every byte with its expected value succeeded; `None` if bytes were
    /// not compared.
    #[serde(default)]
    pub verified: Option<bool>,
}

/// Why an input of the page is invalid, in one line: file, problem, remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {problem}")]
pub struct InputError {
    /// Name of the file.
    pub file: String,
    /// Location of the problem, the problem, and the remedy.
    pub problem: String,
}

impl Results {
    /// Parses `results.json`; `file_name` is only used in messages.
    ///
    /// # Errors
    /// The text deviates from the documented format.
    pub fn parse(text: &str, file_name: &str) -> Result<Self, InputError> {
        let error = |problem: String| InputError { file: file_name.to_owned(), problem };
        // The version is parsed first and alone: a file of another version has other keys and must
        // not fail because of those.
        let version: Version = serde_json::from_str(text)
            .map_err(|e| error(format!("no results file ({e}); write one with `stripewise-bench demo`")))?;
        if version.version != RESULTS_VERSION {
            let read = RESULTS_VERSION;
            return Err(error(format!(
                "version = {}: this stripewise reads version {read}; measure again with it",
                version.version
            )));
        }
        let results: Self = serde_json::from_str(text)
            .map_err(|e| error(format!("{e}; see docs/formats/results.md, or measure again")))?;
        results.check().map_err(|problem| error(format!("{problem}; correct it, or measure again")))?;
        Ok(results)
    }

    /// Returns the text of a `results.json` that [`Results::parse`] reads back.
    ///
    /// # Errors
    /// As [`Results::check`].
    pub fn to_json(&self) -> Result<String, InputError> {
        let error = |problem| InputError { file: "results".to_owned(), problem };
        self.check().map_err(error)?;
        serde_json::to_string_pretty(self).map_err(|e| error(e.to_string()))
    }

    /// Checks what the types do not ensure: unique names, references to candidates, finite times.
    ///
    /// # Errors
    /// Key, value and what is wrong with it.
    pub fn check(&self) -> Result<(), String> {
        unique(self.workloads.iter().map(|w| w.name.as_str()), "workloads")?;
        self.workloads.iter().try_for_each(|w| w.check().map_err(|e| format!("workload {:?}: {e}", w.name)))
    }
}

impl Workload {
    /// Returns the candidate with this name.
    pub fn candidate(&self, name: &str) -> Option<&Candidate> {
        self.candidates.iter().find(|candidate| candidate.name == name)
    }

    /// Returns the measured time of the present layout divided by that of the choice; `None` if
    /// either was not measured.
    pub fn speed_up(&self) -> Option<f64> {
        let measured = |name: &str| self.candidate(name).and_then(Candidate::median_s);
        let choice = measured(&self.choice).filter(|&seconds| seconds > 0.0)?;
        Some(measured(&self.present)? / choice)
    }

    /// Returns the fastest measured candidate, and how much longer the choice took as a fraction
    /// (0.05: 5 %).
    pub fn behind_best(&self) -> Option<(&Candidate, f64)> {
        let measured = self.candidates.iter().filter_map(|c| Some((c, c.median_s()?)));
        let (best, best_s) = measured.min_by(|a, b| a.1.total_cmp(&b.1))?;
        let choice = self.candidate(&self.choice)?.median_s()?;
        (best_s > 0.0).then(|| (best, choice / best_s - 1.0))
    }

    fn check(&self) -> Result<(), String> {
        unique(self.candidates.iter().map(|c| c.name.as_str()), "candidates")?;
        for (key, name) in [("present", &self.present), ("choice", &self.choice)] {
            if self.candidate(name).is_none() {
                return Err(format!("{key} = {name:?} is the name of no candidate"));
            }
        }
        self.candidates.iter().try_for_each(|c| c.check().map_err(|e| format!("candidate {:?}: {e}", c.name)))
    }
}

impl Candidate {
    /// Median of the measured runs in seconds; `None` if there are none.
    pub fn median_s(&self) -> Option<f64> {
        let mut sorted = self.measured_s.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        match sorted.len() {
            0 => None,
            n if n % 2 == 1 => Some(sorted[middle]),
            _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
        }
    }

    /// The shortest and the longest measured run in seconds; `None` if there are none.
    pub fn range_s(&self) -> Option<(f64, f64)> {
        let runs = || self.measured_s.iter().copied();
        Some((runs().reduce(f64::min)?, runs().reduce(f64::max)?))
    }

    /// (expected - measured) / measured, in wall-clock seconds; `None` if either is missing or the
    /// measured time is 0.
    pub fn relative_error(&self) -> Option<f64> {
        let measured = self.median_s().filter(|&seconds| seconds > 0.0)?;
        Some((self.elapsed_s? - measured) / measured)
    }

    fn check(&self) -> Result<(), String> {
        let single = [("predicted_s", self.predicted_s), ("elapsed_s", self.elapsed_s)];
        let single = single.into_iter().filter_map(|(key, value)| Some((key, value?)));
        for (key, value) in single.chain(self.measured_s.iter().map(|&value| ("measured_s", value))) {
            if !value.is_finite() || value < 0.0 {
                return Err(format!("{key} = {value} must be a number of seconds, 0 or more"));
            }
        }
        Ok(())
    }
}

#[derive(Deserialize)]
struct Version {
    version: u32,
}

fn unique<'a>(names: impl Iterator<Item = &'a str>, key: &str) -> Result<(), String> {
    let mut seen = HashSet::new();
    for name in names {
        if name.is_empty() {
            return Err(format!("{key}: an empty name"));
        }
        if !seen.insert(name) {
            return Err(format!("{key}: the name {name:?} occurs twice"));
        }
    }
    Ok(())
}
