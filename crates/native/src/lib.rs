//! Layouts in the parallel file systems' own terms: the layouts that exist, the conversion of a
//! layout over a cluster's servers, and the commands that set it. Pure: drivers set and read the
//! layouts.
//!
//! All types are plain values that threads can share.

mod beegfs;
pub mod cephfs;
mod commands;
mod cycle;
mod layout;
mod lustre;
mod names;
mod objects;
pub mod orangefs;
mod over;
mod systems;
mod target;

pub use commands::{Call, shell};
pub use layout::{Component, NativeLayout, Stripe};
pub use objects::{Names, Objects};
pub use over::{FileNow, PoolServers, over};
pub use systems::{calls, check, commands, express, express_spread, note};
pub use target::target_layout;

#[cfg(test)]
mod tests;
