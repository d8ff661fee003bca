//! Servers that take the time of a class of `cluster.toml`, for tests and demonstrations.
//!
//! Every emulated server has a word in memory that all processes of a user on the node share: the
//! time until which the server is busy. A request reserves its time in this word (compare-and-swap)
//! on each server that it touches, does its real I/O, and returns at the latest of the reserved
//! ends. Requests of all processes therefore queue as at a real server, and a request over several
//! servers takes as long as the slowest.
//!
//! Reads and writes through [`FanOut`](crate::FanOut) are paced: `startup_s + bytes * per_byte_s`
//! per server and request, with the parameters of random or sequential access. An access is
//! sequential if it starts where this process's last access to the object ended. A read past the
//! end costs the requested bytes. Syncs, truncates, opening, creating and removing are free, and so
//! is the network (e and t).
//!
//! Emulated servers cannot show latencies of single requests (sleeping is exact to tens of µs only;
//! [`pace`] explains why throughput is exact nevertheless), or client time below 1 ms between two
//! requests.

pub mod pace;
mod state;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use stripewise_model::{ClassParams, Service};
use stripewise_sys::Result;

use state::Word;
pub use state::{Emulation, default_path};

/// One emulated server, as one object set uses it. A clone is the same server but a separate
/// stream: each handle decides on its own whether an access is sequential.
#[derive(Debug)]
pub struct Server {
    emulation: Arc<Emulation>,
    slot: usize,
    params: ClassParams,
    /// Offset where the last access through this handle ended.
    last_end: AtomicU64,
}

/// The work of an emulated server since its state was created, over all processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Number of requests.
    pub requests: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// Busy time, ns.
    pub busy_ns: u64,
}

impl Emulation {
    /// The server called `target_id` (the id of a target's marker, or any other unique name), paced
    /// by `params`.
    ///
    /// # Errors
    /// ENOSPC when there are too many servers already (16384 since the state was last empty).
    pub fn server(self: &Arc<Self>, target_id: &str, params: &ClassParams) -> Result<Server> {
        let slot = self.slot(target_id)?;
        let emulation = Arc::clone(self);
        Ok(Server { emulation, slot, params: *params, last_end: AtomicU64::new(u64::MAX) })
    }
}

impl Server {
    /// Reserves the time of one request that arrives at `arrival_ns`. Returns the time when it
    /// ends. Both times are CLOCK_MONOTONIC, ns.
    fn reserve(&self, write: bool, offset: u64, len: u64, arrival_ns: u64) -> u64 {
        let last_end = self.last_end.swap(offset.wrapping_add(len), Ordering::Relaxed);
        let direction = if write { self.params.write } else { self.params.read };
        let service = if last_end == offset { direction.sequential } else { direction.random };
        let service_ns = service_ns(&service, len);
        let word = |word| self.emulation.word(self.slot, word);
        word(Word::Requests).fetch_add(1, Ordering::Relaxed);
        word(Word::Bytes).fetch_add(len, Ordering::Relaxed);
        word(Word::BusyNs).fetch_add(service_ns, Ordering::Relaxed);
        let end = |busy_until: u64| busy_until.max(arrival_ns).saturating_add(service_ns);
        let reserve = |busy_until| Some(end(busy_until));
        match word(Word::BusyUntil).fetch_update(Ordering::Relaxed, Ordering::Relaxed, reserve) {
            Ok(before) | Err(before) => end(before),
        }
    }

    /// The work of the server so far.
    pub fn usage(&self) -> Usage {
        let word = |word| self.emulation.word(self.slot, word).load(Ordering::Relaxed);
        Usage { requests: word(Word::Requests), bytes: word(Word::Bytes), busy_ns: word(Word::BusyNs) }
    }
}

impl Clone for Server {
    fn clone(&self) -> Self {
        let emulation = Arc::clone(&self.emulation);
        Self { emulation, slot: self.slot, params: self.params, last_end: AtomicU64::new(u64::MAX) }
    }
}

/// Longest service time of a request. A longer one is taken for a mistake in the parameters and
/// cut, so that no request hangs.
const SERVICE_NS_MAX: f64 = 3600e9;

fn service_ns(service: &Service, bytes: u64) -> u64 {
    let ns = (service.busy_s(bytes) * 1e9).round();
    // The cast turns negative values into 0.
    if ns.is_nan() { 0 } else { ns.min(SERVICE_NS_MAX) as u64 }
}

#[cfg(test)]
mod tests;
