//! The layouts of the papers. All take target indices; widths and sizes are bytes.
//!
//! How a scheme meets a request size: a *shared* file shows a request of `S` bytes as many servers as the stripe
//! size makes it, so 1-DH is a stripe of `S/n`, 1-DV of `S`, and 2-D of `S/(n/g)` (CIL §4). A file that belongs to
//! *one process* is striped over all servers (1-DH), a group (2-D) or one server (1-DV) that is its own.

use crate::layout::{Layout, LayoutError, Region, Stripe};

/// Fixed stripes of `stripe` bytes round-robin over `targets`: 1-DH, and DEF's layout (64 KiB over all servers).
///
/// # Errors
/// No targets, or a stripe of 0 bytes.
pub fn striped(targets: &[u32], stripe: u64) -> Result<Layout, LayoutError> {
    Layout::single(cycle_of(targets, stripe))
}

/// The whole file on one target: 1-DV of a file that belongs to one process.
///
/// # Errors
/// None occur.
pub fn on_one(target: u32) -> Result<Layout, LayoutError> {
    // Any width says the same; a page-aligned one keeps every mapping of the file possible.
    Layout::single(vec![Stripe { target, width: 1 << 30 }])
}

/// Varied stripes, one turn of the cycle given in full; targets with 0 bytes are left out (they hold nothing).
///
/// # Errors
/// No target with more than 0 bytes.
pub fn varied(cycle: &[(u32, u64)]) -> Result<Layout, LayoutError> {
    Layout::single(varied_cycle(cycle))
}

/// 2-D of a shared file (CIL Fig. 1; OrangeFS `twod_stripe`): consecutive blocks of `block` bytes go to
/// consecutive groups, and a block is striped over the servers of its group.
///
/// The `targets` are split into `groups` groups of neighbours whose sizes differ by at most one, the larger
/// first. Each group's stripe is `block` / its size, rounded up to a whole `align` bytes, the last one taking the
/// rest, so that a block always is `block` bytes. `groups = 1` is 1-DH and `groups = n` is 1-DV with `S = block`.
///
/// # Errors
/// No targets, no groups or more than targets, or a block of 0 bytes.
pub fn two_d(targets: &[u32], groups: usize, block: u64, align: u64) -> Result<Layout, LayoutError> {
    if groups == 0 || groups > targets.len() {
        return Err(LayoutError::EmptyCycle { region: 0 });
    }
    let mut cycle = Vec::with_capacity(targets.len());
    for group in 0..groups {
        let members = group_members(targets, groups, group);
        let stripe = block.div_ceil(members.len() as u64).next_multiple_of(align.max(1));
        let mut left = block;
        for &target in members {
            let width = stripe.min(left);
            left -= width;
            cycle.push((target, width));
        }
    }
    varied(&cycle)
}

/// The targets of group `group` of `groups`: neighbours, sizes differing by at most one, the larger groups first.
pub fn group_members(targets: &[u32], groups: usize, group: usize) -> &[u32] {
    let (small, larger) = (targets.len() / groups, targets.len() % groups);
    let start = group * small + group.min(larger);
    &targets[start..start + small + usize::from(group < larger)]
}

/// A file in two parts (DEF when the SSDs are full, PA, PSA): `first` up to byte `boundary`, `second` from there.
///
/// A boundary of 0 gives `second` alone. Stripes of 0 bytes are left out.
///
/// # Errors
/// A part without any stripe of more than 0 bytes, or a boundary past 2^63.
pub fn two_part(first: &[(u32, u64)], boundary: u64, second: &[(u32, u64)]) -> Result<Layout, LayoutError> {
    if boundary == 0 {
        return varied(second);
    }
    Layout::new(vec![
        Region { start: 0, end: Some(boundary), cycle: varied_cycle(first) },
        Region { start: boundary, end: None, cycle: varied_cycle(second) },
    ])
}

fn cycle_of(targets: &[u32], width: u64) -> Vec<Stripe> {
    targets.iter().map(|&target| Stripe { target, width }).collect()
}

fn varied_cycle(cycle: &[(u32, u64)]) -> Vec<Stripe> {
    let used = cycle.iter().filter(|&&(_, width)| width > 0);
    used.map(|&(target, width)| Stripe { target, width }).collect()
}
