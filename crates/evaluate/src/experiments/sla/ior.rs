//! S1 to S3: IOR with random access (SLA §5.2.1).

use stripewise_model::Op;
use stripewise_trace::synth::Access;

use super::setting::{Of, SELECTIVE, SHARE, STOCK, per_node};
use crate::cell::Cell;
use crate::claim::{Claim, Experiment, Paper, Scale};
use crate::experiments::making::{self, BOTH, GIB, KIB, MIB, and, figure, gain, labels, name};
use crate::record::{Labels, Place};

/// Bytes that each process accesses.
const EACH: u64 = 512 * MIB;

/// The request sizes of S1 and S6.
pub(super) const SIZES: [u64; 4] = [8 * KIB, 64 * KIB, 512 * KIB, 4 * MIB];

/// Parameters in which cells of IOR differ.
#[derive(Clone)]
pub(super) struct Ior {
    pub experiment: &'static str,
    pub labels: Labels,
    pub processes: u32,
    pub request: u64,
    pub op: Op,
    pub servers: (u32, u32),
    pub share: f64,
}

impl Ior {
    /// Returns the published defaults: 32 processes, requests of 512 KiB.
    pub fn new(experiment: &'static str, op: Op) -> Self {
        let labels = labels([("op", name(op))]);
        Self { experiment, labels, processes: 32, request: 512 * KIB, op, servers: (8, 4), share: SHARE }
    }

    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.labels = and(self.labels, key, value);
        self
    }

    /// Sets the published number of processes as a label. Measured runs use fewer processes,
    /// because two cores run them.
    pub fn processes(mut self, scale: Scale, published: u32) -> Self {
        self.processes = published;
        self = self.label("procs", &published.to_string());
        if scale.place != Place::Simulated && published > 32 {
            self.processes = 32;
            self = self.label("ranks", "32");
        }
        self
    }

    pub fn cell(self, scale: Scale, schemes: &[&'static str]) -> Cell {
        let each = each(scale, self.request, self.processes);
        let requests = each * u64::from(self.processes);
        let part = making::ior(
            self.op,
            self.processes,
            per_node(scale, self.processes),
            self.request,
            each,
            Access::Random,
        );
        Of {
            experiment: self.experiment,
            labels: self.labels,
            scale,
            servers: self.servers,
            share: self.share,
            part,
            bytes: requests * self.request,
            requests,
            schemes,
        }
        .cell()
    }
}

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

fn figures(of: &str, x: (&str, &str), schemes: &[&str]) -> Vec<crate::claim::Figure> {
    let one = |op| figure(&format!("IOR, {of}: {}s", name(op)), labels([("op", name(op))]), x, schemes);
    BOTH.map(one).into()
}

pub(super) fn s1() -> Experiment {
    const SCHEMES: [&str; 4] = [STOCK, "NSCA", "SCA", "LCP balanced"];
    fn cells(scale: Scale) -> Vec<Cell> {
        let few = scale.place == Place::Emulated && scale.quick;
        let mut cells = Vec::new();
        for request in SIZES {
            for op in BOTH {
                // The paper's figures on reads are for 8 KiB.
                if scale.place == Place::Disks || (few && op == Op::Read && request != 8 * KIB) {
                    continue;
                }
                let ior = Ior { request, ..Ior::new("S1", op) }.label("size", &making::bytes(request));
                cells.push(ior.cell(scale, &SCHEMES));
            }
        }
        cells
    }
    let of = |op: &str, size: &str| labels([("op", op), ("size", size)]);
    let over_stock = |op, size, claimed| {
        gain(&format!("{op}s of {size}, SCA"), of(op, size), "SCA", STOCK, (claimed, claimed))
    };
    let mut claims = vec![
        over_stock("write", "8K", 0.921),
        over_stock("write", "64K", 0.825),
        over_stock("write", "512K", 0.254),
        over_stock("write", "4M", 0.0),
        over_stock("read", "8K", 1.785),
    ];
    // SLA's Table 3, MB/s.
    for (size, sca, nsca) in
        [("8K", 60.6, 56.1), ("64K", 136.1, 127.3), ("512K", 230.9, 218.4), ("4M", 325.2, 293.5)]
    {
        let more = sca / nsca - 1.0;
        claims.push(gain(&format!("writes of {size}, SCA"), of("write", size), "SCA", "NSCA", (more, more)));
    }
    // At 4M, SCA has nearly the throughput of the stock system.
    let below = 293.5 / 325.2 - 1.0;
    claims.push(gain("writes of 4M, NSCA", of("write", "4M"), "NSCA", STOCK, (below, below)));
    Experiment {
        id: "S1",
        paper: Paper::Sla,
        title: "Selective admission: request size",
        setting: "IOR, 32 processes at random, 512 MB each, 8 KiB to 4 MiB; 8 HServers, 4 SServers, cache for 30 %",
        claimed: "SCA +92, +83, +25, 0 % (writes of 8K, 64K, 512K, 4M), up to +179 % (reads of 8K); NSCA always below SCA, \
                  at 4M below stock",
        claims,
        figures: figures("32 processes, at random", ("size", "bytes of a request"), &SCHEMES),
        cells,
    }
}

pub(super) fn s2() -> Experiment {
    fn cells(scale: Scale) -> Vec<Cell> {
        processes("S2", scale, &BOTH, &SELECTIVE)
    }
    let claims = ["8", "32", "128"].map(|procs| {
        let of = labels([("op", "write"), ("procs", procs)]);
        gain(&format!("writes, {procs} processes, SCA"), of, "SCA", STOCK, (0.239, 0.317))
    });
    Experiment {
        id: "S2",
        paper: Paper::Sla,
        title: "Selective admission: number of processes",
        setting: "as S1, 512 KiB, 8, 32 and 128 processes",
        claimed: "SCA +24 to +32 % (writes); reads alike",
        claims: claims.into(),
        figures: figures("512 KiB at random", ("procs", "processes"), &SELECTIVE),
        cells,
    }
}

/// Returns cells with 8, 32 and 128 processes.
pub(super) fn processes(
    experiment: &'static str,
    scale: Scale,
    ops: &[Op],
    schemes: &[&'static str],
) -> Vec<Cell> {
    let few = scale.place == Place::Emulated && scale.quick;
    let ops = if few { &[Op::Write] } else { ops };
    let procs: &[u32] = if scale.place == Place::Disks { &[] } else { &[8, 32, 128] };
    let cell = |op, procs| Ior::new(experiment, op).processes(scale, procs).cell(scale, schemes);
    procs.iter().flat_map(|&procs| ops.iter().map(move |&op| cell(op, procs))).collect()
}

pub(super) fn s3() -> Experiment {
    fn cells(scale: Scale) -> Vec<Cell> {
        if scale.place == Place::Disks {
            return Vec::new();
        }
        let few = scale.place == Place::Emulated && scale.quick;
        let data = 32 * EACH;
        // (GB in all, SServers): the space as in the paper's Table 4, then its numbers of SServers
        // with 30 %.
        let spaces: &[u64] = if few { &[2, 6] } else { &[2, 4, 6] };
        let servers: &[u32] = if few { &[2, 6] } else { &[1, 2, 3, 4, 5, 6] };
        let spaced = spaces.iter().map(|&gb| {
            let share = (gb * GIB) as f64 / data as f64;
            Ior { share, ..Ior::new("S3", Op::Write) }.label("space", &format!("{gb}G"))
        });
        let with = servers.iter().flat_map(|&servers| {
            let ops: &[Op] = if few { &[Op::Write] } else { &BOTH };
            ops.iter().map(move |&op| {
                Ior { servers: (8, servers), ..Ior::new("S3", op) }.label("sservers", &servers.to_string())
            })
        });
        spaced.chain(with).map(|ior| ior.cell(scale, &SELECTIVE)).collect()
    }
    let mut claims: Vec<Claim> = Vec::new();
    for (space, claimed) in [("2G", 0.147), ("4G", 0.235), ("6G", 0.316)] {
        let of = labels([("op", "write"), ("space", space)]);
        claims.push(gain(&format!("writes, cache of {space}, SCA"), of, "SCA", STOCK, (claimed, claimed)));
    }
    for (servers, claimed) in [("2", 0.097), ("6", 0.342)] {
        let of = labels([("op", "write"), ("sservers", servers)]);
        claims.push(gain(&format!("writes, {servers} SServers, SCA"), of, "SCA", STOCK, (claimed, claimed)));
    }
    let by = |key: &str, what: &str| {
        figure(
            &format!("IOR, 32 processes, 512 KiB: writes by {what}"),
            labels([("op", "write")]),
            (key, what),
            &SELECTIVE,
        )
    };
    Experiment {
        id: "S3",
        paper: Paper::Sla,
        title: "Selective admission: space and number of SServers",
        setting: "as S1, 512 KiB; caches of 2, 4, 6 GB in all for 16 GB of data; up to 6 SServers with 30 %",
        claimed: "SCA +15, +24, +32 % with 2, 4, 6 GB; +10 to +34 % with more SServers",
        claims,
        figures: vec![by("space", "space of the cache"), by("sservers", "SServers")],
        cells,
    }
}
