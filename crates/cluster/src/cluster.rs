//! `cluster.toml`: the servers, their classes and the network. Format: `docs/formats/cluster.md`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use stripewise_model::{ClassParams, Network};

use crate::profile::Profile;

/// Smallest capacity of a server: one stripe of DEF.
pub const CAPACITY_MIN: u64 = 64 << 10;

/// The storage that an application runs on.
///
/// Invariants of a parsed cluster: at least one tier, every tier with at least one server; names and directories
/// unique; all parameters finite and not negative.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cluster {
    /// e and t; measured ones once a profile is applied.
    pub network: Network,
    /// α and β per class name, as given by hand; what emulated servers are paced by.
    pub classes: BTreeMap<String, ClassParams>,
    /// α and β per class name, as measured ([`Cluster::with_profile`]); models prefer these.
    pub measured: BTreeMap<String, ClassParams>,
    /// In the order of the file: targets are numbered through it.
    pub tiers: Vec<Tier>,
}

/// Servers of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Tier {
    /// Unique name; targets are called `name/0`, `name/1`, ...
    pub name: String,
    /// Key into [`Cluster::classes`] or [`Cluster::measured`].
    pub class: String,
    /// How its targets are reached.
    pub driver: Driver,
    /// Bytes of each server that stripewise may fill, at least [`CAPACITY_MIN`].
    pub capacity_per_server: u64,
    /// Pace every access by the class's parameters (test beds only).
    pub emulate: bool,
}

/// Where the servers of a tier are.
#[derive(Clone, Debug, PartialEq)]
pub enum Driver {
    /// Every server is a directory: a disk or an NFS mount each.
    Dirs {
        /// One absolute directory per server.
        servers: Vec<PathBuf>,
    },
    // The drivers of parallel file systems get variants of their own.
}

impl Driver {
    /// The name in `cluster.toml`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Dirs { .. } => "dirs",
        }
    }

    /// Number of targets.
    pub fn servers(&self) -> usize {
        match self {
            Self::Dirs { servers } => servers.len(),
        }
    }
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

impl Cluster {
    /// All targets: the servers of the first tier, then of the second, ... A layout's target index counts them.
    pub fn targets(&self) -> Vec<TargetSpec> {
        let mut targets = Vec::new();
        for (tier, spec) in self.tiers.iter().enumerate() {
            let Driver::Dirs { servers } = &spec.driver;
            targets.extend(servers.iter().enumerate().map(|(index, path)| TargetSpec {
                name: format!("{}/{index}", spec.name),
                tier,
                path: path.clone(),
                capacity: spec.capacity_per_server,
            }));
        }
        targets
    }

    /// Number of targets.
    pub fn target_count(&self) -> usize {
        self.tiers.iter().map(|tier| tier.driver.servers()).sum()
    }

    /// The target indices of tier `tier` (an index into [`Cluster::tiers`]).
    pub fn targets_of(&self, tier: usize) -> std::ops::Range<u32> {
        let before: usize = self.tiers.iter().take(tier).map(|tier| tier.driver.servers()).sum();
        let servers = self.tiers.get(tier).map_or(0, |tier| tier.driver.servers());
        before as u32..(before + servers) as u32
    }

    /// The tier (an index into [`Cluster::tiers`]) of a target, if there is such a target.
    pub fn tier_of(&self, target: u32) -> Option<usize> {
        (0..self.tiers.len()).find(|&tier| self.targets_of(tier).contains(&target))
    }

    /// The index of the target called `name` (`tier/index`).
    pub fn target_index(&self, name: &str) -> Option<u32> {
        let (tier, index) = name.rsplit_once('/')?;
        let tier = self.tiers.iter().position(|spec| spec.name == tier)?;
        let range = self.targets_of(tier);
        let index: u32 = index.parse().ok()?;
        range.start.checked_add(index).filter(|target| range.contains(target))
    }

    /// The parameters of the servers of `tier` that models use: the measured ones where there are any.
    pub fn class_of_tier(&self, tier: usize) -> Option<&ClassParams> {
        let class = &self.tiers.get(tier)?.class;
        self.measured.get(class).or_else(|| self.classes.get(class))
    }

    /// The parameters of a target that models use: the measured ones where there are any.
    pub fn class_of(&self, target: u32) -> Option<&ClassParams> {
        self.class_of_tier(self.tier_of(target)?)
    }

    /// What to pace a target by: the parameters given by hand, for targets of emulated tiers only.
    pub fn emulation_of(&self, target: u32) -> Option<&ClassParams> {
        let tier = &self.tiers[self.tier_of(target)?];
        if tier.emulate { self.classes.get(&tier.class) } else { None }
    }

    /// The cluster with the parameters of a profile instead of those given by hand.
    ///
    /// Emulated servers go on being paced by the latter ([`Cluster::emulation_of`]).
    #[must_use]
    pub fn with_profile(mut self, profile: &Profile) -> Self {
        if let Some(network) = &profile.network {
            self.network = Network { establish_s: network.establish_s, per_byte_s: network.per_byte_s };
        }
        for (name, class) in &profile.classes {
            self.measured.insert(name.clone(), class.params());
        }
        self
    }
}
