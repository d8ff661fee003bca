//! Trace files: Parquet, one row per call, in order of start (`docs/formats/trace.md`).

mod columns;
mod encoding;
mod index;
mod indexed;
mod library;
mod meta;
mod numbers;
mod reader;
mod rows;
mod runs;
mod schema;
mod seal;
mod sound;
mod thrift;
mod writer;

#[cfg(test)]
mod tests;

pub use meta::{Meta, ORIGIN_COUNTERS, ORIGIN_DXT};
pub use reader::{Requests, Trace};
pub use writer::TraceWriter;
