//! The layouts of the papers, as seen by a request, a block or a full SSD.

use proptest::prelude::*;

use super::cases;
use crate::constructors::{group_members, on_one, striped, two_d, two_part, until_full, varied};
use crate::{Layout, MAX_OFFSET};

const KIB: u64 = 1 << 10;

fn bytes(layout: &Layout, offset: u64, len: u64) -> Vec<u64> {
    let mut bytes = vec![0; layout.target_count()];
    layout.bytes_per_target(offset, len, &mut bytes);
    bytes
}

#[test]
fn one_dh_spreads_a_request_over_all() {
    let layout = striped(&[0, 1, 2, 3], 64 * KIB).unwrap();
    assert_eq!(bytes(&layout, 0, 256 * KIB), [64 * KIB; 4]);
    assert_eq!(
        bytes(&layout, 32 * KIB, 64 * KIB),
        [32 * KIB, 32 * KIB].into_iter().chain([0, 0]).collect::<Vec<_>>()
    );
}

#[test]
fn one_dv_keeps_a_file_on_one() {
    let layout = on_one(2).unwrap();
    assert_eq!(bytes(&layout, 12345, MAX_OFFSET), [0, 0, MAX_OFFSET - 12345]);
}

#[test]
fn only_these_targets() {
    let layout = striped(&[1, 3], 64 * KIB).unwrap();
    assert_eq!(bytes(&layout, 0, 256 * KIB), [0, 128 * KIB, 0, 128 * KIB]);
}

#[test]
fn varied_stripes_leave_targets_without_bytes_out() {
    let layout = varied(&[(0, 128 * KIB), (1, 0), (2, 128 * KIB)]).unwrap();
    assert_eq!(layout.targets().collect::<Vec<_>>(), [0, 2]);
}

#[test]
fn two_d_alternates_between_groups() {
    let layout = two_d(&[0, 1, 2, 3], 2, 128 * KIB, 4 * KIB).unwrap();
    assert_eq!(bytes(&layout, 0, 128 * KIB), [64 * KIB, 64 * KIB, 0, 0]);
    assert_eq!(bytes(&layout, 128 * KIB, 128 * KIB), [0, 0, 64 * KIB, 64 * KIB]);
    assert_eq!(bytes(&layout, 256 * KIB, 128 * KIB), [64 * KIB, 64 * KIB, 0, 0]);
}

/// The two extremes of 2-D are the other two layouts.
#[test]
fn two_d_with_one_group_or_one_server_each() {
    let targets = [0, 1, 2, 3];
    assert_eq!(two_d(&targets, 1, 256 * KIB, 4 * KIB).unwrap(), striped(&targets, 64 * KIB).unwrap());
    assert_eq!(two_d(&targets, 4, 256 * KIB, 4 * KIB).unwrap(), striped(&targets, 256 * KIB).unwrap());
}

#[test]
fn two_d_of_uneven_groups() {
    assert_eq!(group_members(&[0, 1, 2, 3, 4, 5, 6], 3, 0), [0, 1, 2]);
    assert_eq!(group_members(&[0, 1, 2, 3, 4, 5, 6], 3, 1), [3, 4]);
    assert_eq!(group_members(&[0, 1, 2, 3, 4, 5, 6], 3, 2), [5, 6]);
    let layout = two_d(&[0, 1, 2, 3, 4], 2, 64 * KIB, 4 * KIB).unwrap();
    // 16 units of 4 KiB over 3 servers, and over 2.
    assert_eq!(bytes(&layout, 0, 64 * KIB), [24 * KIB, 20 * KIB, 20 * KIB, 0, 0]);
    assert_eq!(bytes(&layout, 64 * KIB, 64 * KIB), [0, 0, 0, 32 * KIB, 32 * KIB]);
}

/// Rounding to `align` must not leave servers of a group without bytes: 8 KiB are only two units of
/// 4 KiB.
#[test]
fn a_small_block_reaches_its_whole_group() {
    let layout = two_d(&[0, 1, 2, 3], 1, 8 * KIB, 4 * KIB).unwrap();
    assert_eq!(bytes(&layout, 0, 8 * KIB), [2 * KIB; 4]);
    // Five units over four servers: one gets two, the others one each.
    let layout = two_d(&[0, 1, 2, 3], 1, 20 * KIB, 4 * KIB).unwrap();
    assert_eq!(bytes(&layout, 0, 20 * KIB), [8 * KIB, 4 * KIB, 4 * KIB, 4 * KIB]);
    // Fewer bytes than servers: one server is left out.
    let layout = two_d(&[0, 1, 2, 3], 1, 3, 4 * KIB).unwrap();
    assert_eq!(bytes(&layout, 0, 3), [1, 1, 1]);
}

/// PSA's <120K, 8K> on 4 + 4 servers with 256 MiB of each SSD has space for 32768 requests of
/// 512 KiB.
#[test]
fn psa_fills_the_ssds_and_goes_on_on_the_hservers() {
    let (hservers, sservers) = ([0, 1, 2, 3], [4, 5, 6, 7]);
    let h = hservers.map(|target| (target, 120 * KIB));
    let s = sservers.map(|target| (target, 8 * KIB));
    let first: Vec<_> = h.into_iter().chain(s).collect();
    let space = sservers.map(|target| (target, 256 << 20));
    let layout = until_full(&first, &space, &hservers.map(|target| (target, 128 * KIB))).unwrap();
    let boundary = 32768 * 512 * KIB;
    assert_eq!(layout.regions()[0].end, Some(boundary));
    let request = |offset| bytes(&layout, offset, 512 * KIB);
    let (h, s) = (120 * KIB, 8 * KIB);
    assert_eq!(request(boundary - 512 * KIB), [h, h, h, h, s, s, s, s]);
    assert_eq!(request(boundary), [128 * KIB, 128 * KIB, 128 * KIB, 128 * KIB, 0, 0, 0, 0]);
    assert_eq!(layout.object_size(7, MAX_OFFSET), 256 << 20);
}

#[test]
fn until_full_without_bound_or_room() {
    let (both, h) = ([(0, 8), (1, 4)], [(0, 12)]);
    let all = varied(&both).unwrap();
    assert_eq!(until_full(&both, &[], &h).unwrap(), all, "no space is bounded");
    assert_eq!(until_full(&both, &[(9, 1)], &h).unwrap(), all, "the bounded target is not used");
    assert_eq!(until_full(&both, &[(1, u64::MAX)], &h).unwrap(), all, "more space than any file needs");
    assert_eq!(until_full(&both, &[(1, 3)], &h).unwrap(), varied(&h).unwrap(), "no room for a turn");
    let tightest = until_full(&both, &[(0, 80), (1, 39)], &h).unwrap();
    assert_eq!(tightest, two_part(&both, 9 * 12, &h).unwrap());
}

#[test]
fn a_second_part_alone() {
    assert_eq!(two_part(&[(0, 1)], 0, &[(1, 2)]).unwrap(), varied(&[(1, 2)]).unwrap());
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn groups_partition_the_targets(count in 1usize..40, groups in 1usize..40) {
        prop_assume!(groups <= count);
        let targets: Vec<u32> = (0..count as u32).collect();
        let parts: Vec<&[u32]> = (0..groups).map(|group| group_members(&targets, groups, group)).collect();
        prop_assert_eq!(&parts.concat(), &targets);
        let sizes: Vec<usize> = parts.iter().map(|part| part.len()).collect();
        prop_assert!(sizes.is_sorted_by(|a, b| a >= b) && sizes[0] - sizes[groups - 1] <= 1);
    }

    /// Every block is on its group alone, on every server of it, as evenly as the alignment allows.
    #[test]
    fn two_d_blocks(count in 1usize..12, groups in 1usize..12, block in 1u64..100_000, align in 0u64..9000) {
        prop_assume!(groups <= count);
        let targets: Vec<u32> = (0..count as u32).collect();
        let layout = two_d(&targets, groups, block, align).unwrap();
        for turn in 0..2 * groups {
            let members = group_members(&targets, groups, turn % groups);
            let bytes = bytes(&layout, turn as u64 * block, block);
            let on = |target: u32| bytes.get(target as usize).copied().unwrap_or(0);
            let widths: Vec<u64> = members.iter().map(|&target| on(target)).collect();
            prop_assert_eq!(widths.iter().sum::<u64>(), block);
            let reached = widths.iter().filter(|&&width| width > 0).count() as u64;
            prop_assert_eq!(reached, block.min(members.len() as u64));
            // The last stripe may lack up to `align` bytes; the others differ by at most that.
            prop_assert!(widths.is_sorted_by(|a, b| a >= b));
            prop_assert!(widths[0] - widths[widths.len() - 1] <= 2 * align.max(1));
        }
    }

    #[test]
    fn until_full_fills_but_never_overfills(
        first in prop::collection::vec((0u32..6, 0u64..50), 1..8),
        space in prop::collection::vec((0u32..8, 0u64..2000), 0..4),
    ) {
        prop_assume!(first.iter().any(|stripe| stripe.1 > 0));
        let layout = until_full(&first, &space, &[(9, 7)]).unwrap();
        let turn: u64 = first.iter().map(|stripe| stripe.1).sum();
        let per_turn = |target| first.iter().filter(|s| s.0 == target).map(|s| s.1).sum::<u64>();
        for &(target, bytes) in &space {
            prop_assert!(per_turn(target) == 0 || layout.object_size(target, MAX_OFFSET) <= bytes);
        }
        // One more turn would not have fit on some target.
        let boundary = match layout.regions() {
            [only] if only.cycle[0].target == 9 => Some(0),
            [_] => None,
            [first, ..] => first.end,
            [] => unreachable!(),
        };
        let tight = |&(target, bytes): &(u32, u64)| {
            per_turn(target) > 0 && (boundary.unwrap() / turn + 1) * per_turn(target) > bytes
        };
        match boundary {
            Some(boundary) => prop_assert!(boundary % turn == 0 && space.iter().any(tight)),
            None => prop_assert!(space.iter().all(|&(target, _)| per_turn(target) == 0)),
        }
    }
}

#[test]
fn a_compacted_layout_keeps_only_its_own_targets() {
    let (layout, used) = two_part(&[(7, 10), (3, 20)], 90, &[(5, 1)]).unwrap().compacted();
    assert_eq!(used, [3, 5, 7]);
    assert_eq!(layout, two_part(&[(2, 10), (0, 20)], 90, &[(1, 1)]).unwrap());
}

#[test]
fn a_number_that_is_too_large_is_refused() {
    let layout = two_part(&[(0, 10)], 90, &[(1, 1)]).unwrap();
    assert_eq!(layout.renumbered(|target| target + 5), two_part(&[(5, 10)], 90, &[(6, 1)]));
    let refused = layout.renumbered(|target| target * crate::MAX_TARGETS);
    let refused = refused.unwrap_err().to_string();
    assert!(refused.starts_with("region 1: target 65536;"), "{refused}");
}
