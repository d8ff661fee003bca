//! What is simulated, and how.

use crate::SimError;

/// How a cluster is simulated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Whether the network is simulated: e and t of the cluster, at the nodes of the processes and at the servers. Without it connections and
    /// transfers take no time, as on emulated servers.
    pub network: bool,
    /// Service times vary by this part up and down (uniformly, with the right mean); below 1. Without it equal times make processes arrive at the
    /// same instant again and again, and the result hangs on who is let in first; no device is that regular.
    pub jitter: f64,
    /// For the jitter.
    pub seed: u64,
    /// Bytes of memory at most for telling sequential access exactly; streams beyond it are told apart by their last request alone.
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
            return Err(SimError::Option("the jitter of service times must be at least 0 and below 1"));
        }
        Ok(())
    }
}
