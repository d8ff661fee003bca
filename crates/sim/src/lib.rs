//! A deterministic discrete-event simulator of applications whose files are distributed over many
//! servers, in virtual time.
//!
//! Processes issue their requests one after the other ([`Streams`]). The layout of a file divides a
//! request into one sub-request per server. Every server works on one sub-request at a time, in
//! order of arrival, for the time that the parameters of its class give. The request is done when
//! its slowest sub-request is. For a file with several copies, `stripewise_policy` decides which
//! copy serves a request, as it does for the data path.
//!
//! ```
//! # use stripewise_cluster::{Cluster, Plan};
//! # use stripewise_sim::{Options, SimError, Simulator, Streams};
//! # fn example(cluster: &Cluster, plan: &Plan, streams: &mut dyn Streams)
//! # -> Result<f64, SimError> {
//! let mut simulator = Simulator::new(cluster, Options::default())?;
//! simulator.open(plan, &["/data/file"], 16, 2)?;
//! Ok(simulator.run(streams).elapsed_s)
//! # }
//! ```
//!
//! The crate is pure: no I/O, no clock. The same input gives the same bits.

mod ends;
mod file;
mod network;
mod options;
mod outcome;
mod overlay;
mod placed;
mod process;
mod queue;
mod run;
mod server;
mod simulator;
mod streams;

pub use options::{Options, SimError};
pub use outcome::{Counters, Outcome, ServerUse};
pub use simulator::Simulator;
pub use streams::{Lists, Queued, Rounds, Step, Streams};

#[cfg(test)]
mod tests;
