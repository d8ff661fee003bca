//! Statistics files: counters of processes that used files with several copies. Format:
//! `docs/formats/statistics.md`.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// Counters of one file, from one process or summed over several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileStatistics {
    /// Path of the file; if processes opened it by several names, the first of them.
    pub path: String,
    /// The file's id. A file that is recreated or placed gets another id.
    pub file: String,
    /// The processes whose counters these are.
    pub processes: BTreeSet<Process>,
    /// Kind of the copies.
    pub kind: CopiesKind,
    /// The cache's admission mode: `sla`, `sca`, `nsca` or `off`.
    pub mode: Option<String>,
    /// The summed counters.
    pub counts: Counts,
    /// Counters by copy; copy 0 is the original.
    pub copies: Vec<CopyStatistics>,
}

/// A process, as far as it can be distinguished: each node has a statistics file of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Process {
    /// Index of the statistics file with its lines, from 0.
    pub source: usize,
    /// Process id on its node.
    pub pid: u64,
    /// Rank, if it has one.
    pub rank: Option<i64>,
}

/// Kind of the copies of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CopiesKind {
    /// Whole copies with different layouts.
    #[default]
    Replicas,
    /// Ranges of the file on faster servers.
    Cache,
}

/// Counters of one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of reads and writes.
    pub requests: u64,
    /// Number of requests that the model considers performance-critical.
    pub critical: u64,
    /// Number of requests served entirely by cache copies.
    pub hits: u64,
    /// Number of requests served partly by cache copies.
    pub partial_hits: u64,
    /// Number of ranges evicted from a cache copy.
    pub evictions: u64,
    /// Bytes of these ranges.
    pub evicted_bytes: u64,
    /// Number of ranges copied to the original in the background.
    pub write_backs: u64,
    /// Number of ranges copied to a cache copy in the background.
    pub fetches: u64,
}

/// Counters of one copy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyStatistics {
    /// `original`, or the copy's name in the plan.
    pub name: String,
    /// Bytes read from it for requests.
    pub read_bytes: u64,
    /// Bytes written to it for requests.
    pub written_bytes: u64,
    /// Bytes copied to it in the background.
    pub copied_bytes: u64,
}

/// Error in a statistics file, in one line: the file, the line, the key, and the problem.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}; a statistics file is what `stripewise run --statistics` writes")]
pub struct StatisticsError(String);

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
    pub fn read(&mut self, text: &str, file_name: &str) -> Result<(), StatisticsError> {
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let wrong = |(key, problem): Wrong| {
                let key = if key.is_empty() { key } else { format!(", {key:?}") };
                StatisticsError(format!("{file_name}, line {}{key}: {problem}", index + 1))
            };
            self.add(parse_line(line, self.sources).map_err(wrong)?).map_err(wrong)?;
        }
        self.sources += 1;
        Ok(())
    }

    fn add(&mut self, more: FileStatistics) -> Result<(), Wrong> {
        let same = |known: &&mut FileStatistics| known.file == more.file;
        let Some(known) = self.files.iter_mut().find(same) else {
            self.files.push(more);
            return Ok(());
        };
        if known.kind != more.kind || !known.copy_names().eq(more.copy_names()) {
            let names = |file: &FileStatistics| file.copy_names().collect::<Vec<_>>().join(", ");
            let problem =
                format!("are {} here and {} in an earlier line of this file", names(&more), names(known));
            return Err(("copies".to_owned(), problem));
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
        for (sum, number) in self.counts.all_mut().into_iter().zip(more.counts.all()) {
            *sum = sum.saturating_add(number);
        }
        for (copy, more) in self.copies.iter_mut().zip(&more.copies) {
            copy.read_bytes = copy.read_bytes.saturating_add(more.read_bytes);
            copy.written_bytes = copy.written_bytes.saturating_add(more.written_bytes);
            copy.copied_bytes = copy.copied_bytes.saturating_add(more.copied_bytes);
        }
    }

    /// Returns the copies' names, the original's first.
    pub fn copy_names(&self) -> impl Iterator<Item = &str> {
        self.copies.iter().map(|copy| copy.name.as_str())
    }

    /// Returns the bytes that requests moved.
    pub fn bytes(&self) -> u64 {
        self.copies.iter().fold(0, |sum, copy| sum.saturating_add(copy.bytes()))
    }
}

impl CopyStatistics {
    /// Returns the bytes read and written for requests.
    pub fn bytes(&self) -> u64 {
        self.read_bytes.saturating_add(self.written_bytes)
    }
}

impl Counts {
    /// Keys of the counters in a line.
    const KEYS: [&str; 8] = [
        "requests",
        "critical",
        "hits",
        "partial_hits",
        "evictions",
        "evicted_bytes",
        "write_backs",
        "fetches",
    ];

    /// Returns the counters in the order of the keys.
    fn all_mut(&mut self) -> [&mut u64; 8] {
        [
            &mut self.requests,
            &mut self.critical,
            &mut self.hits,
            &mut self.partial_hits,
            &mut self.evictions,
            &mut self.evicted_bytes,
            &mut self.write_backs,
            &mut self.fetches,
        ]
    }

    fn all(mut self) -> [u64; 8] {
        self.all_mut().map(|number| *number)
    }
}

/// A key, and the problem with its value.
type Wrong = (String, String);

fn parse_line(line: &str, source: usize) -> Result<FileStatistics, Wrong> {
    let value: Value = serde_json::from_str(line)
        .map_err(|error| (String::new(), format!("not JSON: {error}, in {:?}", shortened(line))))?;
    let Value::Object(object) = value else {
        return Err((String::new(), format!("is {}, must be an object", shown(&value))));
    };
    let file = Fields { object: &object, within: "" };
    let mut counts = Counts::default();
    for (number, key) in counts.all_mut().into_iter().zip(Counts::KEYS) {
        *number = file.number(key)?;
    }
    Ok(FileStatistics {
        path: file.text("path")?.to_owned(),
        file: file.text("file")?.to_owned(),
        processes: BTreeSet::from([process(&file, source)?]),
        kind: match file.one_of("kind", &["replicas", "cache"])? {
            "cache" => CopiesKind::Cache,
            _ => CopiesKind::Replicas,
        },
        mode: match object.get("mode") {
            None | Some(Value::Null) => None,
            Some(_) => Some(file.one_of("mode", &["sla", "sca", "nsca", "off"])?.to_owned()),
        },
        counts,
        copies: copies(&file)?,
    })
}

fn process(file: &Fields<'_>, source: usize) -> Result<Process, Wrong> {
    let rank = match file.get("rank")? {
        Value::Null => None,
        rank => Some(rank.as_i64().ok_or_else(|| file.wrong("rank", rank, "a whole number or null"))?),
    };
    Ok(Process { source, pid: file.number("pid")?, rank })
}

fn copies(file: &Fields<'_>) -> Result<Vec<CopyStatistics>, Wrong> {
    let value = file.get("copies")?;
    let Value::Array(copies) = value else { return Err(file.wrong("copies", value, "a list of the copies")) };
    // At most 8 copies, because the valid copies of a range are a mask of one byte.
    if !(1..=8).contains(&copies.len()) {
        return Err(("copies".to_owned(), format!("has {} copies, must be 1 to 8", copies.len())));
    }
    let copy = |(index, value): (usize, &Value)| {
        let Value::Object(object) = value else {
            return Err((format!("copies[{index}]"), format!("is {}, must be an object", shown(value))));
        };
        let copy = Fields { object, within: &format!("copies[{index}].") };
        Ok(CopyStatistics {
            name: copy.text("name")?.to_owned(),
            read_bytes: copy.number("read_bytes")?,
            written_bytes: copy.number("written_bytes")?,
            copied_bytes: copy.number("copied_bytes")?,
        })
    };
    copies.iter().enumerate().map(copy).collect()
}

/// Reads the keys of a JSON object, with errors that name the key.
struct Fields<'a> {
    object: &'a Map<String, Value>,
    /// Prefix of keys in errors.
    within: &'a str,
}

impl<'a> Fields<'a> {
    fn get(&self, key: &str) -> Result<&'a Value, Wrong> {
        self.object.get(key).ok_or_else(|| (format!("{}{key}", self.within), "is missing".to_owned()))
    }

    fn wrong(&self, key: &str, value: &Value, wanted: &str) -> Wrong {
        (format!("{}{key}", self.within), format!("is {}, must be {wanted}", shown(value)))
    }

    fn text(&self, key: &str) -> Result<&'a str, Wrong> {
        let value = self.get(key)?;
        let text = value.as_str().filter(|text| !text.is_empty());
        text.ok_or_else(|| self.wrong(key, value, "a text that is not empty"))
    }

    fn one_of(&self, key: &str, allowed: &[&'static str]) -> Result<&'static str, Wrong> {
        let value = self.get(key)?;
        let known = allowed.iter().copied().find(|allowed| value.as_str() == Some(allowed));
        known.ok_or_else(|| self.wrong(key, value, &format!("one of {}", allowed.join(", "))))
    }

    fn number(&self, key: &str) -> Result<u64, Wrong> {
        let value = self.get(key)?;
        value.as_u64().ok_or_else(|| self.wrong(key, value, "a whole number from 0 on"))
    }
}

/// Formats a value for a message.
fn shown(value: &Value) -> String {
    shortened(&value.to_string())
}

fn shortened(text: &str) -> String {
    const MOST: usize = 40;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
