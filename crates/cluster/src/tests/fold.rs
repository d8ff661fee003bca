//! Folding and unfolding, byte for byte against brute force.

use std::collections::BTreeMap;

use proptest::prelude::*;
use stripewise_layout::{Layout, Region, Stripe};

use super::driver::NATIVE;
use super::plan::plan;
use crate::{Cluster, FoldError};

/// ost/0-1 are targets 0 and 1; the pools hdd and ssd have the targets 2..6 and 6..9.
fn cluster() -> Cluster {
    let ssd = NATIVE[NATIVE.find("[[tier]]\nname = \"hdd\"").unwrap()..].replace("hdd", "ssd");
    let text = format!("{NATIVE}{}", ssd.replace("cephfs", "orangefs").replace("count = 4", "count = 3"));
    Cluster::parse(&text, "some.toml").unwrap()
}

fn layout(cycle: &[(u32, u64)]) -> Layout {
    Layout::single(cycle.iter().map(|&(target, width)| Stripe { target, width }).collect()).unwrap()
}

#[test]
fn psa_becomes_one_stripe_per_tier() {
    let mut cluster = cluster();
    let psa = layout(&[(2, 131072), (3, 131072), (4, 131072), (5, 131072), (6, 8192), (7, 8192), (8, 8192)]);
    let folded = cluster.fold(&psa).unwrap();
    let names: Vec<_> = cluster.targets().into_iter().skip(9).map(|target| target.name).collect();
    assert_eq!(names, ["hdd/128Kx4", "ssd/8Kx3"]);
    assert_eq!(folded, layout(&[(9, 4 * 131072), (10, 3 * 8192)]));
    assert_eq!(cluster.fold(&psa).unwrap(), folded, "the same native targets again");
    assert_eq!(cluster.native_targets.len(), 2);
    assert_eq!(cluster.unfold(&folded, 0), psa);
    assert_eq!(cluster.fold(&layout(&[(0, 100), (1, 7)])).unwrap(), layout(&[(0, 100), (1, 7)]), "no pool");
}

#[test]
fn files_in_different_groups_unfold_to_different_servers() {
    let mut cluster = cluster();
    let groups = [layout(&[(2, 65536), (3, 65536)]), layout(&[(4, 65536), (5, 65536)])];
    let folded = groups.each_ref().map(|layout| cluster.fold(layout).unwrap());
    assert_eq!(folded[0], folded[1]);
    assert_eq!([cluster.unfold(&folded[0], 0), cluster.unfold(&folded[1], 1)], groups);
    assert_eq!([&folded, &folded[..1], &groups].map(|layouts| cluster.servers_of(layouts).len()), [4, 2, 4]);
    assert_eq!(
        cluster.servers_of(&[layout(&[(0, 1)]), layout(&[(1, 1), (0, 1)]), folded[0].clone()]).len(),
        2 + 2
    );
    assert_eq!(cluster.unfold(&folded[0], 2), groups[0], "and round again");
}

/// Each server gets as many files as before, also where those of one tier do not come at equal
/// distances.
#[test]
fn files_that_are_spread_unevenly_over_the_tiers_unfold_evenly_within_them() {
    let mut cluster = cluster();
    let servers = [6, 2, 7, 8, 6, 3, 7, 8, 6, 4, 7, 0, 8, 6, 5, 7, 2];
    let layouts = servers.map(|server| layout(&[(server, 65536)]));
    let folded: Vec<_> = layouts.iter().map(|layout| cluster.fold(layout).unwrap()).collect();
    assert_eq!(cluster.unfold_all(&folded), layouts);
    assert_eq!(cluster.servers_of(&folded).len(), 8);
}

#[test]
fn one_server_takes_any_width() {
    let mut cluster = cluster();
    let folded = cluster.fold(&layout(&[(3, 100_000), (0, 5)])).unwrap();
    assert_eq!(cluster.targets()[9].name, "hdd/128Kx1");
    assert_eq!(folded, layout(&[(9, 100_000), (0, 5)]));
    cluster.fold(&layout(&[(3, 1 << 30)])).unwrap();
    assert_eq!(cluster.targets()[10].name, "hdd/64Mx1");
}

#[test]
fn what_the_file_system_cannot_be_told_is_an_error_that_says_why() {
    let mut cluster = cluster();
    let narrow = cluster.fold(&layout(&[(2, 4096), (3, 4096)])).unwrap_err();
    assert_eq!(
        narrow.to_string(),
        "tier hdd: stripes of 4K on 2 servers; CephFS has widths that are whole multiples of 64K"
    );
    let moving = cluster.fold(&layout(&[(2, 65536), (0, 1), (3, 65536)])).unwrap_err();
    assert!(
        matches!(&moving, FoldError::Servers { tier, label } if tier == "hdd" && label == "64Kx1"),
        "{moving}"
    );
    assert!(cluster.native_targets.is_empty(), "nothing was added");
}

#[test]
fn a_plan_is_folded_as_a_whole() {
    let mut plan = plan();
    plan.cluster = cluster();
    let rule = &mut plan.rules[0];
    rule.layouts = vec![layout(&[(2, 65536), (3, 65536)]), layout(&[(4, 65536), (5, 65536)])];
    plan.rules.truncate(1);
    let folded = plan.folded().unwrap();
    assert_eq!(folded.rules[0].layouts[0].targets().collect::<Vec<_>>(), [9]);
    assert_eq!(folded.unfolded(), plan);
    plan.rules[0].layouts[1] = layout(&[(4, 1), (5, 1)]);
    assert_eq!(plan.folded().unwrap_err().0, "/data/out.<n>");
}

/// A layout whose runs on pools can be folded: for each shape, always the same servers of a tier.
/// `unit` is the smallest width on pools, bytes.
fn foldable(unit: u64) -> impl Strategy<Value = Layout> {
    let run = (0usize..3, 1u32..5, 1u64..4, any::<bool>());
    let cycle = prop::collection::vec(run, 1..4);
    prop::collection::vec((cycle, 1u64..40), 1..4).prop_map(move |regions| {
        let mut layout = Vec::new();
        let mut start = 0;
        for (runs, len) in regions {
            let mut cycle: Vec<Stripe> = Vec::new();
            for (tier, count, width, reversed) in runs {
                let (first, servers) = [(0, 2), (2, 4), (6, 3)][tier];
                let mut run: Vec<_> = (first..first + count.min(servers)).collect();
                if reversed {
                    run.reverse();
                }
                // Two adjacent runs of one tier would be one run of other servers.
                let same = |last: &Stripe| (first..first + servers).contains(&last.target);
                if !cycle.last().is_some_and(same) {
                    cycle.extend(run.into_iter().map(|target| Stripe { target, width: width * unit }));
                }
            }
            layout.push(Region { start, end: Some(start + len * unit), cycle });
            start += len * unit;
        }
        layout.last_mut().unwrap().end = None;
        Layout::new(layout).unwrap()
    })
}

/// The same layout, with every region a whole number of turns of its cycle.
fn whole_turns(layout: &Layout) -> Layout {
    let mut start = 0;
    let regions = layout.regions().iter().map(|region| {
        let turn = region.cycle.iter().map(|stripe| stripe.width).sum::<u64>();
        let begin = start;
        start += region.end.map_or(0, |end| (end - region.start).next_multiple_of(turn));
        Region { start: begin, end: region.end.map(|_| start), cycle: region.cycle.clone() }
    });
    Layout::new(regions.collect()).unwrap()
}

/// The server on which the file system puts a byte of the folded file: (target, place in the turn).
fn served(cluster: &Cluster, folded: &Layout, offset: u64) -> (u32, u64) {
    let (target, within) = folded.locate(offset);
    let place =
        cluster.native_target(target).map_or(0, |native| within / native.width % u64::from(native.count));
    (target, place)
}

const UNIT: u64 = 64 << 10;

proptest! {
    #[test]
    fn every_byte_is_where_the_file_system_puts_it(layout in foldable(UNIT), index in 0usize..5) {
        let mut cluster = cluster();
        let folded = cluster.fold(&layout).unwrap();
        let unfolded = cluster.unfold(&folded, index);
        let mut server_of = BTreeMap::new();
        for unit in 0..300 {
            let offset = unit * UNIT + unit;
            let (target, place) = served(&cluster, &folded, offset);
            let server = unfolded.locate(offset).0;
            let tier = cluster.tier_of(target).unwrap();
            prop_assert_eq!(cluster.tier_of(server), Some(tier));
            // Throughout the file, one server of the model stands for one server of the file
            // system.
            let native = cluster.native_target(target);
            prop_assert_eq!(*server_of.entry((target, place)).or_insert(server), server);
            prop_assert!(native.is_some() || server == target);
        }
        let natives = folded.targets().filter_map(|target| Some((target, cluster.native_target(target)?)));
        for (target, native) in natives {
            let used: Vec<u32> = server_of.iter().filter(|((t, _), _)| *t == target).map(|(_, s)| *s).collect();
            let mut distinct = used.clone();
            distinct.sort_unstable();
            distinct.dedup();
            prop_assert_eq!(distinct.len(), used.len(), "{:?}", native);
        }
    }

    #[test]
    fn whole_turns_keep_their_place_in_the_run_and_the_bytes_per_server(layout in foldable(UNIT), size in 0u64..300) {
        let mut cluster = cluster();
        let layout = whole_turns(&layout);
        let folded = cluster.fold(&layout).unwrap();
        let size = size * UNIT;
        for (before, now) in layout.regions().iter().zip(folded.regions()) {
            prop_assert_eq!((before.start, before.end), (now.start, now.end));
            let mut offset = before.start;
            let mut rest = before.cycle.as_slice();
            for stripe in &now.cycle {
                let count = cluster.native_target(stripe.target).map_or(1, |native| native.count as usize);
                for (place, before) in rest[..count].iter().enumerate() {
                    prop_assert_eq!(layout.locate(offset).0, before.target);
                    prop_assert_eq!(served(&cluster, &folded, offset), (stripe.target, place as u64));
                    offset += before.width;
                    if now.end.is_some_and(|end| offset >= end) {
                        break;
                    }
                }
                rest = &rest[count..];
                if now.end.is_some_and(|end| offset >= end) {
                    break;
                }
            }
        }
        for tier in 0..3 {
            let per_tier = |layout: &Layout| {
                let on_tier = layout.targets().filter(|&target| cluster.tier_of(target) == Some(tier));
                on_tier.map(|target| layout.object_size(target, size)).sum::<u64>()
            };
            prop_assert_eq!(per_tier(&layout), per_tier(&folded));
            prop_assert_eq!(per_tier(&layout), per_tier(&cluster.unfold(&folded, 0)));
        }
    }

    #[test]
    fn a_layout_of_one_run_per_tier_comes_back(widths in (1u64..9, 1u64..9), parts in 1u64..9) {
        let mut cluster = cluster();
        let servers = (2..6).map(|target| (target, widths.0 * UNIT)).chain((6..9).map(|t| (t, widths.1 * 4096)));
        let first: Vec<_> = servers.collect();
        let second: Vec<_> = (2..6).map(|target| (target, UNIT)).collect();
        let turn = first.iter().map(|stripe| stripe.1).sum::<u64>();
        let layout = stripewise_layout::constructors::two_part(&first, parts * turn, &second).unwrap();
        let folded = cluster.fold(&layout).unwrap();
        prop_assert_eq!(cluster.unfold(&folded, 0), layout);
    }
}
