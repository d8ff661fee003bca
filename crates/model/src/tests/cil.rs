//! CIL Table 2 row by row, and the points where the cheapest layout changes.

use proptest::prelude::*;

use super::{DISK, ETHERNET, KIB, MIB, assert_same, cases};
use crate::Striping::{self, OneDh, OneDv, TwoD};
use crate::cil::Cil;

/// The side that a printed row names as the bottleneck.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Side {
    Client,
    Servers,
}

/// The table's terms in multiples of (e, s·v, α, s·β), with its conditions as printed. The only
/// correction: the damaged `m⌈p/g⌉e` of the last row is read as `m⌈n/g⌉e`.
fn printed(striping: Striping, n: u32, p: u32, m: u32) -> (Side, [f64; 4]) {
    let ceil = |a: u32, b: u32| f64::from(a.div_ceil(b));
    let [nf, pf, mf] = [n, p, m].map(f64::from);
    match striping {
        OneDv => {
            let q = ceil(p, n);
            match p <= n || mf > q {
                true => (Side::Client, [mf, mf, q, q]),
                false => (Side::Servers, [q, q, q, q]),
            }
        }
        OneDh if mf <= ceil(p, n) => (Side::Servers, [pf, pf / nf, pf, pf / nf]),
        OneDh => (Side::Client, [mf * nf, mf, pf, pf / nf]),
        TwoD { groups: g } => {
            let (q, k, least) = (ceil(p, g), ceil(n, g), f64::from(n / g));
            match p <= g || mf > q / least {
                true => (Side::Client, [mf * k, mf, q, q / least]),
                false => (Side::Servers, [q, q / least, q, q / least]),
            }
        }
    }
}

#[track_caller]
fn check(striping: Striping, [n, p, m]: [u32; 3], side: Side, expected: [f64; 4]) {
    assert_eq!(printed(striping, n, p, m), (side, expected), "the row as meant");
    let size = 96.0 * KIB;
    let unit = [ETHERNET.establish_s, size * ETHERNET.per_byte_s, DISK.startup_s, size * DISK.per_byte_s];
    let cost = Cil::new(ETHERNET, DISK, n, p, m).unwrap().cost(striping, size).unwrap();
    assert_same(cost, [0, 1, 2, 3].map(|term| expected[term] * unit[term]));
}

#[test]
fn row_1dv_p_up_to_n() {
    check(OneDv, [16, 10, 3], Side::Client, [3.0, 3.0, 1.0, 1.0]);
}

#[test]
fn row_1dv_servers_are_the_bottleneck() {
    check(OneDv, [4, 30, 8], Side::Servers, [8.0, 8.0, 8.0, 8.0]);
}

#[test]
fn row_1dv_client_is_the_bottleneck() {
    check(OneDv, [4, 30, 9], Side::Client, [9.0, 9.0, 8.0, 8.0]);
}

#[test]
fn row_1dh_servers_are_the_bottleneck() {
    check(OneDh, [4, 32, 8], Side::Servers, [32.0, 8.0, 32.0, 8.0]);
}

#[test]
fn row_1dh_client_is_the_bottleneck() {
    check(OneDh, [4, 32, 9], Side::Client, [36.0, 9.0, 32.0, 8.0]);
}

#[test]
fn row_2d_p_up_to_g() {
    check(TwoD { groups: 4 }, [16, 4, 2], Side::Client, [8.0, 2.0, 1.0, 0.25]);
}

#[test]
fn row_2d_servers_are_the_bottleneck() {
    check(TwoD { groups: 4 }, [8, 64, 8], Side::Servers, [16.0, 8.0, 16.0, 8.0]);
}

#[test]
fn row_2d_client_is_the_bottleneck() {
    check(TwoD { groups: 4 }, [8, 64, 9], Side::Client, [18.0, 9.0, 16.0, 8.0]);
}

/// Where g does not divide n: ⌈7/3⌉ = 3 connections, but the bytes of ⌊7/3⌋ = 2 servers.
#[test]
fn row_2d_with_groups_of_unequal_size() {
    check(TwoD { groups: 3 }, [7, 12, 1], Side::Servers, [4.0, 2.0, 4.0, 2.0]);
    check(TwoD { groups: 3 }, [7, 12, 3], Side::Client, [9.0, 3.0, 4.0, 2.0]);
}

#[test]
fn view_is_k_and_q() {
    let cil = Cil::new(ETHERNET, DISK, 16, 20, 1).unwrap();
    let view = |striping| {
        let view = cil.view(striping).unwrap();
        [view.connections, view.divided_by, view.sharing]
    };
    assert_eq!(view(OneDv), [1, 1, 2]);
    assert_eq!(view(OneDh), [16, 16, 20]);
    assert_eq!(view(TwoD { groups: 8 }), [2, 2, 3]);
    assert_eq!(view(TwoD { groups: 5 }), [4, 3, 4]);
}

/// 2-D with one group is 1-DH, and with n groups 1-DV.
#[test]
fn two_d_has_the_others_at_its_ends() {
    let cil = Cil::new(ETHERNET, DISK, 12, 30, 4).unwrap();
    let cost = |striping| cil.cost(striping, MIB).unwrap();
    assert_eq!(cost(TwoD { groups: 1 }), cost(OneDh));
    assert_eq!(cost(TwoD { groups: 12 }), cost(OneDv));
}

/// The printed conditions round where the maxima do not, and therefore select the smaller side in a
/// corner case: with 5 processes on 4 servers, 2 per node, a client makes 2·4 connections (8e), but
/// `m ≤ ⌈p/n⌉` gives `pe` = 5e.
#[test]
fn printed_conditions_are_off_where_they_round() {
    let cost = Cil::new(ETHERNET, DISK, 4, 5, 2).unwrap().cost(OneDh, MIB).unwrap();
    assert_eq!(printed(OneDh, 4, 5, 2), (Side::Servers, [5.0, 1.25, 5.0, 1.25]));
    assert_same(cost, [8.0 * 3e-4, 2.0 / 120.0, 5.0 * 3e-4, 1.25 / 120.0]);
}

/// Whether rounding in the printed condition matters: it uses ⌈p/n⌉ instead of p/n, or ⌊n/g⌋
/// although there are ⌈n/g⌉ connections.
fn in_a_rounded_corner(striping: Striping, n: u32, p: u32, m: u32) -> bool {
    match striping {
        OneDv => false,
        OneDh => m * n > p && m <= p.div_ceil(n),
        TwoD { groups: g } => m * n.div_ceil(g) > p.div_ceil(g) && m * (n / g) <= p.div_ceil(g),
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn printed_table(n in 1u32..40, p in 1u32..200, m in 1u32..200, g in 1u32..40, size in 1f64..1e8) {
        prop_assume!(m <= p && g <= n);
        let cil = Cil::new(ETHERNET, DISK, n, p, m).unwrap();
        for striping in [OneDv, OneDh, TwoD { groups: g }] {
            if !in_a_rounded_corner(striping, n, p, m) {
                let (_, [e, v, a, b]) = printed(striping, n, p, m);
                let (v, b) = (v * size * ETHERNET.per_byte_s, b * size * DISK.per_byte_s);
                let cost = cil.cost(striping, size).unwrap();
                assert_same(cost, [e * ETHERNET.establish_s, v, a * DISK.startup_s, b]);
            }
        }
    }
}

/// The cheapest of the three layouts; 2-D has groups of two, as in the paper's evaluation.
fn cheapest(procs: u32, size: f64) -> Striping {
    let cil = Cil::new(ETHERNET, DISK, 16, procs, procs.div_ceil(48)).unwrap();
    let total_s = |striping: &Striping| cil.cost(*striping, size).unwrap().total_s();
    let all = [OneDv, OneDh, TwoD { groups: 8 }];
    all.into_iter().min_by(|a, b| total_s(a).total_cmp(&total_s(b))).unwrap()
}

#[test]
fn crossovers_of_the_evaluation() {
    let sizes = (2..=12).map(|power| f64::from(1 << power) * KIB);
    for size in sizes {
        for procs in [1, 2, 4, 8] {
            let one_dh_from = match procs {
                1 | 2 => 2.0 * MIB,
                4 => 4.0 * MIB,
                _ => f64::INFINITY,
            };
            let expected = match size {
                _ if size <= 64.0 * KIB => OneDv,
                _ if size < one_dh_from => TwoD { groups: 8 },
                _ => OneDh,
            };
            assert_eq!(cheapest(procs, size), expected, "{procs} processes, {size} bytes");
        }
        for procs in [16, 32, 48, 64, 96] {
            assert_eq!(cheapest(procs, size), OneDv, "{procs} processes, {size} bytes");
        }
    }
}
