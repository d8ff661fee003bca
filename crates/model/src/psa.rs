//! PSA (Tables 3 and 4): one request on M HServers and N SServers with stripes of h and s bytes.

use crate::cost::Cost;
use crate::error::{self, ModelError};
use crate::general::{self, Server, Share, Startup};
use crate::params::{Network, Service};

/// The parameters that all requests share, checked on construction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Psa {
    network: Network,
    h_server: Server,
    s_server: Server,
    hservers: u32,
    sservers: u32,
    procs_per_node: u32,
}

impl Psa {
    /// M is `hservers` with `h_service`, N is `sservers` with `s_service`, p is `procs`, c is
    /// `procs_per_node`.
    ///
    /// # Errors
    /// No server at all, no process, more processes per node than processes, or invalid times.
    pub fn new(
        network: Network,
        (hservers, h_service): (u32, Service),
        (sservers, s_service): (u32, Service),
        procs: u32,
        procs_per_node: u32,
    ) -> Result<Self, ModelError> {
        network.check()?;
        error::at_least_1("the number of servers", hservers.saturating_add(sservers))?;
        error::processes(procs, procs_per_node)?;
        let (h_server, s_server) = (Server::new(h_service, procs)?, Server::new(s_service, procs)?);
        Ok(Self { network, h_server, s_server, hservers, sservers, procs_per_node })
    }

    /// The cost of a request of `M·h + N·s` bytes (Table 3). A stripe of 0 bytes leaves its servers
    /// out.
    ///
    /// # Errors
    /// A stripe that is negative, infinite or not a number; a request of 0 bytes.
    pub fn heterogeneous(&self, h_stripe: f64, s_stripe: f64) -> Result<Cost, ModelError> {
        for (name, value) in [("the stripe on HServers", h_stripe), ("the stripe on SServers", s_stripe)] {
            if !value.is_finite() || value < 0.0 {
                return Err(error::bad_size(name, value, "of 0 or more"));
            }
        }
        let size = f64::from(self.hservers) * h_stripe + f64::from(self.sservers) * s_stripe;
        let size = error::request_size(size)?;
        let shares = [
            Share { server: self.h_server, bytes: h_stripe, count: self.hservers },
            Share { server: self.s_server, bytes: s_stripe, count: self.sservers },
        ];
        let shares = shares.into_iter();
        Ok(general::cost(Startup::EverySharer, &self.network, self.procs_per_node, size, shares))
    }

    /// The cost of a request of `size` bytes on the HServers alone, S/M on each (Table 4).
    ///
    /// # Errors
    /// No HServers; a size that is not above 0.
    pub fn homogeneous(&self, size: f64) -> Result<Cost, ModelError> {
        error::at_least_1("the number of HServers", self.hservers)?;
        self.heterogeneous(error::request_size(size)? / f64::from(self.hservers), 0.0)
    }
}
