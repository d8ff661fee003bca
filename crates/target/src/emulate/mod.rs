//! Servers that take the time of a class of `cluster.toml`: for test beds.
//!
//! Every emulated server has a word in memory shared by all processes of a user on the node: the time until which it is
//! busy. A request reserves its time there on each of the servers it touches (compare-and-swap), does its real
//! I/O, and returns at the latest of the reserved ends. So requests of all processes queue up as at a real server, and a
//! request over several servers takes as long as the slowest.
//!
//! Paced are reads and writes through [`FanOut`](crate::FanOut): `startup_s + bytes * per_byte_s` per server and request,
//! with the parameters of random or sequential access. Sequential is what goes on where this process's last access to
//! the component ended. A read past the end costs what was asked for. Syncs, truncates, opening, creating and removing
//! are free, and so is the network (e and t).
//!
//! What an emulated server cannot show: latencies of single requests (sleeping is exact to tens of µs only; see
//! [`pace`] for how throughput is right all the same), and time below 1 ms that a client takes between two requests.

pub mod pace;
mod state;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use stripewise_model::{ClassParams, Service};
use stripewise_sys::Result;

use state::Word;
pub use state::{Emulation, default_path};

/// One emulated server, as one component set uses it. A clone is the same server, but another stream: whether an
/// access is sequential is decided per handle.
#[derive(Debug)]
pub struct Server {
    emulation: Arc<Emulation>,
    slot: usize,
    params: ClassParams,
    /// Offset where this process's last access ended.
    last_end: AtomicU64,
}

/// What an emulated server has done since its state was made, for all processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Requests.
    pub requests: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Time that they took, ns.
    pub busy_ns: u64,
}

impl Emulation {
    /// The server called `target_id` (the id of a target's marker, or any other unique name), paced by `params`.
    ///
    /// # Errors
    /// ENOSPC when too many servers are known already (16384 since the state was last empty).
    pub fn server(self: &Arc<Self>, target_id: &str, params: &ClassParams) -> Result<Server> {
        let slot = self.slot(target_id)?;
        let emulation = Arc::clone(self);
        Ok(Server { emulation, slot, params: *params, last_end: AtomicU64::new(u64::MAX) })
    }
}

impl Server {
    /// Reserves the time of one request that arrives at `arrival_ns`: when it ends (CLOCK_MONOTONIC, ns).
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

    /// What it has done so far.
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

/// A request longer than this is taken for a mistake in the parameters and cut, so that nobody hangs.
const SERVICE_NS_MAX: f64 = 3600e9;

fn service_ns(service: &Service, bytes: u64) -> u64 {
    let ns = (service.busy_s(bytes) * 1e9).round();
    // Casting makes 0 of what is negative.
    if ns.is_nan() { 0 } else { ns.min(SERVICE_NS_MAX) as u64 }
}

#[cfg(test)]
mod tests;
