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
use stripewise_model::{ClassParams, Network, Op};
use stripewise_trace::synth::{Access, Btio, BtioClass, TwoPhase};

use super::devices;
use super::making::{self, BOTH, Case, GIB, KIB, MIB, ORDERS, access_name, add_procs, crossed, labels, name};
use crate::cell::{Cell, PUBLISHED, Part, Program, Scheme, direction};
use crate::claim::Scale;
use crate::record::{Labels, Place};

/// Number of client nodes.
const NODES: u32 = 8;

/// Returns the first `count` of the five schemes that are compared, for requests of `request`
/// bytes.
pub fn schemes(count: usize, request: u64) -> Vec<Scheme> {
    let [def, pa, psa] = PUBLISHED;
    let mut schemes = vec![def, pa, psa, Scheme::WholeRequests { request }, Scheme::Auto];
    schemes.truncate(count);
    schemes
}

fn per_node(scale: Scale, processes: u32) -> u32 {
    making::per_node(scale, processes, NODES)
}

/// Size of the shared file of IOR.
const FILE: u64 = 16 * GIB;

/// IOR on a shared file (PSA §4.2).
#[derive(Clone)]
pub struct Ior {
    pub labels: Labels,
    pub processes: u32,
    pub request: u64,
    pub op: Op,
    pub access: Access,
    /// Numbers of HServers and SServers.
    pub servers: (u32, u32),
    /// Classes of the HServers and of the SServers.
    pub classes: (ClassParams, ClassParams),
    /// All SServers' space as a fraction of the file.
    pub share: f64,
    pub network: Network,
}

impl Ior {
    /// Returns the published defaults: 16 processes, random requests of 512 KiB, four servers of
    /// each kind.
    pub fn new(op: Op, labels: Labels) -> Self {
        Self {
            labels,
            processes: 16,
            request: 512 * KIB,
            op,
            access: Access::Random,
            servers: (4, 4),
            classes: devices::published(),
            share: 0.25,
            network: devices::ethernet(),
        }
    }

    /// Returns a cell in which all processes together make `requests` requests, or some fewer.
    pub fn cell(self, scale: Scale, requests: u64, schemes: Vec<Scheme>) -> Cell {
        let each = requests / u64::from(self.processes);
        let startups = each * u64::from(self.processes);
        let bytes = startups * self.request;
        let space = (self.share * bytes as f64 / f64::from(self.servers.1)) as u64;
        let processes = (self.processes, per_node(scale, self.processes));
        Case {
            labels: self.labels,
            tiers: devices::tiers(self.servers, self.classes, space),
            network: self.network,
            parts: vec![making::ior(self.op, processes, self.request, each, self.access, None)],
            bytes,
            startups,
            access: self.access,
            schemes,
        }
        .cell(scale)
    }

    /// Returns a cell of P1 to P4 with the first `count` schemes. In the simulator it has the
    /// requests of the published file; in measured runs, those of about 256 MiB (128 MiB if quick),
    /// with a minimum for every process.
    fn published(self, scale: Scale, count: usize) -> Cell {
        let (all, schemes) = (FILE / self.request, schemes(count, self.request));
        let measured = |bytes: u64, least: u64, most: u64| {
            (bytes / self.request).clamp(least * u64::from(self.processes), most)
        };
        let measured = [measured(256 * MIB, 16, 2048), measured(128 * MIB, 12, 1024)];
        self.cell(scale, scale.of([all, all / 16], measured), schemes)
    }
}

/// Returns IOR in order and at random.
pub fn p1(scale: Scale) -> Vec<Cell> {
    let on_disks = scale.place == Place::Disks;
    // A quick run has only random access, because sequential disks are hardly slower than SSDs.
    let orders = if on_disks && scale.quick { &ORDERS[1..] } else { &ORDERS };
    crossed(&BOTH, orders, |op, access| {
        let ior = Ior { access, ..Ior::new(op, labels([("op", name(op)), ("access", access_name(access))])) };
        let mut cell = ior.published(scale, 5);
        cell.schemes.retain(|scheme| !on_disks || !matches!(scheme, Scheme::WholeRequests { .. }));
        cell
    })
}

/// Returns IOR with several numbers of processes.
pub fn p2(scale: Scale) -> Vec<Cell> {
    // (published, processes that run)
    let all: &[(u32, u32)] = &[(8, 8), (32, 32), (64, 64)];
    let processes = scale.of([all, all], [&[(8, 8), (32, 16), (64, 32)], &[(8, 8), (64, 32)]]);
    crossed(processes, &BOTH, |(published, processes), op| {
        let mut ior = Ior { processes, ..Ior::new(op, labels([("op", name(op))])) };
        add_procs(&mut ior.labels, published, ranks(scale, processes));
        ior.published(scale, scale.of([5, 5], [5, 4]))
    })
}

/// Returns the value of the label `ranks`, which only measured cells have.
fn ranks(scale: Scale, processes: u32) -> Option<u32> {
    (!scale.is_simulated()).then_some(processes)
}

/// Returns IOR with several request sizes.
pub fn p3(scale: Scale) -> Vec<Cell> {
    crossed(&[128 * KIB, MIB], &BOTH, |request, op| {
        let labels = labels([("op", name(op)), ("size", &size::format(request))]);
        Ior { request, ..Ior::new(op, labels) }.published(scale, scale.of([5, 4], [5, 4]))
    })
}

/// Returns IOR with several ratios of servers. Each SServer has the published space.
pub fn p4(scale: Scale) -> Vec<Cell> {
    crossed(&[(5, 3), (3, 5)], &BOTH, |(m, n), op| {
        let labels = labels([("op", name(op)), ("servers", &format!("{m}:{n}"))]);
        let ior = Ior { servers: (m, n), share: f64::from(n) / 16.0, ..Ior::new(op, labels) };
        ior.published(scale, scale.of([5, 4], [5, 4]))
    })
}

/// Returns HPIO with regions of different sizes (PSA §4.3).
///
/// The processes' regions are interleaved in the file, as always in HPIO if the file is not
/// contiguous. From a server's point of view, no process continues where it stopped.
pub fn p5(scale: Scale) -> Vec<Cell> {
    let all: &[u64] = &[64 * KIB, 256 * KIB, 512 * KIB];
    const PROCESSES: u32 = 32;
    crossed(scale.of([all, all], [all, &[64 * KIB, 512 * KIB]]), &BOTH, |region_size, op| {
        let each = |bytes: u64| bytes / region_size / u64::from(PROCESSES);
        let measured = [each(256 * MIB).clamp(16, 64), each(128 * MIB).clamp(12, 32)];
        let regions = scale.of([1024, 64], measured);
        let startups = u64::from(PROCESSES) * regions;
        let bytes = startups * region_size;
        let processes = (PROCESSES, per_node(scale, PROCESSES));
        Case {
            labels: labels([("op", name(op)), ("size", &size::format(region_size))]),
            // All SServers together hold a third of the file.
            tiers: devices::tiers((4, 4), devices::published(), bytes / 3 / 4),
            network: devices::ethernet(),
            parts: vec![making::hpio(op, processes, regions, region_size, 0)],
            bytes,
            startups,
            access: Access::Random,
            schemes: schemes(scale.of([5, 5], [5, 4]), region_size),
        }
        .cell(scale)
    })
}

/// Returns the collective I/O of P6 and P7. The requests that reach the servers are those of
/// ROMIO's aggregators, one on each client node, with ROMIO's default `cb_buffer_size`. With fewer
/// processes there is little data, so smaller buffers keep the number of rounds above one.
fn collective(scale: Scale, processes: u32) -> TwoPhase {
    let buffer = if scale.is_simulated() { 16 * MIB } else { MIB };
    TwoPhase { aggregators: NODES.min(processes), buffer }
}

/// Returns collective mpi-tile-io (PSA §4.4).
pub fn p6(scale: Scale) -> Vec<Cell> {
    let all: &[u32] = &[100, 200, 400];
    crossed(scale.of([all, all], [all, &[100, 400]]), &BOTH, |published, op| {
        let grid = making::tiles(scale, published);
        let processes = grid.0 * grid.1;
        let collective = collective(scale, processes);
        let bytes = u64::from(processes) * 64 * 32 * KIB;
        let request = collective.buffer.min(bytes / u64::from(NODES));
        let elements = (8, 8, 32 * KIB);
        let per_node = per_node(scale, processes);
        let mut labels = labels([("op", name(op))]);
        add_procs(&mut labels, published, ranks(scale, processes));
        Case {
            labels,
            // All SServers together hold a quarter of the file.
            tiers: devices::tiers((4, 4), devices::published(), bytes / 4 / 4),
            network: devices::ethernet(),
            parts: vec![making::tile(op, grid, per_node, elements, Some(collective), "tile.data")],
            bytes,
            startups: bytes.div_ceil(request),
            access: Access::Sequential,
            schemes: schemes(scale.of([5, 5], [5, 4]), request),
        }
        .cell(scale)
    })
}

/// Returns BT-IO (PSA §4.5).
pub fn p7(scale: Scale) -> Vec<Cell> {
    // (published processes, processes that run)
    let all: &[(u32, u32)] = &[(4, 4), (16, 16), (64, 64)];
    let processes = scale.of([all, all], [&[(4, 4), (16, 9), (64, 25)], &[(16, 9)]]);
    processes.iter().map(|&(published, processes)| btio(scale, published, processes)).collect()
}

fn btio(scale: Scale, published: u32, processes: u32) -> Cell {
    let class = if scale.is_simulated() { BtioClass::C } else { BtioClass::A };
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
        labels,
        tiers: devices::tiers((6, 2), devices::published(), space),
        network: devices::ethernet(),
        parts: vec![part(Op::Write), part(Op::Read)],
        bytes: 2 * file,
        startups: (2 * file).div_ceil(request),
        access: Access::Sequential,
        schemes: schemes(scale.of([5, 5], [3, 3]), request),
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
    if !scale.is_simulated() {
        return Vec::new();
    }
    p6(scale).into_iter().flat_map(|cell| CHANGES.map(|change| changed(cell.clone(), change))).collect()
}

fn changed(mut cell: Cell, [space, waiting, buffers, network]: [&str; 4]) -> Cell {
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
