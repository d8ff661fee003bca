//! The layouts that the file systems accept, so that a layout that a file system would refuse,
//! round or ignore is reported before it is requested.

use stripewise_cluster::{FileSystem, size};

use crate::orangefs::Distribution;
use crate::{Component, NativeLayout, Stripe, cephfs};

/// Lustre's limits.
pub mod lustre {
    /// Stripe sizes and the ends of components are multiples of this (LOV_MIN_STRIPE_SIZE in
    /// lustre_user.h), bytes.
    pub const UNIT: u64 = 64 << 10;
    /// Stripe sizes are below this (`llapi_stripe_size_is_too_big`), bytes.
    pub const STRIPE_MAX: u64 = 4 << 30;
    /// Maximum number of stripes of one component (LOV_MAX_STRIPE_COUNT in lustre_user.h).
    pub const STRIPES_MAX: u32 = 2000;
    /// Maximum number of characters of a pool's name (LOV_MAXPOOLNAME in lustre_user.h).
    pub const POOL_NAME_MAX: usize = 15;
}

/// Smallest chunk of BeeGFS (STRIPEPATTERN_MIN_CHUNKSIZE in StripePattern.h), bytes.
const BEEGFS_CHUNK_MIN: u64 = 64 << 10;
/// Largest chunk of BeeGFS: a power of two that fits into 32 bits (minChunksize, maxChunksize in
/// beegfs-go's entry/flags.go), bytes.
const BEEGFS_CHUNK_MAX: u64 = 1 << 31;

/// Checks whether `system` accepts a layout. Does not know which servers and pools exist.
///
/// # Errors
/// The reason, in words that can follow `because`.
pub fn check(system: FileSystem, layout: &NativeLayout) -> Result<(), String> {
    ends(system, layout)?;
    match system {
        FileSystem::CephFs => cephfs::value(layout).map(drop),
        FileSystem::Lustre => layout.components.iter().try_fold(0, lustre_component).map(drop),
        FileSystem::BeeGfs => beegfs(&layout.components[0].stripe),
        FileSystem::OrangeFs => Distribution::of(&layout.components[0].stripe).map(drop),
    }
}

/// Checks that components follow one another to the end of the file. Only Lustre supports several.
fn ends(system: FileSystem, layout: &NativeLayout) -> Result<(), String> {
    let (Some(last), ends) =
        (layout.components.last(), layout.components.iter().map(|component| component.end))
    else {
        return Err("it has no component".into());
    };
    if layout.components.len() > 1 && system != FileSystem::Lustre {
        return Err("a file has one layout from its first to its last byte".into());
    }
    if last.end.is_some() {
        return Err("its last component does not go to the end of the file".into());
    }
    let ends: Vec<u64> = ends.flatten().collect();
    if ends.len() + 1 < layout.components.len() || !ends.is_sorted_by(|a, b| a < b) || ends.first() == Some(&0)
    {
        return Err("its components do not follow one another".into());
    }
    Ok(())
}

/// Checks a component that begins at `start`. Returns where the next one begins.
fn lustre_component(start: u64, component: &Component) -> Result<u64, String> {
    let width = match &component.stripe {
        Stripe::Even { width, count, pool } => {
            if !(1..=lustre::STRIPES_MAX).contains(count) {
                return Err(format!("{count} stripes: a component has 1 to {}", lustre::STRIPES_MAX));
            }
            pool.as_deref().map_or(Ok(()), lustre_pool)?;
            *width
        }
        Stripe::Listed { width, servers } => {
            if servers.is_empty() || servers.len() > lustre::STRIPES_MAX as usize {
                return Err(format!("{} stripes: a component has 1 to {}", servers.len(), lustre::STRIPES_MAX));
            }
            let bad = servers.iter().find(|server| server.parse::<u16>().is_err());
            if let Some(bad) = bad {
                return Err(format!("{bad:?} is no OST index (`lfs osts` lists them)"));
            }
            *width
        }
        Stripe::Varied { .. } | Stripe::Grouped { .. } => {
            return Err("its stripes are equally long; a repeated OST makes the share of one larger".into());
        }
    };
    if width == 0 || !width.is_multiple_of(lustre::UNIT) {
        return Err(format!("a stripe of {} is no multiple of 64K", size::format(width)));
    }
    if width >= lustre::STRIPE_MAX {
        return Err(format!("a stripe of {} is not below 4G", size::format(width)));
    }
    // lod_verify_striping in lustre/lod/lod_lov.c: "stripe size isn't aligned".
    match component.end {
        Some(end) if !end.is_multiple_of(width) => Err(format!(
            "a component of stripes of {} ends at {end}, which is no multiple",
            size::format(width)
        )),
        end => Ok(end.unwrap_or(start)),
    }
}

/// Placeholders such as `POOL(hdd)` pass: a person must replace them by a name.
fn lustre_pool(name: &str) -> Result<(), String> {
    let placeholder = name.starts_with("POOL(");
    if !placeholder && (name.is_empty() || name.len() > lustre::POOL_NAME_MAX || name.contains(['.', ' ', '/']))
    {
        return Err(format!("{name:?} is no pool name (1 to {} characters, no dots)", lustre::POOL_NAME_MAX));
    }
    Ok(())
}

fn beegfs(stripe: &Stripe) -> Result<(), String> {
    let width = match stripe {
        Stripe::Even { count: 0, .. } => return Err("it has no targets".into()),
        Stripe::Even { width, .. } => *width,
        Stripe::Listed { width, servers } => {
            let mut once = servers.clone();
            once.sort_unstable();
            once.dedup();
            // "the same target was specified multiple times" in beegfs-go's entry/create.go.
            if once.is_empty() || once.len() < servers.len() {
                return Err("its targets are different ones, at least one".into());
            }
            *width
        }
        Stripe::Varied { .. } | Stripe::Grouped { .. } => {
            return Err("all chunks of a file are equally long".into());
        }
    };
    if !width.is_power_of_two() || !(BEEGFS_CHUNK_MIN..=BEEGFS_CHUNK_MAX).contains(&width) {
        return Err(format!(
            "a chunk is a power of two of at least 64K and at most 2G, not {}",
            size::format(width)
        ));
    }
    Ok(())
}
