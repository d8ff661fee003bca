//! Definition of a run: a workload on a storage configuration, under several schemes.

use std::path::PathBuf;

use stripewise_cluster::{CacheAdmission, CacheMode, Cluster, Driver, Tier};
use stripewise_model::{ClassParams, Network, Op};
use stripewise_trace::synth::{Benchmark, Btio, Direction, Hpio, Ior, Tile};

use crate::record::Labels;

/// Servers of one class.
#[derive(Clone, Debug, PartialEq)]
pub struct Servers {
    /// Name of the tier and of the class: `hdd` or `ssd`.
    pub name: &'static str,
    /// Number of servers.
    pub count: u32,
    /// α and β of the class.
    pub class: ClassParams,
    /// Bytes on each server that files may occupy.
    pub capacity_per_server: u64,
}

/// The storage of a cell's files.
#[derive(Clone, Debug, PartialEq)]
pub struct Storage {
    /// Tiers with the HServers first. Targets are numbered across the tiers.
    pub tiers: Vec<Servers>,
    /// e and t; 0 for emulated servers and for disks on one machine.
    pub network: Network,
}

impl Storage {
    /// Returns the storage as a cluster. `directory` gives the path of server `index` of a tier;
    /// `emulate` is whether servers are paced.
    pub fn cluster(&self, directory: &dyn Fn(&str, u32) -> PathBuf, emulate: bool) -> Cluster {
        let tier = |servers: &Servers| Tier {
            name: servers.name.to_owned(),
            class: servers.name.to_owned(),
            driver: Driver::Dirs {
                servers: (0..servers.count).map(|index| directory(servers.name, index)).collect(),
            },
            capacity_per_server: servers.capacity_per_server,
            emulate,
        };
        Cluster {
            network: self.network,
            classes: self.tiers.iter().map(|tier| (tier.name.to_owned(), tier.class)).collect(),
            tiers: self.tiers.iter().map(tier).collect(),
            ..Cluster::default()
        }
    }
}

/// A program and its parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum Program {
    /// An IOR-like program.
    Ior(Ior),
    /// An HPIO-like program.
    Hpio(Hpio),
    /// An mpi-tile-io-like program.
    Tile(Tile),
    /// A BT-IO-like program.
    Btio(Btio),
}

impl Program {
    /// Returns the program's requests.
    pub fn benchmark(&self) -> &dyn Benchmark {
        match self {
            Self::Ior(ior) => ior,
            Self::Hpio(hpio) => hpio,
            Self::Tile(tile) => tile,
            Self::Btio(btio) => btio,
        }
    }
}

/// One run of a program in one direction, which equals its [`stripewise_trace::synth::Direction`].
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The program. Its paths are relative to the directory in which it runs.
    pub program: Program,
    /// Direction of the run.
    pub op: Op,
}

/// Returns the direction of a program that only reads, or only writes.
pub fn direction(op: Op) -> Direction {
    match op {
        Op::Read => Direction::Read,
        Op::Write => Direction::Write,
    }
}

/// A workload on a storage configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Id of the experiment to which the cell belongs; set by [`crate::Experiment::cells`].
    pub experiment: &'static str,
    /// Labels that distinguish the cell from others of the experiment.
    pub labels: Labels,
    /// The storage of its files.
    pub storage: Storage,
    /// The timed runs, one after the other. Files that are read contain data, written by untimed
    /// runs before.
    pub parts: Vec<Part>,
    /// Whether collective calls wait for all their processes, as real ones do. Only the simulator
    /// can run without waiting, which shows the cost of the waiting.
    pub waits: bool,
    /// The schemes to run.
    pub schemes: Vec<Scheme>,
}

impl Cell {
    /// Returns a fingerprint of everything that decides how long a scheme takes. A record with
    /// another fingerprint is obsolete.
    pub fn parameters(&self, scheme: &Scheme) -> String {
        let mut text = format!("{:?} {:?} {scheme:?}", self.storage, self.parts);
        if !self.waits {
            text.push_str(" without waiting");
        }
        // FNV-1a, which is the same in every version.
        let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        format!("{:016x}", text.bytes().fold(0xcbf2_9ce4_8422_2325, mix))
    }

    /// Returns the stripe size of the original and the bytes on each SServer, if the cell is about
    /// a cache.
    pub fn cache(&self) -> Option<(u64, u64)> {
        self.schemes.iter().find_map(|scheme| match scheme {
            Scheme::Cache { stripe, capacity_per_server, .. } => Some((*stripe, *capacity_per_server)),
            _ => None,
        })
    }

    /// Returns the storage as a scheme sees it: planned files may fill as much of the SServers as
    /// the cell's cache.
    pub fn storage_of(&self, scheme: &Scheme) -> Storage {
        let mut storage = self.storage.clone();
        if let (true, Some((_, bytes))) = (scheme.is_planned(), self.cache()) {
            storage.tiers.iter_mut().skip(1).for_each(|tier| tier.capacity_per_server = bytes);
        }
        storage
    }

    /// Returns the labels as text: `access=random procs=16 size=64K`.
    pub fn title(&self) -> String {
        let labels = self.labels.iter().map(|(key, value)| format!("{key}={value}"));
        labels.collect::<Vec<_>>().join(" ")
    }
}

/// The schemes that PSA's paper compares.
pub const PUBLISHED: [Scheme; 3] = [Scheme::Planner("def"), Scheme::Planner("pa"), Scheme::Planner("psa")];

/// How the files are laid out.
#[derive(Clone, Debug, PartialEq)]
pub enum Scheme {
    /// The planner's candidate of this name (`1-DH`, `2-D g=8`, `1-DV`). `2-D` alone means groups
    /// of two servers, as in CIL.
    Candidate(String),
    /// The scheme among these with the least overall cost by CIL's formula, one for all files of
    /// the cell (CIL §4).
    LeastCost(Vec<Scheme>),
    /// The choice of a planner: `def`, `pa`, `psa`, `overall` or `replicas`.
    Planner(&'static str),
    /// The joint plan for all files of the cell, which users get without `--scheme`.
    Auto,
    /// Of the candidates that compete in `auto`, the one that the simulator finds fastest, for each
    /// set of files. Only the simulator can run it.
    FastestCandidate,
    /// Stripes of this many bytes over all servers of a tier: a shared file on HServers, as without
    /// any of the papers' systems.
    Striped {
        /// Name of the tier.
        tier: &'static str,
        /// Stripe size in bytes.
        stripe: u64,
    },
    /// One copy for each of these schemes ([`Scheme::Candidate`] or [`Scheme::Striped`]). Each
    /// request is served by the cheapest copy (CIL §5).
    Replicas(Vec<Scheme>),
    /// The file in stripes on all HServers, with a cache on the SServers (SLA).
    Cache {
        /// Which requests are admitted.
        mode: CacheMode,
        /// Which critical writes are admitted while there is space.
        admission: CacheAdmission,
        /// Stripe size of the original in bytes.
        stripe: u64,
        /// Maximum bytes of cached data on each SServer.
        capacity_per_server: u64,
        /// Whether the timed run is a second one, after a first run whose prefetch queue has been
        /// worked off.
        second_run: bool,
    },
    /// As many whole requests as fit on the SServers only, each on one of them; the rest on the
    /// HServers only.
    WholeRequests {
        /// Bytes per request.
        request: u64,
    },
}

/// Name of [`Scheme::Auto`] in records.
pub const AUTO: &str = "auto";

/// Name of [`Scheme::FastestCandidate`] in records.
pub const FASTEST: &str = "fastest candidate";

impl Scheme {
    /// Returns whether the scheme lays files out without further copies, in the space that the cell
    /// has for them.
    pub fn is_planned(&self) -> bool {
        matches!(self, Self::Auto | Self::FastestCandidate | Self::Planner("def" | "pa" | "psa"))
    }

    /// Returns the name of the scheme in records.
    pub fn name(&self) -> String {
        use stripewise_cluster::size;
        match self {
            Self::Candidate(name) => name.clone(),
            Self::LeastCost(_) => "least cost".to_owned(),
            Self::Auto => AUTO.to_owned(),
            Self::FastestCandidate => FASTEST.to_owned(),
            Self::Planner(name) => match *name {
                "def" | "pa" | "psa" => name.to_uppercase(),
                _ => (*name).to_owned(),
            },
            Self::Striped { stripe, .. } => format!("stripe {}", size::format(*stripe)),
            Self::Replicas(_) => "replicas".to_owned(),
            Self::Cache { mode, admission, .. } => {
                // The paper calls SLA with its three layouts LCP, layout-aware cache placement.
                let name = if *mode == CacheMode::Sla { "LCP".to_owned() } else { mode.name().to_uppercase() };
                let printed = *admission == CacheAdmission::AsPrinted || *mode == CacheMode::Nsca;
                if printed { name } else { format!("{name} balanced") }
            }
            Self::WholeRequests { .. } => "whole requests".to_owned(),
        }
    }
}
