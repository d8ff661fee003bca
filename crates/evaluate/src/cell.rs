//! What is run: a workload on a storage, under several schemes.

use std::path::PathBuf;

use stripewise_cluster::{CacheAdmission, CacheMode, Cluster, Driver, Tier};
use stripewise_model::{ClassParams, Network, Op};
use stripewise_trace::synth::{Benchmark, Btio, Hpio, Ior, Tile};

use crate::record::Labels;

/// Servers of one class.
#[derive(Clone, Debug, PartialEq)]
pub struct Servers {
    /// `hdd` or `ssd`: the tier's and the class's name.
    pub name: &'static str,
    /// How many.
    pub count: u32,
    /// α and β.
    pub class: ClassParams,
    /// Bytes of each server that files may fill.
    pub capacity_per_server: u64,
}

/// What a cell's files lie on.
#[derive(Clone, Debug, PartialEq)]
pub struct Storage {
    /// HServers first (targets are numbered through the tiers).
    pub tiers: Vec<Servers>,
    /// e and t; of emulated servers and disks on one machine: 0.
    pub network: Network,
}

impl Storage {
    /// The storage as a cluster; `directory` says where server `index` of a tier lies, `emulate` whether it is paced.
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

/// A program with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum Program {
    /// IOR-like.
    Ior(Ior),
    /// HPIO-like.
    Hpio(Hpio),
    /// tile-IO-like.
    Tile(Tile),
    /// BTIO-like.
    Btio(Btio),
}

impl Program {
    /// Its requests.
    pub fn benchmark(&self) -> &dyn Benchmark {
        match self {
            Self::Ior(ior) => ior,
            Self::Hpio(hpio) => hpio,
            Self::Tile(tile) => tile,
            Self::Btio(btio) => btio,
        }
    }
}

/// One run of a program, in one direction (its [`stripewise_trace::synth::Direction`] is the same).
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Its paths are relative to the place where it is run.
    pub program: Program,
    /// Direction.
    pub op: Op,
}

/// A workload on a storage.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The experiment that it belongs to.
    pub experiment: &'static str,
    /// What tells it from the others of the experiment.
    pub labels: Labels,
    /// What its files lie on.
    pub storage: Storage,
    /// What is timed, one after the other. Files that are read hold data before, written by untimed runs.
    pub parts: Vec<Part>,
    /// Whether collective calls wait for all their processes, as they do. Without, which only the simulator can, it is seen what the
    /// waiting costs.
    pub waits: bool,
    /// Under which schemes.
    pub schemes: Vec<Scheme>,
}

impl Cell {
    /// A fingerprint of everything that decides how long a scheme takes: what was found for it is worth nothing once this has
    /// changed.
    pub fn parameters(&self, scheme: &Scheme) -> String {
        let mut text = format!("{:?} {:?} {scheme:?}", self.storage, self.parts);
        if !self.waits {
            text.push_str(" without waiting");
        }
        // FNV-1a: the same in every version.
        let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        format!("{:016x}", text.bytes().fold(0xcbf2_9ce4_8422_2325, mix))
    }

    /// Its labels for people: `access=random procs=16 size=64K`.
    pub fn title(&self) -> String {
        let labels = self.labels.iter().map(|(key, value)| format!("{key}={value}"));
        labels.collect::<Vec<_>>().join(" ")
    }
}

/// How the files are laid out.
#[derive(Clone, Debug, PartialEq)]
pub enum Scheme {
    /// The planner's candidate of this name (`1-DH`, `2-D g=8`, `1-DV`); `2-D` alone: in groups of two servers, as CIL has it.
    Candidate(String),
    /// Of these, the one whose overall cost by CIL's formula is least: one for all files of the cell (CIL §4).
    LeastCost(Vec<Scheme>),
    /// What a planner picks: `def`, `pa`, `psa`, `overall`, `replicas`, or `auto`: the best of all.
    Planner(&'static str),
    /// Stripes of this many bytes over all servers of a tier: a shared file on HServers, as without any of the papers' systems.
    Striped {
        /// Name of the tier.
        tier: &'static str,
        /// Bytes.
        stripe: u64,
    },
    /// Files of processes of their own, each on a group of so many servers of a tier, in turn: 1-DV is 1 server, 1-DH all.
    Grouped {
        /// Name of the tier.
        tier: &'static str,
        /// Servers of a group.
        servers: u32,
        /// Bytes.
        stripe: u64,
    },
    /// One copy of each of these ([`Scheme::Candidate`], [`Scheme::Striped`] or [`Scheme::Grouped`]), each request to the cheapest
    /// (CIL §5).
    Replicas(Vec<Scheme>),
    /// The file on all HServers in stripes, with a cache on the SServers (SLA).
    Cache {
        /// What is admitted.
        mode: CacheMode,
        /// While there is space.
        admission: CacheAdmission,
        /// The original's stripe, bytes.
        stripe: u64,
        /// Bytes that cached data may fill on each SServer.
        capacity_per_server: u64,
        /// What is timed is a second run, after a first one and what that left to be fetched.
        second_run: bool,
    },
    /// As many whole requests as fit on the SServers only, each on one of them; the rest on the HServers only.
    WholeRequests {
        /// Bytes of a request.
        request: u64,
    },
}

impl Scheme {
    /// What records call it.
    pub fn name(&self) -> String {
        use stripewise_cluster::size;
        match self {
            Self::Candidate(name) => name.clone(),
            Self::LeastCost(_) => "least cost".to_owned(),
            Self::Planner(name) => match *name {
                "def" | "pa" | "psa" => name.to_uppercase(),
                _ => (*name).to_owned(),
            },
            Self::Striped { stripe, .. } => format!("stripe {}", size::format(*stripe)),
            Self::Grouped { servers, .. } => format!("groups of {servers}"),
            Self::Replicas(_) => "replicas".to_owned(),
            Self::Cache { mode, admission, .. } => {
                // SLA with its three layouts is what the paper calls LCP, layout-aware cache placement.
                let name = if *mode == CacheMode::Sla { "LCP".to_owned() } else { mode.name().to_uppercase() };
                let printed = *admission == CacheAdmission::AsPrinted || *mode == CacheMode::Nsca;
                if printed { name } else { format!("{name} balanced") }
            }
            Self::WholeRequests { .. } => "whole requests".to_owned(),
        }
    }
}
