//! `cluster.toml`: the servers, their classes and the network. Format: `docs/formats/cluster.md`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use stripewise_model::{ByCall, CallCost, ClassParams, Network};

use crate::driver::{Driver, NativeTarget};
use crate::profile::{Accuracy, Profile};

/// Smallest capacity of a server, bytes: one stripe of DEF.
pub const CAPACITY_MIN: u64 = 64 << 10;

/// The storage that an application runs on.
///
/// Invariants of a parsed cluster: there is at least one tier, and every tier has at least one
/// server; names and directories are unique; all parameters are finite and not negative.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cluster {
    /// e and t; the measured ones once a profile is applied.
    pub network: Network,
    /// α and β per class name, as given by hand; emulated servers are paced by these.
    pub classes: BTreeMap<String, ClassParams>,
    /// α and β per class name, as measured ([`Cluster::with_profile`]); models prefer these.
    pub measured: BTreeMap<String, ClassParams>,
    /// What calls cost the client, by tier, as measured ([`Cluster::with_profile`]). For
    /// predictions only: a plan file does not keep it.
    pub client: BTreeMap<String, ByCall<CallCost>>,
    /// How exact the measured parameters are ([`Cluster::with_profile`]). For predictions only: a
    /// plan file does not keep it.
    pub accuracy: Accuracy,
    /// The tiers, in the order of the file, which determines the numbers of targets.
    pub tiers: Vec<Tier>,
    /// The prepared directories of pool tiers; only in plans. Their target numbers follow those of
    /// all servers.
    pub native_targets: Vec<NativeTarget>,
}

/// Servers of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Tier {
    /// Unique name; the tier's targets are called `name/0`, `name/1`, ...
    pub name: String,
    /// Key into [`Cluster::classes`] or [`Cluster::measured`].
    pub class: String,
    /// How the tier's targets are accessed.
    pub driver: Driver,
    /// Bytes of each server that stripewise may fill, at least [`CAPACITY_MIN`].
    pub capacity_per_server: u64,
    /// Whether every access is paced by the class's parameters (testbeds only).
    pub emulate: bool,
}

/// One target of a tier: the meaning of a layout's target index.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetSpec {
    /// `tier/index`; for a native target `tier/WIDTHxCOUNT`.
    pub name: String,
    /// Index into [`Cluster::tiers`].
    pub tier: usize,
    /// The target's directory.
    pub path: PathBuf,
    /// Bytes that may be filled.
    pub capacity: u64,
    /// The kind of target.
    pub kind: TargetKind,
}

/// The kind of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// One server: its directory holds objects.
    Server,
    /// One server of a pool, for models only: it has no directory, and layouts that name it are
    /// folded ([`Cluster::fold`]) before bytes are placed.
    PoolMember,
    /// A directory whose files the file system stripes.
    Native(NativeTarget),
}

impl Cluster {
    /// All targets: the servers of the first tier, then of the second, ..., then the native
    /// targets. A layout's target index is an index into this list.
    pub fn targets(&self) -> Vec<TargetSpec> {
        let mut targets = Vec::new();
        for (tier, spec) in self.tiers.iter().enumerate() {
            let kind = if spec.driver.is_pool() { TargetKind::PoolMember } else { TargetKind::Server };
            targets.extend((0..spec.driver.servers()).map(|index| TargetSpec {
                name: format!("{}/{index}", spec.name),
                tier,
                path: spec.driver.server_path(&spec.name, index),
                capacity: spec.capacity_per_server,
                kind,
            }));
        }
        targets.extend(self.native_targets.iter().map(|native| self.native_spec(*native)));
        targets
    }

    /// The targets that are directories, with their indices: all but the servers of pools.
    pub fn directories(&self) -> impl Iterator<Item = (u32, TargetSpec)> {
        (0..).zip(self.targets()).filter(|(_, target)| target.kind != TargetKind::PoolMember)
    }

    fn native_spec(&self, native: NativeTarget) -> TargetSpec {
        let (tier, label) = (&self.tiers[native.tier], native.label());
        let root = tier.driver.native().map_or(PathBuf::new(), |(_, root)| root.to_owned());
        TargetSpec {
            name: format!("{}/{label}", tier.name),
            tier: native.tier,
            path: root.join(format!("{}-{label}", tier.name)),
            capacity: tier.capacity_per_server.saturating_mul(u64::from(native.count)),
            kind: TargetKind::Native(native),
        }
    }

    /// Number of servers, including those of pools but not native targets.
    pub fn target_count(&self) -> usize {
        self.tiers.iter().map(|tier| tier.driver.servers()).sum()
    }

    /// The indices of the servers of tier `tier` (an index into [`Cluster::tiers`]).
    pub fn targets_of(&self, tier: usize) -> std::ops::Range<u32> {
        let before: usize = self.tiers.iter().take(tier).map(|tier| tier.driver.servers()).sum();
        let servers = self.tiers.get(tier).map_or(0, |tier| tier.driver.servers());
        before as u32..(before + servers) as u32
    }

    /// The tier (an index into [`Cluster::tiers`]) of a target; `None`: there is no such target.
    pub fn tier_of(&self, target: u32) -> Option<usize> {
        match self.native_target(target) {
            Some(native) => Some(native.tier),
            None => (0..self.tiers.len()).find(|&tier| self.targets_of(tier).contains(&target)),
        }
    }

    /// The name of a target; empty if there is none with this index.
    pub fn name_of(&self, target: u32) -> String {
        if let Some(native) = self.native_target(target) {
            return self.native_spec(native).name;
        }
        let Some(tier) = self.tier_of(target) else { return String::new() };
        format!("{}/{}", self.tiers[tier].name, target - self.targets_of(tier).start)
    }

    /// The native target with index `target`; `None`: the index is not one of a native target.
    pub fn native_target(&self, target: u32) -> Option<NativeTarget> {
        let index = (target as usize).checked_sub(self.target_count())?;
        self.native_targets.get(index).copied()
    }

    /// The index of the target called `name` (`tier/index` or `tier/WIDTHxCOUNT`).
    pub fn target_index(&self, name: &str) -> Option<u32> {
        let (tier, index) = name.rsplit_once('/')?;
        let tier = self.tiers.iter().position(|spec| spec.name == tier)?;
        if index.contains('x') {
            let is_it = |native: &NativeTarget| native.tier == tier && native.label() == index;
            return Some((self.target_count() + self.native_targets.iter().position(is_it)?) as u32);
        }
        let range = self.targets_of(tier);
        let index: u32 = index.parse().ok()?;
        range.start.checked_add(index).filter(|target| range.contains(target))
    }

    /// As [`Cluster::target_index`]; adds a native target that is missing, if a pool can have it.
    pub fn target_or_native(&mut self, name: &str) -> Option<u32> {
        if let Some(index) = self.target_index(name) {
            return Some(index);
        }
        let (tier, label) = name.rsplit_once('/')?;
        let tier = self.tiers.iter().position(|spec| spec.name == tier && spec.driver.is_pool())?;
        let (width, count) = NativeTarget::parse_label(label)?;
        if count as usize > self.tiers[tier].driver.servers() {
            return None;
        }
        self.native_targets.push(NativeTarget { tier, width, count });
        self.target_index(name)
    }

    /// The parameters that models use for the servers of `tier`: the measured ones where there are
    /// any.
    pub fn class_of_tier(&self, tier: usize) -> Option<&ClassParams> {
        let class = &self.tiers.get(tier)?.class;
        self.measured.get(class).or_else(|| self.classes.get(class))
    }

    /// The parameters that models use for a target: the measured ones where there are any.
    pub fn class_of(&self, target: u32) -> Option<&ClassParams> {
        self.class_of_tier(self.tier_of(target)?)
    }

    /// The parameters that pace a target: those given by hand, for targets of emulated tiers only.
    pub fn emulation_of(&self, target: u32) -> Option<&ClassParams> {
        let tier = &self.tiers[self.tier_of(target)?];
        if tier.emulate { self.classes.get(&tier.class) } else { None }
    }

    /// The cluster with the parameters of a profile instead of those given by hand.
    ///
    /// Emulated servers are still paced by the latter ([`Cluster::emulation_of`]).
    #[must_use]
    pub fn with_profile(mut self, profile: &Profile) -> Self {
        if let Some(network) = &profile.network {
            self.network = Network { establish_s: network.establish_s, per_byte_s: network.per_byte_s };
        }
        for (name, class) in &profile.classes {
            self.measured.insert(name.clone(), class.params());
            self.accuracy.classes.insert(name.clone(), class.fits);
        }
        self.accuracy.network = profile.network.or(self.accuracy.network);
        self.client.extend(profile.client.iter().map(|(tier, client)| (tier.clone(), client.costs())));
        self
    }
}
