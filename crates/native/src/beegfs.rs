//! BeeGFS: chunks of one size over a number of targets of a storage pool.

use stripewise_cluster::size;

use crate::commands::{Call, words};
use crate::layout::are_different;
use crate::names::{Apart, Subject};
use crate::{NativeLayout, Stripe};

/// Smallest chunk of BeeGFS (STRIPEPATTERN_MIN_CHUNKSIZE in StripePattern.h), bytes.
const CHUNK_MIN: u64 = 64 << 10;
/// Largest chunk of BeeGFS: a power of two that fits into 32 bits (minChunksize, maxChunksize in
/// beegfs-go's entry/flags.go), bytes.
const CHUNK_MAX: u64 = 1 << 31;
/// Chunk size of a file on one target, where any size works, bytes.
const SOLO: u64 = 1 << 20;

pub(crate) fn express(subject: &Subject<'_>) -> Result<NativeLayout, String> {
    if subject.layouts.iter().any(|cycles| cycles.len() != 1) {
        return Err("a file has one pattern from its first to its last byte".into());
    }
    let Some((count, width)) = subject.same_stripes() else {
        return Err("all chunks of the files of a directory are equally long".into());
    };
    let targets = subject.targets();
    let pool = subject.pool(&targets, true).map_err(|Apart| {
        "a file lies in one storage pool, and its targets are in several; targets of their own pools can do it"
    })?;
    let pool = pool.or_else(|| Some(format!("POOL({})", subject.tier_of(&targets)?)));
    let width = if count == 1 { SOLO } else { width };
    Ok(NativeLayout::uniform(Stripe::Even { width, count, pool }))
}

pub(crate) fn check(stripe: &Stripe) -> Result<(), String> {
    let Some((width, _)) = stripe.equal() else {
        return Err("all chunks of a file are equally long".into());
    };
    match stripe {
        Stripe::Even { count: 0, .. } => return Err("it has no targets".into()),
        // "the same target was specified multiple times" in beegfs-go's entry/create.go.
        Stripe::Listed { servers, .. } if servers.is_empty() || !are_different(servers) => {
            return Err("its targets are different ones, at least one".into());
        }
        _ => {}
    }
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
    let (width, count) = stripe.equal().expect("check() lets no other layout pass");
    let chunk = size::format(width);
    let i = if chunk.ends_with(|c: char| c.is_ascii_digit()) { "" } else { "i" };
    call.extend([format!("--num-targets={count}"), format!("--chunk-size={chunk}{i}")]);
    match stripe {
        Stripe::Even { pool: Some(pool), .. } => call.push(format!("--pool={pool}")),
        Stripe::Listed { servers, .. } => call.push(format!("--targets={}", servers.join(","))),
        _ => {}
    }
    call.push(path);
    call
}
