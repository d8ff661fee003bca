//! X1, an addition to the papers' experiments: when PSA beats PA (`docs/psa-and-pa.md`). It varies
//! one parameter at a time, starting from P1.
//!
//! The workload is IOR with random requests to a shared file of 4 GiB (a quarter of P1's). The
//! SServers hold a quarter of it. There is no network time: only FIFO servers are simulated. The
//! SSD is that of the worked example in `docs/papers.md`, and in the series `ssd` that of the P
//! experiments.
//!
//! `PSA <120K,8K>` is the result that PSA prints for P1: a stripe so small that 1 GB of an SServer
//! is not used up.

use stripewise_model::{ClassParams, Network, Op};
use stripewise_trace::synth::Access;

use super::devices;
use super::making::{self, GIB, KIB, MIB, and, figure, labels, name};
use crate::cell::{Cell, Scheme, Servers, Storage};
use crate::claim::{Experiment, Figure, Paper, Scale};
use crate::record::{Labels, Place};

/// The stripes that PSA publishes for P1.
const PUBLISHED: &str = "PSA <120K,8K>";

/// The schemes that are compared.
const SCHEMES: [&str; 6] = ["DEF", "PA", "PSA", PUBLISHED, "whole requests", "auto"];

/// One cell: the varied parameter, and the others.
#[derive(Clone)]
struct Of {
    labels: Labels,
    processes: u32,
    request: u64,
    op: Op,
    servers: (u32, u32),
    /// The disk's startup of a random access, in seconds.
    startup_s: f64,
    ssd: ClassParams,
    /// The SServers' space as a fraction of the file.
    share: f64,
}

impl Of {
    fn base(series: &str, value: &str) -> Self {
        Self {
            labels: labels([("series", series), ("value", value)]),
            processes: 16,
            request: 512 * KIB,
            op: Op::Read,
            servers: (4, 4),
            startup_s: devices::RANDOM_S,
            ssd: devices::ssd_of_the_worked_example(),
            share: 0.25,
        }
    }

    fn cell(self, scale: Scale) -> Cell {
        let bytes = match (scale.place, scale.quick) {
            (Place::Simulated, false) => 4 * GIB,
            (Place::Simulated, true) => GIB,
            (_, true) => 128 * MIB,
            (_, false) => 256 * MIB,
        };
        let each = bytes / self.request / u64::from(self.processes);
        let bytes = each * u64::from(self.processes) * self.request;
        let space = (self.share * bytes as f64 / f64::from(self.servers.1)) as u64;
        let hdd = devices::hdd(self.startup_s);
        let tier = |name, count, class: ClassParams, capacity_per_server| Servers {
            name,
            count,
            class,
            capacity_per_server,
        };
        let published = tier("hdd", self.servers.0, hdd, 1 << 50);
        let requests = bytes / self.request;
        let factor = making::slowing(scale, &published, self.op, Access::Random, bytes, requests);
        let slow = |class: &ClassParams| devices::slowed(class, factor);
        let nodes = if scale.place == Place::Simulated { self.processes.div_ceil(8) } else { self.processes };
        let request = self.request;
        let scheme = |name: &&'static str| match *name {
            "whole requests" => Scheme::WholeRequests { request },
            PUBLISHED => Scheme::Candidate(PUBLISHED.into()),
            "DEF" => Scheme::Planner("def"),
            "PA" => Scheme::Planner("pa"),
            "PSA" => Scheme::Planner("psa"),
            _ => Scheme::Planner("auto"),
        };
        // The published stripes are for requests of 512 KiB on four servers of each kind.
        let has_published = self.request == 512 * KIB && self.servers == (4, 4);
        let schemes = SCHEMES.iter().filter(|scheme| has_published || **scheme != PUBLISHED);
        Cell {
            waits: true,
            experiment: "X1",
            labels: and(self.labels, "op", name(self.op)),
            storage: Storage {
                tiers: vec![
                    tier("hdd", self.servers.0, slow(&hdd), 1 << 50),
                    tier("ssd", self.servers.1, slow(&self.ssd), space),
                ],
                network: Network::default(),
            },
            parts: vec![making::ior(self.op, self.processes, nodes, self.request, each, Access::Random)],
            schemes: schemes.map(scheme).collect(),
        }
    }
}

/// Returns all variants at full size.
fn all() -> Vec<Of> {
    let mut all = Vec::new();
    for startup_ms in [0.3, 1.0, 3.0, 8.0] {
        for processes in [1, 2, 4, 8, 16, 32, 64] {
            let base = Of::base("procs", &processes.to_string());
            let labels = and(base.labels.clone(), "startup_ms", &startup_ms.to_string());
            all.push(Of { labels, processes, startup_s: startup_ms * 1e-3, ..base });
        }
    }
    for (value, share) in [("1/16", 0.0625), ("1/8", 0.125), ("1/4", 0.25), ("1/2", 0.5), ("3/4", 0.75)] {
        all.push(Of { share, ..Of::base("space", value) });
    }
    for request in [32 * KIB, 64 * KIB, 128 * KIB, 256 * KIB, 512 * KIB, MIB, 4 * MIB] {
        all.push(Of { request, ..Of::base("size", &making::bytes(request)) });
    }
    for servers in [(6, 2), (5, 3), (4, 4), (3, 5), (2, 6)] {
        all.push(Of { servers, ..Of::base("servers", &format!("{}:{}", servers.0, servers.1)) });
    }
    let ssds =
        [("worked example", devices::ssd_of_the_worked_example()), ("published ratios", published_ssd())];
    for (value, ssd) in ssds {
        all.extend([Op::Read, Op::Write].map(|op| Of { ssd, op, ..Of::base("ssd", value) }));
    }
    all
}

fn published_ssd() -> ClassParams {
    devices::ssd_beside(&devices::hdd(devices::RANDOM_S))
}

fn cells(scale: Scale) -> Vec<Cell> {
    let all = all();
    // On emulated servers, only the cells on which the statement rests are run.
    let measured = |of: &&Of| {
        let is = |key: &str, value: &str| of.labels.get(key).is_some_and(|found| found == value);
        let procs = is("series", "procs") && (is("value", "16") || is("value", "4"));
        match scale.quick {
            true => procs && is("value", "16") && (is("startup_ms", "0.3") || is("startup_ms", "8")),
            false => procs || is("series", "size") && (is("value", "64K") || is("value", "1M")),
        }
    };
    match scale.place {
        Place::Simulated => all.into_iter().map(|of| of.cell(scale)).collect(),
        Place::Emulated => all.iter().filter(measured).cloned().map(|of| of.cell(scale)).collect(),
        Place::Disks => Vec::new(),
    }
}

/// Returns X1.
pub fn x1() -> Experiment {
    let plot = |title: &str, series: &str, x: &str| -> Figure {
        figure(title, labels([("series", series)]), ("value", x), &SCHEMES)
    };
    let by_procs = |startup_ms: &str| {
        let of = and(labels([("series", "procs")]), "startup_ms", startup_ms);
        figure(&format!("disks with a startup of {startup_ms} ms"), of, ("value", "processes"), &SCHEMES)
    };
    Experiment {
        id: "X1",
        paper: Paper::Psa,
        title: "When PSA beats PA",
        setting: "ours, no row of the papers: IOR at random, 4 GiB, 4 + 4 FIFO servers without network, SServers for a quarter \
                  of the file, and one parameter at a time changed",
        claimed: "nothing; see the statement on PSA and PA",
        claims: Vec::new(),
        figures: vec![
            by_procs("0.3"),
            by_procs("8"),
            plot("512 KiB, 16 processes", "space", "share of the file that the SServers hold"),
            plot("16 processes", "size", "bytes of a request"),
            plot("512 KiB, 16 processes", "servers", "HServers : SServers"),
        ],
        cells,
    }
}
