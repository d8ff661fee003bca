//! Constructors for the layouts of the papers. All take target indices; widths and sizes are in
//! bytes.
//!
//! How a scheme relates to the request size: in a *shared* file, the stripe size determines the
//! number of servers that a request of `S` bytes touches, so 1-DH is a stripe of `S/n`, 1-DV of
//! `S`, and 2-D of `S/(n/g)` (CIL §4). A file that belongs to *one process* is striped over all
//! servers (1-DH) or over the file's own group (2-D), or is placed on the file's own server (1-DV).

use crate::layout::{Layout, LayoutError};
use crate::region::{MAX_OFFSET, Region, Stripe};

/// Fixed stripes of `stripe` bytes, round-robin over `targets`: 1-DH, and DEF's layout (64 KiB over
/// all servers).
///
/// # Errors
/// No targets, or a stripe of 0 bytes.
pub fn striped(targets: &[u32], stripe: u64) -> Result<Layout, LayoutError> {
    Layout::single(cycle_of(targets, stripe))
}

/// The whole file on one target: 1-DV of a file that belongs to one process.
///
/// # Errors
/// A number of [`MAX_TARGETS`](crate::MAX_TARGETS) or more.
pub fn on_one(target: u32) -> Result<Layout, LayoutError> {
    // All widths are equivalent here; a page-aligned one allows every mapping of the file.
    Layout::single(vec![Stripe { target, width: 1 << 30 }])
}

/// Varied stripes, with one turn of the cycle given explicitly. Targets with 0 bytes are left out,
/// as they hold nothing.
///
/// # Errors
/// No target with more than 0 bytes.
pub fn varied(cycle: &[(u32, u64)]) -> Result<Layout, LayoutError> {
    Layout::single(varied_cycle(cycle))
}

/// 2-D of a shared file (CIL Fig. 1; OrangeFS `twod_stripe`): consecutive blocks of `block` bytes
/// go to consecutive groups, and a block is striped over the servers of its group.
///
/// The `targets` are divided into `groups` groups of adjacent targets ([`group_members`]). A block
/// is divided over its group as evenly as whole multiples of `align` bytes allow, with the larger
/// stripes first; what the block lacks to a multiple is missing from the last stripe. If a server
/// of the group would get no bytes, `align` is halved until each one gets some. So a block always
/// has `block` bytes, on all servers of its group unless it has fewer bytes than servers.
/// `groups = 1` is 1-DH, and `groups = n` is 1-DV with `S = block`.
///
/// # Errors
/// No groups, more groups than targets, or a block of 0 bytes.
pub fn two_d(targets: &[u32], groups: usize, block: u64, align: u64) -> Result<Layout, LayoutError> {
    if groups == 0 || groups > targets.len() {
        let count = targets.len();
        return Err(LayoutError(format!("{groups} groups of {count} targets; 2-D needs 1 to {count} groups")));
    }
    let mut cycle = Vec::with_capacity(targets.len());
    for group in 0..groups {
        let members = group_members(targets, groups, group);
        cycle.extend(members.iter().copied().zip(divide(block, members.len() as u64, align)));
    }
    varied(&cycle)
}

/// Divides `block` bytes into `parts` widths, as evenly as multiples of `align` allow. The widths
/// differ by at most one multiple, except for the last, which also lacks what the block lacks to a
/// multiple.
fn divide(block: u64, parts: u64, align: u64) -> impl Iterator<Item = u64> {
    let mut align = align.max(1);
    while align > 1 && block.div_ceil(align) < parts {
        align /= 2;
    }
    let units = block.div_ceil(align);
    let mut left = block;
    (0..parts).map(move |part| {
        let units = units / parts + u64::from(part < units % parts);
        let width = units.saturating_mul(align).min(left);
        left -= width;
        width
    })
}

/// The targets of group `group` of `groups`. Groups consist of adjacent targets, their sizes differ
/// by at most one, and larger groups come first.
pub fn group_members(targets: &[u32], groups: usize, group: usize) -> &[u32] {
    let (small, larger) = (targets.len() / groups, targets.len() % groups);
    let start = group * small + group.min(larger);
    &targets[start..start + small + usize::from(group < larger)]
}

/// A file whose first region is striped as `first` until one of the targets in `space` holds the
/// number of bytes given for it there, and whose rest is striped as `second`. DEF uses it for fixed
/// stripes on all servers until the SSDs are full and then on the HServers; PA and PSA for varied
/// stripes, then S/M on the HServers.
///
/// The first region has only whole turns of its cycle: in PA and PSA a turn is one request, and
/// Algorithm 1's number of heterogeneous requests is `j = ⌊C_s/s_s⌋`. Targets that are not in
/// `space`, or in `space` but not in `first`, set no bound; without any bound the whole file is
/// striped as `first`. Without space for one turn all of it is striped as `second`.
///
/// # Errors
/// A region that is used and has no stripe of more than 0 bytes.
pub fn until_full(
    first: &[(u32, u64)],
    space: &[(u32, u64)],
    second: &[(u32, u64)],
) -> Result<Layout, LayoutError> {
    let per_turn = |target| {
        let widths = first.iter().filter(|stripe| stripe.0 == target).map(|stripe| u128::from(stripe.1));
        widths.sum::<u128>()
    };
    let turns_within = |&(target, bytes): &(u32, u64)| u128::from(bytes).checked_div(per_turn(target));
    let Some(turns) = space.iter().filter_map(turns_within).min() else {
        return varied(first);
    };
    let turn = first.iter().map(|stripe| u128::from(stripe.1)).sum::<u128>();
    match u64::try_from(turns.saturating_mul(turn)) {
        Ok(boundary) if boundary <= MAX_OFFSET => two_part(first, boundary, second),
        _ => varied(first),
    }
}

/// A file of two regions (DEF when the SSDs are full, PA, PSA): `first` up to byte `boundary`,
/// `second` from there on.
///
/// With a boundary of 0 the file is striped as `second` alone. Stripes of 0 bytes are left out.
///
/// # Errors
/// A region without a stripe of more than 0 bytes, or a boundary past 2^63.
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
