//! The columns of a trace file.

use std::sync::Arc;

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{ColumnPath, TypePtr};

/// The columns, in the order of the file.
pub(super) const SCHEMA: &str = "
    message trace {
        REQUIRED INT32 process;
        REQUIRED INT32 rank;
        REQUIRED BYTE_ARRAY node (STRING);
        REQUIRED INT32 pid;
        REQUIRED INT32 tid;
        REQUIRED BYTE_ARRAY file (STRING);
        REQUIRED BYTE_ARRAY op (STRING);
        REQUIRED INT32 flags;
        REQUIRED INT64 offset;
        REQUIRED INT64 size;
        REQUIRED INT64 result;
        REQUIRED INT64 start_ns;
        REQUIRED INT64 end_ns;
    }";

/// Rows per row group. A writer keeps one row group in memory (64 bytes per row).
pub(super) const ROW_GROUP_ROWS: usize = 512 * 1024;

/// Rows per data page, a divisor of [`ROW_GROUP_ROWS`]: readers take some microseconds per page.
/// The library also limits the bytes of a page; indices of this many rows take less.
pub(super) const PAGE_ROWS: usize = 128 * 1024;

/// Size at which a dictionary ends and the library writes values as they are, bytes. One dictionary
/// per row group even with many files: readers rely on few distinct strings.
pub(super) const DICTIONARY_MAX_BYTES: usize = 64 << 20;

/// Level of compression of pages.
pub(super) const ZSTD_LEVEL: i32 = 1;

/// [`SCHEMA`], parsed.
pub(super) fn schema() -> TypePtr {
    Arc::new(parse_message_type(SCHEMA).expect("the schema is a constant"))
}

/// The encoding of the columns.
pub(super) fn properties() -> WriterProperties {
    let mut builder = WriterProperties::builder()
        .set_created_by(concat!("stripewise ", env!("CARGO_PKG_VERSION")).to_string())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL).expect("it is a level")))
        .set_dictionary_page_size_limit(DICTIONARY_MAX_BYTES)
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        // The seal must directly precede the footer.
        .set_offset_index_disabled(true);
    for name in ["offset", "start_ns", "end_ns"] {
        let column = ColumnPath::from(name);
        builder = builder
            .set_column_dictionary_enabled(column.clone(), false)
            .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
    }
    builder.build()
}
