//! Reading a trace file.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use parquet::column::reader::{ColumnReaderImpl, get_typed_column_reader};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, Length, RowGroupReader, SerializedFileReader};
use rustc_hash::FxHashMap;

use super::library::{self, Source};
use super::meta::Meta;
use super::schema::schema;
use super::seal::{self, Seal};
use super::sound;
use crate::{Flags, Op, ProcessInfo, Request, TraceError};

/// Rows per batch.
const BATCH_ROWS: usize = 16 * 1024;

/// An open trace file and the content of its footer.
pub struct Trace {
    path: PathBuf,
    source: Source,
    meta: Meta,
    processes: Vec<ProcessInfo>,
    requests: u64,
}

impl Trace {
    /// Opens a trace file: verifies the checksum of the whole file and reads the footer.
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
        Ok(Trace { path: path.to_path_buf(), source, meta, processes, requests })
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

    /// The number of rows.
    pub fn len(&self) -> u64 {
        self.requests
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.requests == 0
    }

    /// Streams all rows in order of start. Memory: a few batches and the file names.
    pub fn requests(&self) -> Result<Requests, TraceError> {
        Ok(Requests {
            parquet: open_parquet(&self.path, &self.source)?,
            source: self.source.clone(),
            path: self.path.clone(),
            processes: self.processes.len(),
            row_group: 0,
            columns: None,
            files: Files::default(),
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
    /// The names of all files from the first row on, indexed by [`Request::file`].
    pub files: &'a [String],
}

/// The rows of a trace, batch by batch.
pub struct Requests {
    parquet: SerializedFileReader<Source>,
    source: Source,
    path: PathBuf,
    processes: usize,
    row_group: usize,
    columns: Option<Columns>,
    files: Files,
    batch: Vec<Request>,
    last_start_ns: u64,
}

/// File names by number. Numbers are assigned in order of first appearance.
#[derive(Default)]
struct Files {
    names: Vec<String>,
    ids: HashMap<String, u32>,
    /// Numbers by address. Each string of a row group's dictionary lies at one address, so most
    /// look-ups end here. Addresses are valid only as long as the row group's dictionary lives.
    by_address: FxHashMap<(usize, usize), u32>,
}

impl Files {
    fn id(&mut self, name: &ByteArray) -> Option<u32> {
        let address = (name.data().as_ptr() as usize, name.len());
        if let Some(id) = self.by_address.get(&address) {
            return Some(*id);
        }
        let id = self.id_of_text(std::str::from_utf8(name.data()).ok()?);
        self.by_address.insert(address, id);
        Some(id)
    }

    fn id_of_text(&mut self, name: &str) -> u32 {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let id = self.names.len() as u32;
        self.names.push(name.to_string());
        self.ids.insert(name.to_string(), id);
        id
    }
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
            let rows = library::call(&self.path, || columns.read())?;
            if rows > 0 {
                self.fill_batch(rows)?;
                return Ok(Some(Batch { requests: &self.batch, files: &self.files.names }));
            }
            self.columns = None;
            self.files.by_address.clear();
        }
    }

    fn open_row_group(&mut self) -> Result<bool, TraceError> {
        if self.row_group == self.parquet.num_row_groups() {
            return Ok(false);
        }
        let (parquet, number) = (&self.parquet, self.row_group);
        sound::check_pages(&self.source, parquet.metadata().row_group(number))
            .map_err(|problem| library::damaged(&self.path, problem))?;
        let open = || parquet.get_row_group(number).and_then(|group| Columns::open(group.as_ref()));
        let columns = library::call(&self.path, open)?;
        self.row_group += 1;
        self.columns = Some(columns);
        Ok(true)
    }

    fn fill_batch(&mut self, rows: usize) -> Result<(), TraceError> {
        let columns = self.columns.as_ref().expect("the caller read them");
        let bad = |what: &str| TraceError::new(&self.path, format!("{what}: damaged trace"));
        for row in 0..rows {
            let [process, tid, flags] = columns.ints.each_ref().map(|column| column.values[row]);
            let [result, rest @ ..] = columns.longs.each_ref().map(|column| column.values[row]);
            let [file, op] = columns.texts.each_ref().map(|column| &column.values[row]);
            if rest.iter().any(|number| *number < 0) {
                return Err(bad("a negative number"));
            }
            let [offset, size, start_ns, end_ns] = rest.map(i64::cast_unsigned);
            let process = process.cast_unsigned();
            if process as usize >= self.processes {
                return Err(bad("a request names an unknown process"));
            }
            if start_ns < self.last_start_ns || end_ns < start_ns {
                return Err(bad("times are not in order"));
            }
            self.last_start_ns = start_ns;
            self.batch.push(Request {
                process,
                tid: tid.cast_unsigned(),
                file: self.files.id(file).ok_or_else(|| bad("a file name is not UTF-8"))?,
                op: op_of(op.data()).ok_or_else(|| bad("unknown operation"))?,
                flags: Flags(flags as u8),
                offset,
                size,
                result,
                start_ns,
                end_ns,
            });
        }
        Ok(())
    }
}

/// The operation by its name, the frequent ones first.
fn op_of(name: &[u8]) -> Option<Op> {
    match name {
        b"read" => Some(Op::Read),
        b"write" => Some(Op::Write),
        other => Op::from_name(std::str::from_utf8(other).ok()?),
    }
}

/// One column of a row group and its values in the current batch.
struct Values<T: DataType> {
    reader: ColumnReaderImpl<T>,
    values: Vec<T::T>,
}

impl<T: DataType> Values<T> {
    /// `Trace::open` has checked that all columns exist and have the right types.
    fn open(group: &dyn RowGroupReader, name: &str) -> parquet::errors::Result<Values<T>> {
        let columns = group.metadata().schema_descr().columns();
        let index = columns.iter().position(|column| column.name() == name);
        let index = index.ok_or_else(|| ParquetError::General(format!("no column {name}")))?;
        let reader = get_typed_column_reader(group.get_column_reader(index)?);
        Ok(Values { reader, values: Vec::with_capacity(BATCH_ROWS) })
    }

    fn read(&mut self) -> parquet::errors::Result<usize> {
        self.values.clear();
        self.reader.read_records(BATCH_ROWS, None, None, &mut self.values)?;
        Ok(self.values.len())
    }
}

/// The columns that make up a [`Request`]; the others repeat the list of processes.
struct Columns {
    /// Process, thread, flags.
    ints: [Values<Int32Type>; 3],
    /// Result, offset, size, start, end.
    longs: [Values<Int64Type>; 5],
    /// File, operation.
    texts: [Values<ByteArrayType>; 2],
}

impl Columns {
    fn open(group: &dyn RowGroupReader) -> parquet::errors::Result<Columns> {
        Ok(Columns {
            ints: open_all(group, ["process", "tid", "flags"])?,
            longs: open_all(group, ["result", "offset", "size", "start_ns", "end_ns"])?,
            texts: open_all(group, ["file", "op"])?,
        })
    }

    /// Reads the next values of all columns. Returns their number.
    fn read(&mut self) -> parquet::errors::Result<usize> {
        let ints = self.ints.iter_mut().map(Values::read);
        let longs = self.longs.iter_mut().map(Values::read);
        let texts = self.texts.iter_mut().map(Values::read);
        let lengths = ints.chain(longs).chain(texts).collect::<Result<Vec<usize>, _>>()?;
        if lengths.iter().any(|length| *length != lengths[0]) {
            return Err(ParquetError::General("columns of different lengths".into()));
        }
        Ok(lengths[0])
    }
}

fn open_all<T: DataType, const N: usize>(
    group: &dyn RowGroupReader,
    names: [&str; N],
) -> parquet::errors::Result<[Values<T>; N]> {
    let columns = names.iter().map(|name| Values::open(group, name)).collect::<Result<Vec<_>, _>>()?;
    Ok(columns.try_into().ok().expect("a column for every name"))
}
