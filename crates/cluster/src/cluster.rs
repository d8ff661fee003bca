//! `cluster.toml`: the servers, their classes and the network.

use std::collections::BTreeMap;
use std::path::PathBuf;

use stripewise_model::{ClassParams, Network};

/// The storage that an application runs on.
#[derive(Clone, Debug, PartialEq)]
pub struct Cluster {
    /// e and t.
    pub network: Network,
    /// α and β per class name.
    pub classes: BTreeMap<String, ClassParams>,
    /// In the order of the file: targets are numbered through it.
    pub tiers: Vec<Tier>,
}

/// Servers of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Tier {
    /// Unique name; targets are called `name/0`, `name/1`, ...
    pub name: String,
    /// Key into [`Cluster::classes`].
    pub class: String,
    /// How its targets are reached.
    pub driver: Driver,
    /// Bytes of each server that stripewise may fill.
    pub capacity_per_server: u64,
    /// Pace every access by the class's parameters (test beds only).
    pub emulate: bool,
}

/// Where the servers of a tier are.
#[derive(Clone, Debug, PartialEq)]
pub enum Driver {
    /// Every server is a directory: a disk or an NFS mount each.
    Dirs {
        /// One directory per server.
        servers: Vec<PathBuf>,
    },
    // The drivers of parallel file systems get variants of their own.
}

/// One target, flattened out of the tiers: what a layout's target index means.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetSpec {
    /// `tier/index`.
    pub name: String,
    /// Index into [`Cluster::tiers`].
    pub tier: usize,
    /// The directory.
    pub path: PathBuf,
    /// Bytes that may be filled.
    pub capacity: u64,
}
