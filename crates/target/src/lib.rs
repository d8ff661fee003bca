//! Targets, the objects of managed files, the parallel fan-out of one request, and emulated
//! servers.
//!
//! This crate implements `docs/decisions/0001-logical-files.md`. Its parts, bottom up:
//!
//! - [`Target`]: a directory with its marker; [`Targets`] keeps the opened ones of a process.
//! - [`ObjectSet`]: the objects of one logical file, one per target.
//! - [`FanOut`]: runs the pieces of one request (or a sync) on all servers in parallel.
//! - [`emulate`]: servers that take the time of a class of `cluster.toml`; all processes of the
//!   node share them.
//!
//! All types are `Send + Sync`, take no locks that a forked child could find held, and work in a
//! forked child as in the parent. The crate never panics on purpose, prints, or reads the
//! environment. Every error names its directory or file and maps to an
//! [`Errno`](stripewise_sys::Errno).

mod access;
pub mod emulate;
mod error;
mod fanout;
mod home;
mod id;
mod marker;
mod objects;
mod orphans;
mod paths;
mod target;
#[cfg(test)]
mod tests;

pub use access::{Access, access_list};
pub use emulate::{Emulation, Server, Usage};
pub use error::TargetError;
pub use fanout::{Engine, FanOut, Few, Outcome, Piece};
pub use id::FileId;
pub use marker::{MARKER, Nodes};
pub use objects::{ObjectSet, Opening};
pub use orphans::{CACHED, Found};
pub use paths::{OBJECTS, Objects};
pub use target::{Target, TargetRef, Targets};
