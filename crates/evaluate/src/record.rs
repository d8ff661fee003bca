//! Results: one record per scheme of a cell and place.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use stripewise_report::Machine;

/// Labels that distinguish the cells of an experiment: `size` is `64K`, `procs` is `16`, `op` is
/// `read` or `write`, `access` is `sequential` or `random`, ...
pub type Labels = BTreeMap<String, String>;

/// Returns the numeric value of a label: 65536 for `64K`, 30 for `30 %`.
pub fn amount(label: &str) -> Option<f64> {
    let digits = label.trim_end_matches(|c: char| !c.is_ascii_digit());
    let number: f64 = digits.parse().ok()?;
    let factor = match label[digits.len()..].trim() {
        "K" | "KiB" => 1024.0,
        "M" | "MiB" => 1024.0 * 1024.0,
        "G" | "GiB" => 1024.0 * 1024.0 * 1024.0,
        _ => 1.0,
    };
    Some(number * factor)
}

/// Where a cell was run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// In the simulator, at the published size.
    Simulated,
    /// Real programs and real I/O on servers that take the time that the model's formula gives.
    /// Agreement with the model is therefore flattering.
    Emulated,
    /// Real programs on throttled disks under a real file system.
    Disks,
}

impl Place {
    /// All places.
    pub const ALL: [Self; 3] = [Self::Simulated, Self::Emulated, Self::Disks];

    /// Returns the name in records and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Simulated => "simulated",
            Self::Emulated => "emulated",
            Self::Disks => "disks",
        }
    }
}

/// Result of one scheme of one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// `C1` to `S7`.
    pub experiment: String,
    /// Where the cell was run.
    #[serde(rename = "where")]
    pub place: Place,
    /// Labels of the cell.
    pub labels: Labels,
    /// Name of the scheme ([`crate::Scheme::name`]).
    pub scheme: String,
    /// Fingerprint that detects a changed cell ([`crate::Cell::parameters`]).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub parameters: String,
    /// Wall-clock seconds of the timed runs, one value per repeat. Simulated times are exact, so
    /// there is one.
    pub seconds: Vec<f64>,
    /// Bytes transferred in the timed runs.
    pub bytes: u64,
    /// Whether every byte was checked and right; `None` if there are no bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<bool>,
    /// Error, if the run failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// Display text of the layout, such as `<120K,8K>`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub layout: String,
    /// Other numbers: `cil_s` (the overall cost by CIL's formula), `elapsed_s` (the planner's
    /// expected time), `hits`, ...
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub details: BTreeMap<String, f64>,
}

/// All results of one place, as committed.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// When the document was written, RFC 3339 in UTC.
    pub date: String,
    /// The command that produced the results, without its directories.
    pub command: String,
    /// The machine on which the results were produced.
    pub machine: Machine,
    /// One record for every scheme of every cell.
    pub records: Vec<Record>,
}

impl Record {
    /// Returns whether the run failed or a byte was wrong.
    pub fn is_bad(&self) -> bool {
        self.failed.is_some() || self.verified == Some(false)
    }

    /// Returns the median of the repeats in seconds; `None` if the run failed.
    pub fn median_s(&self) -> Option<f64> {
        let mut sorted = self.seconds.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        match sorted.len() {
            0 => None,
            odd if odd % 2 == 1 => Some(sorted[middle]),
            _ => Some(0.5 * (sorted[middle - 1] + sorted[middle])),
        }
    }

    /// Returns the spread of the repeats: (largest - smallest) / median; `None` with one repeat.
    pub fn spread(&self) -> Option<f64> {
        let median_s = self.median_s().filter(|median_s| *median_s > 0.0 && self.seconds.len() > 1)?;
        let most_s = self.seconds.iter().copied().fold(0.0, f64::max);
        let least_s = self.seconds.iter().copied().fold(f64::INFINITY, f64::min);
        Some((most_s - least_s) / median_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(seconds: &[f64]) -> Record {
        Record {
            experiment: "C1".into(),
            place: Place::Emulated,
            labels: [("size".to_owned(), "64K".to_owned())].into(),
            scheme: "1-DV".into(),
            parameters: String::new(),
            seconds: seconds.to_vec(),
            bytes: 1 << 20,
            verified: Some(true),
            failed: None,
            layout: String::new(),
            details: BTreeMap::new(),
        }
    }

    #[test]
    fn medians_and_spreads() {
        assert_eq!((record(&[]).median_s(), record(&[]).spread()), (None, None));
        assert_eq!((record(&[2.0]).median_s(), record(&[2.0]).spread()), (Some(2.0), None));
        assert_eq!((record(&[3.0, 1.0]).median_s(), record(&[3.0, 1.0]).spread()), (Some(2.0), Some(1.0)));
        assert_eq!(
            (record(&[4.0, 1.0, 2.0]).median_s(), record(&[4.0, 1.0, 2.0]).spread()),
            (Some(2.0), Some(1.5))
        );
    }

    #[test]
    fn records_are_the_same_after_writing_and_reading() {
        let mut record = record(&[0.1, 1.0 / 3.0]);
        record.details.insert("cil_s".into(), 1e-9 / 3.0);
        let text = serde_json::to_string(&record).unwrap();
        assert!(text.contains(r#""where":"emulated""#), "{text}");
        assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), record);
    }
}
