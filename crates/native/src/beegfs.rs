//! BeeGFS: chunks of one size over a number of targets of a storage pool.

use stripewise_cluster::size;

use crate::commands::{Call, words};
use crate::cycle::Cycle;
use crate::layout::are_different;
use crate::names::{PoolName, Subject};
use crate::{NativeLayout, Stripe};

/// Smallest chunk of BeeGFS (STRIPEPATTERN_MIN_CHUNKSIZE in StripePattern.h), bytes.
const CHUNK_MIN: u64 = 64 << 10;
/// Largest chunk of BeeGFS: a power of two that fits into 32 bits (minChunksize, maxChunksize in
/// beegfs-go's entry/flags.go), bytes.
const CHUNK_MAX: u64 = 1 << 31;
/// Chunk size of a file on one target, where any size works, bytes.
const SOLO: u64 = 1 << 20;

pub(crate) fn express(subject: &Subject<'_>) -> Result<NativeLayout, String> {
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

pub(crate) fn check(stripe: &Stripe) -> Result<(), String> {
    let width = match stripe {
        Stripe::Even { count: 0, .. } => return Err("it has no targets".into()),
        Stripe::Even { width, .. } => *width,
        Stripe::Listed { width, servers } => {
            // "the same target was specified multiple times" in beegfs-go's entry/create.go.
            if servers.is_empty() || !are_different(servers) {
                return Err("its targets are different ones, at least one".into());
            }
            *width
        }
        Stripe::Varied { .. } | Stripe::Grouped { .. } => {
            return Err("all chunks of a file are equally long".into());
        }
    };
    if !width.is_power_of_two() || !(CHUNK_MIN..=CHUNK_MAX).contains(&width) {
        return Err(format!(
            "a chunk is a power of two of at least 64K and at most 2G, not {}",
            size::format(width)
        ));
    }
    Ok(())
}

/// The call of `beegfs entry set` or `entry create file` of BeeGFS 8 (ctl/internal/cmd/entry in
/// ThinkParQ/beegfs-go), where K is 1000 and Ki 1024.
pub(crate) fn call(stripe: &Stripe, path: String, is_dir: bool) -> Call {
    let mut call =
        words(if is_dir { &["beegfs", "entry", "set"] } else { &["beegfs", "entry", "create", "file"] });
    let chunk = |width: u64| {
        let text = size::format(width);
        format!("--chunk-size={}", if text.ends_with(|c: char| c.is_ascii_digit()) { text } else { text + "i" })
    };
    match stripe {
        Stripe::Even { width, count, pool } => {
            call.extend([format!("--num-targets={count}"), chunk(*width)]);
            call.extend(pool.iter().map(|pool| format!("--pool={pool}")));
        }
        Stripe::Listed { width, servers } => {
            call.extend([format!("--num-targets={}", servers.len()), chunk(*width)]);
            call.push(format!("--targets={}", servers.join(",")));
        }
        Stripe::Varied { .. } | Stripe::Grouped { .. } => unreachable!("check() lets no such layout pass"),
    }
    call.push(path);
    call
}
