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
use crate::record::Labels;

/// Number of client nodes.
const NODES: u32 = 32;

/// Stripe size in bytes of the original file and of 1-DH copies.
const STRIPE: u64 = 64 * KIB;

/// Fraction of the data that the SServers may hold.
const SHARE: f64 = 0.3;

/// What a cache admits.
type Admits = (CacheMode, CacheAdmission);

const NSCA: Admits = (CacheMode::Nsca, CacheAdmission::AsPrinted);
const SCA: Admits = (CacheMode::Sca, CacheAdmission::AsPrinted);
const LCP: Admits = (CacheMode::Sla, CacheAdmission::AsPrinted);
const LCP_BALANCED: Admits = (CacheMode::Sla, CacheAdmission::Balanced);

/// The caches of S1; those that the paper compares in the rest of §5.2, and those of §5.3, each
/// with `LCP balanced`; and those of S7. All are compared with stripes without a cache.
const ADMISSION: &[Admits] = &[NSCA, SCA, LCP_BALANCED];
const SELECTIVE: &[Admits] = &[SCA, LCP_BALANCED];
const PLACED: &[Admits] = &[SCA, LCP, LCP_BALANCED];
const DECIDING: &[Admits] = &[LCP];

/// A cell without its program.
struct Base {
    scale: Scale,
    op: Op,
    labels: Labels,
    /// Numbers of HServers and SServers.
    servers: (u32, u32),
    /// Fraction of all data that all SServers together may hold.
    share: f64,
    caches: &'static [Admits],
}

impl Base {
    /// Returns the published defaults.
    fn new(scale: Scale, op: Op, caches: &'static [Admits]) -> Self {
        let labels = labels([("op", name(op))]);
        Self { scale, op, labels, servers: (8, 4), share: SHARE, caches }
    }

    fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Returns IOR with random requests (SLA §5.2.1). In the simulator each process accesses as
    /// many bytes as published. In measured runs the number and the bytes of all requests are
    /// limited, with a minimum per process.
    fn ior(self, processes: u32, request: u64) -> Cell {
        let all = EACH / request;
        let measured = |requests: u64, bytes: u64, least: u64| {
            (requests.min(bytes / request) / u64::from(processes)).max(least)
        };
        let measured = [measured(4096, 384 * MIB, 8), measured(2048, 192 * MIB, 4)];
        let each = self.scale.of([all, (all / 16).max(32)], measured);
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
        let ranks = (!self.scale.is_simulated() && published > 32).then_some(32);
        add_procs(&mut self.labels, published, ranks);
        self.ior(ranks.unwrap_or(published), 512 * KIB)
    }

    /// Returns HPIO with this many bytes between regions (SLA §5.2.2).
    fn hpio(self, spacing: u64) -> Cell {
        let regions = self.scale.of([4096, 256], [128, 64]);
        let (processes, region_size) = ((32, per_node(self.scale, 32)), 16 * KIB);
        let part = making::hpio(self.op, processes, regions, region_size, spacing);
        self.label("spacing", &size::format(spacing)).cell(part, 32 * regions, region_size)
    }

    /// Returns mpi-tile-io (SLA §5.2.3).
    fn tile(mut self, published: u32) -> Cell {
        let grid = making::tiles(self.scale, published);
        let processes = grid.0 * grid.1;
        // On a small machine tiles have fewer rows. Each row is a request of 20 elements of 64 KiB.
        let measured = 200 / u64::from(processes).max(20);
        let rows = self.scale.of([20, 8], [measured, measured]);
        add_procs(&mut self.labels, published, (!self.scale.is_simulated()).then_some(processes));
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
        let capacity_per_server = pages.max(1) * (4 * KIB);
        // Requests larger than a stripe are divided over the HServers; smaller ones lie on one
        // server.
        let touched = request.div_ceil(STRIPE).min(hservers);
        let cache = |&(mode, admission): &Admits| {
            let second_run = self.op == Op::Read;
            Scheme::Cache { mode, admission, stripe: STRIPE, capacity_per_server, second_run }
        };
        let stock = Scheme::Striped { tier: "hdd", stripe: STRIPE };
        Case {
            labels: self.labels,
            tiers: devices::tiers(self.servers, devices::published(), UNLIMITED),
            network: devices::ethernet_connected(),
            parts: vec![part],
            bytes,
            startups: (requests * touched).div_ceil(hservers),
            access: Access::Random,
            schemes: std::iter::once(stock).chain(self.caches.iter().map(cache)).collect(),
        }
        .cell(self.scale)
    }
}

fn per_node(scale: Scale, processes: u32) -> u32 {
    making::per_node(scale, processes, NODES)
}

/// Bytes that each process of IOR accesses.
const EACH: u64 = 512 * MIB;

/// Returns the values of a parameter; `few` of them in a quick measured run.
fn values<T>(scale: Scale, all: &'static [T], few: &'static [T]) -> &'static [T] {
    scale.of([all, all], [all, few])
}

fn ops(scale: Scale) -> &'static [Op] {
    values(scale, &BOTH, &[Op::Write])
}

/// The request sizes of S1 and S6.
const SIZES: [u64; 4] = [8 * KIB, 64 * KIB, 512 * KIB, 4 * MIB];

/// The published numbers of processes of S2 and S6.
const PROCESSES: [u32; 3] = [8, 32, 128];

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
    let mut cells = crossed(&SIZES, &BOTH, |request, op| {
        Base::new(scale, op, ADMISSION).label("size", &size::format(request)).ior(32, request)
    });
    // The paper's figures on reads are for 8 KiB.
    let is_wanted = |cell: &Cell| cell.parts[0].op == Op::Write || cell.labels["size"] == "8K";
    cells.retain(|cell| !scale.quick || scale.is_simulated() || is_wanted(cell));
    cells
}

/// Returns IOR with several numbers of processes.
pub fn s2(scale: Scale) -> Vec<Cell> {
    crossed(&PROCESSES, ops(scale), |procs, op| Base::new(scale, op, SELECTIVE).ior_by_processes(procs))
}

/// Returns IOR with the space of the cache as in the paper's Table 4, then with several numbers of
/// SServers.
pub fn s3(scale: Scale) -> Vec<Cell> {
    let base = |op| Base::new(scale, op, SELECTIVE);
    let spaces = values(scale, &[2, 4, 6], &[2, 6]);
    let spaced = crossed(spaces, &[Op::Write], |gib: u64, op| {
        let share = (gib * GIB) as f64 / (32 * EACH) as f64;
        Base { share, ..base(op) }.label("space", &format!("{gib}G")).ior(32, 512 * KIB)
    });
    let servers = values(scale, &[1, 2, 3, 4, 5, 6], &[2, 6]);
    let with = crossed(servers, ops(scale), |servers: u32, op| {
        Base { servers: (8, servers), ..base(op) }.label("sservers", &servers.to_string()).ior(32, 512 * KIB)
    });
    [spaced, with].concat()
}

/// Returns HPIO.
pub fn s4(scale: Scale) -> Vec<Cell> {
    crossed(spacings(scale), ops(scale), |spacing, op| Base::new(scale, op, SELECTIVE).hpio(spacing))
}

/// Returns mpi-tile-io.
pub fn s5(scale: Scale) -> Vec<Cell> {
    crossed(tiles(scale), &BOTH, |procs, op| Base::new(scale, op, SELECTIVE).tile(procs))
}

/// Returns the writes of S1, S2, S4 and S5, with LCP.
pub fn s6(scale: Scale) -> Vec<Cell> {
    let base = |part: &str| Base::new(scale, Op::Write, PLACED).label("part", part);
    let size = |request| base("sizes").label("size", &size::format(request)).ior(32, request);
    let sized = SIZES.into_iter().map(size);
    let by_processes = PROCESSES.into_iter().map(|procs| base("processes").ior_by_processes(procs));
    let spaced = spacings(scale).iter().map(|&spacing| base("HPIO").hpio(spacing));
    let tiled = tiles(scale).iter().map(|&procs| base("tile-IO").tile(procs));
    sized.chain(by_processes).chain(spaced).chain(tiled).collect()
}

/// Returns writes that all miss, which show the cost of deciding (SLA §5.4.2).
pub fn s7(scale: Scale) -> Vec<Cell> {
    let sizes = values(scale, &[8 * KIB, 16 * KIB, 32 * KIB], &[8 * KIB, 32 * KIB]);
    crossed(sizes, &[Op::Write], |request, op| {
        // All processes together write 10 GiB.
        let all = 10 * GIB / request / 32;
        let each = scale.of([all, all / 16], [128, 64]);
        // The cache has one page on each SServer. It is full at once, and everything else misses.
        let base = Base { share: 0.0, ..Base::new(scale, op, DECIDING) };
        base.label("size", &size::format(request)).ior_of(32, request, each)
    })
}
