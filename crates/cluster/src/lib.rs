//! The files that users see and edit: `cluster.toml`, `profile.toml`, `plan.toml`.
//!
//! Reading and writing of text only: [`Cluster::parse`] and its like take a string; the callers do the I/O.
//! Every error names the file, the key, the value and the remedy ([`FileError`]).

pub mod cluster;
pub mod plan;
pub mod size;

pub use cluster::{Cluster, Driver, TargetSpec, Tier};
pub use plan::{Plan, Rule};
