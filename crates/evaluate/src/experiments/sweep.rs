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

use stripewise_cluster::size;
use stripewise_model::{ClassParams, Network, Op};
use stripewise_trace::synth::Access;

use super::making::{self, Case, GIB, KIB, MIB, labels, name};
use super::{devices, psa};
use crate::cell::Cell;
use crate::claim::Scale;
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

    fn cell(mut self, scale: Scale) -> Cell {
        let bytes = match (scale.place, scale.quick) {
            (Place::Simulated, false) => 4 * GIB,
            (Place::Simulated, true) => GIB,
            (_, true) => 128 * MIB,
            (_, false) => 256 * MIB,
        };
        let each = bytes / self.request / u64::from(self.processes);
        let startups = each * u64::from(self.processes);
        let bytes = startups * self.request;
        let space = (self.share * bytes as f64 / f64::from(self.servers.1)) as u64;
        let processes = (self.processes, making::per_node(scale, self.processes, psa::NODES));
        // The published stripes are for requests of 512 KiB on four servers of each kind.
        let has_published = self.request == 512 * KIB && self.servers == (4, 4);
        let schemes = SCHEMES.iter().filter(|scheme| has_published || **scheme != PUBLISHED);
        self.labels.insert("op".into(), name(self.op).into());
        Case {
            experiment: "X1",
            labels: self.labels,
            tiers: devices::tiers(self.servers, (devices::hdd(self.startup_s), self.ssd), space),
            network: Network::default(),
            parts: vec![making::ior(self.op, processes, self.request, each, Access::Random, None)],
            bytes,
            startups,
            access: Access::Random,
            schemes: schemes.map(|scheme| psa::by_name(scheme, self.request)).collect(),
        }
        .cell(scale)
    }
}

/// Returns all variants at full size.
fn all() -> Vec<Of> {
    let mut all = Vec::new();
    for startup_ms in [0.3, 1.0, 3.0, 8.0] {
        for processes in [1, 2, 4, 8, 16, 32, 64] {
            let base = Of::base("procs", &processes.to_string());
            let mut of = Of { processes, startup_s: startup_ms * 1e-3, ..base };
            of.labels.insert("startup_ms".into(), startup_ms.to_string());
            all.push(of);
        }
    }
    for (value, share) in [("1/16", 0.0625), ("1/8", 0.125), ("1/4", 0.25), ("1/2", 0.5), ("3/4", 0.75)] {
        all.push(Of { share, ..Of::base("space", value) });
    }
    for request in [32 * KIB, 64 * KIB, 128 * KIB, 256 * KIB, 512 * KIB, MIB, 4 * MIB] {
        all.push(Of { request, ..Of::base("size", &size::format(request)) });
    }
    for servers in [(6, 2), (5, 3), (4, 4), (3, 5), (2, 6)] {
        all.push(Of { servers, ..Of::base("servers", &format!("{}:{}", servers.0, servers.1)) });
    }
    let ssds = [
        ("worked example", devices::ssd_of_the_worked_example()),
        ("published ratios", devices::published().1),
    ];
    for (value, ssd) in ssds {
        all.extend(making::BOTH.map(|op| Of { ssd, op, ..Of::base("ssd", value) }));
    }
    all
}

/// Returns the cells of X1.
pub fn x1(scale: Scale) -> Vec<Cell> {
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
