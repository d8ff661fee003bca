//! HServers and SServers: the targets by class, slowest first.

use crate::error::PlanError;
use crate::problem::Problem;

/// The targets of the problem's cluster by class, as (class name, targets), slowest first. Servers
/// are compared by their service time for an equal share of a request of size S, of the kind that
/// moves the most bytes. Of equally fast classes the one named first counts as the slower.
pub fn by_speed(problem: &Problem<'_>) -> Vec<(String, Vec<u32>)> {
    let mut by_class: Vec<(String, Vec<u32>)> = Vec::new();
    for (tier, spec) in problem.cluster.tiers.iter().enumerate() {
        let targets = problem.cluster.targets_of(tier);
        if targets.is_empty() {
            continue;
        }
        match by_class.iter_mut().find(|(class, _)| *class == spec.class) {
            Some((_, known)) => known.extend(targets),
            None => by_class.push((spec.class.clone(), targets.collect())),
        }
    }
    let share = problem.size.div_ceil(problem.servers.count().max(1) as u64);
    let group = problem.main_group();
    let service_s = |(_, targets): &(String, Vec<u32>)| {
        problem.servers.service(targets[0], group.op, group.access).busy_s(share)
    };
    by_class.sort_by(|a, b| service_s(b).total_cmp(&service_s(a)));
    by_class
}

/// HServers and SServers, if there are exactly two classes.
pub fn two(problem: &Problem<'_>, scheme: &str) -> Result<(Vec<u32>, Vec<u32>), PlanError> {
    match <[_; 2]>::try_from(by_speed(problem)) {
        Ok([(_, h), (_, s)]) => Ok((h, s)),
        Err(other) => {
            let names: Vec<&str> = other.iter().map(|(class, _)| class.as_str()).collect();
            Err(PlanError::new(format!(
                "{scheme} needs exactly two classes of servers, and the cluster has {}: {}; use --scheme overall, \
                 or describe a slow and a fast class",
                names.len(),
                names.join(", ")
            )))
        }
    }
}

/// The stripes of homogeneous requests of S bytes: S/M on each of the M servers. If a file system
/// stripes over a pool or programs map the files, the width is rounded up to one that is possible.
pub fn homogeneous(problem: &Problem<'_>, targets: &[u32]) -> Vec<(u32, u64)> {
    match problem.width_unit() {
        None => divide(targets, problem.size),
        Some(_) => {
            let width = problem.width_above(problem.size.div_ceil(targets.len() as u64));
            targets.iter().map(|&target| (target, width)).collect()
        }
    }
}

/// `bytes` over `targets` as evenly as whole bytes allow, larger shares first.
pub fn divide(targets: &[u32], bytes: u64) -> Vec<(u32, u64)> {
    let n = targets.len() as u64;
    let share = |(index, &target): (u64, &u32)| (target, bytes / n + u64::from(index < bytes % n));
    (0..).zip(targets).map(share).collect()
}
