//! PSA Tables 3 and 4 row by row, and the tie in the published stripe pairs.

use proptest::prelude::*;

use super::{DISK, ETHERNET, FLASH, KIB, assert_same, cases, network, service};
use crate::psa::Psa;

fn on_4_and_4(procs: u32, procs_per_node: u32) -> Psa {
    Psa::new(ETHERNET, (4, DISK), (4, FLASH), procs, procs_per_node).unwrap()
}

fn io_s(procs: f64, kib: f64, mib_per_s: f64) -> f64 {
    procs * kib / (1024.0 * mib_per_s)
}

#[test]
fn table_3_p_up_to_connections() {
    // c(m+n) = 2·8 = 16; transfer: client 2·512 K and servers 16·64 K, which are equal.
    let cost = on_4_and_4(16, 2).heterogeneous(64.0 * KIB, 64.0 * KIB).unwrap();
    assert_same(cost, [16.0 * 3e-4, 1.0 / 120.0, 16.0 * 3e-4, io_s(16.0, 64.0, 120.0)]);
}

#[test]
fn table_3_p_above_connections() {
    let cost = on_4_and_4(40, 2).heterogeneous(100.0 * KIB, 28.0 * KIB).unwrap();
    // The network links of the HServers carry the most: 40·100 K.
    let transfer_s = 40.0 * 100.0 / 1024.0 / 120.0;
    assert_same(cost, [40.0 * 3e-4, transfer_s, 40.0 * 3e-4, io_s(40.0, 100.0, 120.0)]);
}

/// PA's case: the stripe on the SServers is so much longer that they are the slower servers.
#[test]
fn table_3_sservers_are_the_slowest() {
    let cost = on_4_and_4(40, 2).heterogeneous(4.0 * KIB, 1024.0 * KIB).unwrap();
    assert_same(cost, [40.0 * 3e-4, 40.0 / 120.0, 40.0 * 5e-5, 40.0 / 400.0]);
}

#[test]
fn table_4_p_up_to_connections() {
    let cost = on_4_and_4(8, 2).homogeneous(512.0 * KIB).unwrap();
    assert_same(cost, [8.0 * 3e-4, 1.0 / 120.0, 8.0 * 3e-4, io_s(8.0, 128.0, 120.0)]);
}

#[test]
fn table_4_p_above_connections() {
    let cost = on_4_and_4(16, 2).homogeneous(512.0 * KIB).unwrap();
    assert_same(cost, [16.0 * 3e-4, 2.0 / 120.0, 16.0 * 3e-4, io_s(16.0, 128.0, 120.0)]);
}

/// Servers without bytes are not touched: 4 connections per process instead of 8, and no startup on
/// them.
#[test]
fn a_stripe_of_0_leaves_its_servers_out() {
    let psa = on_4_and_4(8, 4);
    assert_eq!(psa.heterogeneous(128.0 * KIB, 0.0).unwrap(), psa.homogeneous(512.0 * KIB).unwrap());
    let only_flash = psa.heterogeneous(0.0, 128.0 * KIB).unwrap();
    assert_same(only_flash, [16.0 * 3e-4, 2.0 / 120.0, 8.0 * 5e-5, io_s(8.0, 128.0, 400.0)]);
}

proptest! {
    #![proptest_config(cases())]

    /// Both tables as printed, case by case, for arbitrary parameters.
    #[test]
    fn printed_tables(
        (net, disk, flash) in (network(), service(), service()),
        (m, n) in (1u32..10, 1u32..10),
        (p, c) in (1u32..100, 1u32..100),
        (h, s) in (1f64..1e7, 1f64..1e7),
    ) {
        prop_assume!(c <= p);
        let psa = Psa::new(net, (m, disk), (n, flash), p, c).unwrap();
        let [mf, nf, pf, cf] = [m, n, p, c].map(f64::from);
        let (e, t, size) = (net.establish_s, net.per_byte_s, mf * h + nf * s);
        let heterogeneous = psa.heterogeneous(h, s).unwrap();
        let establish_s = if p <= c * (m + n) { cf * (mf + nf) * e } else { pf * e };
        let transfer_s = [cf * size * t, pf * h * t, pf * s * t].into_iter().fold(0.0, f64::max);
        let on_h = disk.startup_s + h * disk.per_byte_s;
        let on_s = flash.startup_s + s * flash.per_byte_s;
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-12 * a.abs().max(b.abs());
        prop_assert!(near(heterogeneous.establish_s, establish_s));
        prop_assert!(near(heterogeneous.transfer_s, transfer_s));
        prop_assert!(near(heterogeneous.startup_s + heterogeneous.io_s, pf * on_h.max(on_s)));

        let homogeneous = psa.homogeneous(size).unwrap();
        let establish_s = if p <= c * m { cf * mf * e } else { pf * e };
        let transfer_s = (cf * size * t).max(pf * size / mf * t);
        let io_s = pf * (size / mf) * disk.per_byte_s;
        assert_same(homogeneous, [establish_s, transfer_s, pf * disk.startup_s, io_s]);
    }
}

/// 16 GiB in requests of 512 KiB, 256 MiB on each SServer: four pairs with the same total.
#[test]
fn the_tie_of_algorithm_1() {
    let psa = on_4_and_4(16, 2);
    let total_s = |h: f64, s: f64| {
        let requests = 32768.0;
        let heterogeneous = (256.0 * 1024.0 / s).floor().min(requests);
        heterogeneous * psa.heterogeneous(h * KIB, s * KIB).unwrap().total_s()
            + (requests - heterogeneous) * psa.homogeneous(512.0 * KIB).unwrap().total_s()
    };
    for (h, s) in [(64.0, 64.0), (96.0, 32.0), (112.0, 16.0), (120.0, 8.0)] {
        assert!((total_s(h, s) - 1338.573).abs() < 5e-4, "<{h}K,{s}K>: {}", total_s(h, s));
    }
    assert!((total_s(124.0, 4.0) - 1372.7).abs() < 0.05);
}
