//! The one cost formula (SPEC 2.2): every model of the papers is a case of it.
//!
//! A request of `S` bytes that puts `b_i` bytes on server i, which `q_i` processes share, costs
//!
//! ```text
//! T = max(c·k, max q_i)·e + max(c·S, max q_i·b_i)·t + max_i q_i·(α_i + b_i·β_i)
//! ```
//!
//! with `k` the number of servers that get any bytes; the others are not touched: no connection, no startup.
//! Servers may be of any number of classes.

use stripewise_layout::{Layout, MAX_OFFSET};

use crate::cost::Cost;
use crate::error::{self, ModelError};
use crate::params::{Network, Service};

/// How the startup times of the processes that share a server add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Startup {
    /// Every one of the `q` processes pays its own before mine is done: storage is `max_i q_i (α_i + b_i β_i)`,
    /// split into the two parts of the slowest server, the earliest in a tie (CIL, PSA).
    #[default]
    EverySharer,
    /// My turn comes at a uniformly distributed time between `α_i` and `q_i·α_i`, independently on each of the `w`
    /// servers touched, and I wait for the last: `max_i α_i + w/(w+1)·(q_i - 1)·α_i`, then `max_i b_i β_i`
    /// (SLA Eq. 1-12, which has servers of one class only).
    Expected,
}

/// A server as requests of one group see it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Server {
    sharing: f64,
    startup_s: f64,
    per_byte_s: f64,
}

impl Server {
    /// A server with α and β that `sharing` processes (q, see [`sharing`]) use at a time; 0 counts as 1, as the
    /// request itself is always there.
    ///
    /// # Errors
    /// α or β negative, infinite or not a number.
    pub fn new(service: Service, sharing: u32) -> Result<Self, ModelError> {
        service.check()?;
        let Service { startup_s, per_byte_s } = service;
        Ok(Self { sharing: f64::from(sharing.max(1)), startup_s, per_byte_s })
    }
}

/// `count` like servers that get `bytes` of a request each. Bytes are real numbers, as `S/n` is in the papers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// The server.
    pub server: Server,
    /// b.
    pub bytes: f64,
    /// How many of them.
    pub count: u32,
}

/// The cost of a request of `size` bytes that is divided into `shares`; `procs_per_node` is c.
///
/// `shares` are walked once, or twice with [`Startup::Expected`]. Those with 0 bytes or count 0 do not matter.
#[inline]
pub fn cost(
    startup: Startup,
    network: &Network,
    procs_per_node: u32,
    size: f64,
    shares: impl Iterator<Item = Share> + Clone,
) -> Cost {
    let mut touched = 0u32;
    let mut most_sharing = 0.0f64;
    let mut most_bytes = 0.0f64;
    for share in shares.clone() {
        let here = share.bytes > 0.0;
        touched += if here { share.count } else { 0 };
        let sharing = if here && share.count > 0 { share.server.sharing } else { 0.0 };
        most_sharing = most_sharing.max(sharing);
        most_bytes = most_bytes.max(sharing * share.bytes);
    }
    let (startup_s, io_s) = match startup {
        Startup::EverySharer => every_sharer(shares),
        Startup::Expected => expected(f64::from(touched), shares),
    };
    let per_node = f64::from(procs_per_node);
    Cost {
        establish_s: (per_node * f64::from(touched)).max(most_sharing) * network.establish_s,
        transfer_s: (per_node * size).max(most_bytes) * network.per_byte_s,
        startup_s,
        io_s,
    }
}

fn every_sharer(shares: impl Iterator<Item = Share>) -> (f64, f64) {
    shares
        .filter(|share| share.bytes > 0.0 && share.count > 0)
        .map(|Share { server, bytes, .. }| {
            (server.sharing * server.startup_s, server.sharing * bytes * server.per_byte_s)
        })
        .fold((0.0, 0.0), |most, this| if this.0 + this.1 > most.0 + most.1 { this } else { most })
}

fn expected(touched: f64, shares: impl Iterator<Item = Share>) -> (f64, f64) {
    let wait = touched / (touched + 1.0);
    shares
        .filter(|share| share.bytes > 0.0 && share.count > 0)
        .map(|Share { server, bytes, .. }| {
            (server.startup_s * (1.0 + wait * (server.sharing - 1.0)), bytes * server.per_byte_s)
        })
        .fold((0.0f64, 0.0f64), |most, this| (most.0.max(this.0), most.1.max(this.1)))
}

/// The cost of any request on one layout: everything that does not depend on the request is computed beforehand.
#[derive(Clone, Debug)]
pub struct PreparedCost {
    layout: Layout,
    servers: Vec<Server>,
    network: Network,
    procs_per_node: u32,
    startup: Startup,
}

impl PreparedCost {
    /// For requests of a group that `servers[target]` describes the targets of.
    ///
    /// # Errors
    /// A target of the layout without a server; times that are not; no process per node.
    pub fn new(
        layout: Layout,
        servers: Vec<Server>,
        network: Network,
        procs_per_node: u32,
        startup: Startup,
    ) -> Result<Self, ModelError> {
        network.check()?;
        error::count("the number of processes per node", procs_per_node)?;
        if let Some(target) = layout.targets().find(|&target| target as usize >= servers.len()) {
            return Err(ModelError::UnknownTarget { target, known: servers.len() });
        }
        Ok(Self { layout, servers, network, procs_per_node, startup })
    }

    /// The layout.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The cost of the request of `size` bytes at `offset`. Nothing for 0 bytes; bytes past [`MAX_OFFSET`] do
    /// not count.
    pub fn cost(&self, offset: u64, size: u64) -> Cost {
        let mut bytes = vec![0; self.layout.target_count()];
        self.layout.bytes_per_target(offset, size, &mut bytes);
        let size = size.min(MAX_OFFSET.saturating_sub(offset));
        let shares = bytes.iter().zip(&self.servers);
        let shares = shares.map(|(&bytes, &server)| Share { server, bytes: bytes as f64, count: 1 });
        cost(self.startup, &self.network, self.procs_per_node, size as f64, shares)
    }
}

/// How many processes share a server: `⌈p · touching / requests⌉`, where `touching` of a group's `requests` touch
/// it and `procs` processes issue them. CIL's ⌈p/n⌉ and ⌈p/g⌉ are the cases of equal stripes.
///
/// 0 for a server that none touches.
pub fn sharing(procs: u32, touching: u64, requests: u64) -> u32 {
    if requests == 0 {
        return 0;
    }
    let shared = (u128::from(procs) * u128::from(touching.min(requests))).div_ceil(u128::from(requests));
    shared as u32 // at most `procs`
}
