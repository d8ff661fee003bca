//! Which copy of a file serves a request: replicas (CIL §5) and the selective, layout-aware cache (SLA §3); and whether an MPI
//! library should sieve ([`sieving`]).
//!
//! Decisions only: no I/O, no clock, no globals. The caller says which copies hold the newest bytes ([`Span`]s, from the
//! extent map) and gives out space ([`Space`]); it does what is decided. [`Costs`] and [`Identifier`] are immutable and
//! shareable between threads; a [`Cdt`] belongs to whoever holds it.

pub mod balance;
pub mod cdt;
pub mod costs;
pub mod identify;
mod mean;
pub mod redirect;
pub mod replicas;
pub mod sieving;
mod span;
#[cfg(test)]
mod tests;

pub use balance::{Balance, Sent};
pub use cdt::{Cdt, Critical};
pub use costs::{CopyView, Costs, Kind};
pub use identify::{CacheView, Identifier};
pub use redirect::{Part, Redirected, Request, Space, Want, Why};
pub use replicas::ReadPart;
pub use span::{ORIGINAL, Span, runs};
