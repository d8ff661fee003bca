//! Experiments on layouts and replicas (CIL §6): C1 to C4.
//!
//! In the simulator: 16 servers on Ethernet with 48 client nodes, and 8 servers on InfiniBand with
//! 8 client nodes, with the values of CIL's Table 4. Measured: 8 servers without a network. They
//! are slowed by a factor that is the same for all schemes of a cell, so that the time is spent in
//! the servers and not in the programs.

use stripewise_cluster::size;
use stripewise_model::{Network, Op};
use stripewise_random::Random;
use stripewise_trace::synth::{Access, TwoPhase};

use super::devices::{self, UNLIMITED};
use super::making::{self, BOTH, KIB, MIB, ORDERS, access_name, labels, name, two_digits};
use crate::cell::{Cell, Part, Scheme, Servers, Storage};
use crate::claim::Scale;
use crate::record::Labels;

/// CIL's testbed, or its replacement in measured runs.
#[derive(Clone, Copy, Debug)]
struct Bed {
    /// Value of the label `network`; `None` without a network.
    network: Option<&'static str>,
    servers: u32,
    clients: u32,
    parameters: Network,
    /// CIL's numbers of processes.
    procs: &'static [u32],
    /// These, and some between them.
    more_procs: &'static [u32],
}

/// Returns the testbeds of a scale; the simulator has both networks.
fn beds(scale: Scale) -> Vec<Bed> {
    if !scale.is_simulated() {
        let procs = &[1, 2, 4, 8, 16, 32];
        let parameters = Network::default();
        return vec![Bed { network: None, servers: 8, clients: 1, parameters, procs, more_procs: procs }];
    }
    vec![
        Bed {
            network: Some("Ethernet"),
            servers: 16,
            clients: 48,
            parameters: devices::ethernet(),
            procs: &[1, 2, 4, 8, 16, 32, 48, 96],
            more_procs: &[1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96],
        },
        Bed {
            network: Some("InfiniBand"),
            servers: 8,
            clients: 8,
            parameters: Network { establish_s: 2e-4, per_byte_s: 1.0 / (1000.0 * MIB as f64) },
            procs: &[1, 2, 4, 8, 16, 32, 64],
            more_procs: &[1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64],
        },
    ]
}

impl Bed {
    /// Returns a cell on CIL's disks, slowed by this factor.
    fn cell(&self, mut labels: Labels, factor: f64, parts: Vec<Part>, schemes: &[Scheme]) -> Cell {
        labels.extend(self.network.map(|network| ("network".to_owned(), network.to_owned())));
        let hdd = Servers {
            name: "hdd",
            count: self.servers,
            class: devices::slowed(&devices::hdd(devices::RANDOM_S), factor),
            capacity_per_server: UNLIMITED,
        };
        let storage = Storage { tiers: vec![hdd], network: self.parameters };
        Cell { experiment: "", labels, storage, parts, waits: true, schemes: schemes.to_vec() }
    }

    /// Returns c, the number of processes per client node.
    fn per_node(&self, procs: u32) -> u32 {
        procs.div_ceil(self.clients)
    }

    /// Returns the factor by which to slow the servers for `procs` processes with `each` requests
    /// of `size` bytes. With it, the best of the three layouts takes about the first of two times,
    /// but no layout takes more than about the second. The factor is 1 in the simulator, and
    /// rounded to two digits elsewhere.
    fn slowing(&self, scale: Scale, (procs, each): (u32, u64), size: u64, access: Access) -> f64 {
        if scale.is_simulated() {
            return 1.0;
        }
        let (best_s, worst_s) = if scale.quick { (0.5, 2.0) } else { (1.0, 5.0) };
        let disk = devices::hdd(devices::RANDOM_S).read;
        let service = if access == Access::Random { disk.random } else { disk.sequential };
        // Times of layouts that serve a request by k servers.
        let layout_s = [self.servers, 2, 1].map(|k| {
            let busy_s = f64::from(procs) * each as f64 * f64::from(k) * service.busy_s(size / u64::from(k));
            busy_s / f64::from(self.servers.min(procs * k))
        });
        let least = layout_s.iter().copied().fold(f64::INFINITY, f64::min);
        let most = layout_s.iter().copied().fold(0.0, f64::max);
        two_digits((best_s / least).min(worst_s / most))
    }

    /// Returns IOR with one file per process, as everywhere in CIL §6.
    fn ior(&self, op: Op, procs: u32, transfer: u64, each: u64, access: Access, file: String) -> Part {
        making::ior(op, (procs, self.per_node(procs)), transfer, each, access, Some(file))
    }

    /// Returns two-phase I/O with an aggregator on every client node; with four aggregators if
    /// there is one node.
    fn collective(&self, procs: u32) -> TwoPhase {
        let aggregators = procs.min(if self.clients > 1 { self.clients } else { 4 });
        TwoPhase { aggregators, buffer: 16 * MIB }
    }

    /// Returns the cells of C1 and C3 with one number of processes and one request size. `each` is
    /// the number of requests per process in the simulator. In measured runs there are enough of
    /// them, but at most 256M in all.
    fn ior_cells(&self, scale: Scale, (procs, each): (u32, u64), size: u64, schemes: &[Scheme]) -> Vec<Cell> {
        let p = u64::from(procs);
        let measured = (256 * MIB / (p * size)).clamp(2, (128 / p).max(16));
        let each = scale.of([each, each], [measured, measured]);
        making::crossed(&ORDERS, &BOTH, |access, op| {
            let labels = labels([
                ("procs", &procs.to_string()),
                ("size", &size::format(size)),
                ("access", access_name(access)),
                ("op", name(op)),
            ]);
            let factor = self.slowing(scale, (procs, each), size, access);
            let part = self.ior(op, procs, size, each, access, "ior".to_owned());
            self.cell(labels, factor, vec![part], schemes)
        })
    }
}

/// Returns 1-DH over all servers, 2-D in groups of two, and 1-DV on one server.
fn three_layouts() -> Vec<Scheme> {
    ["1-DH", "2-D", "1-DV"].map(|name| Scheme::Candidate(name.to_owned())).into()
}

/// Returns schemes, and replicas in all of them.
fn and_replicas(schemes: Vec<Scheme>) -> Vec<Scheme> {
    [schemes.clone(), vec![Scheme::Replicas(schemes)]].concat()
}

/// The published request sizes in KiB: 4K to 4M.
const PUBLISHED_KIB: &[u64] = &[4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096];

/// Returns IOR under three layouts, of which a model picks the best one (CIL §6.2).
pub fn c1(scale: Scale) -> Vec<Cell> {
    let few: &[u64] = &[4, 64, 256, 1024, 4096];
    let sizes = scale.of([PUBLISHED_KIB, few], [&[4, 16, 64, 128, 256, 512, 1024, 4096], few]);
    let mut cells = Vec::new();
    for bed in beds(scale) {
        let procs = scale.of([bed.more_procs, &[1, 8, 32]], [bed.procs, &[1, 4, 16, 32]]);
        for &procs in procs {
            for size in sizes.iter().map(|size| size * KIB) {
                let each = (64 * MIB / size).min((4096 / u64::from(procs)).max(32));
                cells.extend(bed.ior_cells(scale, (procs, each), size, &three_layouts()));
            }
        }
    }
    cells
}

/// Returns mixes of runs, with one layout for all files of a mix (CIL §6.3).
pub fn c2(scale: Scale) -> Vec<Cell> {
    let mut schemes = three_layouts();
    schemes.extend([Scheme::LeastCost(three_layouts()), Scheme::Planner("overall")]);
    let mut cells = Vec::new();
    for bed in beds(scale) {
        for mix in 1..=scale.of([10, 4], [4, 2]) {
            cells.extend(ORDERS.map(|access| {
                let labels = labels([("mix", &mix.to_string()), ("access", access_name(access))]);
                let factor = if scale.is_simulated() { 1.0 } else { 6.0 };
                bed.cell(labels, factor, runs_of_mix(&bed, mix, access, scale.is_simulated()), &schemes)
            }));
        }
    }
    cells
}

/// Returns the runs of a mix. They are the same for both kinds of access.
fn runs_of_mix(bed: &Bed, mix: u64, access: Access, simulated: bool) -> Vec<Part> {
    let mut random = Random(mix);
    let runs = 6 + random.below(5);
    let procs: Vec<u32> = bed.procs.iter().copied().filter(|&procs| simulated || procs <= 16).collect();
    let run = |run| {
        let op = if random.below(2) == 0 { Op::Read } else { Op::Write };
        if random.below(3) == 0 {
            let grid =
                [(2, 2), (4, 2), (4, 4), (8, 4), (8, 8)][random.below(if simulated { 5 } else { 3 }) as usize];
            let procs = grid.0 * grid.1;
            let elements = ((MIB << random.below(3)) / 64, 64, 1);
            let collective = (random.below(2) == 0).then(|| bed.collective(procs));
            making::tile(op, grid, bed.per_node(procs), elements, collective, &format!("tiles{run}"))
        } else {
            let procs = procs[random.below(procs.len() as u64) as usize];
            let size = (4 * KIB) << random.below(11);
            let (moved, most) = if simulated { (8 * MIB, 256) } else { (2 * MIB, 64) };
            let each = (moved / size).clamp(2, most);
            bed.ior(op, procs, size, each, access, format!("ior{run}"))
        }
    };
    (0..runs).map(run).collect()
}

/// Returns IOR with replicas in different layouts, where the cheapest serves each request (CIL
/// §6.4).
pub fn c3(scale: Scale) -> Vec<Cell> {
    let schemes = and_replicas(three_layouts());
    let measured: &[u64] = &[16, 64, 256, 1024];
    let sizes = scale.of([PUBLISHED_KIB, &[64, 1024]], [measured, measured]);
    let mut cells = Vec::new();
    for bed in beds(scale) {
        let procs = scale.of([bed.procs, &[1, 8]], [&[1, 2, 4, 8, 16], &[1, 4, 16]]);
        for &procs in procs {
            for size in sizes.iter().map(|size| size * KIB) {
                cells.extend(bed.ior_cells(scale, (procs, 16 * MIB / size), size, &schemes));
            }
        }
    }
    cells
}

/// Returns tile-IO with replicas of a shared file in different stripes (CIL §6.4).
pub fn c4(scale: Scale) -> Vec<Cell> {
    let stripes = [16 * KIB, 256 * KIB, 4 * MIB].map(|stripe| Scheme::Striped { tier: "hdd", stripe });
    let schemes = and_replicas(stripes.into());
    let tiles: &[(u64, u64)] = match (scale.is_simulated(), scale.quick) {
        (true, true) => &[(1024, 1024), (2048, 2048)],
        (true, false) => &[(1024, 1024), (1024, 2048), (2048, 2048)],
        (false, _) => &[(16, 16 * KIB), (64, 16 * KIB)],
    };
    let grids: &[(u32, u32)] = match (scale.is_simulated(), scale.quick) {
        (true, true) => &[(2, 2), (8, 8)],
        (true, false) => &[(2, 2), (4, 4), (8, 8), (16, 8), (16, 16)],
        (false, _) => &[(2, 2), (4, 4)],
    };
    let mut cells = Vec::new();
    for bed in beds(scale) {
        for &grid in grids {
            let procs = grid.0 * grid.1;
            for &(rows, row) in tiles {
                let bytes = rows * row * u64::from(procs);
                let factor = c4_slowing(scale, &bed, bytes);
                let collective = bed.collective(procs);
                for (calls, collective) in [("collective", Some(collective)), ("independent", None)] {
                    let labels = labels([
                        ("procs", &procs.to_string()),
                        ("size", &size::format(rows * row)),
                        ("calls", calls),
                    ]);
                    let elements = (row, rows, 1);
                    let part = making::tile(Op::Read, grid, bed.per_node(procs), elements, collective, "tiles");
                    cells.push(bed.cell(labels, factor, vec![part], &schemes));
                }
            }
        }
    }
    cells
}

/// Returns the factor by which to slow the servers, so that the bytes of all tiles take 0.8 s
/// (0.3 s if quick) if all servers work all the time. The factor is 1 in the simulator.
fn c4_slowing(scale: Scale, bed: &Bed, bytes: u64) -> f64 {
    let disk = devices::hdd(devices::RANDOM_S).read.random;
    let alone_s = disk.per_byte_s * bytes as f64 / f64::from(bed.servers);
    scale.of([1.0; 2], [0.8, 0.3].map(|run_s| two_digits(run_s / alone_s)))
}
