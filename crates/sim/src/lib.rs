//! A deterministic simulator of applications on files that lie on many servers: discrete events, virtual time.
//!
//! Processes issue their requests one after the other ([`Streams`]); a request is cut by its file's layout into one sub-request per server;
//! every server works on one at a time, in order of arrival, for as long as the parameters of its class say; the request is done when the
//! slowest is. Which copy serves a request of a file with several is decided by the code that the data path asks, too:
//! `stripewise_policy`.
//!
//! ```
//! # use stripewise_cluster::{Cluster, Plan};
//! # use stripewise_sim::{Options, SimError, Simulator, Streams};
//! # fn example(cluster: &Cluster, plan: &Plan, streams: &mut dyn Streams) -> Result<f64, SimError> {
//! let mut simulator = Simulator::new(cluster, Options::default())?;
//! simulator.open(plan, &["/data/file"], 16, 2)?;
//! Ok(simulator.run(streams).elapsed_s)
//! # }
//! ```
//!
//! Pure: no I/O, no clock; the same input gives the same bits.

mod ends;
mod error;
mod event;
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

pub use error::SimError;
pub use options::Options;
pub use outcome::{Counters, Outcome, ServerUse};
pub use simulator::Simulator;
pub use streams::{Lists, Queued, Rounds, Step, Streams};

#[cfg(test)]
mod tests;
