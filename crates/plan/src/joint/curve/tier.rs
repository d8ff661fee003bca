//! The tier of a curve, in any size.

use std::ops::Range;

use stripewise_cluster::Cluster;

use crate::joint::rows::Rows;
use crate::servers::Servers;

/// A tier whose size changes, beside others that stay as they are.
pub struct Tier<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its servers.
    pub targets: Range<u32>,
    /// The space that it has now, bytes.
    pub bytes: u64,
    /// The space of all servers as rows of the program.
    pub rows: &'a Rows,
    pub cluster: &'a Cluster,
    pub servers: &'a Servers,
    /// The space of each server of the cluster in the plan of the present sizes, bytes.
    space: &'a [u64],
}

impl<'a> Tier<'a> {
    /// The tier with this index. `space` is what each server has for the present plan, bytes.
    pub fn new(
        (cluster, servers): (&'a Cluster, &'a Servers),
        index: usize,
        rows: &'a Rows,
        space: &'a [u64],
    ) -> Self {
        let (name, targets) = (&cluster.tiers[index].name, cluster.targets_of(index));
        Self { name, targets, bytes: servers.space_of(cluster, index), rows, cluster, servers, space }
    }

    /// The bytes by server that a tier of `bytes` bytes has, beside the other servers. They are
    /// divided as they are now. A larger one has no less than what the present plan may use.
    pub fn space_at(&self, bytes: u64) -> Vec<u64> {
        let mut space = self.space.to_vec();
        for target in self.targets.clone() {
            let now = &mut space[target as usize];
            let (of, all) = self.share(target);
            let scaled = u64::try_from(u128::from(bytes) * of / all).unwrap_or(u64::MAX);
            *now = match bytes.cmp(&self.bytes) {
                std::cmp::Ordering::Less => scaled,
                std::cmp::Ordering::Equal => *now,
                std::cmp::Ordering::Greater => scaled.max(*now),
            };
        }
        space
    }

    /// The bytes by server if each server of the tier has at least `bytes` bytes.
    pub fn space_of_each(&self, bytes: u64) -> Vec<u64> {
        let mut space = self.space.to_vec();
        space[self.targets.start as usize..self.targets.end as usize]
            .iter_mut()
            .for_each(|it| *it = bytes.max(*it));
        space
    }

    /// The least size in which each of its servers has these bytes.
    pub fn size_for(&self, on_tier: &[u64]) -> u64 {
        let size = |(target, &bytes): (u32, &u64)| {
            let (of, all) = self.share(target);
            u64::try_from((u128::from(bytes) * all).div_ceil(of.max(1))).unwrap_or(u64::MAX)
        };
        self.targets.clone().zip(on_tier).map(size).max().unwrap_or(0)
    }

    /// Of the bytes of all servers, those on the tier.
    pub fn on_it(&self, bytes: &[u64]) -> Vec<u64> {
        self.targets.clone().map(|target| bytes[target as usize]).collect()
    }

    /// A server's part of the tier, as a fraction.
    fn share(&self, target: u32) -> (u128, u128) {
        match self.bytes {
            0 => (1, self.targets.len() as u128),
            bytes => (u128::from(self.servers.capacities[target as usize]), u128::from(bytes)),
        }
    }
}
