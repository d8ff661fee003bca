//! OrangeFS: `simple_stripe`, `twod_stripe` and `varstrip_dist`, with a list of servers.

use stripewise_cluster::{Driver, Members};

use super::subject::Subject;
use crate::cycle::{Cycle, Groups};
use crate::{NativeLayout, Stripe};

pub fn express(subject: &Subject<'_>) -> Result<NativeLayout, String> {
    let [cycles] = &subject.layouts[..] else {
        return Err("files of one directory would need different servers".into());
    };
    let [cycle] = &cycles[..] else {
        return Err("a file has one distribution from its first to its last byte".into());
    };
    let targets = cycle.targets();
    if let (Some(width), true) = (cycle.even(), all_in_a_pool(subject, &targets)) {
        return Ok(NativeLayout::even(width, targets.len() as u32, None));
    }
    let list = |targets: &[u32]| {
        targets.iter().map(|&target| subject.names.server(target)).collect::<Result<Vec<_>, _>>()
    };
    Ok(NativeLayout::uniform(match (cycle.even(), cycle.grouped()) {
        (Some(width), _) => Stripe::Listed { width, servers: list(&targets)? },
        (None, Some(Groups { width, groups, factor })) => {
            Stripe::Grouped { width, groups: groups as u32, factor: factor as u32, servers: list(&targets)? }
        }
        (None, None) => Stripe::Varied { stripes: varied(subject, cycle)? },
    }))
}

/// Whether all targets are in tiers whose servers have no names. OrangeFS has no pools and uses any
/// of its servers for these.
fn all_in_a_pool(subject: &Subject<'_>, targets: &[u32]) -> bool {
    let tiers = &subject.names.cluster.tiers;
    targets.iter().all(|&target| {
        let tier = subject.names.cluster.tier_of(target).map(|tier| &tiers[tier].driver);
        subject.names.is_known(target)
            && matches!(tier, Some(Driver::Native { members: Members::Pool { .. }, .. }))
    })
}

fn varied(subject: &Subject<'_>, cycle: &Cycle) -> Result<Vec<(String, u64)>, String> {
    cycle.stripes.iter().map(|&(target, width)| Ok((subject.names.server(target)?, width))).collect()
}
