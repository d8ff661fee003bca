//! Reproduction of the papers' experiments: their claims, their runs, and the results.
//!
//! An [`Experiment`] has [`Claim`]s and, at every [`Scale`], [`Cell`]s. A cell is a workload on a
//! storage configuration, run under several [`Scheme`]s. Every way to run a cell (the simulator,
//! programs on emulated servers or on disks) produces one [`Record`] per scheme.
//!
//! Pure: no I/O and no clock. All types are plain values.

pub mod bound;
pub mod cell;
pub mod claim;
pub mod document;
pub mod experiments;
mod joint;
mod judge;
pub mod page;
mod pick;
pub mod plans;
pub mod record;
mod regret;
pub mod simulate;
pub mod statement;
pub mod workload;

pub use cell::{Cell, Part, Program, Scheme, Servers, Storage};
pub use claim::{Claim, Experiment, Figure, Measure, Paper, Scale};
pub use document::DocumentError;
pub use record::{Document, Labels, Place, Record};
