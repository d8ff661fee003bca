//! The columns of a row group, read as numbers: strings are numbered by the caller.

use bytes::Bytes;
use parquet::basic::{Encoding, Type};
use parquet::column::page::{Page, PageReader};
use parquet::errors::ParquetError;
use parquet::file::reader::RowGroupReader;

use super::encoding::{Deltas, Indices, Input, Values};

/// A result whose error says what is wrong with the file.
type Result<T> = parquet::errors::Result<T>;

/// The number of a string, if it is one that the column may have.
pub(super) type Number<'a> = &'a mut dyn FnMut(&str) -> Option<i64>;

/// One column of a row group.
pub(super) struct Column {
    pages: Box<dyn PageReader>,
    kind: Type,
    dictionary: Vec<i64>,
    /// The rest of the current page.
    page: Option<(Values, usize)>,
    /// The values that [`Column::read`] read last.
    pub values: Vec<i64>,
}

fn wrong<T>(what: &str) -> Result<T> {
    Err(ParquetError::General(what.into()))
}

impl Column {
    /// `Trace::open` has checked that all columns exist and have the right types.
    pub(super) fn open(group: &dyn RowGroupReader, name: &str) -> Result<Column> {
        let columns = group.metadata().schema_descr().columns();
        let Some(index) = columns.iter().position(|column| column.name() == name) else {
            return wrong("a column is missing");
        };
        let kind = columns[index].physical_type();
        let pages = group.get_column_page_reader(index)?;
        Ok(Column { pages, kind, dictionary: Vec::new(), page: None, values: Vec::new() })
    }

    /// Reads the next values, at most `rows`; fewer only at the end of the column.
    pub(super) fn read(&mut self, rows: usize, number: Number) -> Result<()> {
        self.values.clear();
        while self.values.len() < rows && (self.page.is_some() || self.next_page(number)?) {
            let Some((values, left)) = &mut self.page else { continue };
            let count = (rows - self.values.len()).min(*left);
            if values.read(count, &self.dictionary, &mut self.values).is_none() {
                return wrong("values that no trace writer makes");
            }
            *left -= count;
            if *left == 0 {
                self.page = None;
            }
        }
        Ok(())
    }

    /// Passes the strings of the column's dictionary to `number`, without reading its values.
    pub(super) fn read_dictionary(&mut self, number: Number) -> Result<()> {
        match self.pages.get_next_page()? {
            Some(Page::DictionaryPage { buf, num_values, .. }) => self.set_dictionary(buf, num_values, number),
            _ => wrong("a dictionary is missing"),
        }
    }

    fn set_dictionary(&mut self, buf: Bytes, values: u32, number: Number) -> Result<()> {
        self.dictionary.clear();
        plain(self.kind, &mut Input::new(buf), values as usize, number, &mut self.dictionary)
    }

    /// Begins the next data page, after a dictionary if there is one. `false` after the last page.
    fn next_page(&mut self, number: Number) -> Result<bool> {
        loop {
            match self.pages.get_next_page()? {
                None => return Ok(false),
                Some(Page::DictionaryPage { buf, num_values, .. }) => {
                    self.set_dictionary(buf, num_values, number)?;
                }
                Some(Page::DataPage { buf, num_values, encoding, .. }) => {
                    let count = num_values as usize;
                    self.page = (count > 0).then_some((self.encoded(buf, count, encoding, number)?, count));
                    return Ok(true);
                }
                Some(Page::DataPageV2 { .. }) => return wrong("a page that no trace writer makes"),
            }
        }
    }

    fn encoded(&self, buf: Bytes, count: usize, encoding: Encoding, number: Number) -> Result<Values> {
        let mut input = Input::new(buf);
        let values = match (encoding, self.kind) {
            (Encoding::PLAIN, Type::INT32) => Some(Values::Plain { input, width: 4 }),
            (Encoding::PLAIN, Type::INT64) => Some(Values::Plain { input, width: 8 }),
            (Encoding::PLAIN, _) => {
                let mut numbers = Vec::new();
                plain(self.kind, &mut input, count, number, &mut numbers)?;
                let bytes: Vec<u8> = numbers.into_iter().flat_map(i64::to_le_bytes).collect();
                Some(Values::Plain { input: Input::new(bytes.into()), width: 8 })
            }
            (Encoding::DELTA_BINARY_PACKED, Type::INT64) => Deltas::new(input, count).map(Values::Deltas),
            (Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY, _) => {
                Indices::new(input).map(Values::Indices)
            }
            _ => None,
        };
        values.map_or_else(|| wrong("an encoding that no trace writer uses"), Ok)
    }
}

/// Appends `count` plain values; of strings, their numbers.
fn plain(kind: Type, input: &mut Input, count: usize, number: Number, out: &mut Vec<i64>) -> Result<()> {
    for _ in 0..count {
        let value = match kind {
            Type::INT32 => four(input).map(|bytes| i64::from(i32::from_le_bytes(bytes))),
            Type::INT64 => input.take(8).map(|bytes| i64::from_le_bytes(bytes.try_into().expect("8 bytes"))),
            _ => match four(input).and_then(|len| input.take(u32::from_le_bytes(len) as usize)) {
                Some(text) => match std::str::from_utf8(text).ok().and_then(&mut *number) {
                    Some(number) => Some(number),
                    None => return wrong("a string that no trace writer writes"),
                },
                None => None,
            },
        };
        let Some(value) = value else { return wrong("a page with too few values") };
        out.push(value);
    }
    Ok(())
}

fn four(input: &mut Input) -> Option<[u8; 4]> {
    Some(input.take(4)?.try_into().expect("4 bytes"))
}
