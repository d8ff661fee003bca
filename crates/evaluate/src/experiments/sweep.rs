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
use stripewise_model::{Network, Op};

use super::devices;
use super::making::{BOTH, GIB, KIB, MIB, labels, name};
use super::psa::{self, Ior};
use crate::cell::{Cell, Scheme};
use crate::claim::Scale;

/// The stripes that PSA publishes for P1.
const PUBLISHED: &str = "PSA <120K,8K>";

/// Returns P1's random reads with this storage.
fn base(series: &str, value: &str) -> Ior {
    Ior {
        classes: (devices::hdd(devices::RANDOM_S), devices::ssd_of_the_worked_example()),
        network: Network::default(),
        ..Ior::new(Op::Read, labels([("series", series), ("value", value)]))
    }
}

fn cell(mut ior: Ior, scale: Scale) -> Cell {
    let bytes = scale.of([4 * GIB, GIB], [256 * MIB, 128 * MIB]);
    let mut schemes = psa::schemes(5, ior.request);
    // The published stripes are for requests of 512 KiB on four servers of each kind.
    if ior.request == 512 * KIB && ior.servers == (4, 4) {
        schemes.insert(3, Scheme::Candidate(PUBLISHED.to_owned()));
    }
    ior.labels.insert("op".into(), name(ior.op).into());
    let requests = bytes / ior.request;
    ior.cell(scale, requests, schemes)
}

/// Returns all variants at full size.
fn all() -> Vec<Ior> {
    let mut all = Vec::new();
    for startup_ms in [0.3, 1.0, 3.0, 8.0] {
        for processes in [1, 2, 4, 8, 16, 32, 64] {
            let base = base("procs", &processes.to_string());
            let mut ior = Ior { processes, classes: (devices::hdd(startup_ms * 1e-3), base.classes.1), ..base };
            ior.labels.insert("startup_ms".into(), startup_ms.to_string());
            all.push(ior);
        }
    }
    for (value, share) in [("1/16", 0.0625), ("1/8", 0.125), ("1/4", 0.25), ("1/2", 0.5), ("3/4", 0.75)] {
        all.push(Ior { share, ..base("space", value) });
    }
    for request in [32 * KIB, 64 * KIB, 128 * KIB, 256 * KIB, 512 * KIB, MIB, 4 * MIB] {
        all.push(Ior { request, ..base("size", &size::format(request)) });
    }
    for servers in [(6, 2), (5, 3), (4, 4), (3, 5), (2, 6)] {
        all.push(Ior { servers, ..base("servers", &format!("{}:{}", servers.0, servers.1)) });
    }
    let ssds = [
        ("worked example", devices::ssd_of_the_worked_example()),
        ("published ratios", devices::published().1),
    ];
    for (value, ssd) in ssds {
        all.extend(BOTH.map(|op| {
            let base = base("ssd", value);
            Ior { op, classes: (base.classes.0, ssd), ..base }
        }));
    }
    all
}

/// Returns the cells of X1.
pub fn x1(scale: Scale) -> Vec<Cell> {
    // On emulated servers, only the cells on which the statement rests are run.
    let is_run = |ior: &Ior| {
        let is = |key: &str, value: &str| ior.labels.get(key).is_some_and(|found| found == value);
        let procs = is("series", "procs") && (is("value", "16") || is("value", "4"));
        match scale.quick {
            _ if scale.is_simulated() => true,
            true => procs && is("value", "16") && (is("startup_ms", "0.3") || is("startup_ms", "8")),
            false => procs || is("series", "size") && (is("value", "64K") || is("value", "1M")),
        }
    };
    all().into_iter().filter(is_run).map(|ior| cell(ior, scale)).collect()
}
