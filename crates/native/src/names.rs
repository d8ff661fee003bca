//! What is converted, and the names that a file system gives to the cluster's servers.

use stripewise_cluster::{Cluster, Driver, FileSystem, Members};

use crate::cycle::Cycle;

/// The layouts to convert, and the cluster whose servers they name.
///
/// If a tier is not on the file system, only the site can know the names of its servers there:
/// `ADDR(hdd/0)` is the address of the server that target hdd/0 stands for, `POOL(hdd)` the pool of
/// the tier's servers; OSTs are numbered as the targets are.
pub(crate) struct Subject<'a> {
    pub system: FileSystem,
    pub cluster: &'a Cluster,
    /// The regions of each layout that files take in turn.
    pub layouts: Vec<Vec<Cycle>>,
}

/// The targets are in pools of the file system, but not in a single one.
pub(crate) struct Apart;

impl Subject<'_> {
    /// The number of stripes and their width, if every layout has one region, and all have as many
    /// equally wide stripes, each on a target of its own.
    pub fn same_stripes(&self) -> Option<(u32, u64)> {
        let stripes = |cycles: &Vec<Cycle>| match &cycles[..] {
            [cycle] => Some((cycle.stripes.len() as u32, cycle.even()?)),
            _ => None,
        };
        let first = stripes(self.layouts.first()?)?;
        self.layouts.iter().all(|cycles| stripes(cycles) == Some(first)).then_some(first)
    }

    /// The targets of all layouts, each as often as it occurs in them.
    pub fn targets(&self) -> Vec<u32> {
        self.layouts.iter().flatten().flat_map(Cycle::targets).collect()
    }

    /// The members behind a target, and its index in them, if its tier is on this file system.
    pub fn members(&self, target: u32) -> Option<(&Members, usize)> {
        let tier = self.cluster.tier_of(target)?;
        match &self.cluster.tiers[tier].driver {
            Driver::Native { system, members, .. } if *system == self.system => {
                Some((members, (target - self.cluster.targets_of(tier).start) as usize))
            }
            _ => None,
        }
    }

    /// The name of a target in a list of servers; an error if it is a server of a pool.
    pub fn server(&self, target: u32) -> Result<String, String> {
        match self.members(target) {
            Some((Members::Servers(servers), index)) => Ok(servers[index].clone()),
            Some((Members::Pool { name, .. }, _)) => Err(format!(
                "the servers of pool {name} cannot be told apart; write servers = [...] for the tier"
            )),
            None if self.system == FileSystem::Lustre => Ok(target.to_string()),
            None => Ok(format!("ADDR({})", self.name_of(target))),
        }
    }

    /// The pool that contains `targets`; `None`: their tiers are not on this file system. `each`:
    /// where servers have names, every server is a pool of its own.
    pub fn pool(&self, targets: &[u32], each: bool) -> Result<Option<String>, Apart> {
        let pool_of = |&target: &u32| match self.members(target)? {
            (Members::Pool { name, .. }, _) => Some(name),
            (Members::Servers(servers), index) if each => Some(&servers[index]),
            _ => None,
        };
        let mut pools: Vec<Option<&String>> = targets.iter().map(pool_of).collect();
        pools.dedup();
        match &pools[..] {
            [Some(pool)] => Ok(Some((*pool).clone())),
            pools if pools.iter().all(Option::is_none) => Ok(None),
            _ => Err(Apart),
        }
    }

    /// The tier that contains all of `targets`, if there is one.
    pub fn tier_of(&self, targets: &[u32]) -> Option<&str> {
        let tier = self.cluster.tier_of(*targets.first()?)?;
        let all = targets.iter().all(|&target| self.cluster.tier_of(target) == Some(tier));
        all.then_some(self.cluster.tiers[tier].name.as_str())
    }

    /// The tier whose targets are exactly `targets`.
    pub fn whole_tier(&self, targets: &[u32]) -> Option<&str> {
        let tier = self.cluster.tier_of(*targets.first()?)?;
        self.tier_of(targets).filter(|_| self.cluster.targets_of(tier).len() == targets.len())
    }

    /// Whether `targets` are all targets of the cluster.
    pub fn whole_cluster(&self, targets: &[u32]) -> bool {
        targets.len() == self.cluster.target_count()
    }

    pub fn name_of(&self, target: u32) -> String {
        let name = self.cluster.name_of(target);
        if name.is_empty() { target.to_string() } else { name }
    }
}
