//! Decides which copy of a file serves a request, for replicas (CIL §5) and for the selective,
//! layout-aware cache (SLA §3), and what is copied in the background ([`background`]). Also decides
//! whether an MPI library should use data sieving ([`sieving`]).
//!
//! The crate only decides: it has no I/O, no clock and no globals. The caller supplies the copies
//! that hold the newest bytes ([`Span`]s, from the extent map) and the space of the cache
//! ([`Space`]), and carries out the decisions. [`Rule`]s are immutable and may
//! be shared by threads; a [`Cdt`] has a single owner.

pub mod background;
pub mod balance;
pub mod cdt;
pub mod costs;
mod hash;
pub mod identify;
mod kind;
mod mean;
pub mod redirect;
mod rule;
pub mod sieving;
mod span;
#[cfg(test)]
mod tests;
pub mod yielding;

pub use balance::{Balance, Sent};
pub use cdt::{Cdt, Critical};
pub use costs::{CopyView, Costs};
pub use hash::{FastHash, Mixer};
pub use identify::{CopyCosts, Identifier, SharedServers};
pub use kind::{Kind, Streams};
pub use redirect::{Redirected, Request, Space, Want};
pub use rule::Rule;
pub use span::{ORIGINAL, Part, Span, possible_copy, runs};
