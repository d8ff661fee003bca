//! BeeGFS: chunks of one size over a number of targets of a storage pool.

use super::subject::Subject;
use crate::cycle::Cycle;
use crate::names::PoolName;
use crate::{NativeLayout, Stripe};

/// Chunk size of a file on one target, where any size works, bytes.
const SOLO: u64 = 1 << 20;

pub fn express(subject: &Subject<'_>) -> Result<NativeLayout, String> {
    let mut shapes: Vec<Option<(usize, u64)>> = Vec::new();
    for cycles in &subject.layouts {
        let [cycle] = &cycles[..] else {
            return Err("a file has one pattern from its first to its last byte".into());
        };
        shapes.push(cycle.even().map(|width| (cycle.stripes.len(), width)));
    }
    shapes.dedup();
    let [Some((count, width))] = shapes[..] else {
        return Err("all chunks of the files of a directory are equally long".into());
    };
    let targets: Vec<u32> = subject.layouts.iter().flatten().flat_map(Cycle::targets).collect();
    let pool = match subject.names.pool(&targets, true) {
        PoolName::Known(pool) => Some(pool),
        PoolName::Apart => {
            return Err("a file lies in one storage pool, and its targets are in several; targets of their own pools can do it".into());
        }
        PoolName::Unknown => subject.names.tier_of(&targets).map(|tier| format!("POOL({tier})")),
    };
    let width = if count == 1 { SOLO } else { width };
    Ok(NativeLayout::uniform(Stripe::Even { width, count: count as u32, pool }))
}
