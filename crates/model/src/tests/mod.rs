//! Tests against the papers' tables as printed, brute force, and numbers computed by hand.

mod cil;
mod general;
mod prepared;
mod psa;
mod reach;
mod refused;
mod sla;
mod sla_sub_requests;

use proptest::prelude::*;

use crate::{Cost, Network, Service};

const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * KIB;

/// CIL Table 4, Ethernet, random: e = 0.3 ms, v = 1/120 MB, α = 0.3 ms, β = 1/120 MB.
const ETHERNET: Network = Network { establish_s: 3e-4, per_byte_s: 1.0 / (120.0 * MIB) };
const DISK: Service = Service { startup_s: 3e-4, per_byte_s: 1.0 / (120.0 * MIB) };
/// An SSD for comparison (PSA prints no values): α_s = 0.05 ms, β_s = 1/400 MB.
const FLASH: Service = Service { startup_s: 5e-5, per_byte_s: 1.0 / (400.0 * MIB) };

fn cases() -> ProptestConfig {
    let cases = if std::env::var_os("STRIPEWISE_LONG").is_some() { 200_000 } else { 2_000 };
    ProptestConfig {
        failure_persistence: None,
        max_global_rejects: 20 * cases,
        ..ProptestConfig::with_cases(cases)
    }
}

/// Asserts that the four terms agree up to rounding.
#[track_caller]
fn assert_same(cost: Cost, terms: [f64; 4]) {
    let found = [cost.establish_s, cost.transfer_s, cost.startup_s, cost.io_s];
    let near = |a: f64, b: f64| (a - b).abs() <= 1e-12 * a.abs().max(b.abs());
    assert!(found.iter().zip(terms).all(|(&a, b)| near(a, b)), "{found:?} is not {terms:?}");
}

fn times() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), 1e-9f64..1.0]
}

prop_compose! {
    fn service()(startup_s in times(), per_byte_s in times()) -> Service {
        Service { startup_s, per_byte_s }
    }
}

prop_compose! {
    fn network()(establish_s in times(), per_byte_s in times()) -> Network {
        Network { establish_s, per_byte_s }
    }
}
