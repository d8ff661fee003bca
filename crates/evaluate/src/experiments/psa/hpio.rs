//! P5: HPIO with regions of different sizes (PSA §4.3).
//!
//! The processes' regions are interleaved in the file, as always in HPIO if the file is not
//! contiguous. From a server's point of view, no process continues where it stopped.

use stripewise_model::Op;
use stripewise_trace::synth::{Access, Hpio};

use super::setting::{Of, SCHEMES, gains, per_node};
use crate::cell::{Cell, Part, Program};
use crate::claim::{Experiment, Paper, Scale};
use crate::experiments::making::{BOTH, KIB, MIB, bytes, direction, figure, labels, name};
use crate::record::Place;

/// Number of processes.
const PROCESSES: u32 = 32;

fn cell(scale: Scale, region_size: u64, op: Op) -> Cell {
    let regions = match (scale.place, scale.quick) {
        (Place::Simulated, false) => 1024,
        (Place::Simulated, true) => 64,
        (_, true) => (128 * MIB / region_size / u64::from(PROCESSES)).clamp(12, 32),
        (_, false) => (256 * MIB / region_size / u64::from(PROCESSES)).clamp(16, 64),
    };
    let hpio = Hpio {
        processes: PROCESSES,
        per_node: per_node(scale, PROCESSES),
        regions,
        region_size,
        spacing: 0,
        interleaved: true,
        direction: direction(op),
        collective: None,
        file: "hpio.data".into(),
    };
    let all = u64::from(PROCESSES) * regions * region_size;
    let servers = (4, 4);
    Of {
        experiment: "P5",
        labels: labels([("op", name(op)), ("size", &bytes(region_size))]),
        scale,
        servers,
        // All SServers together hold a third of the file.
        space: all / 3 / u64::from(servers.1),
        parts: vec![Part { program: Program::Hpio(hpio), op }],
        bytes: all,
        request: region_size,
        access: Access::Random,
        schemes: if scale.quick && scale.place != Place::Simulated { &SCHEMES[..4] } else { &SCHEMES },
    }
    .cell()
}

pub(super) fn p5() -> Experiment {
    fn cells(scale: Scale) -> Vec<Cell> {
        let sizes: &[u64] = match (scale.place, scale.quick) {
            (Place::Disks, _) => &[],
            (Place::Emulated, true) => &[64 * KIB, 512 * KIB],
            _ => &[64 * KIB, 256 * KIB, 512 * KIB],
        };
        sizes.iter().flat_map(|&size| BOTH.map(|op| cell(scale, size, op))).collect()
    }
    let claims = [("64K", 0.594, 0.332), ("256K", 0.645, 0.251), ("512K", 0.518, 0.192)];
    let figures = BOTH.map(|op| {
        let title = format!("HPIO, 32 processes, no spacing: {}s", name(op));
        figure(&title, labels([("op", name(op))]), ("size", "bytes of a region"), &SCHEMES)
    });
    Experiment {
        id: "P5",
        paper: Paper::Psa,
        title: "HPIO: region size",
        setting: "32 processes, 1024 regions each of 64 to 512 KiB, spacing 0; 4 HServers, 4 SServers that hold 1/3 of \
                  the file",
        claimed: "PSA +59, +65, +52 % over DEF and +33, +25, +19 % over PA for reads of 64, 256 and 512 KiB; writes alike",
        claims: claims
            .iter()
            .flat_map(|&(size, over_def, over_pa)| gains("size", size, Op::Read, over_def, Some(over_pa)))
            .collect(),
        figures: figures.into(),
        cells,
    }
}
