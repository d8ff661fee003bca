//! SLA's costs computed by hand, and its decision.

use super::{DISK, FLASH, KIB, assert_same};
use crate::Service;
use crate::Striping::{OneDh, OneDv, TwoD};
use crate::sla::{Sla, verdict};

const STRIPE: u64 = 64 << 10;

fn sla(service: Service, servers: u32, procs: u32) -> Sla {
    Sla::new(service, servers, procs, STRIPE).unwrap()
}

fn io_s(bytes: f64, service: Service) -> f64 {
    bytes * service.per_byte_s
}

#[test]
fn hservers_1dh() {
    // 8 KiB in one stripe: w = 1, so half of the way from α to 32α.
    let cost = sla(DISK, 8, 32).cost(OneDh, 0, 8 << 10).unwrap();
    assert_same(cost, [0.0, 0.0, 3e-4 * (1.0 + 31.0 / 2.0), io_s(8.0 * KIB, DISK)]);
    // 256 KiB from the middle of a stripe: on five servers, with a whole stripe as the largest
    // sub-request.
    let cost = sla(DISK, 8, 32).cost(OneDh, STRIPE / 2, 4 * STRIPE).unwrap();
    assert_same(cost, [0.0, 0.0, 3e-4 * (1.0 + 31.0 * 5.0 / 6.0), io_s(64.0 * KIB, DISK)]);
}

#[test]
fn sservers_1dh() {
    let cost = sla(FLASH, 4, 32).cost(OneDh, 0, 16 * STRIPE).unwrap();
    assert_same(cost, [0.0, 0.0, 5e-5 * (1.0 + 31.0 * 4.0 / 5.0), io_s(256.0 * KIB, FLASH)]);
}

#[test]
fn sservers_1dv() {
    // ⌊33/4⌋ = 8, w = 1, everything on one server.
    let cost = sla(FLASH, 4, 33).cost(OneDv, 5, 16 * STRIPE).unwrap();
    assert_same(cost, [0.0, 0.0, 5e-5 * (1.0 + 7.0 / 2.0), io_s(1024.0 * KIB, FLASH)]);
}

#[test]
fn sservers_2d() {
    // Two groups of two: ⌊33/2⌋ = 16, w = 2.
    let cost = sla(FLASH, 4, 33).cost(TwoD { groups: 2 }, 0, 16 * STRIPE).unwrap();
    assert_same(cost, [0.0, 0.0, 5e-5 * (1.0 + 15.0 * 2.0 / 3.0), io_s(512.0 * KIB, FLASH)]);
}

/// With fewer processes than servers b = ⌊p/N⌋·α would be 0, which is below a.
#[test]
fn b_is_never_below_a() {
    for striping in [OneDv, TwoD { groups: 4 }] {
        assert_eq!(sla(FLASH, 4, 3).view(striping, 0, 4096).unwrap().sharing, 1);
        let cost = sla(FLASH, 4, 3).cost(striping, 0, 4096).unwrap();
        assert_same(cost, [0.0, 0.0, 5e-5, io_s(4096.0, FLASH)]);
    }
}

#[test]
fn groups_of_unequal_size() {
    // 5 servers in 2 groups: up to ⌈5/2⌉ = 3 are touched, and the largest sub-request is as on
    // ⌊5/2⌋ = 2.
    let view = sla(FLASH, 5, 9).view(TwoD { groups: 2 }, 0, 6 * STRIPE).unwrap();
    assert_eq!((view.touched, view.largest, view.sharing), (3, 3 * STRIPE, 4));
}

#[test]
fn small_requests_are_critical_and_large_ones_not() {
    let (hservers, sservers) = (sla(DISK, 8, 32), sla(FLASH, 2, 32));
    let small = verdict(&hservers, &sservers, 2, 0, 8 << 10).unwrap();
    let (striping, benefit_s) = small.best.unwrap();
    // 1-DV and 2-D with two groups of one server are equal here; 1-DV comes first.
    assert_eq!(striping, OneDv);
    assert_eq!(benefit_s, small.hservers.total_s() - small.sservers[1].1.total_s());
    // 8 disks against 2 SSDs of 3.3 times the speed: a long request is faster on the disks.
    let large = verdict(&hservers, &sservers, 2, 0, 1 << 30).unwrap();
    assert_eq!(large.best, None);
    assert!(large.sservers.iter().all(|(_, cost)| cost.total_s() > large.hservers.total_s()));
}

#[test]
fn the_largest_benefit_wins() {
    let (hservers, sservers) = (sla(DISK, 8, 2), sla(FLASH, 4, 2));
    // Two processes hardly wait for each other: spreading 1 MiB over all four servers is best.
    let decided = verdict(&hservers, &sservers, 2, 0, 1 << 20).unwrap();
    let totals = decided.sservers.map(|(_, cost)| cost.total_s());
    assert!(totals[0] < totals[2] && totals[2] < totals[1], "{totals:?}");
    assert_eq!(decided.best.unwrap().0, OneDh);
}

/// The same servers on both sides: 1-DH saves nothing, and with one process neither does 1-DV.
#[test]
fn a_tie_stays_on_the_hservers() {
    let same = sla(DISK, 4, 1);
    let decided = verdict(&same, &same, 4, 0, STRIPE).unwrap();
    assert!(decided.sservers.iter().all(|&(_, cost)| cost == decided.hservers));
    assert_eq!(decided.best, None);
}

/// A single faster server: the three layouts are equal there, and the first one is chosen.
#[test]
fn a_tie_among_layouts_goes_to_the_first() {
    let decided = verdict(&sla(DISK, 1, 9), &sla(FLASH, 1, 9), 1, 0, STRIPE).unwrap();
    assert_eq!(decided.sservers[0].1, decided.sservers[1].1);
    assert_eq!(decided.sservers[0].1, decided.sservers[2].1);
    assert_eq!(decided.best.unwrap().0, OneDh);
}
