//! Checks that the structures of a trace file are such as a trace writer makes them, before the
//! Parquet library reads them. The library allocates whatever size the file claims, and treats
//! impossible numbers as errors of its caller.

use parquet::basic::Compression;
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length};

use super::library::Source;
use super::schema::ROW_GROUP_ROWS;
use super::thrift::PageHeader;

/// Maximum memory for one row group, bytes: its dictionaries and the largest page of each of its
/// columns. Writers end a dictionary at 64 MiB and a page at 1 MiB.
const ROW_GROUP_BYTES_MAX: u64 = 192 << 20;

/// Maximum size of one page in memory, bytes.
const PAGE_BYTES_MAX: u64 = 96 << 20;

/// Maximum sizes of page headers, bytes: nearly all are within the first, all within the second.
const HEADER_BYTES: [u64; 2] = [128, 64 << 10];

/// What is wrong with the file.
type Problem = &'static str;

const TOO_LARGE: Problem = "a row group that would take too much memory";

/// The number of rows of the row group, if its footer entry is plausible. The caller has compared
/// the file's schema, which gives the number and the types of the columns.
pub(super) fn rows(group: &RowGroupMetaData, file_bytes: u64) -> Result<u64, Problem> {
    let rows = u64::try_from(group.num_rows()).ok().filter(|rows| *rows <= ROW_GROUP_ROWS as u64);
    let rows = rows.ok_or("impossible number of rows")?;
    if group.columns().len() != group.schema_descr().num_columns() {
        return Err("a row group has other columns than a trace");
    }
    for column in group.columns() {
        let compressions = [Compression::UNCOMPRESSED, Compression::ZSTD(Default::default())];
        if !compressions.contains(&column.compression()) {
            return Err("a column is not stored as in a trace");
        }
        if u64::try_from(column.num_values()) != Ok(rows) {
            return Err("columns of different lengths");
        }
        range(column, file_bytes).ok_or("a column lies beyond the end of the file")?;
    }
    Ok(rows)
}

/// Start and end of a column chunk in the file.
fn range(column: &ColumnChunkMetaData, file_bytes: u64) -> Option<(u64, u64)> {
    let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
    let start = u64::try_from(start).ok()?;
    let end = start.checked_add(u64::try_from(column.compressed_size()).ok()?)?;
    (end <= file_bytes).then_some((start, end))
}

/// Checks that the pages of a row group are plausible. [`rows`] must have accepted the group.
pub(super) fn check_pages(source: &Source, group: &RowGroupMetaData) -> Result<(), Problem> {
    let mut memory_bytes = 0;
    for column in group.columns() {
        memory_bytes += check_column(source, column)?.0;
        if memory_bytes > ROW_GROUP_BYTES_MAX {
            return Err(TOO_LARGE);
        }
    }
    Ok(())
}

/// Checks the pages of the file column. Returns whether all of its names are in its dictionary.
pub(super) fn check_names(source: &Source, group: &RowGroupMetaData) -> Result<bool, Problem> {
    let mut columns = group.columns().iter();
    let column = columns.find(|column| column.column_descr().name() == "file").ok_or("a column is missing")?;
    let (memory_bytes, is_dictionary) = check_column(source, column)?;
    if memory_bytes > ROW_GROUP_BYTES_MAX { Err(TOO_LARGE) } else { Ok(is_dictionary) }
}

/// Returns the number of bytes of the column that are in memory at once, and whether all of its
/// values are in its dictionary.
fn check_column(source: &Source, column: &ColumnChunkMetaData) -> Result<(u64, bool), Problem> {
    let range = range(column, source.len()).ok_or("a column lies beyond the end of the file")?;
    let ((mut at, end), rows) = (range, column.num_values() as u64);
    let (mut dictionary, mut largest, mut values, mut is_dictionary) = (None, 0, 0, true);
    while at < end {
        let page = header(source, at, end).ok_or("a page that no trace writer makes")?;
        at += page.header_bytes + page.compressed_bytes;
        let is_stored = page.uncompressed_bytes == page.compressed_bytes;
        if at > end || page.values > rows || page.uncompressed_bytes > PAGE_BYTES_MAX {
            return Err("an impossible page size");
        }
        if column.compression() == Compression::UNCOMPRESSED && !is_stored {
            return Err("an impossible page size");
        }
        if page.is_dictionary {
            if dictionary.is_some() || values > 0 {
                return Err("a dictionary at the wrong place");
            }
            dictionary = Some(page.uncompressed_bytes);
            continue;
        }
        if page.needs_dictionary && dictionary.is_none() {
            return Err("a dictionary is missing");
        }
        is_dictionary &= page.needs_dictionary;
        values += page.values;
        largest = largest.max(page.uncompressed_bytes);
    }
    // Of a dictionary, the number of each entry is kept, too.
    let bytes = dictionary.map_or(0, |bytes: u64| bytes + (rows * size_of::<i64>() as u64).min(2 * bytes));
    if values == rows {
        Ok((bytes + largest, is_dictionary && dictionary.is_some()))
    } else {
        Err("missing values")
    }
}

fn header(source: &Source, at: u64, end: u64) -> Option<PageHeader> {
    HEADER_BYTES.into_iter().find_map(|len| {
        let bytes = source.get_bytes(at, len.min(end - at) as usize).ok()?;
        PageHeader::parse(&bytes)
    })
}
