//! Expected wall-clock time of a group of like requests: p processes in a closed loop over FIFO
//! servers.
//!
//! Every process issues a request, whose sub-requests go to their servers in parallel, waits for
//! all of them, and issues its next request. Every server serves one sub-request at a time, in
//! order of arrival.
//!
//! - [`replay`]: sends the sampled requests through the servers, in their order. It is used
//!   wherever the sample has enough requests of every process, because the order matters: processes
//!   may move over the servers in step, or crowd on one.
//! - [`estimate`]: a closed form for requests that meet by chance, for more processes than a sample
//!   can represent.
//!
//! Sources: `docs/decisions/0002-costs-and-elapsed.md`. Errors against a brute-force simulation:
//! `bench/RESULTS.md`.

mod chains;
mod estimate;
mod flow;
mod network;
mod replay;

#[cfg(test)]
mod tests;

pub use estimate::{estimate, floor_s};
pub use flow::{Flow, Joining, Links, Sub};
pub use replay::replay;
