//! Statistics files, summed over processes: counters of processes that used files with several
//! copies. Format: `docs/formats/statistics.md`.

use std::collections::BTreeSet;

use stripewise_cluster::{MAX_COPIES, StatisticsLine};

use crate::InputError;

/// Counters of one file, from one process or summed over several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStatistics {
    /// The file's first line, with the counters of all lines. If processes opened the file by
    /// several names, `path` is the first of them.
    pub line: StatisticsLine,
    /// The processes whose counters these are.
    pub processes: BTreeSet<Process>,
}

/// A process, as far as it can be distinguished: each node has a statistics file of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Process {
    /// Index of the statistics file with its lines, from 0.
    pub source: usize,
    /// Process id on its node.
    pub pid: u32,
    /// Rank, if it has one.
    pub rank: Option<u32>,
}

/// Counters by file: the sums over the lines of statistics files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// The files, in the order in which they first appear.
    pub files: Vec<FileStatistics>,
    /// Number of statistics files read.
    sources: usize,
}

impl Statistics {
    /// Adds the lines of a statistics file; `file_name` is only used in messages. Unknown keys and
    /// empty lines are skipped.
    ///
    /// # Errors
    /// The first line that is invalid or contradicts an earlier line of its file.
    pub fn read(&mut self, text: &str, file_name: &str) -> Result<(), InputError> {
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let added = parse_line(line).and_then(|line| self.add(line));
            added.map_err(|problem| InputError {
                file: format!("{file_name}, line {}", index + 1),
                problem: format!("{problem}; a statistics file is what `stripewise run --statistics` writes"),
            })?;
        }
        self.sources += 1;
        Ok(())
    }

    fn add(&mut self, line: StatisticsLine) -> Result<(), String> {
        let process = Process { source: self.sources, pid: line.pid, rank: line.rank };
        let more = FileStatistics { line, processes: BTreeSet::from([process]) };
        let Some(known) = self.files.iter_mut().find(|known| known.line.file == more.line.file) else {
            self.files.push(more);
            return Ok(());
        };
        let names = |file: &FileStatistics| file.line.counts.copy_names().collect::<Vec<_>>().join(", ");
        let (here, earlier) = (names(&more), names(known));
        if known.line.kind != more.line.kind || here != earlier {
            return Err(format!("\"copies\": are {here} here and {earlier} in an earlier line of this file"));
        }
        known.add(&more);
        Ok(())
    }
}

impl FileStatistics {
    /// Adds the counters of other processes for the file, or those of another file with as many
    /// copies.
    pub fn add(&mut self, more: &Self) {
        self.processes.extend(&more.processes);
        self.line.counts.add(&more.line.counts);
    }
}

/// Parses a line, and checks what its type does not ensure.
fn parse_line(line: &str) -> Result<StatisticsLine, String> {
    // The error counts the lines of its own text, which is one line.
    let text = |error: serde_json::Error| error.to_string().replace(" at line 1 column ", " at column ");
    let line: StatisticsLine =
        serde_json::from_str(line).map_err(|error| text(error).replace(char::is_control, " "))?;
    let copies = &line.counts.copies;
    if !(1..=MAX_COPIES).contains(&copies.len()) {
        return Err(format!("\"copies\": has {} copies, must be 1 to {MAX_COPIES}", copies.len()));
    }
    let texts = [&line.path, &line.file].into_iter().chain(copies.iter().map(|copy| &copy.name));
    match texts.filter(|text| text.is_empty()).count() {
        0 => Ok(line),
        _ => Err("an empty \"path\", \"file\" or \"name\"".to_owned()),
    }
}
