//! Servers, processes and programs that these experiments have in common.

use stripewise_model::{Network, Op};
use stripewise_trace::synth::Access;

use super::super::devices;
use super::super::making::{self, MIB};
use crate::cell::{Part, Scheme, Servers, Storage};
use crate::claim::Scale;
use crate::record::{Labels, Place};

/// CIL's testbed, or its replacement in measured runs.
#[derive(Clone, Copy, Debug)]
pub struct Bed {
    /// Value of the label `network`; `None` without a network.
    pub network: Option<&'static str>,
    pub servers: u32,
    pub clients: u32,
    pub parameters: Network,
    /// CIL's numbers of processes.
    pub procs: &'static [u32],
}

pub const ETHERNET: &str = "Ethernet";
pub const INFINIBAND: &str = "InfiniBand";

/// Returns the testbeds of a place; the simulator has both networks.
pub fn beds(place: Place) -> Vec<Bed> {
    match place {
        Place::Simulated => vec![
            Bed {
                network: Some(ETHERNET),
                servers: 16,
                clients: 48,
                parameters: devices::ethernet(),
                procs: &[1, 2, 4, 8, 16, 32, 48, 96],
            },
            Bed {
                network: Some(INFINIBAND),
                servers: 8,
                clients: 8,
                parameters: Network { establish_s: 2e-4, per_byte_s: 1.0 / (1000.0 * 1048576.0) },
                procs: &[1, 2, 4, 8, 16, 32, 64],
            },
        ],
        Place::Emulated => vec![Bed {
            network: None,
            servers: 8,
            clients: 1,
            parameters: Network::default(),
            procs: &[1, 2, 4, 8, 16, 32],
        }],
        // Programs on disks are run by a separate tool (`bench/disks`).
        Place::Disks => Vec::new(),
    }
}

impl Bed {
    /// Returns CIL's disks, slowed by this factor.
    pub fn storage(&self, factor: f64) -> Storage {
        let hdd = Servers {
            name: "hdd",
            count: self.servers,
            class: devices::slowed(&devices::hdd(devices::RANDOM_S), factor),
            capacity_per_server: 1 << 50,
        };
        Storage { tiers: vec![hdd], network: self.parameters }
    }

    /// Returns c, the number of processes per client node.
    pub fn per_node(&self, procs: u32) -> u32 {
        procs.div_ceil(self.clients)
    }

    /// Adds the labels that distinguish the cells of this testbed.
    pub fn labels(&self, mut labels: Labels) -> Labels {
        labels.extend(self.network.map(|network| ("network".to_owned(), network.to_owned())));
        labels
    }

    /// Returns the factor by which to slow the servers for `procs` processes with `each` requests
    /// of `size` bytes. With it, the best of the three layouts takes about the first of two times,
    /// but no layout takes more than about the second. The factor is 1 in the simulator, and
    /// rounded to two digits elsewhere.
    pub fn slowing(&self, scale: Scale, (procs, each): (u32, u64), size: u64, access: Access) -> f64 {
        let (best_s, worst_s) = match (scale.place, scale.quick) {
            (Place::Simulated, _) => return 1.0,
            (_, true) => (0.5, 2.0),
            (_, false) => (1.0, 5.0),
        };
        let disk = devices::hdd(devices::RANDOM_S).read;
        let service = if access == Access::Random { disk.random } else { disk.sequential };
        // Times of layouts that serve a request by k servers.
        let layout_s = [self.servers, 2, 1].map(|k| {
            let busy_s = f64::from(procs) * each as f64 * f64::from(k) * service.busy_s(size / u64::from(k));
            busy_s / f64::from(self.servers.min(procs * k))
        });
        let least = layout_s.iter().copied().fold(f64::INFINITY, f64::min);
        let most = layout_s.iter().copied().fold(0.0, f64::max);
        two_digits((best_s / least).min(worst_s / most))
    }

    /// Returns IOR with one file per process, as everywhere in CIL §6.
    pub fn ior(&self, op: Op, procs: u32, transfer: u64, each: u64, access: Access, file: String) -> Part {
        making::own_blocks(op, (procs, self.per_node(procs)), transfer, each, access, Some(file))
    }
}

pub fn two_digits(factor: f64) -> f64 {
    let digits = 10f64.powf(1.0 - factor.log10().floor());
    (factor * digits).round() / digits
}

/// Returns the number of requests per process in measured runs: enough of them, but at most 256M in
/// all.
pub fn requests(procs: u32, size: u64) -> u64 {
    let procs = u64::from(procs);
    (256 * MIB / (procs * size)).clamp(2, (128 / procs).max(16))
}

/// Returns 1-DH over all servers, 2-D in groups of two, and 1-DV on one server.
pub fn three_layouts() -> Vec<Scheme> {
    NAMES.iter().map(|&name| Scheme::Candidate(name.to_owned())).collect()
}

pub const NAMES: [&str; 3] = ["1-DH", "2-D", "1-DV"];
