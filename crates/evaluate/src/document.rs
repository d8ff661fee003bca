//! `docs/evaluation/{simulated,emulated,disks}.json`: all records of one place, with date, command
//! and machine.

use std::fmt::Write;

use crate::record::{DOCUMENT_VERSION, Document, Place};

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
        let found: Self =
            serde_json::from_str(text).map_err(|wrong| error(format!("no records: {wrong}; {remedy}")))?;
        if found.version != DOCUMENT_VERSION {
            let known = DOCUMENT_VERSION;
            return Err(error(format!("version = {}: this stripewise reads {known}; {remedy}", found.version)));
        }
        if let Some(stray) = found.records.iter().find(|record| record.place != place) {
            let (stray, place) = (stray.place.name(), place.name());
            return Err(error(format!("where = {stray:?}: only records of {place} belong here; {remedy}")));
        }
        Ok(found)
    }

    /// Returns the file's text, with one line per record, so that two versions can be compared line
    /// by line.
    pub fn to_text(&self) -> String {
        let head = Self { records: Vec::new(), ..self.clone() };
        let head = serde_json::to_string_pretty(&head).expect("plain data is JSON");
        let mut text = head.strip_suffix("[]\n}").expect("records come last").to_owned();
        text.push('[');
        for (index, record) in self.records.iter().enumerate() {
            let record = serde_json::to_string(record).expect("plain data is JSON");
            let _ = write!(text, "{}\n{record}", if index > 0 { "," } else { "" });
        }
        text.push_str("\n]\n}\n");
        text
    }
}

#[cfg(test)]
mod tests {
    use stripewise_report::Machine;

    use super::*;
    use crate::Record;

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
            version: DOCUMENT_VERSION,
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
            assert_eq!(text.lines().filter(|line| line.contains("\"scheme\"")).count(), records);
        }
    }

    #[test]
    fn what_is_no_such_file_is_said_in_a_line() {
        let text = document(1).to_text();
        let error = |text: &str, place| Document::parse(text, "f.json", place).unwrap_err().to_string();
        let newer = text.replacen("\"version\": 1", "\"version\": 9", 1);
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
