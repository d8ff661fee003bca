//! SLA Eq. 5 and Table 2 as printed, their errors, and the exact forms compared with brute force.

use proptest::prelude::*;
use stripewise_layout::MAX_OFFSET;
use stripewise_layout::constructors::striped;

use super::cases;
use crate::sla::{largest_sub_request, servers_touched};

/// (servers touched, largest sub-request) as printed.
fn printed(offset: u64, size: u64, stripe: u64, servers: u64) -> (u64, u64) {
    let delta = (offset + size) / stripe - offset / stripe;
    let (begin, end) = (stripe - offset % stripe, (offset + size) % stripe);
    let turns = delta.div_ceil(servers);
    let largest = match (delta, delta % servers) {
        (0, _) => size,
        (_, 0) => (begin + end + (turns - 1) * stripe).max(turns * stripe),
        (_, 1) => begin.max(end) + (turns - 1) * stripe,
        _ => turns * stripe,
    };
    ((delta + 1).min(servers), largest)
}

fn exact(offset: u64, size: u64, stripe: u64, servers: u32) -> (u64, u64) {
    let touched = servers_touched(offset, size, stripe, servers);
    (u64::from(touched), largest_sub_request(offset, size, stripe, servers))
}

/// (servers touched, largest sub-request), counted byte by byte.
fn counted(offset: u64, size: u64, stripe: u64, servers: u64) -> (u64, u64) {
    let mut bytes = vec![0; servers as usize];
    for byte in offset..offset + size {
        bytes[(byte / stripe % servers) as usize] += 1;
    }
    (bytes.iter().filter(|&&bytes| bytes > 0).count() as u64, bytes.into_iter().max().unwrap())
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn exact_forms_count(offset in 0u64..500, size in 1u64..500, stripe in 1u64..20, servers in 1u32..12) {
        let counted = counted(offset, size, stripe, u64::from(servers));
        prop_assert_eq!(exact(offset, size, stripe, servers), counted);
    }

    /// The printed forms where they are right: several servers, and no end on a stripe boundary.
    #[test]
    fn printed_forms(offset in 0u64..500, size in 1u64..500, stripe in 2u64..20, servers in 2u32..12) {
        let (touched, largest) = printed(offset, size, stripe, u64::from(servers));
        let exact = exact(offset, size, stripe, servers);
        prop_assert_eq!(largest, exact.1);
        let on_boundary = (offset + size) % stripe == 0;
        prop_assert!(touched == exact.0 || on_boundary && touched == exact.0 + 1);
    }

    #[test]
    fn exact_forms_far_out(
        offset in 0..MAX_OFFSET, size in 1..MAX_OFFSET, stripe in 1u64..1 << 58, servers in 1u32..20,
    ) {
        prop_assume!(offset + size <= MAX_OFFSET);
        let layout = striped(&(0..servers).collect::<Vec<_>>(), stripe).unwrap();
        let mut bytes = vec![0; servers as usize];
        layout.bytes_per_target(offset, size, &mut bytes);
        let touched = bytes.iter().filter(|&&bytes| bytes > 0).count() as u64;
        prop_assert_eq!(exact(offset, size, stripe, servers), (touched, bytes.into_iter().max().unwrap()));
    }
}

/// Table 2's four cases (Fig. 5), with 4 servers and stripes of 10.
#[test]
fn table_2_case_by_case() {
    let cases = [
        ("1: within a stripe", (3, 5), (1, 5)),
        ("2: ends on the server it began on, the others have more", (9, 32), (4, 10)),
        ("2: ends on the server it began on, which has the most", (1, 48), (4, 18)),
        ("3: ends one server further", (7, 50), (4, 17)),
        ("4: ends elsewhere", (7, 60), (4, 20)),
    ];
    for (case, (offset, size), expected) in cases {
        assert_eq!(printed(offset, size, 10, 4), expected, "printed, {case}");
        assert_eq!(exact(offset, size, 10, 4), expected, "exact, {case}");
        assert_eq!(counted(offset, size, 10, 4), expected, "counted, {case}");
    }
}

/// Erratum: on one server the sub-request is the whole request. 15 bytes from offset 8, stripes of
/// 10: 15, not 20.
#[test]
fn erratum_one_server() {
    assert_eq!(printed(8, 15, 10, 1), (1, 20));
    assert_eq!(exact(8, 15, 10, 1), (1, 15));
}

/// Erratum: a request that ends on a stripe boundary does not touch the next server.
#[test]
fn erratum_end_on_a_stripe_boundary() {
    assert_eq!(printed(0, 10, 10, 4), (2, 10));
    assert_eq!(exact(0, 10, 10, 4), (1, 10));
    assert_eq!(printed(5, 25, 10, 4), (4, 10));
    assert_eq!(exact(5, 25, 10, 4), (3, 10));
}
