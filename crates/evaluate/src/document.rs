//! `docs/evaluation/{simulated,emulated,disks}.json`: all records of one place, with date, command
//! and machine. Format: `docs/formats/evaluation.md`.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use stripewise_report::Machine;

use crate::record::{Document, Place, Record};

/// The format version that is written. Version 1 is still read: it has a record where a cell is.
const VERSION: u32 = 2;

type Object = Map<String, Value>;

/// The file.
#[derive(Serialize, Deserialize)]
struct File {
    version: u32,
    date: String,
    command: String,
    machine: Machine,
    #[serde(alias = "records")]
    cells: Vec<Cell>,
}

/// The records of one cell, as the keys that they share and those that differ.
#[derive(Default, Serialize, Deserialize)]
struct Cell {
    /// The keys with equal values in all runs; all keys if there is one run.
    #[serde(flatten)]
    common: Object,
    /// The other keys of each run; empty if there is one run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    runs: Vec<Object>,
}

impl Cell {
    /// Groups records by experiment and labels. The cells are in the order of their first records.
    fn group(records: impl Iterator<Item = Object>) -> Vec<Self> {
        let mut cells: Vec<Self> = Vec::new();
        let mut known: HashMap<String, usize> = HashMap::new();
        for record in records {
            let next = cells.len();
            let index = *known.entry(format!("{} {}", record["experiment"], record["labels"])).or_insert(next);
            if index == next {
                cells.push(Self::default());
            }
            cells[index].runs.push(record);
        }
        for cell in &mut cells {
            cell.common = take_common(&mut cell.runs);
            if cell.runs.len() == 1 {
                cell.runs.clear();
            }
        }
        cells
    }

    fn records(self) -> Vec<Object> {
        if self.runs.is_empty() {
            return vec![self.common];
        }
        self.runs.into_iter().map(|own| with(self.common.clone(), own)).collect()
    }
}

/// Removes from the runs what all of them have in common, and returns it. Objects that differ are
/// compared key by key.
fn take_common(runs: &mut [Object]) -> Object {
    let mut common = Object::new();
    for (key, value) in runs.first().cloned().unwrap_or_default() {
        if runs.iter().all(|run| run.get(&key) == Some(&value)) {
            runs.iter_mut().for_each(|run| drop(run.remove(&key)));
            common.insert(key, value);
        } else if runs.iter().all(|run| run.get(&key).is_some_and(Value::is_object)) {
            let mut objects: Vec<&mut Object> =
                runs.iter_mut().filter_map(|run| run.get_mut(&key)?.as_object_mut()).collect();
            let mut inner: Vec<Object> = objects.iter_mut().map(|object| std::mem::take(*object)).collect();
            common.insert(key, take_common(&mut inner).into());
            objects.into_iter().zip(inner).for_each(|(object, own)| *object = own);
        }
    }
    common
}

/// Returns the common keys and those of one run.
fn with(mut common: Object, own: Object) -> Object {
    for (key, value) in own {
        match (common.get_mut(&key), value) {
            (Some(Value::Object(known)), Value::Object(more)) => known.extend(more),
            (_, value) => drop(common.insert(key, value)),
        }
    }
    common
}

/// Why a text is not a file of records, in one line: file, problem, remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {problem}")]
pub struct DocumentError {
    /// The name given to [`Document::parse`].
    pub file: String,
    /// Location of the problem, the problem, and the remedy.
    pub problem: String,
}

impl Document {
    /// Parses a file of records of `place`; `file` is its name for errors.
    ///
    /// # Errors
    /// The text is not JSON of this format and version, or it holds records of another place.
    pub fn parse(text: &str, file: &str, place: Place) -> Result<Self, DocumentError> {
        let error = |problem: String| DocumentError { file: file.to_owned(), problem };
        let remedy = "make it anew with stripewise-bench evaluate";
        let no_records = |wrong: serde_json::Error| error(format!("no records: {wrong}; {remedy}"));
        let found: File = serde_json::from_str(text).map_err(no_records)?;
        if !(1..=VERSION).contains(&found.version) {
            return Err(error(format!(
                "version = {}: this stripewise reads {VERSION}; {remedy}",
                found.version
            )));
        }
        let File { date, command, machine, cells, .. } = found;
        let records = cells.into_iter().flat_map(Cell::records);
        let records = records.map(|record| serde_json::from_value(Value::Object(record)));
        let records = records.collect::<Result<Vec<Record>, _>>().map_err(no_records)?;
        if let Some(stray) = records.iter().find(|record| record.place != place) {
            let (stray, place) = (stray.place.name(), place.name());
            return Err(error(format!("where = {stray:?}: only records of {place} belong here; {remedy}")));
        }
        Ok(Self { date, command, machine, records })
    }

    /// Returns the file's text, with one line per cell, so that two versions can be compared line
    /// by line. The records of a cell are written together.
    pub fn to_text(&self) -> String {
        let Self { date, command, machine, records } = self.clone();
        let object = |record: Record| match serde_json::to_value(record) {
            Ok(Value::Object(object)) => object,
            _ => unreachable!("a record is an object"),
        };
        let cells = Cell::group(records.into_iter().map(object));
        let cells: Vec<String> =
            cells.iter().map(|cell| serde_json::to_string(cell).expect("plain data is JSON")).collect();
        let head = File { version: VERSION, date, command, machine, cells: Vec::new() };
        let head = serde_json::to_string_pretty(&head).expect("plain data is JSON");
        let head = head.strip_suffix("[]\n}").expect("cells come last");
        let begin = if cells.is_empty() { "" } else { "\n" };
        format!("{head}[{begin}{}\n]\n}}\n", cells.join(",\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(records: usize) -> Document {
        let record = |index: usize| Record {
            experiment: "P1".into(),
            place: Place::Emulated,
            labels: [("op".to_owned(), "read".to_owned())].into(),
            scheme: format!("scheme {index}"),
            parameters: "00".into(),
            seconds: vec![0.1 / 3.0, index as f64],
            bytes: 1 << 30,
            verified: Some(true),
            failed: (index == 1).then(|| "two\nlines \"quoted\"".to_owned()),
            layout: "<120K,8K>".into(),
            details: [("elapsed_s".to_owned(), 1e-9 / 7.0)].into(),
        };
        Document {
            date: "2026-11-21T14:00:00Z".into(),
            command: "stripewise-bench evaluate all --measured".into(),
            machine: Machine { host: "h".into(), cores: 2, ..Machine::default() },
            records: (0..records).map(record).collect(),
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        for records in [0, 1, 3] {
            let expected = document(records);
            let text = expected.to_text();
            assert_eq!(Document::parse(&text, "f", Place::Emulated), Ok(expected));
            let lines = text.lines().filter(|line| line.contains("\"scheme\"")).count();
            assert_eq!(lines, records.min(1), "a line for each cell");
            assert_eq!(text.matches("\"labels\"").count(), lines, "what the runs share is written once");
        }
    }

    #[test]
    fn records_of_several_cells_are_grouped() {
        let mut written = document(4);
        for (index, record) in written.records.iter_mut().enumerate() {
            record.labels.insert("size".into(), if index % 2 == 0 { "1M" } else { "64K" }.into());
            record.details.insert("least_s".into(), 0.25);
            record.details.insert("elapsed_s".into(), index as f64);
        }
        let text = written.to_text();
        assert_eq!((text.matches("least_s").count(), text.matches("elapsed_s").count()), (2, 4));
        written.records.swap(1, 2);
        assert_eq!(Document::parse(&text, "f", Place::Emulated), Ok(written));
    }

    #[test]
    fn version_1_is_read() {
        let expected = document(3);
        let records: Vec<String> =
            expected.records.iter().map(|record| serde_json::to_string(record).unwrap()).collect();
        let text = document(0).to_text().replace("\"version\": 2", "\"version\": 1");
        let text = text.replace("\"cells\": [", &format!("\"records\": [{}", records.join(",\n")));
        assert_eq!(Document::parse(&text, "f", Place::Emulated), Ok(expected));
    }

    #[test]
    fn what_is_no_such_file_is_said_in_a_line() {
        let text = document(1).to_text();
        let error = |text: &str, place| Document::parse(text, "f.json", place).unwrap_err().to_string();
        let newer = text.replacen("\"version\": 2", "\"version\": 9", 1);
        for (error, part) in [
            (error(&newer, Place::Emulated), "version = 9"),
            (error(&text, Place::Disks), "where = \"emulated\""),
            (error("{", Place::Emulated), "no records"),
        ] {
            assert!(error.starts_with("f.json: ") && error.contains(part) && !error.contains('\n'), "{error}");
        }
    }

    proptest::proptest! {
        /// A damaged file gives an error of one line, or still parses as a document; it never
        /// causes a panic.
        #[test]
        fn damaged_files(at in 0usize..600, byte in proptest::prelude::any::<u8>(), cut in 0usize..900) {
            let mut bytes = document(2).to_text().into_bytes();
            let place = at % bytes.len();
            bytes[place] = byte;
            bytes.truncate(bytes.len().min(cut + 100));
            if let Err(error) = Document::parse(&String::from_utf8_lossy(&bytes), "f", Place::Emulated) {
                proptest::prop_assert!(!error.to_string().contains('\n'), "{}", error);
            }
        }
    }
}
