//! P6 and P7: collective I/O, mpi-tile-io and BT-IO (PSA §4.4, §4.5).
//!
//! The requests that reach the servers are those of ROMIO's aggregators, one on each client node,
//! with buffers of 16 MiB.

use stripewise_model::Op;
use stripewise_trace::synth::{Access, Btio, BtioClass, Direction, Tile, TwoPhase};

use super::setting::{NODES, Of, SCHEMES, gains, per_node};
use crate::cell::{Cell, Part, Program};
use crate::claim::{Experiment, Paper, Scale};
use crate::experiments::making::{BOTH, GIB, KIB, MIB, direction, figure, gain, labels, largest, name};
use crate::record::Place;

/// ROMIO's default `cb_buffer_size`.
pub(super) const BUFFER: u64 = 16 * MIB;

/// Numbers of processes in P6, and their tiles in x and y.
pub(super) const TILES: [(u32, (u32, u32)); 3] = [(100, (10, 10)), (200, (20, 10)), (400, (20, 20))];

pub(super) fn tile_cell(scale: Scale, published: u32, (tiles_x, tiles_y): (u32, u32), op: Op) -> Cell {
    let processes = tiles_x * tiles_y;
    let full = scale.place == Place::Simulated;
    // With fewer processes, one tile per process is little data, so smaller buffers keep the number
    // of rounds above one.
    let collective = TwoPhase { aggregators: NODES, buffer: if full { BUFFER } else { MIB } };
    let tile = Tile {
        tiles_x,
        tiles_y,
        per_node: per_node(scale, processes),
        elements_x: 8,
        elements_y: 8,
        element_size: 32 * KIB,
        overlap_x: 0,
        overlap_y: 0,
        header: 0,
        direction: direction(op),
        collective: Some(collective),
        file: "tile.data".into(),
    };
    let bytes = u64::from(processes) * 64 * 32 * KIB;
    let mut labels = labels([("op", name(op)), ("procs", &published.to_string())]);
    if !full {
        labels.insert("ranks".into(), processes.to_string());
    }
    let servers = (4, 4);
    Of {
        experiment: "P6",
        labels,
        scale,
        servers,
        // All SServers together hold a quarter of the file.
        space: bytes / 4 / u64::from(servers.1),
        parts: vec![Part { program: Program::Tile(tile), op }],
        bytes,
        request: collective.buffer.min(bytes / u64::from(NODES)),
        access: Access::Sequential,
        schemes: if scale.quick && !full { &SCHEMES[..4] } else { &SCHEMES },
    }
    .cell()
}

pub(super) fn p6() -> Experiment {
    fn cells(scale: Scale) -> Vec<Cell> {
        // (label, tiles in x and y)
        let tiles: &[(u32, (u32, u32))] = match (scale.place, scale.quick) {
            (Place::Simulated, _) => &TILES,
            (Place::Emulated, false) => &[(100, (3, 3)), (200, (6, 3)), (400, (6, 6))],
            (Place::Emulated, true) => &[(100, (3, 3)), (400, (6, 6))],
            (Place::Disks, _) => &[],
        };
        tiles
            .iter()
            .flat_map(|&(published, tiles)| BOTH.map(|op| tile_cell(scale, published, tiles, op)))
            .collect()
    }
    let mut claims = Vec::new();
    for (procs, read, write) in [
        ("100", (0.419, 0.282), (0.508, 0.269)),
        ("200", (0.382, 0.308), (0.567, 0.307)),
        ("400", (0.341, 0.279), (0.592, 0.322)),
    ] {
        claims.extend(gains("procs", procs, Op::Read, read.0, Some(read.1)));
        claims.extend(gains("procs", procs, Op::Write, write.0, Some(write.1)));
    }
    let figures = BOTH.map(|op| {
        let title = format!("mpi-tile-io, collective: {}s", name(op));
        figure(&title, labels([("op", name(op))]), ("procs", "processes"), &SCHEMES)
    });
    Experiment {
        id: "P6",
        paper: Paper::Psa,
        title: "mpi-tile-io: number of processes",
        setting: "100, 200, 400 processes, tiles of 8 x 8 elements of 32 KiB, collective; 4 HServers, 4 SServers that hold \
                  1/4 of the file",
        claimed: "PSA +42, +38, +34 % (reads) and +51, +57, +59 % (writes) over DEF; +28, +31, +28 % and +27, +31, \
                  +32 % over PA",
        claims,
        figures: figures.into(),
        cells,
    }
}

fn btio_cell(scale: Scale, published: u32, processes: u32) -> Cell {
    let full = scale.place == Place::Simulated;
    let class = if full { BtioClass::C } else { BtioClass::A };
    let collective = TwoPhase { aggregators: NODES.min(processes), buffer: if full { BUFFER } else { MIB } };
    let btio = |direction| {
        let per_node = per_node(scale, processes);
        let full = Some(collective);
        Program::Btio(Btio { class, processes, per_node, full, direction, file: "btio.data".into() })
    };
    let file = class.file_bytes();
    let mut labels = labels([("procs", &published.to_string())]);
    if !full {
        labels.insert("ranks".into(), processes.to_string());
    }
    Of {
        experiment: "P7",
        labels,
        scale,
        servers: (6, 2),
        space: (u128::from(GIB / 2) * u128::from(file) / u128::from(BtioClass::C.file_bytes())) as u64,
        parts: vec![
            Part { program: btio(Direction::Write), op: Op::Write },
            Part { program: btio(Direction::Read), op: Op::Read },
        ],
        bytes: 2 * file,
        request: collective.buffer.min(file / class.dumps() / u64::from(collective.aggregators)),
        access: Access::Sequential,
        schemes: if full { &SCHEMES } else { &SCHEMES[..3] },
    }
    .cell()
}

pub(super) fn p7() -> Experiment {
    fn cells(scale: Scale) -> Vec<Cell> {
        // (label, processes)
        let processes: &[(u32, u32)] = match (scale.place, scale.quick) {
            (Place::Simulated, _) => &[(4, 4), (16, 16), (64, 64)],
            (Place::Emulated, false) => &[(4, 4), (16, 9), (64, 25)],
            (Place::Emulated, true) => &[(16, 9)],
            (Place::Disks, _) => &[],
        };
        processes.iter().map(|&(published, processes)| btio_cell(scale, published, processes)).collect()
    }
    let over_def = [("4", 0.661), ("16", 0.477), ("64", 0.537)].map(|(procs, claimed)| {
        let what = format!("procs {procs}, writes and reads");
        gain(&what, labels([("procs", procs)]), "PSA", "DEF", (claimed, claimed))
    });
    let mut claims = Vec::from(over_def);
    claims.push(largest("writes and reads, up to", labels([]), "PSA", "PA", 0.389));
    Experiment {
        id: "P7",
        paper: Paper::Psa,
        title: "BT-IO",
        setting: "class C, full (collective), 6.64 GB, 4, 16, 64 processes; 6 HServers, 2 SServers with 0.5 GB each",
        claimed: "PSA +66, +48, +54 % over DEF, up to +39 % over PA",
        claims,
        figures: vec![figure("BT-IO, writes and reads", labels([]), ("procs", "processes"), &SCHEMES)],
        cells,
    }
}
