//! Layouts in the parallel file systems' own terms: which there are, what a layout over a cluster's servers is in them, the
//! commands that set it. Pure: setting and reading them is the drivers' work.
//!
//! All types are plain values, shareable between threads.

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
