//! The interposed functions, one file per family of calls.
//!
//! All have the same form. A descriptor or name that is not managed goes to the real function at
//! once ([`crate::process::real`]). A managed file is served by the data path. A plain file of a
//! traced job is timed around the real call ([`crate::descriptors::record`]).

pub mod aio;
pub mod bypass;
pub mod close;
pub mod copy;
pub mod data;
pub mod dprintf;
pub mod dup;
pub mod ends;
pub mod libaio;
pub mod lifetime;
pub mod limit;
pub mod locks;
pub mod mmap;
pub mod mpi;
pub mod names;
pub mod open;
pub mod piece;
pub mod request;
pub mod size;
pub mod stat;
pub mod stdio;
pub mod transfer;
pub mod unplanned;
