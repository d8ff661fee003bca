//! Writing a trace file.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use indexmap::IndexSet;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};

use super::meta::Meta;
use super::schema::{ROW_GROUP_ROWS, properties, schema};
use super::seal;
use crate::{Op, ProcessInfo, Request, TraceError};

/// Writes a trace file, row group by row group. Memory: one row group, the file names and the
/// processes.
///
/// The file is written under a temporary name next to `path` and appears there with
/// [`TraceWriter::finish`]. Dropping an unfinished writer removes the temporary file.
pub struct TraceWriter {
    path: PathBuf,
    temporary: Temporary,
    parquet: SerializedFileWriter<BufWriter<File>>,
    rows: Vec<Request>,
    last_start_ns: u64,
    /// File names, and processes, by number.
    files: IndexSet<Bytes>,
    processes: IndexSet<ProcessInfo>,
    requests: u64,
}

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
            rows: Vec::new(),
            last_start_ns: 0,
            files: IndexSet::new(),
            processes: IndexSet::new(),
            requests: 0,
        })
    }

    /// The name under which this process writes the file that becomes `path`.
    pub fn temporary(path: &Path) -> PathBuf {
        let mut name = path.file_name().unwrap_or_default().to_os_string();
        name.push(format!(".tmp{}", std::process::id()));
        path.with_file_name(name)
    }

    /// The number of a file name, for [`Request::file`].
    pub fn file_id(&mut self, name: &str) -> u32 {
        self.files.insert_full(Bytes::copy_from_slice(name.as_bytes())).0 as u32
    }

    /// The number of a process, for [`Request::process`].
    pub fn process_id(&mut self, process: &ProcessInfo) -> u32 {
        let known = self.processes.get_index_of(process);
        known.unwrap_or_else(|| self.processes.insert_full(process.clone()).0) as u32
    }

    /// Adds a row. Rows must come in order of start. Numbers beyond 2^63 - 1 are capped at that.
    pub fn push(&mut self, request: &Request) -> Result<(), TraceError> {
        if request.start_ns < self.last_start_ns {
            return Err(misuse(&self.path, "requests must come in order of their start"));
        }
        if request.file as usize >= self.files.len() || request.process as usize >= self.processes.len() {
            return Err(misuse(&self.path, "a request names an unknown file or process"));
        }
        self.last_start_ns = request.start_ns;
        self.requests += 1;
        self.rows.push(*request);
        if self.rows.len() == ROW_GROUP_ROWS { self.write_row_group() } else { Ok(()) }
    }

    /// Number of rows so far.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// Writes the remaining rows and the footer, syncs, and renames the file to its path. Returns
    /// the file's size in bytes.
    pub fn finish(mut self, meta: &Meta) -> Result<u64, TraceError> {
        if !self.rows.is_empty() {
            self.write_row_group()?;
        }
        for entry in meta.to_key_values(&self.processes) {
            self.parquet.append_key_value_metadata(entry);
        }
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

    fn write_row_group(&mut self) -> Result<(), TraceError> {
        let written = write_columns(&mut self.parquet, &self.rows, &self.processes, &self.files);
        self.rows.clear();
        written.map_err(|error| failed(&self.path, error))
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

fn write_columns(
    parquet: &mut SerializedFileWriter<BufWriter<File>>,
    rows: &[Request],
    processes: &IndexSet<ProcessInfo>,
    files: &IndexSet<Bytes>,
) -> parquet::errors::Result<()> {
    let nodes: Vec<ByteArray> = processes.iter().map(|process| process.node.as_str().into()).collect();
    let ops: Vec<ByteArray> =
        std::iter::once(ByteArray::from("")).chain(Op::ALL.iter().map(|op| op.name().into())).collect();
    let process = |row: &Request| &processes[row.process as usize];
    let mut group = parquet.next_row_group()?;
    // In the order of the schema.
    column::<Int32Type>(&mut group, rows, |row| row.process as i32)?;
    column::<Int32Type>(&mut group, rows, |row| process(row).rank)?;
    column::<ByteArrayType>(&mut group, rows, |row| nodes[row.process as usize].clone())?;
    column::<Int32Type>(&mut group, rows, |row| process(row).pid as i32)?;
    column::<Int32Type>(&mut group, rows, |row| row.tid as i32)?;
    column::<ByteArrayType>(&mut group, rows, |row| ByteArray::from(files[row.file as usize].clone()))?;
    column::<ByteArrayType>(&mut group, rows, |row| ops[row.op as usize].clone())?;
    column::<Int32Type>(&mut group, rows, |row| i32::from(row.flags.0))?;
    let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    column::<Int64Type>(&mut group, rows, |row| signed(row.offset))?;
    column::<Int64Type>(&mut group, rows, |row| signed(row.size))?;
    column::<Int64Type>(&mut group, rows, |row| row.result)?;
    column::<Int64Type>(&mut group, rows, |row| signed(row.start_ns))?;
    column::<Int64Type>(&mut group, rows, |row| signed(row.end_ns))?;
    group.close()?;
    Ok(())
}

/// Writes the next column, in batches that fit into the processor's cache.
fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, BufWriter<File>>,
    rows: &[Request],
    value: impl Fn(&Request) -> T::T,
) -> parquet::errors::Result<()> {
    let mut column = group.next_column()?.expect("as many calls as columns");
    let mut values = Vec::with_capacity(8192.min(rows.len()));
    for chunk in rows.chunks(8192) {
        values.clear();
        values.extend(chunk.iter().map(&value));
        column.typed::<T>().write_batch(&values, None, None)?;
    }
    column.close()
}
