//! Reading a trace file.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, Length, RowGroupReader, SerializedFileReader};

use super::columns::Column;
use super::library::{self, Source};
use super::meta::Meta;
use super::names::Names;
use super::schema::schema;
use super::seal::{self, Seal};
use super::sound;
use crate::{Flags, Op, ProcessInfo, Request, TraceError};

/// Rows per batch, which fits into the processor's cache.
const BATCH_ROWS: usize = 2048;

/// An open trace file, the content of its footer, and the file names.
pub struct Trace {
    path: PathBuf,
    source: Source,
    meta: Meta,
    processes: Vec<ProcessInfo>,
    names: Arc<Names>,
    requests: u64,
}

impl Trace {
    /// Opens a trace file: verifies the checksum of the whole file, reads the footer and the file
    /// names.
    pub fn open(path: &Path) -> Result<Trace, TraceError> {
        let io = |error| TraceError::io(path, error);
        let source = File::open(path).and_then(Source::new).map_err(io)?;
        match seal::check(source.file()).map_err(io)? {
            Seal::Whole => {}
            Seal::None => return Err(TraceError::new(path, "is not a trace, or is one that was cut off")),
            Seal::Broken => {
                return Err(TraceError::new(
                    path,
                    "is a damaged trace (its checksum is wrong): record it again",
                ));
            }
        }
        let reader = open_parquet(path, &source)?;
        let footer = reader.metadata().file_metadata();
        let entries = footer.key_value_metadata().map(Vec::as_slice).unwrap_or_default();
        let (meta, processes) = Meta::from_key_values(path, entries)?;
        if footer.schema().get_fields() != schema().get_fields() {
            return Err(TraceError::new(path, "has other columns than a trace of format 1: damaged trace"));
        }
        let groups = reader.metadata().row_groups();
        let rows = groups.iter().map(|group| sound::rows(group, source.len()));
        let requests = rows.sum::<Result<u64, _>>().map_err(|problem| library::damaged(path, problem))?;
        let names = Arc::new(names(path, &source, &reader)?);
        Ok(Trace { path: path.to_path_buf(), source, meta, processes, names, requests })
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The metadata: command, times and the like.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Why calls are missing, one sentence each, joined; `None` if the trace is complete.
    pub fn incomplete(&self) -> Option<String> {
        (!self.meta.incomplete.is_empty()).then(|| self.meta.incomplete.join("; "))
    }

    /// The processes, indexed by [`Request::process`].
    pub fn processes(&self) -> &[ProcessInfo] {
        &self.processes
    }

    /// The names of all files, indexed by [`Request::file`].
    pub fn files(&self) -> &[Arc<str>] {
        self.names.all()
    }

    /// The number of rows.
    pub fn len(&self) -> u64 {
        self.requests
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.requests == 0
    }

    /// Streams all rows in order of start. Memory: a batch, and a page of each column.
    pub fn requests(&self) -> Result<Requests, TraceError> {
        Ok(Requests {
            parquet: open_parquet(&self.path, &self.source)?,
            source: self.source.clone(),
            path: self.path.clone(),
            processes: self.processes.len(),
            row_group: 0,
            columns: None,
            names: self.names.clone(),
            batch: Vec::new(),
            last_start_ns: 0,
        })
    }
}

fn open_parquet(path: &Path, source: &Source) -> Result<SerializedFileReader<Source>, TraceError> {
    library::call(path, || SerializedFileReader::new(source.clone()))
}

/// Consecutive rows of a trace.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// The rows, in order of start.
    pub requests: &'a [Request],
    /// The names of all files of the trace, indexed by [`Request::file`].
    pub files: &'a [Arc<str>],
}

/// The rows of a trace, batch by batch.
pub struct Requests {
    parquet: SerializedFileReader<Source>,
    source: Source,
    path: PathBuf,
    processes: usize,
    row_group: usize,
    columns: Option<[Column; 10]>,
    names: Arc<Names>,
    batch: Vec<Request>,
    last_start_ns: u64,
}

impl Requests {
    /// The next rows, in order of start; `None` after the last.
    pub fn next_batch(&mut self) -> Result<Option<Batch<'_>>, TraceError> {
        loop {
            if self.columns.is_none() && !self.open_row_group()? {
                return Ok(None);
            }
            self.batch.clear();
            let columns = self.columns.as_mut().expect("opened above");
            let rows = library::call(&self.path, || read_columns(columns, &self.names))?;
            if rows > 0 {
                self.fill_batch(rows)?;
                return Ok(Some(Batch { requests: &self.batch, files: self.names.all() }));
            }
            self.columns = None;
        }
    }

    fn open_row_group(&mut self) -> Result<bool, TraceError> {
        if self.row_group == self.parquet.num_row_groups() {
            return Ok(false);
        }
        let (parquet, number) = (&self.parquet, self.row_group);
        sound::check_pages(&self.source, parquet.metadata().row_group(number))
            .map_err(|problem| library::damaged(&self.path, problem))?;
        let open = || parquet.get_row_group(number).and_then(|group| open_columns(group.as_ref()));
        let columns = library::call(&self.path, open)?;
        self.row_group += 1;
        self.columns = Some(columns);
        Ok(true)
    }

    fn fill_batch(&mut self, rows: usize) -> Result<(), TraceError> {
        let columns = self.columns.as_ref().expect("the caller read them").each_ref();
        // Slices of one length, so that the loop needs no checks.
        let [process, tid, flags, file, op, result, offset, size, start, end] =
            columns.map(|column| &column.values[..rows]);
        // Negative if one of the numbers is that must not be.
        let mut least = 0;
        self.batch.reserve(rows);
        for row in 0..rows {
            least = least.min(offset[row] | size[row] | start[row] | end[row]);
            let (start_ns, end_ns) = (start[row].cast_unsigned(), end[row].cast_unsigned());
            let process = process[row] as u32;
            if process as usize >= self.processes {
                return Err(library::damaged(&self.path, "a request names an unknown process"));
            }
            if start_ns < self.last_start_ns || end_ns < start_ns {
                return Err(library::damaged(&self.path, "times are not in order"));
            }
            self.last_start_ns = start_ns;
            self.batch.push(Request {
                process,
                tid: tid[row] as u32,
                file: file[row] as u32,
                op: Op::ALL[op[row] as usize],
                flags: Flags(flags[row] as u8),
                offset: offset[row].cast_unsigned(),
                size: size[row].cast_unsigned(),
                result: result[row],
                start_ns,
                end_ns,
            });
        }
        if least < 0 {
            return Err(library::damaged(&self.path, "a negative number"));
        }
        Ok(())
    }
}

/// The columns that make up a [`Request`]; the others repeat the list of processes.
const COLUMNS: [&str; 10] =
    ["process", "tid", "flags", "file", "op", "result", "offset", "size", "start_ns", "end_ns"];

/// Index of the file column in [`COLUMNS`].
const FILE: usize = 3;

fn open_columns(group: &dyn RowGroupReader) -> parquet::errors::Result<[Column; 10]> {
    let columns = COLUMNS.iter().map(|name| Column::open(group, name)).collect::<Result<Vec<_>, _>>()?;
    Ok(columns.try_into().ok().expect("a column for every name"))
}

/// Reads the next values of all columns. Returns their number.
fn read_columns(columns: &mut [Column; 10], names: &Names) -> parquet::errors::Result<usize> {
    for (index, column) in columns.iter_mut().enumerate() {
        if index == FILE {
            column.read(BATCH_ROWS, &mut |name| names.find(name).map(i64::from))?;
        } else {
            // Of the others, only the operation has strings.
            column.read(BATCH_ROWS, &mut |name| Some(Op::from_name(name)? as i64 - 1))?;
        }
    }
    let rows = columns[0].values.len();
    if columns.iter().any(|column| column.values.len() != rows) {
        return Err(ParquetError::General("columns of different lengths".into()));
    }
    Ok(rows)
}

/// The names of all files. Reads the dictionaries only, unless a row group has more names than fit
/// into its dictionary.
fn names(path: &Path, source: &Source, parquet: &SerializedFileReader<Source>) -> Result<Names, TraceError> {
    let mut names = Names::default();
    for number in 0..parquet.num_row_groups() {
        let group = parquet.metadata().row_group(number);
        let is_dictionary = sound::check_names(source, group).map_err(|why| library::damaged(path, why))?;
        library::call(path, || {
            let mut column = Column::open(parquet.get_row_group(number)?.as_ref(), COLUMNS[FILE])?;
            let mut add = |name: &str| names.add(name).map(i64::from);
            if is_dictionary {
                return column.read_dictionary(&mut add);
            }
            loop {
                column.read(BATCH_ROWS, &mut add)?;
                if column.values.is_empty() {
                    return Ok(());
                }
            }
        })?;
    }
    Ok(names)
}
