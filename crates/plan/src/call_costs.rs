//! The measured costs of calls, by tier.

use stripewise_cluster::Cluster;
use stripewise_model::{ByCall, Call, CallCost};

/// The measured costs by tier.
#[derive(Clone, Debug)]
pub struct CallCosts {
    costs: Vec<ByCall<CallCost>>,
    tier_of: Vec<u32>,
    is_pool: Vec<bool>,
}

impl CallCosts {
    /// The costs of a cluster's tiers; `None` if one of them was not measured. It would seem better
    /// than the others.
    pub fn of(cluster: &Cluster) -> Option<Self> {
        let costs = cluster.tiers.iter().map(|tier| cluster.client.get(&tier.name).copied());
        let tiers = (0..).zip(&cluster.tiers);
        Some(Self {
            costs: costs.collect::<Option<_>>()?,
            tier_of: tiers.flat_map(|(index, tier)| vec![index; tier.driver.servers()]).collect(),
            is_pool: cluster.tiers.iter().map(|tier| tier.driver.is_pool()).collect(),
        })
    }

    /// Number of objects by tier on these distinct targets.
    pub fn count_objects(&self, targets: impl Iterator<Item = u32>, objects: &mut [u32]) {
        objects.fill(0);
        targets.for_each(|target| objects[self.tier_of[target as usize] as usize] += 1);
        for (count, _) in objects.iter_mut().zip(&self.is_pool).filter(|(_, is_pool)| **is_pool) {
            *count = (*count).min(1);
        }
    }

    /// A number of objects for each tier, all 0.
    pub fn no_objects(&self) -> Vec<u32> {
        vec![0; self.costs.len()]
    }

    /// Seconds of a call on so many objects of each tier, and on a plain file.
    pub fn seconds(&self, call: Call, objects: &[u32]) -> (f64, f64) {
        let used = || self.costs.iter().zip(objects).filter(|(_, count)| **count > 0);
        let used = || used().map(|(costs, &count)| (costs.of_call(call), f64::from(count)));
        let objects_s: f64 = used().map(|(cost, count)| count * cost.per_object_s).sum();
        let most = used().map(|(cost, _)| *cost).max_by(|one, other| one.base_s.total_cmp(&other.base_s));
        let CallCost { base_s, plain_s, .. } = most.unwrap_or_default();
        (base_s + objects_s, plain_s)
    }
}
