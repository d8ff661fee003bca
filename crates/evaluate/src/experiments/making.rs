//! Building blocks of the experiments' cells.

use stripewise_model::{Network, Op};
use stripewise_trace::synth::{Access, Hpio, Ior, RandomWithin, Tile, TwoPhase};

use super::devices;
use crate::cell::{Cell, Part, Program, Scheme, Servers, Storage, direction};
use crate::claim::Scale;
use crate::record::{Labels, Place};

pub const KIB: u64 = 1 << 10;
pub const MIB: u64 = 1 << 20;
pub const GIB: u64 = 1 << 30;

/// Reads and writes, as in most of the papers' figures.
pub const BOTH: [Op; 2] = [Op::Read, Op::Write];

/// Both kinds of access.
pub const ORDERS: [Access; 2] = [Access::Sequential, Access::Random];

pub fn labels<const N: usize>(pairs: [(&str, &str); N]) -> Labels {
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// Returns `read` or `write`.
pub fn name(op: Op) -> &'static str {
    direction(op).name()
}

/// Returns `sequential` or `random`.
pub fn access_name(access: Access) -> &'static str {
    match access {
        Access::Sequential => "sequential",
        Access::Random => "random",
    }
}

/// Adds the label of the published number of processes, and that of the processes that stand for
/// them, if these are others.
pub fn add_procs(labels: &mut Labels, published: u32, ranks: Option<u32>) {
    labels.insert("procs".into(), published.to_string());
    labels.extend(ranks.map(|ranks| ("ranks".to_owned(), ranks.to_string())));
}

/// Returns the cells for all pairs of values, with the second value changing first.
pub fn crossed<A: Copy, B: Copy>(outer: &[A], inner: &[B], cell: impl Fn(A, B) -> Cell) -> Vec<Cell> {
    let cell = &cell;
    outer.iter().flat_map(|&a| inner.iter().map(move |&b| cell(a, b))).collect()
}

/// Returns the number of processes per node, if the experiment ran on several nodes.
pub fn per_node(scale: Scale, processes: u32, nodes: u32) -> u32 {
    if scale.is_simulated() { processes.div_ceil(nodes) } else { processes }
}

/// Returns the numbers of tiles in x and y of mpi-tile-io for a published number of processes.
pub fn tiles(scale: Scale, published: u32) -> (u32, u32) {
    let (simulated, measured) = match published {
        100 => ((10, 10), (3, 3)),
        200 => ((20, 10), (6, 3)),
        300 => ((20, 15), (6, 5)),
        _ => ((20, 20), (6, 6)),
    };
    if scale.is_simulated() { simulated } else { measured }
}

/// Returns IOR in which each process accesses `each` requests of `transfer` bytes: in a file of its
/// own, whose name begins with `private`, or in its block of a shared file.
pub fn ior(
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

/// Returns HPIO with interleaved regions.
pub fn hpio(op: Op, (processes, per_node): (u32, u32), regions: u64, region_size: u64, spacing: u64) -> Part {
    let program = Program::Hpio(Hpio {
        processes,
        per_node,
        regions,
        region_size,
        spacing,
        interleaved: true,
        direction: direction(op),
        collective: None,
        file: "hpio.data".into(),
    });
    Part { program, op }
}

/// Returns mpi-tile-io with tiles of (elements in x, elements in y, bytes of an element) that do
/// not overlap.
pub fn tile(
    op: Op,
    (tiles_x, tiles_y): (u32, u32),
    per_node: u32,
    (elements_x, elements_y, element_size): (u64, u64, u64),
    collective: Option<TwoPhase>,
    file: &str,
) -> Part {
    let program = Program::Tile(Tile {
        tiles_x,
        tiles_y,
        per_node,
        elements_x,
        elements_y,
        element_size,
        overlap_x: 0,
        overlap_y: 0,
        header: 0,
        direction: direction(op),
        collective,
        file: file.to_owned(),
    });
    Part { program, op }
}

/// A cell with servers as published.
pub struct Case {
    pub labels: Labels,
    /// The HServers come first.
    pub tiers: Vec<Servers>,
    /// Network of the simulated cell; measured ones have none.
    pub network: Network,
    pub parts: Vec<Part>,
    /// Bytes of all parts together.
    pub bytes: u64,
    /// Number of startups of an HServer if the HServers serve all requests.
    pub startups: u64,
    /// Whether the servers get random or sequential requests.
    pub access: Access,
    pub schemes: Vec<Scheme>,
}

impl Case {
    pub fn cell(self, scale: Scale) -> Cell {
        let factor = if scale.is_simulated() { 1.0 } else { self.slowing(scale) };
        let slow = |tier: Servers| Servers { class: devices::slowed(&tier.class, factor), ..tier };
        let network = if scale.is_simulated() { self.network } else { Network::default() };
        Cell {
            experiment: "",
            labels: self.labels,
            storage: Storage { tiers: self.tiers.into_iter().map(slow).collect(), network },
            parts: self.parts,
            waits: true,
            schemes: self.schemes,
        }
    }

    /// Returns the factor by which to slow the servers of a measured cell. With it, requests that
    /// the HServers serve alone take as long as a measured run should, so that the time is spent in
    /// the servers and not in the programs.
    fn slowing(&self, scale: Scale) -> f64 {
        let bytes = self.bytes as f64;
        let run_s = match (scale.place, scale.quick) {
            (Place::Disks, true) => 2.0,
            (Place::Disks, false) => 4.0,
            (_, true) => 0.8f64.max(bytes / MOST_BYTES_PER_S),
            (_, false) => 1.6f64.max(bytes / MOST_BYTES_PER_S),
        };
        let access = match self.access {
            Access::Sequential => stripewise_model::Access::Sequential,
            Access::Random => stripewise_model::Access::Random,
        };
        let tier = &self.tiers[0];
        let service = tier.class.service(self.parts[0].op, access);
        let alone_s =
            self.startups as f64 * service.startup_s + bytes * service.per_byte_s / f64::from(tier.count);
        two_digits(run_s / alone_s)
    }
}

/// Bytes per second that two cores move without being busier than the emulated servers, even if
/// processes first exchange all of them.
const MOST_BYTES_PER_S: f64 = 160.0 * MIB as f64;

pub fn two_digits(factor: f64) -> f64 {
    let digits = 10f64.powf(1.0 - factor.log10().floor());
    (factor * digits).round() / digits
}
