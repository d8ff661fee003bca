//! Experiments on the cache (SLA §5): S1 to S7.
//!
//! There are 32 client nodes, eight HServers and four SServers. The files lie on the HServers in
//! stripes of 64 KiB, and the SServers may hold 30 % of them. Writes are a first run. Reads are a
//! second run, after the prefetch queue of the first run has been worked off.
//!
//! NSCA, SCA and LCP admit as SLA's Algorithm 1 is printed. `LCP balanced` is an addition: it
//! admits the requests that keep both kinds of servers busy
//! (`docs/decisions/0008-balanced-admission.md`).
//!
//! Simulated cells have Ethernet's bandwidth and persistent connections; SLA's model has no
//! network.
//!
//! **Scaled down** as in the experiments on varied stripes ([`super::psa`]).

use stripewise_cluster::{CacheAdmission, CacheMode, size};
use stripewise_model::Op;
use stripewise_trace::synth::Access;

use super::devices::{self, UNLIMITED};
use super::making::{self, BOTH, Case, GIB, KIB, MIB, add_procs, crossed, labels, name};
use crate::cell::{Cell, Part, Scheme};
use crate::claim::Scale;
use crate::record::{Labels, Place};

/// Number of client nodes.
const NODES: u32 = 32;

/// Stripe size in bytes of the original file and of 1-DH copies.
const STRIPE: u64 = 64 * KIB;

/// Fraction of the data that the SServers may hold.
const SHARE: f64 = 0.3;

/// Name in records of the scheme without a cache.
const STOCK: &str = "stripe 64K";

/// The schemes of S1; those that the paper compares in the rest of §5.2, and those of §5.3, each
/// with `LCP balanced`; and those of S7.
const ADMISSION: [&str; 4] = [STOCK, "NSCA", "SCA", "LCP balanced"];
const SELECTIVE: [&str; 3] = [STOCK, "SCA", "LCP balanced"];
const PLACED: [&str; 4] = [STOCK, "SCA", "LCP", "LCP balanced"];
const DECIDING: [&str; 2] = [STOCK, "LCP"];

/// A cell without its program.
struct Of {
    experiment: &'static str,
    scale: Scale,
    op: Op,
    labels: Labels,
    /// Numbers of HServers and SServers.
    servers: (u32, u32),
    /// Fraction of all data that all SServers together may hold.
    share: f64,
    schemes: &'static [&'static str],
}

impl Of {
    /// Returns the published defaults.
    fn new(experiment: &'static str, scale: Scale, op: Op, schemes: &'static [&'static str]) -> Self {
        let labels = labels([("op", name(op))]);
        Self { experiment, scale, op, labels, servers: (8, 4), share: SHARE, schemes }
    }

    fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Returns IOR with random requests (SLA §5.2.1).
    fn ior(self, processes: u32, request: u64) -> Cell {
        let each = each(self.scale, request, processes);
        self.ior_of(processes, request, each)
    }

    fn ior_of(self, processes: u32, request: u64, each: u64) -> Cell {
        let nodes = (processes, per_node(self.scale, processes));
        let part = making::ior(self.op, nodes, request, each, Access::Random, None);
        self.cell(part, each * u64::from(processes), request)
    }

    /// Returns IOR with requests of 512 KiB and the published number of processes as a label.
    /// Measured runs use fewer processes, because two cores run them.
    fn ior_by_processes(mut self, published: u32) -> Cell {
        let ranks = (self.scale.place != Place::Simulated && published > 32).then_some(32);
        add_procs(&mut self.labels, published, ranks);
        self.ior(ranks.unwrap_or(published), 512 * KIB)
    }

    /// Returns HPIO with this many bytes between regions (SLA §5.2.2).
    fn hpio(self, spacing: u64) -> Cell {
        let regions = match (self.scale.place, self.scale.quick) {
            (Place::Simulated, false) => 4096,
            (Place::Simulated, true) => 256,
            (_, true) => 64,
            (_, false) => 128,
        };
        let (processes, region_size) = ((32, per_node(self.scale, 32)), 16 * KIB);
        let part = making::hpio(self.op, processes, regions, region_size, spacing);
        self.label("spacing", &size::format(spacing)).cell(part, 32 * regions, region_size)
    }

    /// Returns mpi-tile-io (SLA §5.2.3).
    fn tile(mut self, published: u32) -> Cell {
        let full = self.scale.place == Place::Simulated;
        let grid = match (published, full) {
            (100, true) => (10, 10),
            (200, true) => (20, 10),
            (300, true) => (20, 15),
            (400, true) => (20, 20),
            (100, false) => (3, 3),
            (200, false) => (6, 3),
            (300, false) => (6, 5),
            _ => (6, 6),
        };
        let processes = grid.0 * grid.1;
        // On a small machine tiles have fewer rows. Each row is a request of 20 elements of 64 KiB.
        let rows = match (full, self.scale.quick) {
            (true, false) => 20,
            (true, true) => 8,
            (false, _) => 200 / u64::from(processes).max(20),
        };
        add_procs(&mut self.labels, published, (!full).then_some(processes));
        let elements = (20, rows, 64 * KIB);
        let part = making::tile(self.op, grid, per_node(self.scale, processes), elements, None, "tile.data");
        self.cell(part, u64::from(processes) * rows, 20 * 64 * KIB)
    }

    /// Returns the cell of a program with this many requests of one size.
    fn cell(self, part: Part, requests: u64, request: u64) -> Cell {
        let bytes = requests * request;
        let (hservers, sservers) = (u64::from(self.servers.0), f64::from(self.servers.1));
        // The cache on each SServer has whole pages, and at least one.
        let pages = (self.share * bytes as f64 / sservers) as u64 / (4 * KIB);
        let capacity = pages.max(1) * (4 * KIB);
        // Requests larger than a stripe are divided over the HServers; smaller ones lie on one
        // server.
        let touched = request.div_ceil(STRIPE).min(hservers);
        let scheme = |name: &&'static str| by_name(name, capacity, self.op == Op::Read);
        Case {
            experiment: self.experiment,
            labels: self.labels,
            tiers: devices::tiers(self.servers, devices::published(), UNLIMITED),
            network: devices::ethernet_connected(),
            parts: vec![part],
            bytes,
            startups: (requests * touched).div_ceil(hservers),
            access: Access::Random,
            schemes: self.schemes.iter().map(scheme).collect(),
        }
        .cell(self.scale)
    }
}

/// Returns the scheme with this name in records.
fn by_name(scheme: &str, capacity_per_server: u64, second_run: bool) -> Scheme {
    let cache =
        |mode, admission| Scheme::Cache { mode, admission, stripe: STRIPE, capacity_per_server, second_run };
    match scheme {
        "NSCA" => cache(CacheMode::Nsca, CacheAdmission::AsPrinted),
        "SCA" => cache(CacheMode::Sca, CacheAdmission::AsPrinted),
        "LCP" => cache(CacheMode::Sla, CacheAdmission::AsPrinted),
        "LCP balanced" => cache(CacheMode::Sla, CacheAdmission::Balanced),
        _ => Scheme::Striped { tier: "hdd", stripe: STRIPE },
    }
}

fn per_node(scale: Scale, processes: u32) -> u32 {
    making::per_node(scale, processes, NODES)
}

/// Bytes that each process of IOR accesses.
const EACH: u64 = 512 * MIB;

/// Returns the number of requests per process: the published number in the simulator; in measured
/// runs it is limited by the number and bytes of all requests, with a minimum per process.
fn each(scale: Scale, request: u64, processes: u32) -> u64 {
    let all = EACH / request;
    let measured = |requests: u64, bytes: u64, least: u64| {
        (requests.min(bytes / request) / u64::from(processes)).max(least)
    };
    match (scale.place, scale.quick) {
        (Place::Simulated, false) => all,
        (Place::Simulated, true) => (all / 16).max(32),
        (_, true) => measured(2048, 192 * MIB, 4),
        (_, false) => measured(4096, 384 * MIB, 8),
    }
}

/// Returns whether only a few cells are run.
fn few(scale: Scale) -> bool {
    scale.place == Place::Emulated && scale.quick
}

/// Returns the values of a parameter at a scale; none on disks, where nothing is run.
fn values<T>(scale: Scale, all: &'static [T], if_few: &'static [T]) -> &'static [T] {
    match scale.place {
        Place::Disks => &[],
        _ if few(scale) => if_few,
        _ => all,
    }
}

fn ops(scale: Scale) -> &'static [Op] {
    if few(scale) { &[Op::Write] } else { &BOTH }
}

/// The request sizes of S1 and S6.
fn sizes(scale: Scale) -> &'static [u64] {
    const SIZES: &[u64] = &[8 * KIB, 64 * KIB, 512 * KIB, 4 * MIB];
    values(scale, SIZES, SIZES)
}

/// The published numbers of processes of S2 and S6.
fn processes(scale: Scale) -> &'static [u32] {
    values(scale, &[8, 32, 128], &[8, 32, 128])
}

/// The bytes between regions of S4 and S6.
fn spacings(scale: Scale) -> &'static [u64] {
    values(scale, &[0, KIB, 2 * KIB, 4 * KIB], &[0, 4 * KIB])
}

/// The published numbers of processes of S5 and S6.
fn tiles(scale: Scale) -> &'static [u32] {
    values(scale, &[100, 200, 300, 400], &[100, 400])
}

/// Returns IOR with several request sizes.
pub fn s1(scale: Scale) -> Vec<Cell> {
    let cells = crossed(sizes(scale), &BOTH, |request, op| {
        Of::new("S1", scale, op, &ADMISSION).label("size", &size::format(request)).ior(32, request)
    });
    // The paper's figures on reads are for 8 KiB.
    let is_wanted = |cell: &Cell| cell.parts[0].op == Op::Write || cell.labels["size"] == "8K";
    cells.into_iter().filter(|cell| !few(scale) || is_wanted(cell)).collect()
}

/// Returns IOR with several numbers of processes.
pub fn s2(scale: Scale) -> Vec<Cell> {
    crossed(processes(scale), ops(scale), |procs, op| {
        Of::new("S2", scale, op, &SELECTIVE).ior_by_processes(procs)
    })
}

/// Returns IOR with the space of the cache as in the paper's Table 4, then with several numbers of
/// SServers.
pub fn s3(scale: Scale) -> Vec<Cell> {
    let of = |op| Of::new("S3", scale, op, &SELECTIVE);
    let spaces = values(scale, &[2, 4, 6], &[2, 6]);
    let spaced = crossed(spaces, &[Op::Write], |gib: u64, op| {
        let share = (gib * GIB) as f64 / (32 * EACH) as f64;
        Of { share, ..of(op) }.label("space", &format!("{gib}G")).ior(32, 512 * KIB)
    });
    let servers = values(scale, &[1, 2, 3, 4, 5, 6], &[2, 6]);
    let with = crossed(servers, ops(scale), |servers: u32, op| {
        Of { servers: (8, servers), ..of(op) }.label("sservers", &servers.to_string()).ior(32, 512 * KIB)
    });
    [spaced, with].concat()
}

/// Returns HPIO.
pub fn s4(scale: Scale) -> Vec<Cell> {
    crossed(spacings(scale), ops(scale), |spacing, op| Of::new("S4", scale, op, &SELECTIVE).hpio(spacing))
}

/// Returns mpi-tile-io.
pub fn s5(scale: Scale) -> Vec<Cell> {
    crossed(tiles(scale), &BOTH, |procs, op| Of::new("S5", scale, op, &SELECTIVE).tile(procs))
}

/// Returns the writes of S1, S2, S4 and S5, with LCP.
pub fn s6(scale: Scale) -> Vec<Cell> {
    let of = |part: &str| Of::new("S6", scale, Op::Write, &PLACED).label("part", part);
    let size = |&request: &u64| of("sizes").label("size", &size::format(request)).ior(32, request);
    let sized = sizes(scale).iter().map(size);
    let by_processes = processes(scale).iter().map(|&procs| of("processes").ior_by_processes(procs));
    let spaced = spacings(scale).iter().map(|&spacing| of("HPIO").hpio(spacing));
    let tiled = tiles(scale).iter().map(|&procs| of("tile-IO").tile(procs));
    sized.chain(by_processes).chain(spaced).chain(tiled).collect()
}

/// Returns writes that all miss, which show the cost of deciding (SLA §5.4.2).
pub fn s7(scale: Scale) -> Vec<Cell> {
    let sizes = values(scale, &[8 * KIB, 16 * KIB, 32 * KIB], &[8 * KIB, 32 * KIB]);
    crossed(sizes, &[Op::Write], |request, op| {
        // All processes together write 10 GiB.
        let each = match (scale.place, scale.quick) {
            (Place::Simulated, false) => 10 * GIB / request / 32,
            (Place::Simulated, true) => 10 * GIB / request / 32 / 16,
            (_, true) => 64,
            (_, false) => 128,
        };
        // The cache has one page on each SServer. It is full at once, and everything else misses.
        let of = Of { share: 0.0, ..Of::new("S7", scale, op, &DECIDING) };
        of.label("size", &size::format(request)).ior_of(32, request, each)
    })
}
