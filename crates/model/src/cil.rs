//! CIL (Table 2): one request on `n` equal servers under 1-DV, 1-DH or 2-D.
//!
//! A request sees a layout as (k, q): it touches `k` servers, each shared by `q` processes. Where g
//! does not divide n, 2-D has ⌈n/g⌉ connections but divides the bytes by ⌊n/g⌋ servers, as in the
//! paper.

use crate::cost::Cost;
use crate::error::{self, ModelError};
use crate::general::{self, Server, Share, Startup};
use crate::params::{Network, Service};
use crate::striping::Striping;

/// The parameters that all requests share, checked on construction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cil {
    network: Network,
    service: Service,
    servers: u32,
    procs: u32,
    procs_per_node: u32,
}

/// A layout as a request sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// k: the number of servers that the request connects to.
    pub connections: u32,
    /// The number of servers that its bytes are divided by: k, or ⌊n/g⌋ in 2-D.
    pub divided_by: u32,
    /// q: the number of processes that share each server.
    pub sharing: u32,
}

impl Cil {
    /// `n` is `servers`, `p` is `procs`, and the paper's m is `procs_per_node`.
    ///
    /// # Errors
    /// A count of 0, more processes per node than processes, or invalid times.
    pub fn new(
        network: Network,
        service: Service,
        servers: u32,
        procs: u32,
        procs_per_node: u32,
    ) -> Result<Self, ModelError> {
        network.check()?;
        service.check()?;
        error::at_least_1("the number of servers", servers)?;
        error::processes(procs, procs_per_node)?;
        Ok(Self { network, service, servers, procs, procs_per_node })
    }

    /// The (k, q) of a layout.
    ///
    /// # Errors
    /// 2-D with no groups, or with more groups than servers.
    pub fn view(&self, striping: Striping) -> Result<View, ModelError> {
        striping.check(self.servers)?;
        let (n, p) = (self.servers, self.procs);
        Ok(match striping {
            Striping::OneDv => View { connections: 1, divided_by: 1, sharing: p.div_ceil(n) },
            Striping::OneDh => View { connections: n, divided_by: n, sharing: p },
            Striping::TwoD { groups: g } => {
                View { connections: n.div_ceil(g), divided_by: n / g, sharing: p.div_ceil(g) }
            }
        })
    }

    /// The cost of one request of `size` bytes.
    ///
    /// # Errors
    /// As [`Cil::view`]; a size that is not above 0.
    pub fn cost(&self, striping: Striping, size: f64) -> Result<Cost, ModelError> {
        let view = self.view(striping)?;
        let size = error::request_size(size)?;
        let share = Share {
            server: Server::new(self.service, view.sharing)?,
            bytes: size / f64::from(view.divided_by),
            count: view.connections,
        };
        let shares = std::iter::once(share);
        Ok(general::cost(Startup::EverySharer, &self.network, self.procs_per_node, size, shares))
    }
}
