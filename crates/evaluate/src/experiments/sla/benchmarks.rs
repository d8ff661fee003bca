//! S4 and S5: HPIO and mpi-tile-io (SLA §5.2.2, §5.2.3); also the cells of S6.

use stripewise_model::Op;
use stripewise_trace::synth::{Hpio, Tile};

use super::ior::{self, Ior, SIZES};
use super::setting::{Of, PLACED, SELECTIVE, SHARE, STOCK, per_node};
use crate::cell::{Cell, Part, Program};
use crate::claim::{Experiment, Paper, Scale};
use crate::experiments::making::{BOTH, KIB, and, bytes, direction, figure, gain, labels, name};
use crate::record::Place;

fn hpio(experiment: &'static str, scale: Scale, spacing: u64, op: Op, schemes: &[&'static str]) -> Cell {
    let (processes, region_size) = (32, 16 * KIB);
    let regions = match (scale.place, scale.quick) {
        (Place::Simulated, false) => 4096,
        (Place::Simulated, true) => 256,
        (_, true) => 64,
        (_, false) => 128,
    };
    let program = Hpio {
        processes,
        per_node: per_node(scale, processes),
        regions,
        region_size,
        spacing,
        interleaved: true,
        direction: direction(op),
        collective: None,
        file: "hpio.data".into(),
    };
    let requests = u64::from(processes) * regions;
    Of {
        experiment,
        labels: labels([("op", name(op)), ("spacing", &bytes(spacing))]),
        scale,
        servers: (8, 4),
        share: SHARE,
        part: Part { program: Program::Hpio(program), op },
        bytes: requests * region_size,
        requests,
        schemes,
    }
    .cell()
}

/// Bytes between regions; empty if the experiment is not run at that place.
fn spacings(scale: Scale) -> &'static [u64] {
    match (scale.place, scale.quick) {
        (Place::Disks, _) => &[],
        (Place::Emulated, true) => &[0, 4 * KIB],
        _ => &[0, KIB, 2 * KIB, 4 * KIB],
    }
}

fn both_ops(scale: Scale) -> &'static [Op] {
    if scale.place == Place::Emulated && scale.quick { &[Op::Write] } else { &BOTH }
}

pub(super) fn s4() -> Experiment {
    fn cells(scale: Scale) -> Vec<Cell> {
        let all =
            spacings(scale).iter().flat_map(|&spacing| both_ops(scale).iter().map(move |&op| (spacing, op)));
        all.map(|(spacing, op)| hpio("S4", scale, spacing, op, &SELECTIVE)).collect()
    }
    let claims = [("0", 0.169), ("1K", 0.237), ("2K", 0.242), ("4K", 0.303)].map(|(spacing, claimed)| {
        let of = labels([("op", "write"), ("spacing", spacing)]);
        gain(&format!("writes, spacing {spacing}, SCA"), of, "SCA", STOCK, (claimed, claimed))
    });
    let figures = BOTH.map(|op| {
        let title = format!("HPIO, 32 processes, 4096 regions of 16 KiB: {}s", name(op));
        figure(&title, labels([("op", name(op))]), ("spacing", "bytes between regions"), &SELECTIVE)
    });
    Experiment {
        id: "S4",
        paper: Paper::Sla,
        title: "Selective admission: HPIO",
        setting: "32 processes, 4096 regions of 16 KiB, 0 to 4 KiB apart; 8 HServers, 4 SServers, cache for 30 %",
        claimed: "SCA +17, +24, +24, +30 % (writes); reads alike",
        claims: claims.into(),
        figures: figures.into(),
        cells,
    }
}

fn tile(experiment: &'static str, scale: Scale, published: u32, op: Op, schemes: &[&'static str]) -> Cell {
    let full = scale.place == Place::Simulated;
    let (tiles_x, tiles_y) = match (published, full) {
        (100, true) => (10, 10),
        (200, true) => (20, 10),
        (300, true) => (20, 15),
        (400, true) => (20, 20),
        (100, false) => (3, 3),
        (200, false) => (6, 3),
        (300, false) => (6, 5),
        _ => (6, 6),
    };
    let processes = tiles_x * tiles_y;
    // On a small machine tiles have fewer rows. Each row is a request of 20 elements of 64 KiB.
    let elements_y = if full && !scale.quick {
        20
    } else if full {
        8
    } else {
        200 / u64::from(processes).max(20)
    };
    let program = Tile {
        tiles_x,
        tiles_y,
        per_node: per_node(scale, processes),
        elements_x: 20,
        elements_y,
        element_size: 64 * KIB,
        overlap_x: 0,
        overlap_y: 0,
        header: 0,
        direction: direction(op),
        collective: None,
        file: "tile.data".into(),
    };
    let mut labels = labels([("op", name(op)), ("procs", &published.to_string())]);
    if !full {
        labels.insert("ranks".into(), processes.to_string());
    }
    let requests = u64::from(processes) * elements_y;
    Of {
        experiment,
        labels,
        scale,
        servers: (8, 4),
        share: SHARE,
        part: Part { program: Program::Tile(program), op },
        bytes: requests * 20 * 64 * KIB,
        requests,
        schemes,
    }
    .cell()
}

/// Published numbers of processes; empty if the experiment is not run at that place.
fn tiles(scale: Scale) -> &'static [u32] {
    match (scale.place, scale.quick) {
        (Place::Disks, _) => &[],
        (Place::Emulated, true) => &[100, 400],
        _ => &[100, 200, 300, 400],
    }
}

pub(super) fn s5() -> Experiment {
    fn cells(scale: Scale) -> Vec<Cell> {
        let all = tiles(scale).iter().flat_map(|&procs| BOTH.map(move |op| (procs, op)));
        all.map(|(procs, op)| tile("S5", scale, procs, op, &SELECTIVE)).collect()
    }
    let claims = BOTH.map(|op| {
        let claimed = if op == Op::Write { (0.217, 0.376) } else { (0.262, 0.393) };
        tiles(Scale { place: Place::Simulated, quick: false }).iter().map(move |procs| {
            let of = labels([("op", name(op)), ("procs", &procs.to_string())]);
            gain(&format!("{}s, {procs} processes, SCA", name(op)), of, "SCA", STOCK, claimed)
        })
    });
    let figures = BOTH.map(|op| {
        let title = format!("mpi-tile-io, 20 x 20 elements of 64 KiB: {}s", name(op));
        figure(&title, labels([("op", name(op))]), ("procs", "processes"), &SELECTIVE)
    });
    Experiment {
        id: "S5",
        paper: Paper::Sla,
        title: "Selective admission: mpi-tile-io",
        setting: "tiles of 20 x 20 elements of 64 KiB, 100 to 400 processes; 8 HServers, 4 SServers, cache for 30 %",
        claimed: "SCA +22 to +38 % (writes), +26 to +39 % (reads)",
        claims: claims.into_iter().flatten().collect(),
        figures: figures.into(),
        cells,
    }
}

/// Returns the cells of S6: the writes of S1, S2, S4 and S5, with LCP.
pub(super) fn s6_cells(scale: Scale) -> Vec<Cell> {
    let of = |mut cell: Cell, part: &str| {
        cell.labels = and(cell.labels, "part", part);
        cell
    };
    let sizes: &[u64] = if scale.place == Place::Disks { &[] } else { &SIZES };
    let sized = sizes.iter().map(|&request| {
        Ior { request, ..Ior::new("S6", Op::Write) }.label("size", &bytes(request)).cell(scale, &PLACED)
    });
    let mut cells: Vec<Cell> = sized.map(|cell| of(cell, "sizes")).collect();
    let processes = ior::processes("S6", scale, &[Op::Write], &PLACED);
    cells.extend(processes.into_iter().map(|cell| of(cell, "processes")));
    let spaced = spacings(scale).iter().map(|&spacing| hpio("S6", scale, spacing, Op::Write, &PLACED));
    cells.extend(spaced.map(|cell| of(cell, "HPIO")));
    let tiled = tiles(scale).iter().map(|&procs| tile("S6", scale, procs, Op::Write, &PLACED));
    cells.extend(tiled.map(|cell| of(cell, "tile-IO")));
    cells
}
