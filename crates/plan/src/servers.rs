//! The cluster as planners use it: class parameters and capacity by target.

use stripewise_cluster::{Cluster, Fit, MeasuredNetwork, Tier};
use stripewise_model::{Access, ClassParams, ModelError, Network, Op, Server, Service};

use crate::call_costs::CallCosts;
use crate::error::PlanError;

/// Parameters and capacities by target index.
#[derive(Clone, Debug)]
pub struct Servers {
    /// α and β.
    pub(crate) classes: Vec<ClassParams>,
    /// Bytes.
    pub(crate) capacities: Vec<u64>,
    /// Whether an access is sequential on this target only while no other process uses the target.
    ///
    /// Calibration measures sequential access with a single process. A real server that several
    /// processes use in turns seeks between their positions, so the measured value holds for one
    /// process alone. Emulated servers keep every process's position. Parameters that a user wrote
    /// into the cluster file mean what they mean in the papers: `q` sequential processes cost `q`
    /// sequential startups.
    pub(crate) one_arm: Vec<bool>,
    /// Equal for targets that take equally long for everything.
    pub(crate) kinds: Vec<u32>,
    /// e and t.
    pub(crate) network: Network,
    /// How α and β were measured; `None` for targets whose class was not.
    fits: Vec<Option<ClassParams<Fit>>>,
    /// How e and t were measured; `None`: they were not.
    network_fit: Option<MeasuredNetwork>,
    /// What calls cost the client, if it was measured for all tiers.
    pub(crate) client: Option<CallCosts>,
}

impl Servers {
    /// The parameters of all targets of a cluster.
    ///
    /// # Errors
    /// There is no target, a target's class is not described, or a parameter is not a valid time. A
    /// parsed cluster has none of these errors.
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
        let one_arm: Vec<bool> = targets.iter().map(|target| of_tier(&cluster.tiers[target.tier])).collect();
        let kinds = kinds(&classes, &one_arm);
        let fit = |tier: usize| cluster.accuracy.classes.get(&cluster.tiers[tier].class).cloned();
        Ok(Self {
            classes,
            fits: targets.iter().map(|target| fit(target.tier)).collect(),
            network_fit: cluster.accuracy.network,
            capacities,
            one_arm,
            kinds,
            network: cluster.network,
            client: CallCosts::of(cluster),
        })
    }

    /// Number of targets.
    pub fn count(&self) -> usize {
        self.classes.len()
    }

    /// The space of all servers of a tier, bytes.
    pub(crate) fn space_of(&self, cluster: &Cluster, tier: usize) -> u64 {
        let capacities = cluster.targets_of(tier).map(|target| self.capacities[target as usize]);
        capacities.fold(0, u64::saturating_add)
    }

    /// α and β of a target for one operation and access.
    pub fn service(&self, target: u32, op: Op, access: Access) -> Service {
        self.classes[target as usize].service(op, access)
    }

    /// α and β of a target that `q` processes share.
    pub(crate) fn shared(&self, target: u32, op: Op, access: Access, q: u32) -> Server {
        Server::new(self.service(target, op, access), q).expect("the parameters were checked")
    }

    /// Seconds that a target is busy with `bytes` of one request.
    ///
    /// Its network link works on one sub-request while its device works on another, so the slower
    /// of the two counts.
    pub fn busy_s(&self, target: u32, op: Op, access: Access, bytes: u64) -> f64 {
        let link_s = self.network.establish_s + bytes as f64 * self.network.per_byte_s;
        self.service(target, op, access).busy_s(bytes).max(link_s)
    }

    /// The error of [`Servers::busy_s`], seconds: that of the link or the device, whichever is
    /// slower.
    pub fn error_s(&self, target: u32, op: Op, access: Access, bytes: u64) -> f64 {
        let device_s = self.service(target, op, access).busy_s(bytes);
        if self.busy_s(target, op, access, bytes) > device_s {
            return self.network_fit.map_or(0.0, |fit| fit.error_s(bytes));
        }
        let fits = self.fits[target as usize].as_ref();
        fits.map_or(0.0, |fits| fits.of_kind(op, access).error_s(bytes))
    }
}

/// Per target: the number of its class and arm among the distinct ones.
fn kinds(classes: &[ClassParams], one_arm: &[bool]) -> Vec<u32> {
    let mut known: Vec<(&ClassParams, bool)> = Vec::new();
    let kind = |target| {
        let place = known.iter().position(|known| *known == target).unwrap_or(known.len());
        if place == known.len() {
            known.push(target);
        }
        place as u32
    };
    classes.iter().zip(one_arm.iter().copied()).map(kind).collect()
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

    /// Whether servers have one arm if their class is measured or their tier emulated.
    fn has_one_arm(measured: bool, emulate: bool) -> bool {
        let mut cluster = with_order(cluster((2, 3e-3, 8e-9), (0, 0.0, 0.0), ("1G", "1G"), (0.0, 0.0)));
        if measured {
            cluster.measured = cluster.classes.clone();
        }
        cluster.tiers[0].emulate = emulate;
        Servers::of(&cluster).unwrap().one_arm[1]
    }

    #[test]
    fn what_was_measured_of_a_real_server_holds_for_one_process() {
        let found =
            [(true, false), (true, true), (false, false), (false, true)].map(|(m, e)| has_one_arm(m, e));
        assert_eq!(found, [true, false, false, false]);
    }
}
