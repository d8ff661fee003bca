//! Options of the simulation.

use crate::SimError;

/// How a cluster is simulated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Whether the network is simulated, with the cluster's e and t, at the nodes of the processes
    /// and at the servers. Without it connections and transfers take no time, as on emulated
    /// servers.
    pub network: bool,
    /// Service times vary uniformly by up to this fraction in both directions, with the right mean;
    /// it is below 1. Without jitter, equal times make processes arrive at the same instant again
    /// and again, and the result depends on which of them is served first. No device is that
    /// regular.
    pub jitter: f64,
    /// Seed of the jitter.
    pub seed: u64,
    /// Maximum memory for exact tracking of sequential access, bytes. Handles beyond that are
    /// tracked by their last request alone.
    pub order_memory: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { network: false, jitter: 0.01, seed: 1, order_memory: 1 << 30 }
    }
}

impl Options {
    pub(crate) fn check(&self) -> Result<(), SimError> {
        if !(0.0..1.0).contains(&self.jitter) {
            return Err(SimError("the jitter of service times must be at least 0 and below 1".to_owned()));
        }
        Ok(())
    }
}
