use proptest::prelude::*;
use stripewise_layout::Layout;
use stripewise_layout::constructors::{group_members, on_one, striped, two_d, two_part};
use stripewise_model::cil::Cil;
use stripewise_model::{PreparedCost, Startup, Striping};

use super::{ETHERNET, KIB, MIB, READ, WRITE, cases, class, classes, kind};
use crate::costs::NEARLY;
use crate::{CopyView, Costs, Kind};

/// The file of one process on 16 servers: 1-DH, 1-DV, and 2-D with groups of two.
fn layouts() -> [Layout; 3] {
    let all: Vec<u32> = (0..16).collect();
    [striped(&all, 4 * KIB), on_one(5), striped(group_members(&all, 8, 2), 4 * KIB)].map(Result::unwrap)
}

fn costs(layouts: &[Layout], procs: (u32, u32)) -> Costs {
    let copies: Vec<CopyView> =
        layouts.iter().map(|layout| CopyView { layout, spread_over: 16, groups: 1 }).collect();
    let disk = class(3e-4, 1e-4, (120 * MIB) as f64);
    Costs::new(&copies, &[disk; 16], ETHERNET, procs).unwrap()
}

/// The choices in CIL's evaluation: 1-DV up to 64 KiB, then 2-D, and 1-DH for few processes with
/// large requests.
#[test]
fn the_crossovers_of_cil() {
    for (p, expected) in [
        (2, [(64 * KIB, 1), (128 * KIB, 2), (MIB, 2), (2 * MIB, 0), (4 * MIB, 0)]),
        (4, [(64 * KIB, 1), (128 * KIB, 2), (MIB, 2), (2 * MIB, 2), (4 * MIB, 0)]),
        (8, [(64 * KIB, 1), (128 * KIB, 2), (MIB, 2), (2 * MIB, 2), (4 * MIB, 2)]),
        (16, [(64 * KIB, 1), (128 * KIB, 1), (MIB, 1), (2 * MIB, 1), (4 * MIB, 1)]),
    ] {
        let costs = costs(&layouts(), (p, 1));
        for (size, copy) in expected {
            assert_eq!(costs.cheapest(READ, 0, size, 0b111), Some(copy), "{p} processes, {size} bytes");
        }
    }
}

#[test]
fn only_copies_of_the_mask_count() {
    let costs = costs(&layouts(), (4, 1));
    assert_eq!(costs.cheapest(READ, 0, 64 * KIB, 0b101), Some(2));
    assert_eq!(costs.cheapest(READ, 0, 64 * KIB, 0b001), Some(0));
    assert_eq!(costs.cheapest(READ, 0, 64 * KIB, 0b1001_0000), None, "there are no copies 4 and 7");
    assert_eq!(costs.cheapest(READ, 0, 64 * KIB, 0), None);
    assert_eq!(costs.cheapest(READ, 0, 64 * KIB, 0b1000_0010), Some(1));
}

#[test]
fn a_tie_goes_to_the_lowest_number() {
    let [dh, dv, _] = layouts();
    let costs = costs(&[dh, dv.clone(), dv.clone(), dv], (16, 1));
    assert_eq!(costs.cheapest(WRITE, 0, 64 * KIB, 0b1111), Some(1));
    assert_eq!(costs.cheapest(WRITE, 0, 64 * KIB, 0b1101), Some(2));
}

/// Small requests on one file per process. In 1-DV each is alone on its server; in 1-DH p of them
/// meet at random on 16 servers.
#[test]
fn small_requests_go_to_the_file_on_the_fewest_servers() {
    let all: Vec<u32> = (0..16).collect();
    let [dh, two_d] = [&all[..], &all[..2]].map(|servers| striped(servers, 64 * KIB).unwrap());
    let layouts = [dh, two_d, on_one(5).unwrap()];
    for p in [1, 8, 16, 32] {
        let costs = costs(&layouts, (p, 1));
        let [dh_s, dv_s] = [0, 2].map(|copy| costs.cost_s(copy, WRITE, 0, 16 * KIB));
        let network_s = ETHERNET.establish_s * f64::from(p.div_ceil(16))
            + 16384.0 * ETHERNET.per_byte_s * f64::from(p.div_ceil(16));
        let expected = f64::from(p + 15) / 16.0 / f64::from(p.div_ceil(16));
        let found = (dh_s - network_s) / (dv_s - network_s);
        assert!((found - expected).abs() < 1e-9, "{p} processes: {found}, not {expected}");
        assert_eq!(costs.cheapest(WRITE, 0, 16 * KIB, 0b111), Some(2));
        assert_eq!(costs.cheapest(WRITE, 0, 16 * KIB, 0b011), Some(1));
        assert_eq!(costs.cheapest(WRITE, 0, 16 * KIB, 0b001), Some(0));
    }
    let few = costs(&layouts, (1, 1));
    let large = 64 * MIB;
    assert_eq!(few.cheapest(WRITE, 0, large, 0b111), Some(0), "what costs more is not taken");
}

#[test]
fn a_file_on_all_servers_is_preferred_to_none() {
    let all: Vec<u32> = (0..16).collect();
    let [narrow, wide] = [16 * KIB, 64 * KIB].map(|stripe| striped(&all, stripe).unwrap());
    let costs = costs(&[wide, narrow], (1, 1));
    assert_eq!(costs.cheapest(READ, 0, 8 * KIB, 0b11), Some(0), "the lowest number");
}

#[test]
fn order_and_direction_choose_the_parameters() {
    let layout = on_one(0).unwrap();
    let mut disk = class(5e-3, 1e-4, 120e6);
    disk.write = class(1e-2, 1e-3, 60e6).write;
    let view = CopyView { layout: &layout, spread_over: 1, groups: 1 };
    let costs = Costs::new(&[view], &[disk], ETHERNET, (1, 1)).unwrap();
    for kind in Kind::ALL {
        let service = disk.service(kind.op, kind.access);
        let cil = Cil::new(ETHERNET, service, 1, 1, 1).unwrap().cost(Striping::OneDv, 4096.0).unwrap();
        assert!((costs.cost_s(0, kind, 0, 4096) - cil.total_s()).abs() < 1e-12, "{kind:?}");
    }
}

/// Where groups are unequal, some requests would be cheap at the expense of other processes. The
/// place of a request must not matter.
#[test]
fn a_request_does_not_choose_by_its_own_place() {
    let all: Vec<u32> = (0..8).collect();
    let layouts = [two_d(&all, 8, MIB, 4096).unwrap(), two_d(&all, 6, MIB, 4096).unwrap()];
    let views: Vec<CopyView> =
        layouts.iter().map(|layout| CopyView { layout, spread_over: 8, groups: 1 }).collect();
    let costs = Costs::new(&views, &[class(2e-3, 2e-3, 1e8); 8], ETHERNET, (64, 1)).unwrap();
    let chosen: Vec<_> = (0..64).map(|block| costs.cheapest(READ, block * MIB, MIB, 0b11)).collect();
    assert!(chosen.iter().all(|copy| *copy == chosen[0]), "{chosen:?}");
}

proptest! {
    #![proptest_config(cases())]

    /// At powers of two that divide the cycle, the cost is the mean over all places; in between it
    /// lies between those of the neighbors.
    #[test]
    fn costs_are_means_over_a_region(
        kind in kind(),
        widths in prop::collection::vec(1u64..5, 1..7),
        (log_size, log_wide) in (3u32..8, 3u32..8),
        boundary in 1u64..4,
        p in 1u32..64,
    ) {
        let (size, unit) = (1u64 << log_size, 1u64 << log_wide);
        let cycle: Vec<(u32, u64)> = widths.iter().zip(0..).map(|(&width, target)| (target, width * unit)).collect();
        let turn: u64 = cycle.iter().map(|stripe| stripe.1).sum();
        let boundary = boundary * turn * size;
        let layout = two_part(&cycle, boundary, &[(7, unit), (8, unit)]).unwrap();
        let view = CopyView { layout: &layout, spread_over: 12, groups: 1 };
        let costs = Costs::new(&[view], &classes(), ETHERNET, (p, 1)).unwrap();
        let services: Vec<_> = classes().iter().map(|class| class.service(kind.op, kind.access)).collect();
        let prepared =
            PreparedCost::by_reach(&layout, &services, 12, ETHERNET, (p, 1), Startup::EverySharer).unwrap();
        for (from, turn, offset) in [(0, turn, boundary - 1), (boundary, 2 * unit, boundary)] {
            // All aligned places in a number of cycles that is a whole number of requests, if there
            // are few. The places that the mean is taken over are among them.
            if turn % size != 0 || turn / size > 64 {
                continue;
            }
            let cost_s = |block: u64| {
                let cost = prepared.cost(from + block * size, size);
                let used = layout.targets().count() as f64;
                let stations = used / layout.targets_touched(from + block * size, size) as f64;
                let crowd = (f64::from(p) * used / 12.0).ceil();
                let met = (crowd + stations - 1.0) / stations;
                cost.establish_s + cost.transfer_s + (cost.startup_s + cost.io_s) * met / (crowd / stations).ceil()
            };
            let places = (0..turn / size).map(cost_s);
            let mean = places.sum::<f64>() / (turn / size) as f64;
            let found = costs.cost_s(0, kind, offset, size);
            prop_assert!((found - mean).abs() <= 1e-9 * mean, "{} instead of {}", found, mean);
        }
        let [below, between, above] = [size, size + size / 16, size + size / 8].map(|len| costs.cost_s(0, kind, 0, len));
        prop_assert!(between >= below.min(above) * (1.0 - 1e-9) && between <= below.max(above) * (1.0 + 1e-9));
    }

    /// No copy of the mask is cheaper, and none with a lower number is as cheap.
    #[test]
    fn the_cheapest_is_the_cheapest(
        kind in kind(),
        (offset, len) in (0u64..64 * MIB, 1u64..8 * MIB),
        mask: u8,
        p in 1u32..64,
        stripes in prop::collection::vec(1u64..1000, 1..9),
    ) {
        let layouts: Vec<Layout> = (stripes.iter())
            .map(|&stripe| two_d(&(0..12).collect::<Vec<_>>(), 1 + stripe as usize % 12, stripe * KIB, KIB).unwrap())
            .collect();
        let views: Vec<CopyView> = layouts.iter().map(|layout| CopyView { layout, spread_over: 12, groups: 1 }).collect();
        let costs = Costs::new(&views, &classes(), ETHERNET, (p, 1)).unwrap();
        let cost = |copy: usize| costs.cost_s(copy, kind, offset, len);
        let usable: Vec<usize> = (0..layouts.len()).filter(|copy| mask & 1 << copy != 0).collect();
        let best = costs.cheapest(kind, offset, len, mask);
        prop_assert_eq!(best.is_none(), usable.is_empty());
        let Some(best) = best else { return Ok(()) };
        prop_assert!(usable.contains(&best));
        for copy in usable {
            prop_assert!(cost(best) <= cost(copy) * (1.0 + 1e-9));
            prop_assert!(copy >= best || cost(copy) > cost(best) * (1.0 + 1e-13), "{} is as cheap", copy);
        }
    }

    /// The rule for ties, with files on 1 to 12 of 12 servers.
    #[test]
    fn ties_go_by_the_rule(
        kind in kind(),
        len in 1u64..8 * MIB,
        p in 1u32..64,
        files in prop::collection::vec((1u32..=12, 0u32..4), 1..9),
    ) {
        let layout = |&(servers, log): &(u32, u32)| {
            striped(&(0..servers).collect::<Vec<_>>(), (64 * KIB) << (2 * log)).unwrap()
        };
        let layouts: Vec<Layout> = files.iter().map(layout).collect();
        let views: Vec<CopyView> = layouts.iter().map(|layout| CopyView { layout, spread_over: 12, groups: 1 }).collect();
        let disk = class(3e-4, 1e-4, (120 * MIB) as f64);
        let costs = Costs::new(&views, &[disk; 12], ETHERNET, (p, 1)).unwrap();
        let cost = |copy: usize| costs.cost_s(copy, kind, 0, len);
        let least_s = (0..files.len()).map(cost).fold(f64::INFINITY, f64::min);
        let near = (0..files.len()).filter(|&copy| cost(copy) <= least_s * (1.0 + NEARLY));
        let fewest = near.clone().map(|copy| files[copy].0).min().unwrap();
        let (best, best_s) = costs.cheapest_with_cost(kind, 0, len, u8::MAX).unwrap();
        prop_assert_eq!(best_s, cost(best));
        if fewest < 12 {
            prop_assert_eq!(files[best].0, fewest);
            let same = near.filter(|&copy| files[copy].0 == fewest);
            let least_of_them_s = same.map(cost).fold(f64::INFINITY, f64::min);
            prop_assert_eq!(best_s, least_of_them_s);
        } else {
            prop_assert!(best_s <= least_s * (1.0 + 1e-12));
        }
    }
}
