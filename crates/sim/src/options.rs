//! Options of a simulation, and why it cannot begin.

use stripewise_model::ModelError;

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

/// The reason why a simulation cannot begin, as one line with the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SimError(pub(crate) String);

impl From<ModelError> for SimError {
    fn from(error: ModelError) -> Self {
        Self(error.to_string())
    }
}
