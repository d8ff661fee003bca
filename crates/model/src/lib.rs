//! Cost of one request on a layout, in seconds: the general formula, and the papers' models as cases of it.
//!
//! Pure: no I/O, no clock, no constants of any machine. All types are plain values, shareable between threads.

pub mod params;

pub use params::{Access, ByAccess, ClassParams, Network, Op, Service};
