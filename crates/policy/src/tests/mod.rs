//! All decisions compared with the papers' models, a naive reference, and cases computed by hand.

mod background;
mod balance;
mod cdt;
mod costs;
mod identify;
mod redirect;
mod replicas;

use proptest::prelude::*;
use stripewise_layout::Layout;
use stripewise_layout::constructors::{on_one, striped};
use stripewise_model::{Access, ByAccess, ClassParams, Network, Op, Service};

use crate::{Kind, Span};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// CIL's values for Ethernet; random reads and writes have equal parameters, as in the paper.
const ETHERNET: Network = Network { establish_s: 3e-4, per_byte_s: 1.0 / (120.0 * MIB as f64) };
const READ: Kind = Kind { op: Op::Read, access: Access::Random };
const WRITE: Kind = Kind { op: Op::Write, access: Access::Random };

fn class(random_s: f64, sequential_s: f64, per_second: f64) -> ClassParams {
    let service = |startup_s| Service { startup_s, per_byte_s: 1.0 / per_second };
    let both = ByAccess { random: service(random_s), sequential: service(sequential_s) };
    ClassParams { read: both, write: both }
}

/// 8 HServers (targets 0-7) and 4 SServers (8-11), as in SLA's evaluation; a disk seeks for 5 ms.
fn classes() -> Vec<ClassParams> {
    let (hdd, ssd) = (class(5e-3, 1e-4, 120e6), class(5e-5, 5e-5, 400e6));
    (0..12).map(|target| if target < 8 { hdd } else { ssd }).collect()
}

const HSERVERS: [u32; 8] = [0, 1, 2, 3, 4, 5, 6, 7];
const SSERVERS: [u32; 4] = [8, 9, 10, 11];

/// The original in 1-DH and its cache copies: 1-DH, 1-DV (the file of one process, on one server),
/// and 2-D with 2 groups.
fn cached_file() -> (Layout, Vec<(Layout, u32)>) {
    let copies =
        vec![(striped(&SSERVERS, 64 * KIB), 1), (on_one(8), 4), (striped(&SSERVERS[..2], 64 * KIB), 2)];
    let copies = copies.into_iter().map(|(layout, groups)| (layout.unwrap(), groups));
    (striped(&HSERVERS, 64 * KIB).unwrap(), copies.collect())
}

fn cases() -> ProptestConfig {
    let cases = if std::env::var_os("STRIPEWISE_LONG").is_some() { 100_000 } else { 1_000 };
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases) }
}

/// 1 to 6 spans of up to `longest` bytes, adjacent from `start` on, each valid in some of `copies`
/// copies.
fn spans(start: u64, longest: u64, copies: u32) -> impl Strategy<Value = Vec<Span>> {
    prop::collection::vec((1..=longest, 1u8..1 << copies), 1..7).prop_map(move |pieces| {
        let mut at = start;
        let span = |(len, mask)| {
            at += len;
            Span { start: at - len, end: at, mask }
        };
        pieces.into_iter().map(span).collect()
    })
}

fn kind() -> impl Strategy<Value = Kind> {
    (0usize..4).prop_map(|index| Kind::ALL[index])
}
