//! Trace records, trace files, phases and pattern statistics.
//!
//! A traced process writes a *spool* ([`spool`], through the recorder). The spools of a job are
//! merged into one *trace file* (Parquet, `docs/formats/trace.md`), which readers stream.
//!
//! ```text
//! let trace = Trace::open("t.parquet")?;              // the footer
//! if let Some(reason) = trace.incomplete() { .. }
//! let summary = Summary::of(&trace)?;                 // one pass, bounded memory
//! let mut requests = trace.requests()?;               // another pass, in order of start
//! while let Some(batch) = requests.next_batch()? {
//!     for request in batch { .. }
//! }
//! trace.for_each(&mut |name| ..)?;                    // the names of files 0, 1, 2, ...
//! ```
//!
//! Streaming types are `Send` but not `Sync`; everything else is plain data.

mod busy;
pub mod mark;
pub mod record;
pub mod scope;
pub mod spool;

#[cfg(feature = "files")]
mod error;
#[cfg(feature = "files")]
pub mod file;
#[cfg(feature = "files")]
mod merge;
#[cfg(feature = "files")]
mod names;
#[cfg(feature = "files")]
pub mod pattern;
#[cfg(feature = "files")]
mod sorter;
#[cfg(feature = "files")]
pub mod summary;
#[cfg(feature = "files")]
pub mod synth;

pub use busy::Busy;
pub use mark::MpiCall;
pub use record::{Flags, Op, ProcessInfo, Request};

#[cfg(feature = "files")]
pub use error::TraceError;
#[cfg(feature = "files")]
pub use file::{Meta, ORIGIN_COUNTERS, ORIGIN_DXT, Requests, Trace, TraceWriter};
#[cfg(feature = "files")]
pub use merge::{Correction, Merged, merge};
#[cfg(feature = "files")]
pub use names::FileNames;
#[cfg(feature = "files")]
pub use pattern::pattern_of;
#[cfg(feature = "files")]
pub use sorter::Sorter;
#[cfg(feature = "files")]
pub use summary::{Class, Classifier, Summary};
