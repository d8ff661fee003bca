//! Layouts in the parallel file systems' own terms: the layouts that exist, the conversion of a
//! layout over a cluster's servers, and the commands that set it. Pure: drivers set and read the
//! layouts.
//!
//! All types are plain values that threads can share.

pub mod cephfs;
mod check;
mod commands;
mod cycle;
mod express;
mod layout;
mod names;
pub mod orangefs;
mod target;

pub use check::{check, lustre};
pub use commands::{Call, calls, commands, note, shell};
pub use express::{express, express_spread};
pub use layout::{Component, NativeLayout, Stripe};
pub use target::target_layout;

#[cfg(test)]
mod tests;
