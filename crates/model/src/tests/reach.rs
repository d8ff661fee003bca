//! The sharing that one request sees, compared with the papers' layouts and with all requests of a
//! size.

use proptest::prelude::*;
use stripewise_layout::Layout;
use stripewise_layout::constructors::{group_members, two_d, two_part};

use super::{DISK, ETHERNET, FLASH, assert_same, cases};
use crate::Striping::{OneDh, OneDv, TwoD};
use crate::cil::Cil;
use crate::{PreparedCost, Server, Service, Share, Startup, general, sharing};

const BLOCK: u64 = 1 << 20;

fn striping(groups: u32, n: u32) -> crate::Striping {
    match groups {
        1 => OneDh,
        g if g == n => OneDv,
        groups => TwoD { groups },
    }
}

proptest! {
    #![proptest_config(cases())]

    /// A shared file in blocks of the request size, and one file per process: CIL's (k, q) in every
    /// layout.
    #[test]
    fn is_that_of_cil(log_n in 0u32..5, log_g in 0u32..5, p in 1u32..100, c in 1u32..5, block in 0u64..1000) {
        let (n, g) = (1 << log_n, 1 << log_g.min(log_n));
        let c = c.min(p);
        let targets: Vec<u32> = (0..n).collect();
        let cil = Cil::new(ETHERNET, DISK, n, p, c).unwrap().cost(striping(g, n), BLOCK as f64).unwrap();
        let expected = [cil.establish_s, cil.transfer_s, cil.startup_s, cil.io_s];
        let prepare = |layout: &Layout| {
            let services = vec![DISK; n as usize];
            PreparedCost::by_reach(layout, &services, n as usize, ETHERNET, (p, c), Startup::EverySharer).unwrap()
        };
        let shared = two_d(&targets, g as usize, BLOCK, 4096).unwrap();
        assert_same(prepare(&shared).cost(block * BLOCK, BLOCK), expected);
        let members = group_members(&targets, g as usize, block as usize % g as usize);
        let private = two_d(members, 1, BLOCK, 4096).unwrap();
        assert_same(prepare(&private).cost(block * BLOCK, BLOCK), expected);
    }

    /// Different stripes and two regions: q as counted over all aligned requests of the size in a
    /// whole number of cycles.
    #[test]
    fn is_that_of_all_requests_of_the_size(
        widths in prop::collection::vec(1u64..4, 3),
        log_sizes in (0u32..4, 0u32..4),
        p in 1u32..40,
        at in 0u64..200,
    ) {
        let services = [DISK, FLASH, Service { startup_s: 1e-3, ..DISK }];
        let size = 1 << log_sizes.0;
        // The widths of the first region are multiples of the size; those of the second region are
        // the size.
        let first: Vec<(u32, u64)> = (0..3).map(|t| (t, widths[t as usize] * size)).collect();
        let second = [(0, size), (2, size)];
        let boundary = 8 * size * widths.iter().sum::<u64>();
        let layout = two_part(&first, boundary, &second).unwrap();
        let prepared =
            PreparedCost::by_reach(&layout, &services, 3, ETHERNET, (p, 1), Startup::EverySharer).unwrap();
        let offset = at * size;
        let (from, to) = if offset < boundary { (0, boundary) } else { (boundary, boundary + 64 * size) };
        let all: Vec<u64> = (from / size..to / size).map(|n| n * size).collect();
        let shares = (0..3u32).map(|t| {
            let touching = all.iter().filter(|&&offset| layout.bytes_on(t, offset, size) > 0).count() as u64;
            let server = Server::new(services[t as usize], sharing(p, touching, all.len() as u64)).unwrap();
            Share { server, bytes: layout.bytes_on(t, offset, size) as f64, count: 1 }
        });
        let cost = general::cost(Startup::EverySharer, &ETHERNET, 1, size as f64, shares.collect::<Vec<_>>().into_iter());
        assert_same(prepared.cost(offset, size), [cost.establish_s, cost.transfer_s, cost.startup_s, cost.io_s]);
    }
}

#[test]
fn impossible_processes_are_refused() {
    let layout = two_d(&[0], 1, BLOCK, 4096).unwrap();
    let prepare = |procs| PreparedCost::by_reach(&layout, &[DISK], 1, ETHERNET, procs, Startup::EverySharer);
    assert!(prepare((4, 4)).is_ok());
    assert!(prepare((0, 0)).is_err() && prepare((4, 5)).is_err());
    let other = PreparedCost::by_reach(&layout, &[], 1, ETHERNET, (1, 1), Startup::EverySharer);
    assert_eq!(other.err(), crate::error::targets_known(&layout, 0).err());
}
