//! Says what is slow in a job's I/O, why, what to type and what that gains, from a log alone.
//!
//! ```text
//! let facts = facts_of_log(&mut log)?;                       // or TraceFacts, of a trace
//! let storage = spec::parse("lustre:24")?;                   // or Storage::deduced(&facts)
//! let layouts = layouts(workload, &facts, &storage, &is_gone)?;   // stripewise's planner
//! let advice = Advice::new(&facts, &storage, layouts, notes);
//! advice.lines                                               // the verdict
//! ```
//!
//! The crate opens no files and runs no tools. All types are plain data that threads can share.

mod advice;
mod classes;
mod commands;
mod facts;
mod findings;
mod from_log;
mod from_trace;
mod interface;
mod layouts;
mod present;
pub mod spec;
mod storage;
mod table;
pub mod text;
mod verdict;

pub use advice::{Advice, Described, Job};
pub use classes::Class;
pub use commands::Command;
pub use facts::{Excluded, FILES_MAX, Facts, FileFacts, MpiUse, Source, Striping, Transfers};
pub use findings::{Finding, Severity, thresholds};
pub use from_log::facts_of_log;
pub use from_trace::TraceFacts;
pub use layouts::{LayoutAdvice, layouts};
pub use storage::{Origin, Pool, Storage, System};
pub use verdict::{Confidence, Verdict};
