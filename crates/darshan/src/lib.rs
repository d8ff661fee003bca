//! Reads the logs that Darshan 3.0 to 3.5 writes, and makes traces of them.
//!
//! ```text
//! let mut log = Log::open(BufReader::new(File::open("job.darshan")?))?;   // the header
//! let job = log.job()?;                                 // command, times, processes, mounts
//! let mut names = log.names()?;                         // ids and paths, streamed
//! let mut records = log.records(Counters::Posix)?;      // counters, streamed
//! let mut dxt = log.dxt(Layer::Posix)?;                 // every read and write, streamed
//! ```
//!
//! A log that is cut off or damaged gives all that lies before, then an error. The formats are
//! those of Darshan's sources, which the modules name.
//!
//! Streaming types are `Send` if the source is; everything else is plain data.

mod bytes;
pub mod counters;
mod dxt;
mod error;
mod header;
mod job;
mod log;
mod lustre;
mod module;
mod names;
mod records;
mod region;
mod trace;

pub use bytes::ByteOrder;
pub use dxt::{BATCH, DxtRecord, DxtRecords, Layer, Segment};
pub use error::Error;
pub use header::{Compression, Header, ModuleInfo, is_darshan};
pub use job::Job;
pub use log::Log;
pub use lustre::{Component, LustreRecord, LustreRecords};
pub use module::Module;
pub use names::Names;
pub use records::{Counters, Record, Records};
pub use trace::{CALLS_MAX, TraceFromLogError, trace_from_log};
