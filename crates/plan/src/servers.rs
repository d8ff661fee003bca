//! The cluster as planners use it: per target its class's parameters and its capacity.

use stripewise_cluster::{Cluster, Tier};
use stripewise_model::{Access, ClassParams, ModelError, Network, Op, Server, Service};

use crate::error::PlanError;

/// Parameters by target index.
#[derive(Clone, Debug)]
pub struct Servers {
    classes: Vec<ClassParams>,
    capacities: Vec<u64>,
    one_arm: Vec<bool>,
    network: Network,
}

impl Servers {
    /// Of all targets of a cluster.
    ///
    /// # Errors
    /// There is no target, or one whose class is not described, or a parameter that is no time.
    /// None of them occurs with a parsed cluster.
    pub fn of(cluster: &Cluster) -> Result<Self, PlanError> {
        let targets = cluster.targets();
        let mut classes = Vec::with_capacity(targets.len());
        for (target, index) in targets.iter().zip(0..) {
            let class = cluster.class_of(index).ok_or_else(|| {
                PlanError::new(format!("the class of target {} is not described in the cluster", target.name))
            })?;
            check(class).map_err(|error| PlanError::new(format!("target {}: {error}", target.name)))?;
            classes.push(*class);
        }
        if classes.is_empty() {
            return Err(PlanError::new("the cluster has no server"));
        }
        let capacities = targets.iter().map(|target| target.capacity).collect();
        let of_tier = |tier: &Tier| !tier.emulate && cluster.measured.contains_key(&tier.class);
        let one_arm = targets.iter().map(|target| of_tier(&cluster.tiers[target.tier])).collect();
        Ok(Self { classes, capacities, one_arm, network: cluster.network })
    }

    /// Number of targets.
    pub fn count(&self) -> usize {
        self.classes.len()
    }

    /// α and β by target.
    pub fn classes(&self) -> &[ClassParams] {
        &self.classes
    }

    /// e and t.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Bytes that a target may hold.
    pub fn capacity(&self, target: u32) -> u64 {
        self.capacities[target as usize]
    }

    /// Whether an access is in order on this target only while no other process uses the target.
    ///
    /// Calibration measures access in order by one process. A real server that several processes
    /// use in turns has to go from one's place to the other's: what it measured holds for one
    /// alone. Emulated servers keep every process's place. Parameters that somebody wrote down mean
    /// what they mean in the papers: `q` processes in order cost `q` startups in order.
    pub fn has_one_arm(&self, target: u32) -> bool {
        self.one_arm[target as usize]
    }

    /// α and β of a target.
    pub fn service(&self, target: u32, op: Op, access: Access) -> Service {
        self.classes[target as usize].service(op, access)
    }

    /// The same with `q` processes that share the target.
    pub(crate) fn shared(&self, target: u32, op: Op, access: Access, q: u32) -> Server {
        Server::new(self.service(target, op, access), q).expect("the parameters were checked")
    }

    /// How long a target is busy with `bytes` of one request.
    ///
    /// Its network link works on one sub-request while its device works on another, so the slower
    /// of the two counts.
    pub fn busy_s(&self, target: u32, op: Op, access: Access, bytes: u64) -> f64 {
        let link_s = self.network.establish_s + bytes as f64 * self.network.per_byte_s;
        self.service(target, op, access).busy_s(bytes).max(link_s)
    }
}

fn check(class: &ClassParams) -> Result<(), ModelError> {
    for by_access in [&class.read, &class.write] {
        for service in [by_access.random, by_access.sequential] {
            Server::new(service, 1)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{cluster, with_order};

    /// Whether a measured class and emulation of the tier make it a server with one arm.
    fn has_one_arm(measured: bool, emulate: bool) -> bool {
        let mut cluster = with_order(cluster((2, 3e-3, 8e-9), (0, 0.0, 0.0), ("1G", "1G"), (0.0, 0.0)));
        if measured {
            cluster.measured = cluster.classes.clone();
        }
        cluster.tiers[0].emulate = emulate;
        Servers::of(&cluster).unwrap().has_one_arm(1)
    }

    #[test]
    fn what_was_measured_of_a_real_server_holds_for_one_process() {
        let found =
            [(true, false), (true, true), (false, false), (false, true)].map(|(m, e)| has_one_arm(m, e));
        assert_eq!(found, [true, false, false, false]);
    }
}
