//! C3: replicas with different layouts, where the cheapest serves each request (CIL §6.4, IOR).

use stripewise_trace::synth::Access;

use super::setting::{ETHERNET, INFINIBAND, NAMES, beds, requests, three_layouts};
use crate::cell::{Cell, Scheme};
use crate::claim::{Claim, Experiment, Measure, Paper, Scale};
use crate::experiments::making::{BOTH, KIB, MIB, access_name, bytes, figure, gain, labels, name};
use crate::record::{Labels, Place};

/// Returns the experiment.
pub fn c3() -> Experiment {
    Experiment {
        id: "C3",
        paper: Paper::Cil,
        title: "Replicas of files of IOR, each request to the cheapest layout",
        setting: "IOR, a file of 64M for each process, requests of 4K, 8K, ... 4M of 1, 2, 4, 8, 16, 32, 48, 96 processes (InfiniBand: 1 \
                  to 64), one run after the other, in order or at random; the layouts are those of C1. What is compared is the \
                  total time of all runs with the same access. Simulated are files of 16M: all runs then take a quarter as long. \
                  Replicas are written as the paper has it: to the cheapest copy, which the others follow after the run. \
                  Measured: 8 servers without a network, requests of 16K to 1M, up to 16 processes; each run on servers so slow that it takes as long as the others, so all count the same.",
        claimed: "20 to 74 % more bandwidth than with any one layout.",
        claims: claims(),
        figures: figures(),
        cells,
    }
}

/// The extremes of CIL's Figure 7, which the text gives for all of its bars together.
const CLAIMED: (f64, f64) = (0.20, 0.74);

fn claims() -> Vec<Claim> {
    let mut claims = Vec::new();
    for over in NAMES {
        claims.push(gain(&format!("over {over}, all runs"), Labels::new(), "replicas", over, CLAIMED));
        for network in [ETHERNET, INFINIBAND] {
            let of = labels([("network", network)]);
            claims.push(gain(&format!("over {over}, {network}"), of, "replicas", over, CLAIMED));
        }
    }
    claims.push(Claim {
        what: "over the best layout of each run, which nobody knows before (no gain can be expected)".into(),
        labels: Labels::new(),
        measure: Measure::GainOverBest { scheme: "replicas".into(), over: NAMES.map(str::to_owned).into() },
        claimed: (0.0, 0.0),
    });
    claims
}

fn figures() -> Vec<crate::claim::Figure> {
    let schemes = ["1-DH", "2-D", "1-DV", "replicas"];
    let of = |network: &str, size: &str| {
        let labels = labels([("network", network), ("access", "random"), ("op", "read"), ("size", size)]);
        let title = format!("{network}, random reads of {size}");
        figure(&title, labels, ("procs", "processes"), &schemes)
    };
    vec![of(ETHERNET, "64K"), of(ETHERNET, "1M"), of(INFINIBAND, "64K"), of(INFINIBAND, "1M")]
}

fn cells(scale: Scale) -> Vec<Cell> {
    let simulated = scale.place == Place::Simulated;
    let mut schemes = three_layouts();
    schemes.push(Scheme::Replicas(three_layouts()));
    let mut cells = Vec::new();
    for bed in beds(scale.place) {
        let procs = match (simulated, scale.quick) {
            (true, false) => bed.procs.to_vec(),
            (true, true) => vec![1, 8],
            (false, false) => vec![1, 2, 4, 8, 16],
            (false, true) => vec![1, 4, 16],
        };
        for procs in procs {
            for size in sizes(scale) {
                for access in [Access::Sequential, Access::Random] {
                    let each = if simulated { 16 * MIB / size } else { requests(procs, size) };
                    cells.extend(BOTH.map(|op| Cell {
                        waits: true,
                        experiment: "C3",
                        labels: bed.labels(labels([
                            ("procs", &procs.to_string()),
                            ("size", &bytes(size)),
                            ("access", access_name(access)),
                            ("op", name(op)),
                        ])),
                        storage: bed.storage(bed.slowing(scale, (procs, each), size, access)),
                        parts: vec![bed.ior(op, procs, size, each, access, "ior".to_owned())],
                        schemes: schemes.clone(),
                    }));
                }
            }
        }
    }
    cells
}

fn sizes(scale: Scale) -> Vec<u64> {
    match (scale.place, scale.quick) {
        (Place::Simulated, false) => (12..=22).map(|log| 1 << log).collect(),
        (Place::Simulated, true) => vec![64 * KIB, MIB],
        _ => vec![16 * KIB, 64 * KIB, 256 * KIB, MIB],
    }
}
