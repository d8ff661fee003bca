//! The prepared evaluation compared with the general formula on the layout's bytes per target.

use proptest::prelude::*;
use stripewise_layout::constructors::{striped, two_part};
use stripewise_layout::{Layout, MAX_OFFSET};

use super::{DISK, ETHERNET, FLASH, KIB, assert_same, cases};
use crate::psa::Psa;
use crate::{Cost, PreparedCost, Server, Share, Startup, general};

fn directly(layout: &Layout, servers: &[Server], startup: Startup, offset: u64, size: u64) -> Cost {
    let mut bytes = vec![0; layout.target_count()];
    layout.bytes_per_target(offset, size, &mut bytes);
    let shares = bytes.iter().zip(servers);
    let shares = shares.map(|(&bytes, &server)| Share { server, bytes: bytes as f64, count: 1 });
    general::cost(startup, &ETHERNET, 3, size as f64, shares)
}

/// Fewer than `most` stripes on 100 targets.
fn stripes(most: usize) -> impl Strategy<Value = Vec<(u32, u64)>> {
    prop::collection::vec((0u32..100, 1u64..100_000), 1..most)
}

proptest! {
    #![proptest_config(cases())]

    /// Any order of classes, with unused and repeated targets, and few or many servers.
    #[test]
    fn is_the_general_formula(
        first in prop_oneof![stripes(12), stripes(40), stripes(300)],
        second in prop::collection::vec((0u32..10, 1u64..100_000), 1..12),
        boundary in 0u64..1_000_000,
        kinds in prop::collection::vec(0usize..3, 100),
        startup in prop_oneof![Just(Startup::EverySharer), Just(Startup::Expected)],
        (offset, size) in (0u64..2_000_000, 0u64..2_000_000),
    ) {
        let layout = two_part(&first, boundary, &second).unwrap();
        let of_kind = [(DISK, 4), (FLASH, 4), (FLASH, 7)];
        let server = |&kind: &usize| Server::new(of_kind[kind].0, of_kind[kind].1).unwrap();
        let servers: Vec<Server> = kinds.iter().map(server).collect();
        let prepared = PreparedCost::new(&layout, &servers, ETHERNET, 3, startup).unwrap();
        let expected = directly(&layout, &servers, startup, offset, size);
        let cost = prepared.cost(offset, size);
        // In a tie between different servers the order decides which of them gives the two storage
        // terms.
        assert_same(
            Cost { startup_s: cost.startup_s + cost.io_s, io_s: 0.0, ..cost },
            [expected.establish_s, expected.transfer_s, expected.startup_s + expected.io_s, 0.0],
        );
    }
}

/// PSA's tables are what the general formula gives on PSA's layout.
#[test]
fn psa_on_its_layout() {
    let (h, s, size) = (120 * 1024, 8 * 1024, 512 * 1024);
    let first: Vec<_> = (0..8).map(|target| (target, if target < 4 { h } else { s })).collect();
    let second: Vec<_> = (0..4).map(|target| (target, 128 * 1024)).collect();
    let layout = two_part(&first, 10 * size, &second).unwrap();
    let servers: Vec<Server> =
        (0..8).map(|target| Server::new(if target < 4 { DISK } else { FLASH }, 16).unwrap()).collect();
    let prepared = PreparedCost::new(&layout, &servers, ETHERNET, 2, Startup::EverySharer).unwrap();
    let psa = Psa::new(ETHERNET, (4, DISK), (4, FLASH), 16, 2).unwrap();
    assert_eq!(prepared.cost(9 * size, size), psa.heterogeneous(120.0 * KIB, 8.0 * KIB).unwrap());
    assert_eq!(prepared.cost(10 * size, size), psa.homogeneous(512.0 * KIB).unwrap());
}

#[test]
fn a_request_past_the_end_counts_as_far_as_it_goes() {
    let layout = striped(&[0], 4096).unwrap();
    let servers = [Server::new(DISK, 1).unwrap()];
    let prepared = PreparedCost::new(&layout, &servers, ETHERNET, 1, Startup::EverySharer).unwrap();
    assert_eq!(prepared.cost(MAX_OFFSET - 10, u64::MAX), prepared.cost(0, 10));
    assert_eq!(prepared.cost(MAX_OFFSET, 1), Cost::default());
    assert_eq!(prepared.cost(5, 0), Cost::default());
}

#[test]
fn every_target_needs_a_server() {
    let layout = striped(&[0, 3], 4096).unwrap();
    let servers = [Server::new(DISK, 1).unwrap(); 3];
    let prepare = |servers: &[Server], c| PreparedCost::new(&layout, servers, ETHERNET, c, Startup::default());
    assert_eq!(prepare(&servers, 1).err(), crate::error::targets_known(&layout, 3).err());
    assert_eq!(
        prepare(&[servers[0]; 4], 0).unwrap_err().to_string(),
        "the number of processes per node is 0; it must be at least 1"
    );
}
