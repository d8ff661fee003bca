//! Trace records, trace files, phases and pattern statistics.
//!
//! A traced process writes a *spool* ([`spool`], through the recorder); the spools of a job are merged into one
//! *trace file* (Parquet, `docs/formats/trace.md`), which readers stream.

pub mod record;
pub mod spool;

pub use record::{Flags, Op, ProcessInfo, Request};
