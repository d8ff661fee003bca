//! Random layouts, and a slow reference mapping that is obviously right.

mod brute_force;
mod constructors;
mod far;
mod refused;

use proptest::prelude::*;

use crate::{Layout, Region, Stripe};

/// Number of random cases per property.
fn cases() -> ProptestConfig {
    let cases = if std::env::var_os("STRIPEWISE_LONG").is_some() { 200_000 } else { 2_000 };
    ProptestConfig {
        failure_persistence: None,
        max_global_rejects: 20 * cases,
        ..ProptestConfig::with_cases(cases)
    }
}

/// Cycles of up to `longest` stripes on a few of the targets 0, 2, 4, ..., with repeats; the
/// targets in between are unused.
fn cycle(longest: usize, width: impl Strategy<Value = u64>) -> impl Strategy<Value = Vec<Stripe>> {
    let stripe = (0u32..5, width).prop_map(|(target, width)| Stripe { target: target * 2, width });
    prop::collection::vec(stripe, 1..=longest)
}

/// A layout of up to four regions; `len` is the length of a region that ends.
fn layout(
    len: impl Strategy<Value = u64> + Clone,
    width: impl Strategy<Value = u64> + Clone,
) -> impl Strategy<Value = Layout> {
    let bounded = prop::collection::vec((len, cycle(7, width.clone())), 0..4);
    (bounded, cycle(7, width)).prop_map(|(bounded, last)| {
        let mut regions = Vec::new();
        let mut start = 0;
        for (len, cycle) in bounded {
            regions.push(Region { start, end: Some(start + len), cycle });
            start += len;
        }
        regions.push(Region { start, end: None, cycle: last });
        Layout::new(regions).expect("valid by construction")
    })
}

/// Layouts that a few hundred bytes of file exercise completely.
fn small() -> impl Strategy<Value = Layout> {
    layout(1u64..60, 1u64..9)
}

/// The target of each of the file's first `bytes` bytes, computed one byte at a time.
fn targets_byte_by_byte(layout: &Layout, bytes: u64) -> Vec<u32> {
    let mut targets = Vec::new();
    for region in layout.regions() {
        let mut stripes = region.cycle.iter().cycle();
        let end = region.end.unwrap_or(u64::MAX).min(bytes);
        while (targets.len() as u64) < end {
            let stripe = stripes.next().expect("endless");
            targets.extend((0..stripe.width).map(|_| stripe.target));
        }
        targets.truncate(end as usize);
    }
    targets
}

/// Bytes on `target` of the file's first `bytes` bytes, computed stripe by stripe in 128 bits.
fn object_size_slowly(layout: &Layout, target: u32, bytes: u64) -> u64 {
    let mut sum = 0u128;
    for region in layout.regions() {
        let end = region.end.unwrap_or(u64::MAX).min(bytes);
        let within = u128::from(end.saturating_sub(region.start));
        let turn: u128 = region.cycle.iter().map(|stripe| u128::from(stripe.width)).sum();
        let mut before = 0;
        for stripe in &region.cycle {
            let width = u128::from(stripe.width);
            if stripe.target == target {
                sum += within / turn * width + (within % turn).saturating_sub(before).min(width);
            }
            before += width;
        }
    }
    u64::try_from(sum).expect("no more than the file")
}
