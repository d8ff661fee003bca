//! Records on disk, one line each. A record is written as soon as it exists, so that no run is
//! repeated.

use std::collections::HashMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use stripewise_console::files;
use stripewise_evaluate::{Cell, Document, Labels, Place, Record, Scheme, bound};

use super::args::Args;
use crate::machine;

/// One run to execute.
pub struct Task {
    pub cell: Cell,
    pub scheme: Scheme,
}

/// The records of one place.
pub struct Store {
    path: PathBuf,
    file: File,
    records: Vec<Record>,
    known: HashMap<Key, usize>,
}

type Key = (String, Labels, String);

fn key_of(record: &Record) -> Key {
    (record.experiment.clone(), record.labels.clone(), record.scheme.clone())
}

impl Store {
    /// Opens the records in `dir`, and creates the file if there is none. The last of several
    /// records of the same run counts, and a torn last line is cut off. The file is locked for this
    /// process until it ends.
    pub fn open(dir: &Path, place: Place) -> anyhow::Result<Self> {
        let path = dir.join(format!("{}.jsonl", place.name()));
        let file = OpenOptions::new().create(true).append(true).open(&path);
        let file = file.with_context(|| format!("cannot write {}", path.display()))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => anyhow::bail!(
                "another evaluate is writing to {}; wait for it, or name another directory with --dir",
                path.display()
            ),
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("cannot lock {}", path.display()));
            }
        }
        let text = files::read(&path)?;
        let mut store = Self { path, file, records: Vec::new(), known: HashMap::new() };
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        if whole < text.len() {
            eprintln!("stripewise-bench: {}: the last line is torn and is left out", store.path.display());
            store.file.set_len(whole as u64).with_context(|| format!("cannot cut {}", store.path.display()))?;
        }
        for (number, line) in text[..whole].lines().enumerate() {
            let at = || format!("{} line {}", store.path.display(), number + 1);
            let record: Record = serde_json::from_str(line).with_context(|| {
                format!("{}: not a record; remove the line, or the file to start anew", at())
            })?;
            anyhow::ensure!(record.place == place, "{}: a record of {}", at(), record.place.name());
            store.keep(record);
        }
        Ok(store)
    }

    /// Returns the runs without a record, with a record for other parameters, or with a failed
    /// record; all runs if `again`.
    pub fn missing(&self, cells: &[Cell], again: bool) -> Vec<Task> {
        let tasks = cells.iter().flat_map(|cell| cell.schemes.iter().map(move |scheme| (cell, scheme)));
        let missing = tasks.filter(|(cell, scheme)| again || !self.has(cell, scheme));
        missing.map(|(cell, scheme)| Task { cell: cell.clone(), scheme: scheme.clone() }).collect()
    }

    fn has(&self, cell: &Cell, scheme: &Scheme) -> bool {
        let key = (cell.experiment.to_owned(), cell.labels.clone(), scheme.name());
        let known = self.known.get(&key).map(|&index| &self.records[index]);
        known.is_some_and(|record| record.failed.is_none() && record.parameters == cell.parameters(scheme))
    }

    pub fn add(&mut self, record: Record) -> anyhow::Result<()> {
        let mut line = serde_json::to_string(&record)?;
        line.push('\n');
        self.file
            .write_all(line.as_bytes())
            .with_context(|| format!("cannot write {}", self.path.display()))?;
        self.keep(record);
        Ok(())
    }

    fn keep(&mut self, record: Record) {
        let next = self.records.len();
        let index = *self.known.entry(key_of(&record)).or_insert(next);
        if index == next { self.records.push(record) } else { self.records[index] = record }
    }

    /// Writes the document next to the records: first the records of `cells` in their order, then
    /// all others. Returns how many runs of the cells failed.
    pub fn finish(self, cells: &[Cell], args: &Args) -> anyhow::Result<usize> {
        let mut order: HashMap<Key, usize> = HashMap::new();
        let mut records = self.records;
        for cell in cells {
            for scheme in &cell.schemes {
                // The bound is computed and not measured, so the present value also replaces that
                // of earlier measurements.
                let bound_s = bound::least_s(cell, scheme);
                let next = order.len();
                let key = (cell.experiment.to_owned(), cell.labels.clone(), scheme.name());
                if let Some(&known) = self.known.get(&key) {
                    records[known].details.insert(bound::LEAST_S.to_owned(), bound_s);
                }
                order.insert(key, next);
            }
        }
        let failed = |record: &&Record| record.failed.is_some() && order.contains_key(&key_of(record));
        let failures = records.iter().filter(failed).count();
        for record in records.iter().filter(failed).take(FAILURES_SAID) {
            let why = record.failed.as_deref().unwrap_or_default();
            eprintln!("stripewise-bench: {} {:?} {}: {why}", record.experiment, record.labels, record.scheme);
        }
        records.sort_by_key(|record| order.get(&key_of(record)).copied().unwrap_or(usize::MAX));
        let document = Document {
            date: machine::utc_now(),
            command: args.command(),
            machine: machine::describe(),
            records,
        };
        let text = document.to_text();
        files::write_whole(&self.path.with_extension("json"), &text)?;
        if args.json {
            print!("{text}");
        }
        Ok(failures)
    }
}

/// Maximum number of failed runs that are listed individually.
const FAILURES_SAID: usize = 10;
