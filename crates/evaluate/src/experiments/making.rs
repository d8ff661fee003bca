//! Building blocks of the experiments' definitions.

use stripewise_cluster::size;
use stripewise_model::Op;
use stripewise_trace::synth::{Access, Direction, Ior, RandomWithin};

use crate::cell::{Part, Program, Servers};
use crate::claim::{Claim, Figure, Measure, Scale};
use crate::record::{Labels, Place};

/// Bytes per KiB.
pub const KIB: u64 = 1 << 10;
/// Bytes per MiB.
pub const MIB: u64 = 1 << 20;
/// Bytes per GiB.
pub const GIB: u64 = 1 << 30;

/// Reads and writes, as in most of the papers' figures.
pub const BOTH: [Op; 2] = [Op::Read, Op::Write];

/// Returns labels from pairs.
pub fn labels<const N: usize>(pairs: [(&str, &str); N]) -> Labels {
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// Returns `read` or `write`.
pub fn name(op: Op) -> &'static str {
    match op {
        Op::Read => "read",
        Op::Write => "write",
    }
}

/// Returns `sequential` or `random`.
pub fn access_name(access: Access) -> &'static str {
    match access {
        Access::Sequential => "sequential",
        Access::Random => "random",
    }
}

/// Returns the direction of a benchmark that performs only `op`.
pub fn direction(op: Op) -> Direction {
    match op {
        Op::Read => Direction::Read,
        Op::Write => Direction::Write,
    }
}

/// Returns IOR on a shared file in which each process has a block of its own.
pub fn ior(op: Op, processes: u32, per_node: u32, transfer: u64, each: u64, access: Access) -> Part {
    own_blocks(op, (processes, per_node), transfer, each, access, None)
}

/// Returns IOR in which each process accesses `each` requests of `transfer` bytes: in a file of its
/// own, whose name begins with `private`, or in its block of a shared file.
pub fn own_blocks(
    op: Op,
    (processes, per_node): (u32, u32),
    transfer: u64,
    each: u64,
    access: Access,
    private: Option<String>,
) -> Part {
    let program = Program::Ior(Ior {
        processes,
        per_node,
        transfer,
        block: each * transfer,
        segments: 1,
        access,
        random_within: RandomWithin::OwnBlock,
        direction: direction(op),
        shared: private.is_none(),
        seed: 1,
        file: private.unwrap_or_else(|| "ior.data".to_owned()),
    });
    Part { program, op }
}

/// Returns the factor by which to slow the servers. With it, requests that the disks of `tier`
/// serve alone take as long as a measured run should, so that the time is spent in the servers and
/// not in the programs. Rounded to two digits; 1 in the simulator.
pub fn slowing(scale: Scale, tier: &Servers, op: Op, access: Access, bytes: u64, requests: u64) -> f64 {
    if scale.place == Place::Simulated {
        return 1.0;
    }
    let access = match access {
        Access::Sequential => stripewise_model::Access::Sequential,
        Access::Random => stripewise_model::Access::Random,
    };
    let service = tier.class.service(op, access);
    // Requests are divided over all disks.
    let alone_s =
        requests as f64 * service.startup_s + bytes as f64 * service.per_byte_s / f64::from(tier.count);
    let wanted_s = match scale.place {
        Place::Emulated => seconds(scale).max(bytes as f64 / MOST_BYTES_PER_S),
        _ => seconds(scale),
    };
    let factor = wanted_s / alone_s;
    let digits = 10f64.powf(1.0 - factor.log10().floor());
    (factor * digits).round() / digits
}

/// Bytes per second that two cores move without being busier than the emulated servers, even if
/// processes first exchange all of them.
const MOST_BYTES_PER_S: f64 = 160.0 * MIB as f64;

/// Returns the approximate seconds of a measured run.
fn seconds(scale: Scale) -> f64 {
    match (scale.place, scale.quick) {
        (Place::Disks, true) => 2.0,
        (Place::Disks, false) => 4.0,
        (_, true) => 0.8,
        (_, false) => 1.6,
    }
}

/// Returns the claim that `scheme` is faster than `over` by `claimed` (0.5: 50 %), summed over all
/// cells with these labels.
pub fn gain(what: &str, of: Labels, scheme: &str, over: &str, claimed: (f64, f64)) -> Claim {
    let measure = Measure::Gain { scheme: scheme.into(), over: over.into() };
    Claim { what: what.into(), labels: of, measure, claimed }
}

/// Returns the claim on the largest gain of a single cell.
pub fn largest(what: &str, of: Labels, scheme: &str, over: &str, claimed: f64) -> Claim {
    let measure = Measure::LargestGain { scheme: scheme.into(), over: over.into() };
    Claim { what: what.into(), labels: of, measure, claimed: (claimed, claimed) }
}

/// Returns a plot.
pub fn figure(title: &str, of: Labels, x: (&str, &str), schemes: &[&str]) -> Figure {
    Figure {
        title: title.into(),
        labels: of,
        x: (x.0.into(), x.1.into()),
        schemes: schemes.iter().map(|&scheme| scheme.to_owned()).collect(),
    }
}

/// Formats a size as in labels: `64K`.
pub fn bytes(size: u64) -> String {
    size::format(size)
}

/// Returns the labels with one more.
pub fn and(mut labels: Labels, key: &str, value: &str) -> Labels {
    labels.insert(key.to_owned(), value.to_owned());
    labels
}
