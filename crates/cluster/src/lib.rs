//! The files that users see and edit: `cluster.toml`, `profile.toml`, `plan.toml`; and the lines of
//! statistics files, which processes write and reports read.
//!
//! The crate only reads and writes text: [`Cluster::parse`] and its counterparts take a string, and
//! the callers do the I/O. Every error names the file, the key, the value and the remedy
//! ([`FileError`]). All types are plain values that threads can share.

mod class_text;
pub mod cluster;
mod cluster_text;
mod driver;
mod driver_text;
mod file_system;
mod fold;
mod layout_text;
mod names;
pub mod overlay;
mod overlay_text;
pub mod pattern;
pub mod plan;
mod plan_text;
pub mod profile;
mod reader;
mod rule_index;
pub mod size;
pub mod statistics;
#[cfg(test)]
mod tests;
mod write;

pub use cluster::{Cluster, TargetKind, TargetSpec, Tier};
pub use driver::{Driver, Members, NativeTarget};
pub use file_system::FileSystem;
pub use fold::FoldError;
pub use layout_text::{format_cycle, parse_cycle};
pub use overlay::{CacheAdmission, CacheMode, CopySpec, Durability, MAX_COPIES, Overlay, OverlayKind};
pub use pattern::Spread;
pub use plan::{KEEP, Plan, Reach, Rule};
pub use profile::{Accuracy, CallFit, Fit, MeasuredClass, MeasuredClient, MeasuredNetwork, Profile};
pub use reader::FileError;
pub use rule_index::RuleIndex;
pub use statistics::{CopiesKind, CopyCounts, Counts, StatisticsLine};
