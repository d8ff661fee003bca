//! Trace files: Parquet, one row per call, in order of start (`docs/formats/trace.md`).

mod columns;
mod encoding;
mod library;
mod meta;
mod names;
mod reader;
mod schema;
mod seal;
mod sound;
mod thrift;
mod writer;

#[cfg(test)]
mod tests;

pub use meta::Meta;
pub use reader::{Batch, Requests, Trace};
pub use writer::TraceWriter;
