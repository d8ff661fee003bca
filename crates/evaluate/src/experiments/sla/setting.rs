//! Servers and schemes that these experiments have in common.

use stripewise_cluster::{CacheAdmission, CacheMode};
use stripewise_model::{Network, Op};
use stripewise_trace::synth::Access;

use super::super::devices;
use super::super::making::{KIB, slowing};
use crate::cell::{Cell, Part, Scheme};
use crate::claim::Scale;
use crate::record::{Labels, Place};

/// Number of client nodes.
pub const NODES: u32 = 32;

/// Stripe size in bytes of the original file and of 1-DH copies.
pub const STRIPE: u64 = 64 * KIB;

/// Fraction of the data that the SServers may hold.
pub const SHARE: f64 = 0.3;

/// Name in records of the scheme without a cache.
pub const STOCK: &str = "stripe 64K";

/// The schemes that the paper compares in §5.2, and those of §5.3, each with `LCP balanced`.
pub const SELECTIVE: [&str; 3] = [STOCK, "SCA", "LCP balanced"];
pub const PLACED: [&str; 4] = [STOCK, "SCA", "LCP", "LCP balanced"];

/// Parameters in which the cells of these experiments differ.
pub struct Of<'a> {
    pub experiment: &'static str,
    pub labels: Labels,
    pub scale: Scale,
    /// Numbers of HServers and SServers.
    pub servers: (u32, u32),
    /// Fraction of all data that all SServers together may hold.
    pub share: f64,
    pub part: Part,
    pub bytes: u64,
    pub requests: u64,
    pub schemes: &'a [&'static str],
}

impl Of<'_> {
    pub fn cell(self) -> Cell {
        let network = match self.scale.place {
            Place::Simulated => devices::ethernet_connected(),
            _ => Network::default(),
        };
        let capacity = self.capacity();
        let published = devices::storage(self.servers, 1 << 50, network, 1.0);
        // Requests larger than a stripe are divided over the HServers; smaller ones lie on one
        // server.
        let touched = (self.bytes / self.requests).div_ceil(STRIPE).min(u64::from(self.servers.0));
        let startups = (self.requests * touched).div_ceil(u64::from(self.servers.0));
        let op = self.part.op;
        let factor = slowing(self.scale, &published.tiers[0], op, Access::Random, self.bytes, startups);
        let scheme = |name: &&'static str| by_name(name, capacity, op == Op::Read);
        let mut storage = devices::storage(self.servers, 1 << 50, network, factor);
        storage.tiers.retain(|tier| tier.count > 0);
        Cell {
            waits: true,
            experiment: self.experiment,
            labels: self.labels,
            storage,
            schemes: self.schemes.iter().map(scheme).collect(),
            parts: vec![self.part],
        }
    }

    /// Returns the size in bytes of the cache on each SServer: whole pages, at least one.
    pub fn capacity(&self) -> u64 {
        let all = self.share * self.bytes as f64;
        let each = (all / f64::from(self.servers.1.max(1))) as u64;
        (each / (4 * KIB)).max(1) * (4 * KIB)
    }
}

/// Returns the scheme with this name in records.
pub fn by_name(scheme: &str, capacity_per_server: u64, second_run: bool) -> Scheme {
    let cache =
        |mode, admission| Scheme::Cache { mode, admission, stripe: STRIPE, capacity_per_server, second_run };
    match scheme {
        "NSCA" => cache(CacheMode::Nsca, CacheAdmission::AsPrinted),
        "SCA" => cache(CacheMode::Sca, CacheAdmission::AsPrinted),
        "LCP" => cache(CacheMode::Sla, CacheAdmission::AsPrinted),
        "LCP balanced" => cache(CacheMode::Sla, CacheAdmission::Balanced),
        _ => Scheme::Striped { tier: "hdd", stripe: STRIPE },
    }
}

/// Returns the number of processes per node.
pub fn per_node(scale: Scale, processes: u32) -> u32 {
    match scale.place {
        Place::Simulated => processes.div_ceil(NODES),
        _ => processes,
    }
}
