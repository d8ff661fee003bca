//! The general formula compared with a direct evaluation, and the two startup policies.

use proptest::prelude::*;

use super::{DISK, ETHERNET, FLASH, KIB, assert_same, cases, network, service};
use crate::general::cost;
use crate::{Cost, Network, Server, Service, Share, Startup, sharing};

fn share(service: Service, sharing: u32, bytes: f64) -> Share {
    Share { server: Server::new(service, sharing).unwrap(), bytes, count: 1 }
}

fn largest(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, f64::max)
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn is_the_formula(
        servers in prop::collection::vec((service(), 1u32..50, prop_oneof![Just(0.0), 1f64..1e6]), 0..20),
        network in network(),
        c in 1u32..20,
    ) {
        let shares = servers.iter().map(|&(service, q, bytes)| share(service, q, bytes));
        let size = servers.iter().map(|server| server.2).sum();
        let cost = cost(Startup::EverySharer, &network, c, size, shares);
        let touched = || servers.iter().filter(|server| server.2 > 0.0);
        let k = touched().count() as f64;
        let c = f64::from(c);
        let most_sharing = largest(touched().map(|server| f64::from(server.1)));
        let most_bytes = largest(touched().map(|server| f64::from(server.1) * server.2));
        let slowest = largest(touched().map(|&(service, q, bytes)| {
            f64::from(q) * (service.startup_s + bytes * service.per_byte_s)
        }));
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-12 * a.abs().max(b.abs());
        prop_assert!(near(cost.establish_s, (c * k).max(most_sharing) * network.establish_s));
        prop_assert!(near(cost.transfer_s, (c * size).max(most_bytes) * network.per_byte_s));
        prop_assert!(near(cost.startup_s + cost.io_s, slowest));
        let sum_s = cost.establish_s + cost.transfer_s + cost.startup_s + cost.io_s;
        prop_assert!(near(cost.total_s(), sum_s));
        // Both terms belong to one server, the slowest.
        let parts = |&&(service, q, bytes): &&(Service, u32, f64)| {
            let q = f64::from(q);
            near(cost.startup_s, q * service.startup_s) && near(cost.io_s, q * bytes * service.per_byte_s)
        };
        prop_assert!(slowest == 0.0 || touched().any(|server| parts(&server)));
    }

    #[test]
    fn sharing_is_the_share_of_the_processes(p in 0u32.., touching: u64, requests in 1u64..) {
        let touching = touching % requests + 1;
        let q = u128::from(sharing(p, touching, requests));
        let exact = u128::from(p) * u128::from(touching);
        let requests = u128::from(requests);
        prop_assert!(q * requests >= exact && q * requests < exact + requests);
    }
}

/// Three classes at once; the middle one is the slowest and determines both storage terms.
#[test]
fn any_number_of_classes() {
    let tape = Service { startup_s: 2.0, per_byte_s: 1e-6 };
    let shares = [share(DISK, 3, 1e6), share(tape, 2, 1e5), share(FLASH, 9, 2e6), share(tape, 50, 0.0)];
    let cost = cost(Startup::EverySharer, &ETHERNET, 2, 3.1e6, shares.into_iter());
    assert_same(cost, [9.0 * 3e-4, 18e6 * ETHERNET.per_byte_s, 4.0, 0.2]);
}

/// a + w/(w+1)·(b - a) with w = 3, b = 9·α_h: the startup of the disks, and the longer transfer of
/// the flash device.
#[test]
fn expected_startup_of_two_classes() {
    let shares = [share(DISK, 9, 10.0 * KIB), share(DISK, 9, 10.0 * KIB), share(FLASH, 2, 1000.0 * KIB)];
    let cost = cost(Startup::Expected, &Network::default(), 1, 1020.0 * KIB, shares.into_iter());
    assert_same(cost, [0.0, 0.0, 3e-4 + 0.75 * 8.0 * 3e-4, 1000.0 / 1024.0 / 400.0]);
}

/// The request itself is one of those that share the server.
#[test]
fn shared_by_none_is_shared_by_one() {
    assert_eq!(Server::new(DISK, 0).unwrap(), Server::new(DISK, 1).unwrap());
}

/// A share of several servers equals several shares.
#[test]
fn count_is_repetition() {
    let one = share(DISK, 4, 5000.0);
    for startup in [Startup::EverySharer, Startup::Expected] {
        let apart = cost(startup, &ETHERNET, 3, 20_000.0, [one; 4].into_iter());
        let together = cost(startup, &ETHERNET, 3, 20_000.0, [Share { count: 4, ..one }].into_iter());
        assert_eq!(apart, together);
        let nothing = cost(startup, &ETHERNET, 3, 0.0, [Share { count: 0, ..one }].into_iter());
        assert_eq!(nothing, Cost::default());
    }
}

#[test]
fn sharing_of_the_papers_layouts() {
    // 20 processes on 16 servers: 1-DH, 1-DV, and 2-D with 8 groups.
    assert_eq!(sharing(20, 1600, 1600), 20);
    assert_eq!(sharing(20, 100, 1600), 2);
    assert_eq!(sharing(20, 200, 1600), 3);
    assert_eq!(sharing(20, 0, 1600), 0);
    assert_eq!(sharing(20, 5, 0), 0);
    assert_eq!(sharing(20, 7, 5), 20, "never more than there are");
    assert_eq!(sharing(u32::MAX, u64::MAX, u64::MAX), u32::MAX);
}

#[test]
fn costs_add_up_and_show_their_sum() {
    let cost = Cost { establish_s: 1.0, transfer_s: 2.0, startup_s: 4.0, io_s: 8.0 };
    let twice: Cost = [cost, cost].into_iter().sum();
    assert_eq!(twice, cost * 2.0);
    assert_eq!(twice.total_s(), 30.0);
    let mut more = cost;
    more = more + cost;
    assert_eq!(more, twice);
    let json = serde_json::to_string(&cost).unwrap();
    assert_eq!(json, r#"{"establish_s":1.0,"transfer_s":2.0,"startup_s":4.0,"io_s":8.0,"total_s":15.0}"#);
}
