//! P1 to P4: IOR with different operations, processes, request sizes and servers (PSA §4.2).

use stripewise_model::Op;
use stripewise_trace::synth::Access;

use super::setting::{Of, SCHEMES, gains, per_node, up_to};
use crate::cell::Cell;
use crate::claim::{Experiment, Figure, Paper, Scale};
use crate::experiments::making::{self, BOTH, GIB, KIB, MIB, access_name, and, figure, labels, name};
use crate::record::{Labels, Place};

/// Size of the shared file.
const FILE: u64 = 16 * GIB;
/// Space for it on each SServer.
const SPACE: u64 = GIB;

/// Parameters in which cells of IOR differ.
#[derive(Clone)]
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
    fn new(experiment: &'static str, op: Op) -> Self {
        let labels = labels([("op", name(op))]);
        let (servers, access) = ((4, 4), Access::Random);
        Self { experiment, labels, processes: 16, request: 512 * KIB, servers, op, access }
    }

    fn label(mut self, key: &str, value: &str) -> Self {
        self.labels = and(self.labels, key, value);
        self
    }

    fn cell(self, scale: Scale, schemes: &[&'static str]) -> Cell {
        let requests = requests(scale, self.request, self.processes);
        let each = requests / u64::from(self.processes);
        let bytes = each * u64::from(self.processes) * self.request;
        let nodes = per_node(scale, self.processes);
        let part = making::ior(self.op, self.processes, nodes, self.request, each, self.access);
        Of {
            experiment: self.experiment,
            labels: self.labels,
            scale,
            servers: self.servers,
            space: (u128::from(SPACE) * u128::from(bytes) / u128::from(FILE)) as u64,
            parts: vec![part],
            bytes,
            request: self.request,
            access: self.access,
            schemes,
        }
        .cell()
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

fn figures(of: &str, x: (&str, &str)) -> Vec<Figure> {
    let one = |op| {
        let title = format!("IOR, {of}: {}s", name(op));
        figure(&title, labels([("op", name(op))]), x, &SCHEMES)
    };
    BOTH.map(one).into()
}

pub(super) fn p1() -> Experiment {
    fn cells(scale: Scale) -> Vec<Cell> {
        let on_disks = ["DEF", "PA", "PSA", "auto"];
        let schemes = if scale.place == Place::Disks { &on_disks[..] } else { &SCHEMES };
        let mut cells = Vec::new();
        for op in BOTH {
            for access in [Access::Sequential, Access::Random] {
                // A quick run has only random access, because sequential disks are hardly slower
                // than SSDs.
                if scale.place == Place::Disks && scale.quick && access == Access::Sequential {
                    continue;
                }
                let ior = Ior { access, ..Ior::new("P1", op) }.label("access", access_name(access));
                cells.push(ior.cell(scale, schemes));
            }
        }
        cells
    }
    let claims = [up_to(labels([]), Op::Read, 0.669, 0.398), up_to(labels([]), Op::Write, 0.771, 0.297)];
    Experiment {
        id: "P1",
        paper: Paper::Psa,
        title: "IOR: reads and writes, in order and at random",
        setting: "16 processes, 16 GB shared file, 512 KiB requests; 4 HServers, 4 SServers with 1 GB each",
        claimed: "PSA up to +67 % (reads) and +77 % (writes) over DEF, +40 % and +30 % over PA, with <120K,8K> and \
                  <116K,12K>; PA <28K,100K>, <20K,108K>, <24K,104K>, <36K,92K>",
        claims: claims.concat(),
        figures: figures("16 processes, 512 KiB", ("access", "access")),
        cells,
    }
}

pub(super) fn p2() -> Experiment {
    fn cells(scale: Scale) -> Vec<Cell> {
        // (label, processes that two cores run)
        let processes: [(u32, u32); 3] = [(8, 8), (32, 16), (64, 32)];
        let mut cells = Vec::new();
        for (published, ranks) in processes {
            let full = scale.place == Place::Simulated;
            let few = scale.quick && !full;
            if scale.place == Place::Disks || (few && published == 32) {
                continue;
            }
            for op in BOTH {
                let processes = if full { published } else { ranks };
                let ior = Ior { processes, ..Ior::new("P2", op) }.label("procs", &published.to_string());
                let ior = if full { ior } else { ior.label("ranks", &ranks.to_string()) };
                let schemes = if few { &SCHEMES[..4] } else { &SCHEMES };
                cells.push(ior.cell(scale, schemes));
            }
        }
        cells
    }
    let mut claims = Vec::new();
    for (procs, read, write) in [
        ("8", (0.628, 0.362), (0.743, 0.321)),
        ("32", (0.595, 0.419), (0.709, 0.254)),
        ("64", (0.367, 0.271), (0.667, 0.223)),
    ] {
        claims.extend(gains("procs", procs, Op::Read, read.0, Some(read.1)));
        claims.extend(gains("procs", procs, Op::Write, write.0, Some(write.1)));
    }
    Experiment {
        id: "P2",
        paper: Paper::Psa,
        title: "IOR: number of processes",
        setting: "as P1 at random, 8 (in the results: 4), 32 and 64 processes",
        claimed: "PSA +63, +60, +37 % (reads) and +74, +71, +67 % (writes) over DEF; +36, +42, +27 % and +32, +25, \
                  +22 % over PA",
        claims,
        figures: figures("512 KiB at random", ("procs", "processes")),
        cells,
    }
}

pub(super) fn p3() -> Experiment {
    fn cells(scale: Scale) -> Vec<Cell> {
        let mut cells = Vec::new();
        let sizes: &[u64] = if scale.place == Place::Disks { &[] } else { &[128 * KIB, MIB] };
        for &request in sizes {
            for op in BOTH {
                let ior = Ior { request, ..Ior::new("P3", op) }.label("size", &making::bytes(request));
                cells.push(ior.cell(scale, if scale.quick { &SCHEMES[..4] } else { &SCHEMES }));
            }
        }
        cells
    }
    let claims = [up_to(labels([]), Op::Read, 0.687, 0.434), up_to(labels([]), Op::Write, 0.744, 0.389)];
    Experiment {
        id: "P3",
        paper: Paper::Psa,
        title: "IOR: request size",
        setting: "as P1 at random, requests of 128 KiB and 1 MiB",
        claimed: "PSA up to +69 % (reads) and +74 % (writes) over DEF, +43 % and +39 % over PA; more for large requests",
        claims: claims.concat(),
        figures: figures("16 processes, at random", ("size", "bytes of a request")),
        cells,
    }
}

pub(super) fn p4() -> Experiment {
    fn cells(scale: Scale) -> Vec<Cell> {
        let mut cells = Vec::new();
        let servers: &[(u32, u32)] = if scale.place == Place::Disks { &[] } else { &[(5, 3), (3, 5)] };
        for &(m, n) in servers {
            for op in BOTH {
                let ior = Ior { servers: (m, n), ..Ior::new("P4", op) }.label("servers", &format!("{m}:{n}"));
                cells.push(ior.cell(scale, if scale.quick { &SCHEMES[..4] } else { &SCHEMES }));
            }
        }
        cells
    }
    let of = || labels([("servers", "5:3")]);
    let claims = [up_to(of(), Op::Read, 0.586, 0.353), up_to(of(), Op::Write, 0.682, 0.286)];
    Experiment {
        id: "P4",
        paper: Paper::Psa,
        title: "IOR: ratio of servers",
        setting: "as P1 at random, 5 HServers and 3 SServers, and 3 and 5",
        claimed: "with 5:3 PSA up to +59 % (reads) and +68 % (writes) over DEF, +35 % and +29 % over PA; 3:5 alike",
        claims: claims.concat(),
        figures: figures("16 processes, 512 KiB at random", ("servers", "HServers : SServers")),
        cells,
    }
}
