//! S7: writes that all miss, which shows the cost of deciding (SLA §5.4.2).

use stripewise_model::Op;

use super::ior::Ior;
use super::setting::{Of, STOCK, per_node};
use crate::cell::Cell;
use crate::claim::{Experiment, Paper, Scale};
use crate::experiments::making::{self, GIB, KIB, figure, gain, labels};
use crate::record::Place;
use stripewise_trace::synth::Access;

/// Bytes that all processes together write.
const FILE: u64 = 10 * GIB;

const SCHEMES: [&str; 2] = [STOCK, "LCP"];

fn cell(scale: Scale, request: u64) -> Cell {
    let ior = Ior { request, ..Ior::new("S7", Op::Write) }.label("size", &making::bytes(request));
    let each = match (scale.place, scale.quick) {
        (Place::Simulated, false) => FILE / request / 32,
        (Place::Simulated, true) => FILE / request / 32 / 16,
        (_, true) => 64,
        (_, false) => 128,
    };
    let requests = each * 32;
    let part = making::ior(Op::Write, 32, per_node(scale, 32), request, each, Access::Random);
    Of {
        experiment: "S7",
        labels: ior.labels,
        scale,
        servers: ior.servers,
        // The cache has one page on each SServer. It is full at once, and everything else misses.
        share: 0.0,
        part,
        bytes: requests * request,
        requests,
        schemes: &SCHEMES,
    }
    .cell()
}

pub(super) fn s7() -> Experiment {
    fn cells(scale: Scale) -> Vec<Cell> {
        let sizes: &[u64] = match (scale.place, scale.quick) {
            (Place::Disks, _) => &[],
            (Place::Emulated, true) => &[8 * KIB, 32 * KIB],
            _ => &[8 * KIB, 16 * KIB, 32 * KIB],
        };
        sizes.iter().map(|&request| cell(scale, request)).collect()
    }
    let claims = ["8K", "16K", "32K"].map(|size| {
        let of = labels([("op", "write"), ("size", size)]);
        gain(&format!("writes of {size} that miss, LCP"), of, "LCP", STOCK, (0.0, 0.0))
    });
    let x = ("size", "bytes of a request");
    Experiment {
        id: "S7",
        paper: Paper::Sla,
        title: "What deciding costs",
        setting: "IOR, 32 processes, random writes of 8 to 32 KiB to 10 GB, all of which miss the SServers",
        claimed: "overhead negligible",
        claims: claims.into(),
        figures: vec![figure("IOR, writes that all miss", labels([("op", "write")]), x, &SCHEMES)],
        cells,
    }
}
