//! C1: how often the model picks the best layout (CIL §6.2).

use stripewise_trace::synth::Access;

use super::setting::{Bed, ETHERNET, INFINIBAND, NAMES, beds, requests, three_layouts};
use crate::cell::Cell;
use crate::claim::{Claim, Experiment, Measure, Paper, Scale};
use crate::experiments::making::{BOTH, KIB, MIB, access_name, bytes, figure, labels, name};
use crate::record::{Labels, Place};

/// Returns the experiment.
pub fn c1() -> Experiment {
    Experiment {
        id: "C1",
        paper: Paper::Cil,
        title: "How often the cost model picks the best layout",
        setting: "IOR, a file for each process, requests of 4K to 4M, 1 to 96 processes (InfiniBand: 64), in order and at random, \
                  reads and writes; each under 1-DH, 2-D in groups of two servers, and 1-DV, with stripes that divide a request \
                  evenly over the servers that are meant to serve it. Files of 64M, but at most 4096 requests in all and at least 32 \
                  of each process: longer runs are as fast. In the paper 4200 cases on 16 servers with Ethernet and 2200 on 8 servers \
                  with InfiniBand; which, it does not say. Measured: 8 servers, no network, at most 256M of data.",
        claimed: "The formula picks the fastest layout in 91 % of the random and 88 % of the sequential cases on Ethernet, in \
                  85 % and 80 % on InfiniBand.",
        claims: claims(),
        figures: [ETHERNET, INFINIBAND].iter().flat_map(|network| figures(network)).collect(),
        cells,
    }
}

fn claims() -> Vec<Claim> {
    let picked = |what: String, labels: Labels, by: &str, claimed: (f64, f64)| Claim {
        what,
        labels,
        measure: Measure::BestPicked { by: by.to_owned() },
        claimed,
    };
    // Rates of CIL's Table 5: Ethernet, InfiniBand.
    let rates = [(Access::Random, 0.9098, 0.8486), (Access::Sequential, 0.8814, 0.8014)];
    let mut claims = Vec::new();
    for (access, ethernet, infiniband) in rates {
        let access = access_name(access);
        for (network, rate) in [(ETHERNET, ethernet), (INFINIBAND, infiniband)] {
            let what = format!("CIL's formula, {access}, {network}");
            let of = labels([("access", access), ("network", network)]);
            claims.push(picked(what, of, "cil_s", (rate, rate)));
        }
        let what = format!("CIL's formula, {access}, all networks or none");
        claims.push(picked(what, labels([("access", access)]), "cil_s", (infiniband, ethernet)));
    }
    let what = "the planner's expected time instead of the formula, against the paper's best rate".to_owned();
    claims.push(picked(what, Labels::new(), "elapsed_s", (0.9098, 1.0)));
    claims
}

fn figures(network: &str) -> Vec<crate::claim::Figure> {
    let of = |procs: &str| {
        let labels = labels([("network", network), ("access", "sequential"), ("op", "read"), ("procs", procs)]);
        figure(
            &format!("{network}, {procs} processes, reads in order"),
            labels,
            ("size", "request size"),
            &NAMES,
        )
    };
    ["1", "8", "32"].map(of).into()
}

fn cells(scale: Scale) -> Vec<Cell> {
    let mut cells = Vec::new();
    for bed in beds(scale.place) {
        for procs in procs(scale, &bed) {
            for size in sizes(scale) {
                for access in [Access::Sequential, Access::Random] {
                    cells.extend(BOTH.map(|op| {
                        let each = match scale.place {
                            Place::Simulated => (64 * MIB / size).min((4096 / u64::from(procs)).max(32)),
                            _ => requests(procs, size),
                        };
                        let factor = bed.slowing(scale, (procs, each), size, access);
                        Cell {
                            waits: true,
                            experiment: "C1",
                            labels: bed.labels(labels([
                                ("procs", &procs.to_string()),
                                ("size", &bytes(size)),
                                ("access", access_name(access)),
                                ("op", name(op)),
                            ])),
                            storage: bed.storage(factor),
                            parts: vec![bed.ior(op, procs, size, each, access, "ior".to_owned())],
                            schemes: three_layouts(),
                        }
                    }));
                }
            }
        }
    }
    cells
}

fn procs(scale: Scale, bed: &Bed) -> Vec<u32> {
    match (scale.place, scale.quick) {
        (Place::Simulated, true) => vec![1, 8, 32],
        (_, true) => vec![1, 4, 16, 32],
        // The paper's numbers of processes, and some between them.
        (Place::Simulated, false) => {
            let mut procs: Vec<u32> = bed.procs.iter().copied().chain([3, 6, 12, 24, 64]).collect();
            procs.sort_unstable();
            procs.dedup();
            procs.retain(|&procs| procs <= bed.procs[bed.procs.len() - 1]);
            procs
        }
        (_, false) => bed.procs.to_vec(),
    }
}

fn sizes(scale: Scale) -> Vec<u64> {
    match (scale.place, scale.quick) {
        (_, true) => vec![4 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB],
        (Place::Simulated, false) => (12..=22).map(|log| 1 << log).collect(),
        (_, false) => vec![4, 16, 64, 128, 256, 512, 1024, 4096].into_iter().map(|k| k * KIB).collect(),
    }
}
