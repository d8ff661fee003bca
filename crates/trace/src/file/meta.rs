//! The metadata of a trace file: the key-value metadata of the Parquet footer.

use std::path::Path;

use indexmap::IndexSet;
use parquet::file::metadata::KeyValue;

use crate::{ProcessInfo, TraceError};

/// The only format version that this code writes and reads.
const FORMAT: &str = "1";

const KEY_FORMAT: &str = "stripewise.format";
const KEY_ORIGIN: &str = "stripewise.origin";
const KEY_COMPLETE: &str = "stripewise.complete";
const KEY_INCOMPLETE: &str = "stripewise.incomplete";
const KEY_NOTES: &str = "stripewise.notes";
const KEY_COMMAND: &str = "stripewise.command";
const KEY_WALL: &str = "stripewise.wall_s";
const KEY_EXIT_CODE: &str = "stripewise.exit_code";
const KEY_START: &str = "stripewise.start_unix_ns";
const KEY_PROCESSES: &str = "stripewise.processes";

/// Origin of traces of real runs whose reads and writes Darshan's DXT recorded.
pub const ORIGIN_DXT: &str = "Darshan DXT";
/// Origin of traces that were made of Darshan's counters: sums are true, single calls are guessed.
pub const ORIGIN_COUNTERS: &str = "Darshan counters";

/// Everything known about a trace besides its rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Meta {
    /// Where the rows come from: `recorded`, `synthetic` (no program ran), [`ORIGIN_DXT`] or
    /// [`ORIGIN_COUNTERS`].
    pub origin: String,
    /// The traced command with its arguments, or that of the synthetic trace.
    pub command: Vec<String>,
    /// How long the command ran, seconds; `None` if that was not observed (spools merged later,
    /// synthetic traces).
    pub wall_s: Option<f64>,
    /// The command's exit code as in a shell: 128 + n if signal n ended it. `None` if it was not
    /// observed, or in traces of earlier versions.
    pub exit_code: Option<u8>,
    /// The time at which `start_ns` is 0, nanoseconds since 1970; 0 in synthetic traces.
    pub start_unix_ns: u64,
    /// Why calls are missing from the trace, one sentence each; empty if the trace is complete.
    pub incomplete: Vec<String>,
    /// What is guessed or left out in a trace that was made of another tool's log, one sentence
    /// each.
    pub notes: Vec<String>,
}

impl Meta {
    /// How the command failed, as part of a sentence; `None` if it did not fail or its exit code is
    /// unknown.
    pub fn failure(&self) -> Option<String> {
        let code = self.exit_code.filter(|&code| code != 0)?;
        Some(match code.checked_sub(128).filter(|signal| (1..=64).contains(signal)) {
            Some(signal) => format!("exit code {code}, as of signal {signal}"),
            None => format!("exit code {code}"),
        })
    }

    /// The entries of the footer.
    pub(super) fn to_key_values(&self, processes: &IndexSet<ProcessInfo>) -> Vec<KeyValue> {
        let json = |value: serde_json::Value| value.to_string();
        let mut entries = vec![
            (KEY_FORMAT, FORMAT.to_string()),
            (KEY_ORIGIN, self.origin.clone()),
            (KEY_COMPLETE, self.incomplete.is_empty().to_string()),
            (KEY_INCOMPLETE, json(serde_json::json!(self.incomplete))),
            (KEY_COMMAND, json(serde_json::json!(self.command))),
            (KEY_START, self.start_unix_ns.to_string()),
            (KEY_PROCESSES, json(processes.iter().map(|process| serde_json::json!(process)).collect())),
        ];
        if !self.notes.is_empty() {
            entries.push((KEY_NOTES, json(serde_json::json!(self.notes))));
        }
        if let Some(wall_s) = self.wall_s {
            entries.push((KEY_WALL, wall_s.to_string()));
        }
        if let Some(code) = self.exit_code {
            entries.push((KEY_EXIT_CODE, code.to_string()));
        }
        entries.into_iter().map(|(key, value)| KeyValue::new(key.to_string(), value)).collect()
    }

    /// Parses the entries of the footer.
    pub(super) fn from_key_values(
        path: &Path,
        entries: &[KeyValue],
    ) -> Result<(Meta, Vec<ProcessInfo>), TraceError> {
        let find =
            |key: &str| entries.iter().find(|entry| entry.key == key).and_then(|entry| entry.value.as_deref());
        match find(KEY_FORMAT) {
            Some(FORMAT) => {}
            Some(other) => {
                let what = format!(
                    "trace format {other} is not known (this is format {FORMAT}): use the stripewise that wrote it"
                );
                return Err(TraceError::new(path, what));
            }
            None => {
                return Err(TraceError::new(path, "is a Parquet file, but not a trace (no stripewise.format)"));
            }
        }
        let need = |key: &str| {
            find(key).ok_or_else(|| TraceError::new(path, format!("{key} is missing: damaged trace")))
        };
        let bad = |key: &str| TraceError::new(path, format!("{key} is not readable: damaged trace"));
        let strings = |key: &str| -> Result<Vec<String>, TraceError> {
            serde_json::from_str(need(key)?).map_err(|_| bad(key))
        };
        let meta = Meta {
            origin: need(KEY_ORIGIN)?.to_string(),
            command: strings(KEY_COMMAND)?,
            wall_s: find(KEY_WALL).map(|text| text.parse().map_err(|_| bad(KEY_WALL))).transpose()?,
            exit_code: find(KEY_EXIT_CODE)
                .map(|text| text.parse().map_err(|_| bad(KEY_EXIT_CODE)))
                .transpose()?,
            start_unix_ns: need(KEY_START)?.parse().map_err(|_| bad(KEY_START))?,
            incomplete: strings(KEY_INCOMPLETE)?,
            notes: find(KEY_NOTES).map_or(Ok(Vec::new()), |_| strings(KEY_NOTES))?,
        };
        if need(KEY_COMPLETE)? != meta.incomplete.is_empty().to_string() {
            return Err(bad(KEY_COMPLETE));
        }
        let processes = serde_json::from_str(need(KEY_PROCESSES)?).map_err(|_| bad(KEY_PROCESSES))?;
        Ok((meta, processes))
    }
}
