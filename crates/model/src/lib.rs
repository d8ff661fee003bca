//! The cost of one request on a layout, in seconds: the general formula, and the papers' models as
//! cases of it.
//!
//! - [`general`]: the formula, for servers of any number of classes; [`PreparedCost`] evaluates it
//!   on a layout.
//! - [`CallCost`]: what opening, closing and small requests cost the client itself.
//! - [`cil`]: three layouts on equal servers. [`psa`]: HServers and SServers. [`sla`]: expected
//!   startup under contention, and the benefit of caching.
//!
//! `docs/papers.md` maps the papers' tables and equations, and their errata, to this code and its
//! tests.
//!
//! The crate is pure: no I/O, no clock, no constants of any machine. All types are plain values and
//! may be shared by threads.

pub mod cil;
mod client;
mod cost;
pub mod error;
pub mod general;
pub mod params;
mod prepared;
pub mod psa;
mod reach;
pub mod sla;
mod striping;

pub use client::{ByCall, Call, CallCost};
pub use cost::Cost;
pub use error::ModelError;
pub use general::{Server, Share, Startup, sharing};
pub use params::{Access, ByAccess, ClassParams, Network, Op, Service};
pub use prepared::PreparedCost;
pub use striping::Striping;

#[cfg(test)]
mod tests;
