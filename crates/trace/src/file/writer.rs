//! Writing a trace file.

use std::fs::{self, File};
use std::hash::RandomState;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::SchemaDescriptor;

use super::index::NameIndex;
use super::meta::Meta;
use super::numbers;
use super::rows::{Processes, Rows};
use super::schema::{properties, schema};
use super::seal;
use crate::{ProcessInfo, Request, TraceError};

/// Rows that are divided into columns together: they fit into the processor's cache. A divisor of
/// the rows of a row group.
const TOGETHER: usize = 4096;

/// Bytes of the names of a row group, with 4 for the length of each, beyond which its rows become
/// two row groups. So all names of a row group are in its dictionary (`DICTIONARY_MAX_BYTES`).
const GROUP_NAME_BYTES: usize = 48 << 20;

/// Writes a trace file, row group by row group. Memory: one row group, the processes, up to 20
/// bytes for each file, and 64 MiB of file names. Further names go through a temporary file next to
/// `path`.
///
/// The file is written under a temporary name next to `path` and appears there with
/// [`TraceWriter::finish`]. Dropping an unfinished writer removes the temporary file.
pub struct TraceWriter {
    path: PathBuf,
    temporary: Temporary,
    parquet: SerializedFileWriter<BufWriter<File>>,
    schema: SchemaDescriptor,
    /// The rows after those of `rows`, fewer than [`TOGETHER`].
    latest: Vec<Request>,
    rows: Rows,
    last_start_ns: u64,
    names: NameIndex,
    /// Bytes of the longest name.
    longest: usize,
    /// By file: its number in the trace, which counts only files that have rows; [`UNUSED`] until
    /// the first one is written.
    numbers: Vec<u32>,
    file_numbers: numbers::Writer,
    /// The first error of the names.
    failure: Option<io::Error>,
    processes: Processes,
    requests: u64,
}

/// The number of a file without rows.
const UNUSED: u32 = u32::MAX;

impl TraceWriter {
    /// Starts the file that [`TraceWriter::finish`] puts at `path`, replacing any existing one.
    pub fn create(path: &Path) -> Result<TraceWriter, TraceError> {
        let temporary = Temporary(TraceWriter::temporary(path));
        let options = File::options().read(true).write(true).create(true).truncate(true).open(&temporary.0);
        let file = options.map_err(|error| TraceError::io(path, error))?;
        let parquet = SerializedFileWriter::new(BufWriter::new(file), schema(), Arc::new(properties()))
            .map_err(|error| misuse(path, &error.to_string()))?;
        Ok(TraceWriter {
            path: path.to_path_buf(),
            temporary,
            parquet,
            schema: SchemaDescriptor::new(schema()),
            latest: Vec::with_capacity(TOGETHER),
            rows: Rows::default(),
            last_start_ns: 0,
            names: NameIndex::new(TraceWriter::temporary_of(path, "names"), RandomState::new()),
            longest: 0,
            numbers: Vec::new(),
            file_numbers: numbers::Writer::default(),
            failure: None,
            processes: Processes::default(),
            requests: 0,
        })
    }

    /// The name under which this process writes the file that becomes `path`.
    pub fn temporary(path: &Path) -> PathBuf {
        TraceWriter::temporary_of(path, "tmp")
    }

    fn temporary_of(path: &Path, kind: &str) -> PathBuf {
        let mut name = path.file_name().unwrap_or_default().to_os_string();
        name.push(format!(".{kind}{}", std::process::id()));
        path.with_file_name(name)
    }

    /// The number of a file name, for [`Request::file`]. A failure to store the name is returned by
    /// the next [`TraceWriter::push`] or [`TraceWriter::finish`].
    pub fn file_id(&mut self, name: &str) -> u32 {
        self.longest = self.longest.max(name.len());
        self.names.add(name.as_bytes()).unwrap_or_else(|error| {
            self.failure.get_or_insert(error);
            0
        })
    }

    /// The number of a process, for [`Request::process`].
    pub fn process_id(&mut self, process: &ProcessInfo) -> u32 {
        self.processes.id(process)
    }

    /// Adds a row. Rows must come in order of start. Numbers beyond 2^63 - 1 are capped at that.
    pub fn push(&mut self, request: &Request) -> Result<(), TraceError> {
        if request.start_ns < self.last_start_ns {
            return Err(misuse(&self.path, "requests must come in order of their start"));
        }
        self.check()?;
        let processes = &self.processes.by_number;
        if request.file as usize >= self.names.len() || request.process as usize >= processes.len() {
            return Err(misuse(&self.path, "a request names an unknown file or process"));
        }
        self.last_start_ns = request.start_ns;
        self.requests += 1;
        self.latest.push(*request);
        let has_enough = self.latest.len() == TOGETHER || self.has_long_names(2 * self.latest.len());
        if has_enough { self.take_latest() } else { Ok(()) }
    }

    /// Returns the first error of the names, which are incomplete then.
    fn check(&self) -> Result<(), TraceError> {
        match &self.failure {
            Some(error) => Err(TraceError::new(&self.path, error.to_string())),
            None => Ok(()),
        }
    }

    /// Number of rows so far.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// Writes the remaining rows and the footer, syncs, and renames the file to its path. Returns
    /// the file's size in bytes.
    pub fn finish(mut self, meta: &Meta) -> Result<u64, TraceError> {
        self.check()?;
        self.take_latest()?;
        if !self.rows.is_empty() {
            self.write_row_group()?;
        }
        for entry in meta.to_key_values(&self.processes.by_number) {
            self.parquet.append_key_value_metadata(entry);
        }
        self.parquet.append_key_value_metadata(self.file_numbers.to_key_value());
        let path = &self.path;
        let io = |error| TraceError::io(path, error);
        self.parquet.write_all(&seal::BLANK).map_err(io)?;
        let buffered = self.parquet.into_inner().map_err(|error| failed(path, error))?;
        let file = buffered.into_inner().map_err(|error| io(error.into_error()))?;
        seal::fill(&file).map_err(io)?;
        file.sync_all().map_err(io)?;
        let size_bytes = file.metadata().map_err(io)?.len();
        fs::rename(&self.temporary.0, path).map_err(io)?;
        Ok(size_bytes)
    }

    fn take_latest(&mut self) -> Result<(), TraceError> {
        let most = self.latest.len();
        let is_too_much = !self.rows.has_space_for(most) || self.has_long_names(self.rows.files().len() + most);
        if is_too_much && !self.rows.is_empty() {
            self.write_row_group()?;
        }
        self.rows.extend(&self.latest, &self.processes);
        self.latest.clear();
        if self.rows.is_full() { self.write_row_group() } else { Ok(()) }
    }

    /// Whether so many names may be too long for a row group.
    fn has_long_names(&self, names: usize) -> bool {
        names * (self.longest + 4) > GROUP_NAME_BYTES
    }

    fn write_row_group(&mut self) -> Result<(), TraceError> {
        self.write_rows().map_err(|error| failed(&self.path, error))
    }

    fn write_rows(&mut self) -> parquet::errors::Result<()> {
        let files = self.rows.files().to_vec();
        let names = self.names_of(&files)?;
        let properties = self.parquet.properties().clone();
        let mut group = self.parquet.next_row_group()?;
        self.rows.write(&mut group, (&self.schema, &properties), &self.processes, names)?;
        group.close()?;
        self.numbers.resize(self.names.len(), UNUSED);
        for file in files {
            match &mut self.numbers[file as usize] {
                number if *number == UNUSED => *number = self.file_numbers.add_new(),
                number => self.file_numbers.add_known(*number),
            }
        }
        let bytes = self.file_numbers.end_group(self.parquet.bytes_written() as u64);
        Ok(self.parquet.write_all(&bytes)?)
    }

    /// The names of files.
    fn names_of(&mut self, files: &[i64]) -> io::Result<Vec<ByteArray>> {
        let mut names = vec![ByteArray::new(); files.len()];
        let mut order: Vec<u32> = (0..files.len() as u32).collect();
        // Names with consecutive numbers are read together.
        order.sort_unstable_by_key(|&index| files[index as usize]);
        for index in order.into_iter().map(|index| index as usize) {
            names[index] = ByteArray::from(self.names.name(files[index] as u32)?.to_vec());
        }
        Ok(names)
    }
}

/// The temporary file. After a finish its name is gone already.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        // A failure here cannot be handled.
        let _ = fs::remove_file(&self.0);
    }
}

fn failed(path: &Path, error: ParquetError) -> TraceError {
    let other = match error {
        ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
            Ok(io) => return TraceError::io(path, *io),
            Err(other) => other.to_string(),
        },
        other => other.to_string(),
    };
    misuse(path, &other)
}

/// A caller of [`TraceWriter`] violated its contract.
fn misuse(path: &Path, what: &str) -> TraceError {
    TraceError::new(path, format!("cannot write the trace: {what}"))
}
