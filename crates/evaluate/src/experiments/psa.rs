//! Experiments on varied stripes (PSA §4): P1 to P7, and X2.
//!
//! There are eight client nodes and, by default, four HServers and four SServers. Files do not fit
//! on the SServers, which have a fixed amount of space for them. DEF, PA and PSA are the paper's
//! schemes. Two schemes are additions: `whole requests` puts as many requests as fit on the
//! SServers alone, and `auto` is the planner's choice.
//!
//! **Scaled down** for programs on a machine with two cores, there are fewer requests and
//! processes. The space shrinks alike, so that the SServers hold the same fraction of the file;
//! requests have their published size. Servers are slowed, so that the time is spent in the servers
//! and not in the programs. Cells have the labels of the published case that they stand for, and
//! the label `ranks` if there are fewer processes.

use stripewise_cluster::size;
use stripewise_model::{Network, Op};
use stripewise_trace::synth::{Access, Btio, BtioClass, TwoPhase};

use super::devices;
use super::making::{self, BOTH, Case, GIB, KIB, MIB, ORDERS, access_name, add_procs, crossed, labels, name};
use crate::cell::{Cell, Part, Program, Scheme, Servers, direction};
use crate::claim::Scale;
use crate::record::{Labels, Place};

/// Number of client nodes.
pub const NODES: u32 = 8;

/// The schemes that are compared.
const SCHEMES: [&str; 5] = ["DEF", "PA", "PSA", "whole requests", "auto"];

/// Returns the schemes of a cell; quick measured runs have no `auto`.
fn schemes(scale: Scale) -> &'static [&'static str] {
    if scale.quick && scale.place != Place::Simulated { &SCHEMES[..4] } else { &SCHEMES }
}

/// Returns the scheme with this name in records, for requests of `request` bytes.
pub fn by_name(scheme: &str, request: u64) -> Scheme {
    match scheme {
        "DEF" => Scheme::Planner("def"),
        "PA" => Scheme::Planner("pa"),
        "PSA" => Scheme::Planner("psa"),
        "whole requests" => Scheme::WholeRequests { request },
        "auto" => Scheme::Planner("auto"),
        other => Scheme::Candidate(other.to_owned()),
    }
}

fn schemes_by_name(names: &[&str], request: u64) -> Vec<Scheme> {
    names.iter().map(|name| by_name(name, request)).collect()
}

fn tiers(servers: (u32, u32), space_per_sserver: u64) -> Vec<Servers> {
    devices::tiers(servers, devices::published(), space_per_sserver)
}

fn per_node(scale: Scale, processes: u32) -> u32 {
    making::per_node(scale, processes, NODES)
}

/// Size of the shared file of IOR.
const FILE: u64 = 16 * GIB;

/// IOR (PSA §4.2).
struct Ior {
    experiment: &'static str,
    labels: Labels,
    processes: u32,
    request: u64,
    servers: (u32, u32),
    op: Op,
    access: Access,
}

impl Ior {
    /// Returns the published defaults: 16 processes, random requests of 512 KiB, four servers of
    /// each kind.
    fn new(experiment: &'static str, op: Op, label: &str, value: &str) -> Self {
        let labels = labels([("op", name(op)), (label, value)]);
        let (servers, access) = ((4, 4), Access::Random);
        Self { experiment, labels, processes: 16, request: 512 * KIB, servers, op, access }
    }

    fn cell(self, scale: Scale, schemes: &[&str]) -> Cell {
        let processes = (self.processes, per_node(scale, self.processes));
        let each = requests(scale, self.request, self.processes) / u64::from(self.processes);
        let startups = each * u64::from(self.processes);
        let bytes = startups * self.request;
        // The space on each SServer is 1 GiB for the whole file.
        let space = (u128::from(GIB) * u128::from(bytes) / u128::from(FILE)) as u64;
        Case {
            experiment: self.experiment,
            labels: self.labels,
            tiers: tiers(self.servers, space),
            network: devices::ethernet(),
            parts: vec![making::ior(self.op, processes, self.request, each, self.access, None)],
            bytes,
            startups,
            access: self.access,
            schemes: schemes_by_name(schemes, self.request),
        }
        .cell(scale)
    }
}

/// Returns the number of requests of all processes: those of the published file in the simulator;
/// in measured runs, about 256 MiB (128 MiB if quick) with a minimum for every process.
fn requests(scale: Scale, request: u64, processes: u32) -> u64 {
    let all = FILE / request;
    match (scale.place, scale.quick) {
        (Place::Simulated, false) => all,
        (Place::Simulated, true) => all / 16,
        (_, true) => (128 * MIB / request).clamp(12 * u64::from(processes), 1024),
        (_, false) => (256 * MIB / request).clamp(16 * u64::from(processes), 2048),
    }
}

/// Returns IOR in order and at random.
pub fn p1(scale: Scale) -> Vec<Cell> {
    let on_disks = scale.place == Place::Disks;
    let schemes: &[&str] = if on_disks { &["DEF", "PA", "PSA", "auto"] } else { &SCHEMES };
    // A quick run has only random access, because sequential disks are hardly slower than SSDs.
    let orders = if on_disks && scale.quick { &ORDERS[1..] } else { &ORDERS };
    crossed(&BOTH, orders, |op, access| {
        Ior { access, ..Ior::new("P1", op, "access", access_name(access)) }.cell(scale, schemes)
    })
}

/// Returns IOR with several numbers of processes.
pub fn p2(scale: Scale) -> Vec<Cell> {
    // (published, processes that run)
    let processes: &[(u32, u32)] = match (scale.place, scale.quick) {
        (Place::Simulated, _) => &[(8, 8), (32, 32), (64, 64)],
        (Place::Emulated, false) => &[(8, 8), (32, 16), (64, 32)],
        (Place::Emulated, true) => &[(8, 8), (64, 32)],
        (Place::Disks, _) => &[],
    };
    crossed(processes, &BOTH, |(published, processes), op| {
        let mut ior = Ior { processes, ..Ior::new("P2", op, "procs", "") };
        add_procs(&mut ior.labels, published, ranks(scale, processes));
        ior.cell(scale, schemes(scale))
    })
}

/// Returns the value of the label `ranks`, which only measured cells have.
fn ranks(scale: Scale, processes: u32) -> Option<u32> {
    (scale.place != Place::Simulated).then_some(processes)
}

/// Returns the schemes of P3 and P4: no quick run has `auto`.
fn few_if_quick(scale: Scale) -> &'static [&'static str] {
    if scale.quick { &SCHEMES[..4] } else { &SCHEMES }
}

/// Returns IOR with several request sizes.
pub fn p3(scale: Scale) -> Vec<Cell> {
    let sizes: &[u64] = if scale.place == Place::Disks { &[] } else { &[128 * KIB, MIB] };
    crossed(sizes, &BOTH, |request, op| {
        Ior { request, ..Ior::new("P3", op, "size", &size::format(request)) }.cell(scale, few_if_quick(scale))
    })
}

/// Returns IOR with several ratios of servers.
pub fn p4(scale: Scale) -> Vec<Cell> {
    let servers: &[(u32, u32)] = if scale.place == Place::Disks { &[] } else { &[(5, 3), (3, 5)] };
    crossed(servers, &BOTH, |(m, n), op| {
        Ior { servers: (m, n), ..Ior::new("P4", op, "servers", &format!("{m}:{n}")) }
            .cell(scale, few_if_quick(scale))
    })
}

/// Returns HPIO with regions of different sizes (PSA §4.3).
///
/// The processes' regions are interleaved in the file, as always in HPIO if the file is not
/// contiguous. From a server's point of view, no process continues where it stopped.
pub fn p5(scale: Scale) -> Vec<Cell> {
    let sizes: &[u64] = match (scale.place, scale.quick) {
        (Place::Disks, _) => &[],
        (Place::Emulated, true) => &[64 * KIB, 512 * KIB],
        _ => &[64 * KIB, 256 * KIB, 512 * KIB],
    };
    const PROCESSES: u32 = 32;
    crossed(sizes, &BOTH, |region_size, op| {
        let each = |bytes: u64| bytes / region_size / u64::from(PROCESSES);
        let regions = match (scale.place, scale.quick) {
            (Place::Simulated, false) => 1024,
            (Place::Simulated, true) => 64,
            (_, true) => each(128 * MIB).clamp(12, 32),
            (_, false) => each(256 * MIB).clamp(16, 64),
        };
        let startups = u64::from(PROCESSES) * regions;
        let bytes = startups * region_size;
        let processes = (PROCESSES, per_node(scale, PROCESSES));
        Case {
            experiment: "P5",
            labels: labels([("op", name(op)), ("size", &size::format(region_size))]),
            // All SServers together hold a third of the file.
            tiers: tiers((4, 4), bytes / 3 / 4),
            network: devices::ethernet(),
            parts: vec![making::hpio(op, processes, regions, region_size, 0)],
            bytes,
            startups,
            access: Access::Random,
            schemes: schemes_by_name(schemes(scale), region_size),
        }
        .cell(scale)
    })
}

/// ROMIO's default `cb_buffer_size`.
const BUFFER: u64 = 16 * MIB;

/// Returns the collective I/O of P6 and P7. The requests that reach the servers are those of
/// ROMIO's aggregators, one on each client node. With fewer processes there is little data, so
/// smaller buffers keep the number of rounds above one.
fn collective(scale: Scale, processes: u32) -> TwoPhase {
    let buffer = if scale.place == Place::Simulated { BUFFER } else { MIB };
    TwoPhase { aggregators: NODES.min(processes), buffer }
}

/// Returns collective mpi-tile-io (PSA §4.4).
pub fn p6(scale: Scale) -> Vec<Cell> {
    // (published processes, tiles in x and y)
    let tiles: &[(u32, (u32, u32))] = match (scale.place, scale.quick) {
        (Place::Simulated, _) => &[(100, (10, 10)), (200, (20, 10)), (400, (20, 20))],
        (Place::Emulated, false) => &[(100, (3, 3)), (200, (6, 3)), (400, (6, 6))],
        (Place::Emulated, true) => &[(100, (3, 3)), (400, (6, 6))],
        (Place::Disks, _) => &[],
    };
    crossed(tiles, &BOTH, |(published, grid), op| {
        let processes = grid.0 * grid.1;
        let collective = collective(scale, processes);
        let bytes = u64::from(processes) * 64 * 32 * KIB;
        let request = collective.buffer.min(bytes / u64::from(NODES));
        let elements = (8, 8, 32 * KIB);
        let per_node = per_node(scale, processes);
        let mut labels = labels([("op", name(op))]);
        add_procs(&mut labels, published, ranks(scale, processes));
        Case {
            experiment: "P6",
            labels,
            // All SServers together hold a quarter of the file.
            tiers: tiers((4, 4), bytes / 4 / 4),
            network: devices::ethernet(),
            parts: vec![making::tile(op, grid, per_node, elements, Some(collective), "tile.data")],
            bytes,
            startups: bytes.div_ceil(request),
            access: Access::Sequential,
            schemes: schemes_by_name(schemes(scale), request),
        }
        .cell(scale)
    })
}

/// Returns BT-IO (PSA §4.5).
pub fn p7(scale: Scale) -> Vec<Cell> {
    // (published processes, processes that run)
    let processes: &[(u32, u32)] = match (scale.place, scale.quick) {
        (Place::Simulated, _) => &[(4, 4), (16, 16), (64, 64)],
        (Place::Emulated, false) => &[(4, 4), (16, 9), (64, 25)],
        (Place::Emulated, true) => &[(16, 9)],
        (Place::Disks, _) => &[],
    };
    processes.iter().map(|&(published, processes)| btio(scale, published, processes)).collect()
}

fn btio(scale: Scale, published: u32, processes: u32) -> Cell {
    let simulated = scale.place == Place::Simulated;
    let class = if simulated { BtioClass::C } else { BtioClass::A };
    let collective = collective(scale, processes);
    let part = |op| {
        let (per_node, direction) = (per_node(scale, processes), direction(op));
        let full = Some(collective);
        let btio = Btio { class, processes, per_node, full, direction, file: "btio.data".into() };
        Part { program: Program::Btio(btio), op }
    };
    let file = class.file_bytes();
    let space = (u128::from(GIB / 2) * u128::from(file) / u128::from(BtioClass::C.file_bytes())) as u64;
    let request = collective.buffer.min(file / class.dumps() / u64::from(collective.aggregators));
    let mut labels = Labels::new();
    add_procs(&mut labels, published, ranks(scale, processes));
    Case {
        experiment: "P7",
        labels,
        tiers: tiers((6, 2), space),
        network: devices::ethernet(),
        parts: vec![part(Op::Write), part(Op::Read)],
        bytes: 2 * file,
        startups: (2 * file).div_ceil(request),
        access: Access::Sequential,
        schemes: schemes_by_name(if simulated { &SCHEMES } else { &SCHEMES[..3] }, request),
    }
    .cell(scale)
}

/// The range of P6's file that each aggregator serves, 25, 50 or 100 MiB, is a multiple of this.
const EVEN_BUFFER: u64 = 25 * MIB / 2;

/// P6 unchanged, and its variants in X2: values of the labels `space`, `waiting`, `buffers` and
/// `network`.
const CHANGES: [[&str; 4]; 9] = [
    ["1/4", "rounds", "16M", "ethernet"],
    ["whole file", "rounds", "16M", "ethernet"],
    ["1/4", "none", "16M", "ethernet"],
    ["1/4", "rounds", "even", "ethernet"],
    ["1/4", "rounds", "16M", "none"],
    ["whole file", "rounds", "16M", "none"],
    ["whole file", "none", "16M", "ethernet"],
    ["whole file", "rounds", "even", "ethernet"],
    ["1/4", "rounds", "even", "none"],
];

/// Returns what decides the results of P6: its cells with four things changed, alone and in pairs.
/// These are the SServers' space, whether rounds wait for their slowest aggregator, whether the
/// last buffer of each aggregator is as large as the others, and the network.
pub fn x2(scale: Scale) -> Vec<Cell> {
    if scale.place != Place::Simulated {
        return Vec::new();
    }
    p6(scale).into_iter().flat_map(|cell| CHANGES.map(|change| changed(cell.clone(), change))).collect()
}

fn changed(mut cell: Cell, [space, waiting, buffers, network]: [&str; 4]) -> Cell {
    cell.experiment = "X2";
    let changes = [("space", space), ("waiting", waiting), ("buffers", buffers), ("network", network)];
    cell.labels.extend(labels(changes));
    cell.waits = waiting == "rounds";
    if space == "whole file" {
        cell.storage.tiers[1].capacity_per_server *= 4;
    }
    if network == "none" {
        cell.storage.network = Network::default();
    }
    if let Program::Tile(tile) = &mut cell.parts[0].program
        && let Some(collective) = &mut tile.collective
        && buffers == "even"
    {
        collective.buffer = EVEN_BUFFER;
    }
    cell
}
