//! The runtime: one per process, with the plan's rules and targets and every open managed file.

mod blueprint;
mod build;
mod names;
mod open;
mod process;
mod stat;
mod targets;

pub use blueprint::Shape;
pub(crate) use blueprint::{Blueprint, Missing};
pub(crate) use build::{TEMPORARY_PREFIX, temporary_id, temporary_name};
pub use open::Opened;
pub use process::{Runtime, Settings};
