//! The papers' experiments, reproduced: what they claim, what is run for them, what was found.
//!
//! An [`Experiment`] has [`Claim`]s and, at every [`Scale`], [`Cell`]s; a cell is a workload on a storage, run under several
//! [`Scheme`]s. Whatever runs it (a simulator, programs on emulated servers or on disks) leaves a [`Record`] for each scheme.
//!
//! Pure: data in, data out. No I/O, no clock; all types are plain values.

pub mod bound;
pub mod c1;
pub mod cell;
pub mod claim;
pub mod document;
pub mod experiments;
pub mod explanations;
pub mod judge;
pub mod page;
pub mod plans;
pub mod record;
pub mod simulate;
pub mod statement;
pub mod workload;

pub use cell::{Cell, Part, Program, Scheme, Servers, Storage};
pub use claim::{Claim, Experiment, Figure, Measure, Paper, Scale};
pub use document::DocumentError;
pub use judge::{Found, Judgement, Outcome, Verdict, judge};
pub use record::{DOCUMENT_VERSION, Document, Labels, Place, Record};
