//! Reading a trace file.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, Length, RowGroupReader, SerializedFileReader};

use super::columns::Column;
use super::index::NameIndex;
use super::library::{self, Source};
use super::meta::Meta;
use super::numbers::{self, Numbers};
use super::schema::schema;
use super::seal::{self, Seal};
use super::sound;
use crate::{FileNames, Flags, Op, ProcessInfo, Request, TraceError, spool};

/// Maximum length of a file name in a trace, bytes. The merge replaces each byte that is not UTF-8
/// by a character of 3 bytes.
const NAME_BYTES_MAX: usize = 3 * spool::NAME_BYTES_MAX;

/// Rows per batch, which fits into the processor's cache.
const BATCH_ROWS: usize = 2048;

/// An open trace file and the content of its footer. The file names stay in the file:
/// [`FileNames::for_each`] reads them.
pub struct Trace {
    path: PathBuf,
    source: Source,
    meta: Meta,
    processes: Vec<ProcessInfo>,
    numbers: Arc<Numbers>,
    requests: u64,
}

impl Trace {
    /// Opens a trace file: verifies the checksum of the whole file and reads the footer. Of a trace
    /// of an earlier version it reads the file names, too, and keeps them in memory meanwhile.
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
        let damaged = |problem| library::damaged(path, problem);
        let rows = groups.iter().map(|group| sound::rows(group, source.len()));
        let rows: Vec<u64> = rows.collect::<Result<_, _>>().map_err(damaged)?;
        let numbers = match Numbers::of_file(entries, &rows, source.len()).map_err(damaged)? {
            Some(numbers) => numbers,
            None => make_numbers(path, &source, &reader)?,
        };
        let (numbers, requests) = (Arc::new(numbers), rows.iter().sum());
        Ok(Trace { path: path.to_path_buf(), source, meta, processes, numbers, requests })
    }

    /// The same trace under another name in messages: that of the log that it was made of.
    pub fn named(self, path: &Path) -> Trace {
        Trace { path: path.to_path_buf(), ..self }
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

    /// The names of all files, indexed by [`Request::file`], in memory.
    ///
    /// # Errors
    /// The names cannot be read.
    pub fn file_names(&self) -> Result<Vec<String>, TraceError> {
        let mut names = Vec::with_capacity(self.count());
        self.for_each(&mut |name| names.push(name.to_owned()))?;
        Ok(names)
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
            numbers: self.numbers.clone(),
            file_numbers: numbers::Group::default(),
            batch: Vec::new(),
            last_start_ns: 0,
        })
    }
}

fn open_parquet(path: &Path, source: &Source) -> Result<SerializedFileReader<Source>, TraceError> {
    library::call(path, || SerializedFileReader::new(source.clone()))
}

impl FileNames for Trace {
    type Error = TraceError;

    fn count(&self) -> usize {
        self.numbers.count() as usize
    }

    /// Memory: the names of a row group.
    fn for_each(&self, each: &mut dyn FnMut(&str)) -> Result<(), TraceError> {
        let parquet = open_parquet(&self.path, &self.source)?;
        for number in 0..parquet.num_row_groups() {
            let mut numbers = self.numbers.of_group(&self.path, &self.source, number)?;
            let mut names = Names::of_group(&self.path, &self.source, &parquet, number)?;
            loop {
                let read = names.read(&self.path, &mut |_| numbers.next());
                if !numbers.explain(&self.path, read)? {
                    break;
                }
                names.new.iter().for_each(&mut *each);
            }
            numbers.finish(&self.path)?;
        }
        Ok(())
    }
}

/// The number of a name, and whether no earlier row group has it.
type Numbered = Option<(u32, bool)>;

/// The names of a row group while they are read.
struct Names {
    column: Column,
    /// All names are in the dictionary.
    are_in_dictionary: bool,
    is_done: bool,
    /// Names of the last [`Names::read`] that no earlier row group has.
    new: Texts,
}

impl Names {
    fn of_group(
        path: &Path,
        source: &Source,
        parquet: &SerializedFileReader<Source>,
        number: usize,
    ) -> Result<Names, TraceError> {
        let group = parquet.metadata().row_group(number);
        let are_in_dictionary = sound::check_names(source, group).map_err(|why| library::damaged(path, why))?;
        let open = || Column::open(parquet.get_row_group(number)?.as_ref(), COLUMNS[FILE]);
        let column = library::call(path, open)?;
        Ok(Names { column, are_in_dictionary, is_done: false, new: Texts::default() })
    }

    /// Reads the next names: the dictionary only, unless the row group has more names than fit into
    /// it. `number` gets each. Returns `false` after the last.
    fn read(&mut self, path: &Path, number: &mut dyn FnMut(&str) -> Numbered) -> Result<bool, TraceError> {
        if self.is_done {
            return Ok(false);
        }
        let Names { column, new, .. } = self;
        new.clear();
        let mut add = |name: &str| {
            let (number, is_new) = number(name).filter(|_| name.len() <= NAME_BYTES_MAX)?;
            if is_new {
                new.push(name);
            }
            Some(i64::from(number))
        };
        self.is_done = self.are_in_dictionary;
        let read = || match self.are_in_dictionary {
            true => column.read_dictionary(&mut add),
            false => column.read(BATCH_ROWS, &mut add),
        };
        library::call(path, read)?;
        Ok(self.are_in_dictionary || !self.column.values.is_empty())
    }
}

/// Some strings.
#[derive(Default)]
struct Texts {
    text: String,
    ends: Vec<usize>,
}

impl Texts {
    fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.ends.push(self.text.len());
    }

    fn iter(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).map(|(&start, &end)| &self.text[start..end])
    }
}

/// The file numbers of a trace of an earlier version.
fn make_numbers(
    path: &Path,
    source: &Source,
    parquet: &SerializedFileReader<Source>,
) -> Result<Numbers, TraceError> {
    let mut index = NameIndex::in_memory();
    let (mut writer, mut bytes) = (numbers::Writer::default(), Vec::new());
    for number in 0..parquet.num_row_groups() {
        let mut names = Names::of_group(path, source, parquet, number)?;
        let mut add = |name: &str| -> Numbered {
            let (known, number) = (index.len(), index.add(name.as_bytes()).ok()?);
            let is_new = number as usize == known;
            if is_new {
                _ = writer.add_new()
            } else {
                writer.add_known(number)
            }
            Some((number, is_new))
        };
        while names.read(path, &mut add)? {}
        bytes.append(&mut writer.end_group(bytes.len() as u64));
    }
    Ok(Numbers::made(writer, bytes))
}

/// The rows of a trace, batch by batch.
pub struct Requests {
    parquet: SerializedFileReader<Source>,
    source: Source,
    path: PathBuf,
    processes: usize,
    row_group: usize,
    columns: Option<[Column; 10]>,
    numbers: Arc<Numbers>,
    /// Those of the current row group.
    file_numbers: numbers::Group,
    batch: Vec<Request>,
    last_start_ns: u64,
}

impl Requests {
    /// The next rows, in order of start; `None` after the last.
    pub fn next_batch(&mut self) -> Result<Option<&[Request]>, TraceError> {
        loop {
            if self.columns.is_none() && !self.open_row_group()? {
                return Ok(None);
            }
            self.batch.clear();
            let columns = self.columns.as_mut().expect("opened above");
            let read = library::call(&self.path, || read_columns(columns, &mut self.file_numbers));
            let rows = self.file_numbers.explain(&self.path, read)?;
            if rows > 0 {
                self.fill_batch(rows)?;
                return Ok(Some(&self.batch));
            }
            self.file_numbers.finish(&self.path)?;
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
        self.file_numbers = self.numbers.of_group(&self.path, &self.source, number)?;
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
fn read_columns(columns: &mut [Column; 10], files: &mut numbers::Group) -> parquet::errors::Result<usize> {
    for (index, column) in columns.iter_mut().enumerate() {
        if index == FILE {
            column.read(BATCH_ROWS, &mut |_| files.next().map(|(number, _)| i64::from(number)))?;
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
