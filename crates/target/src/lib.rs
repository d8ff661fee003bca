//! Where the bytes lie: targets, component files, the parallel fan-out of one request, emulated servers.
//!
//! The page that this crate implements is `docs/decisions/0001-logical-files.md`. What it offers, bottom up:
//!
//! - [`Target`]: a directory with its marker; [`Targets`] keeps the opened ones of a process.
//! - [`ComponentSet`]: the component files of one logical file, one per target.
//! - [`FanOut`]: one request, its pieces done on all servers at once (or synced at once).
//! - [`emulate`]: servers that take the time of a class of `cluster.toml`, shared by all processes of the node.
//!
//! All types are `Send + Sync`, take no locks that a forked child could find held, and work in a forked child as
//! in the parent. Nothing panics on purpose, prints, or reads the environment; everything that fails says which
//! directory or file, and maps to an [`Errno`](stripewise_sys::Errno).

mod access;
mod components;
pub mod emulate;
mod error;
mod fanout;
#[cfg(test)]
mod faults;
mod home;
mod id;
mod marker;
mod orphans;
mod paths;
#[cfg(test)]
mod testing;

/// A list that mostly has one or two elements: the pieces of a request, their outcomes. So few need
/// no memory from the heap, which costs more than what is done with them.
pub type Few<T> = smallvec::SmallVec<[T; 2]>;

pub use access::{Access, access_list};
pub use components::{ComponentSet, Opening};
pub use emulate::{Emulation, Server, Usage};
pub use error::TargetError;
pub use fanout::{Engine, FanOut, Outcome, Piece};
pub use id::FileId;
pub use marker::{MARKER, Target, TargetRef, Targets};
pub use orphans::{CACHED, Found, list_components, read_manifest_copy, remove_extents};
pub use paths::{COMPONENTS, Objects};
