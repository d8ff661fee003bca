//! CephFS: one stripe unit and one pool for the whole file.

use super::subject::Subject;
use crate::names::PoolName;
use crate::{NativeLayout, Stripe};

/// Stripe unit of a file on one server, where any size works, bytes: the size of Ceph's objects.
const SOLO: u64 = 4 << 20;

pub fn express(subject: &Subject<'_>) -> Result<NativeLayout, String> {
    let [cycles] = &subject.layouts[..] else {
        return Err("files of one directory would need different pools".into());
    };
    let [cycle] = &cycles[..] else {
        return Err("a file has one layout from its first to its last byte".into());
    };
    let Some(width) = cycle.even() else {
        return Err("all stripes of a file are equally long; targets of their own pools can do it".into());
    };
    let targets = cycle.targets();
    let solo = targets.len() == 1;
    let pool = match subject.names.pool(&targets, true) {
        PoolName::Known(pool) => pool,
        PoolName::Apart => {
            return Err(
                "a file lies in one pool, and its servers are in several; targets of their own pools can do it"
                    .into(),
            );
        }
        PoolName::Unknown => placeholder(subject, &targets),
    };
    let width = if solo { SOLO } else { width };
    Ok(NativeLayout::uniform(Stripe::Even { width, count: targets.len() as u32, pool: Some(pool) }))
}

fn placeholder(subject: &Subject<'_>, targets: &[u32]) -> String {
    let names = &subject.names;
    match names.whole_tier(targets) {
        _ if names.whole_cluster(targets) && targets.len() > 1 => "POOL(all)".to_owned(),
        Some(tier) => format!("POOL({tier})"),
        None => {
            let each: Vec<String> = targets.iter().map(|&target| names.name_of(target)).collect();
            format!("POOL({})", each.join("+"))
        }
    }
}
