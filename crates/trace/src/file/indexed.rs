//! Columns of few distinct values, as indices into the distinct values of a row group.
//!
//! The Parquet library hashes, compares and copies every value of such a column. Here a column
//! numbers its distinct keys itself, the library gets every distinct value once, and its data pages
//! are replaced by pages of the indices. They are what the library would have written.

use std::fs::File;
use std::io::BufWriter;

use bytes::Bytes;
use parquet::basic::{Encoding, PageType, Type};
use parquet::column::page::{CompressedPage, Page, PageWriteSpec, PageWriter};
use parquet::column::writer::{get_column_writer, get_typed_column_writer_mut};
use parquet::data_type::{AsBytes, DataType};
use parquet::errors::Result;
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::writer::{SerializedPageWriter, SerializedRowGroupWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;
use rustc_hash::FxHashMap;

use super::runs;
use super::schema::{DICTIONARY_MAX_BYTES, PAGE_ROWS, ZSTD_LEVEL};

/// A row group that is being written.
pub(super) type Group<'a> = SerializedRowGroupWriter<'a, BufWriter<File>>;

/// A column's values in a row group: one key per row, such as the value itself or the number of a
/// file name. Different keys have different values.
#[derive(Default)]
pub(super) struct Indexed {
    /// Per row, the place of its key in `distinct`.
    indices: Vec<u32>,
    /// The keys in order of their first row.
    distinct: Vec<i64>,
    places: FxHashMap<i64, u32>,
}

impl Indexed {
    /// Adds rows with these keys.
    pub(super) fn extend(&mut self, keys: impl Iterator<Item = i64>) {
        let Indexed { indices, distinct, places } = self;
        let mut last = indices.last().map(|&place| (distinct[place as usize], place));
        indices.extend(keys.map(|key| match last {
            Some((known, place)) if known == key => place,
            _ => {
                let place = *places.entry(key).or_insert_with(|| {
                    distinct.push(key);
                    distinct.len() as u32 - 1
                });
                last = Some((key, place));
                place
            }
        }));
    }

    /// The keys in order of their first row.
    pub(super) fn distinct(&self) -> &[i64] {
        &self.distinct
    }

    /// Writes the rows as the next column of the group, and removes them. `value` is asked for the
    /// value of each of [`Indexed::distinct`], in that order.
    pub(super) fn write<T: DataType>(
        &mut self,
        group: &mut Group<'_>,
        (descr, properties): (ColumnDescPtr, &WriterPropertiesPtr),
        value: impl FnMut(i64) -> T::T,
    ) -> Result<()> {
        let values: Vec<T::T> = self.distinct.iter().copied().map(value).collect();
        let is_text = T::get_physical_type() == Type::BYTE_ARRAY;
        let lengths: Vec<usize> = values.iter().map(|value| value.as_bytes().len()).collect();
        let prefix_bytes = if is_text { size_of::<u32>() } else { 0 };
        let dictionary_bytes = lengths.iter().sum::<usize>() + lengths.len() * prefix_bytes;
        if dictionary_bytes >= DICTIONARY_MAX_BYTES {
            self.write_by_value::<T>(group, &values)?;
        } else {
            let text_bytes = is_text.then(|| self.indices.iter().map(|&place| lengths[place as usize]).sum());
            self.write_by_index::<T>(group, (descr, properties), &values, text_bytes)?;
        }
        self.indices.clear();
        self.distinct.clear();
        self.places.clear();
        Ok(())
    }

    /// Leaves a dictionary that is too large to the library, which ends it somewhere.
    fn write_by_value<T: DataType>(&self, group: &mut Group<'_>, values: &[T::T]) -> Result<()> {
        let mut column = group.next_column()?.expect("as many calls as columns");
        for chunk in self.indices.chunks(PAGE_ROWS) {
            let chunk: Vec<T::T> = chunk.iter().map(|&place| values[place as usize].clone()).collect();
            column.typed::<T>().write_batch(&chunk, None, None)?;
        }
        column.close()
    }

    fn write_by_index<T: DataType>(
        &self,
        group: &mut Group<'_>,
        (descr, properties): (ColumnDescPtr, &WriterPropertiesPtr),
        values: &[T::T],
        text_bytes: Option<usize>,
    ) -> Result<()> {
        let data = self.pages()?;
        let data_pages = data.len() as i32;
        let mut sink = TrackedWrite::new(Vec::new());
        let pages = Box::new(Pages { writer: SerializedPageWriter::new(&mut sink), data });
        let mut column = get_column_writer(descr, properties.clone(), pages);
        get_typed_column_writer_mut::<T>(&mut column).write_batch(values, None, None)?;
        let mut close = column.close()?;
        let mut encodings = close.metadata.page_encoding_stats().cloned().unwrap_or_default();
        encodings
            .iter_mut()
            .filter(|of| of.page_type == PageType::DATA_PAGE)
            .for_each(|of| of.count = data_pages);
        close.rows_written = self.indices.len() as u64;
        close.metadata = close
            .metadata
            .into_builder()
            .set_page_encoding_stats(encodings)
            .set_unencoded_byte_array_data_bytes(text_bytes.map(|bytes| bytes as i64))
            .build()?;
        group.append_column(&Bytes::from(sink.into_inner()?), close)
    }

    /// The data pages. Indices are as wide as the dictionary takes at the end of each page.
    fn pages(&self) -> Result<Vec<CompressedPage>> {
        let mut compressor = zstd::bulk::Compressor::new(ZSTD_LEVEL)?;
        let mut most = 0;
        let mut page = |indices: &[u32]| {
            most = indices.iter().copied().fold(most, u32::max);
            let encoded = runs::encode(indices, (u32::BITS - most.leading_zeros()) as u8);
            let page = Page::DataPage {
                buf: compressor.compress(&encoded)?.into(),
                num_values: indices.len() as u32,
                encoding: Encoding::RLE_DICTIONARY,
                def_level_encoding: Encoding::RLE,
                rep_level_encoding: Encoding::RLE,
                statistics: None,
            };
            Ok(CompressedPage::new(page, encoded.len()))
        };
        self.indices.chunks(PAGE_ROWS).map(&mut page).collect()
    }
}

/// Writes other data pages than those that it is given.
struct Pages<'a> {
    writer: SerializedPageWriter<'a, Vec<u8>>,
    data: Vec<CompressedPage>,
}

impl PageWriter for Pages<'_> {
    fn write_page(&mut self, page: CompressedPage) -> Result<PageWriteSpec> {
        if page.page_type() == PageType::DICTIONARY_PAGE {
            return self.writer.write_page(page);
        }
        let mut all = PageWriteSpec::new();
        for (index, page) in std::mem::take(&mut self.data).into_iter().enumerate() {
            let one = self.writer.write_page(page)?;
            all.offset = if index == 0 { one.offset } else { all.offset };
            all.uncompressed_size += one.uncompressed_size;
            all.compressed_size += one.compressed_size;
            all.num_values += one.num_values;
            all.bytes_written += one.bytes_written;
        }
        Ok(all)
    }

    fn close(&mut self) -> Result<()> {
        self.writer.close()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;
    use proptest::prelude::*;

    use super::super::schema::properties;
    use super::*;

    #[derive(Clone, Copy, PartialEq)]
    enum By {
        Index,
        Value,
        Size,
    }

    /// A file of these keys, and of a text of each.
    fn file(keys: &[i64], by: By, text: &dyn Fn(i64) -> String) -> Vec<u8> {
        let schema = "message test { REQUIRED INT64 number; REQUIRED BYTE_ARRAY text (STRING); }";
        let mut temporary = tempfile::tempfile().unwrap();
        let sink = BufWriter::new(temporary.try_clone().unwrap());
        let schema = Arc::new(parse_message_type(schema).unwrap());
        let mut writer = SerializedFileWriter::new(sink, schema, Arc::new(properties())).unwrap();
        let (properties, columns) = (writer.properties().clone(), writer.schema_descr().columns().to_vec());
        let mut group = writer.next_row_group().unwrap();
        column::<Int64Type>(keys, by, &mut group, (columns[0].clone(), &properties), &|key| key);
        let text = |key| ByteArray::from(text(key).into_bytes());
        column::<ByteArrayType>(keys, by, &mut group, (columns[1].clone(), &properties), &text);
        group.close().unwrap();
        drop(writer.into_inner().unwrap());
        let mut bytes = Vec::new();
        std::io::Seek::rewind(&mut temporary).unwrap();
        std::io::Read::read_to_end(&mut temporary, &mut bytes).unwrap();
        bytes
    }

    fn column<T: DataType>(
        keys: &[i64],
        by: By,
        group: &mut Group<'_>,
        of: (ColumnDescPtr, &WriterPropertiesPtr),
        value: &dyn Fn(i64) -> T::T,
    ) {
        let mut column = Indexed::default();
        keys.chunks(1000).for_each(|keys| column.extend(keys.iter().copied()));
        let values: Vec<T::T> = column.distinct.iter().map(|&key| value(key)).collect();
        let text_bytes = || keys.iter().map(|&key| value(key).as_bytes().len()).sum();
        let text_bytes = (T::get_physical_type() == Type::BYTE_ARRAY).then(text_bytes);
        match by {
            By::Index => column.write_by_index::<T>(group, of, &values, text_bytes),
            By::Value => column.write_by_value::<T>(group, &values),
            By::Size => column.write::<T>(group, of, value),
        }
        .unwrap();
    }

    fn is_the_librarys(keys: &[i64], text: &dyn Fn(i64) -> String) -> bool {
        file(keys, By::Index, text) == file(keys, By::Value, text)
    }

    /// The library cuts long texts in its statistics.
    fn name(key: i64) -> String {
        format!("/{}{key}", "\u{e9}".repeat(key.unsigned_abs() as usize % 2 * 40))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn runs_of_any_length_are_as_the_library_writes_them(
            runs in prop::collection::vec((0i64..300, 1usize..20), 1..800),
            least in prop::sample::select(vec![0, -150, i64::MAX - 300]),
        ) {
            let rows = |&(key, count): &(i64, usize)| std::iter::repeat_n(least + key, count);
            let keys: Vec<i64> = runs.iter().flat_map(rows).collect();
            prop_assert!(is_the_librarys(&keys, &name));
        }
    }

    #[test]
    fn several_pages_are_as_the_library_writes_them() {
        let rows = (PAGE_ROWS * 2 + 12345) as i64;
        let patterns: [fn(i64) -> i64; 6] = [
            |_| 0,
            |row| row,
            |row| row % 64,
            |row| row / 20,
            |row| if row < PAGE_ROWS as i64 { row % 2 } else { row % 1000 },
            |row| if row % 100_003 == 5 { row } else { 7 },
        ];
        for pattern in patterns {
            let keys: Vec<i64> = (0..rows).map(pattern).collect();
            assert!(is_the_librarys(&keys, &|key| format!("/a/{key}")));
        }
    }

    /// At the largest dictionary the library begins to write values.
    #[test]
    fn a_dictionary_that_is_too_large_is_as_the_library_writes_it() {
        let prefix_bytes = size_of::<u32>();
        let text = |key: i64| format!("{key:02}{}", "x".repeat((1 << 20) - prefix_bytes - 2));
        let most = (DICTIONARY_MAX_BYTES >> 20) as i64;
        for (distinct, by_index_is_same) in [(most - 1, true), (most, false)] {
            let keys: Vec<i64> = (0..distinct + 5).map(|row| row % distinct).collect();
            let library = file(&keys, By::Value, &text);
            assert!(file(&keys, By::Size, &text) == library);
            assert_eq!(file(&keys, By::Index, &text) == library, by_index_is_same);
        }
    }
}
