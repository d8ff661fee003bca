//! C4: replicas of a shared file with different stripes (CIL §6.4, tile-IO).

use stripewise_model::Op;
use stripewise_trace::synth::{Tile, TwoPhase};

use super::setting::{Bed, ETHERNET, INFINIBAND, beds, two_digits};
use crate::cell::{Cell, Part, Program, Scheme};
use crate::claim::{Claim, Experiment, Figure, Paper, Scale};
use crate::experiments::devices;
use crate::experiments::making::{KIB, MIB, bytes, direction, figure, gain, labels};
use crate::record::{Labels, Place};

/// Returns the experiment.
pub fn c4() -> Experiment {
    Experiment {
        id: "C4",
        paper: Paper::Cil,
        title: "Replicas of a shared file of tile-IO",
        setting: "tile-IO reads tiles of 1024x1024, 1024x2048 and 2048x2048 bytes with 4, 16, 64, 128 and 256 processes from one file, \
                  collectively and not; three copies with stripes of 16K, 256K and 4M over all servers. Collective: two-phase, an \
                  aggregator on every client node, buffers of 16M; else each row of a tile is a request, as there is no list I/O \
                  here. Measured: 8 servers without a network, 4 and 16 processes, tiles of 256K and 1M in rows of 16K; each run on servers so slow \
                  that all take about as long.",
        claimed: "13 to 23 % more bandwidth than with any one stripe.",
        claims: claims(),
        figures: figures(),
        cells,
    }
}

const STRIPES: [u64; 3] = [16 * KIB, 256 * KIB, 4 * MIB];

fn stripes() -> Vec<Scheme> {
    STRIPES.map(|stripe| Scheme::Striped { tier: "hdd", stripe }).into()
}

fn claims() -> Vec<Claim> {
    let mut claims = Vec::new();
    for over in stripes() {
        let over = over.name();
        let of = |what: String, of: Labels| gain(&what, of, "replicas", &over, (0.13, 0.23));
        claims.push(of(format!("over {over}, all runs"), Labels::new()));
        for network in [ETHERNET, INFINIBAND] {
            claims.push(of(format!("over {over}, {network}"), labels([("network", network)])));
        }
    }
    claims
}

fn figures() -> Vec<Figure> {
    let mut schemes: Vec<String> = stripes().iter().map(Scheme::name).collect();
    schemes.push("replicas".into());
    let schemes: Vec<&str> = schemes.iter().map(String::as_str).collect();
    let of = |network: &str, calls: &str| {
        let labels = labels([("network", network), ("calls", calls), ("size", "1M")]);
        figure(&format!("{network}, tiles of 1M, {calls}"), labels, ("procs", "processes"), &schemes)
    };
    [ETHERNET, INFINIBAND]
        .iter()
        .flat_map(|network| [of(network, COLLECTIVE), of(network, INDEPENDENT)])
        .collect()
}

const COLLECTIVE: &str = "collective";
const INDEPENDENT: &str = "independent";

fn cells(scale: Scale) -> Vec<Cell> {
    let simulated = scale.place == Place::Simulated;
    let mut schemes = stripes();
    schemes.push(Scheme::Replicas(stripes()));
    let tiles: &[(u64, u64)] = match (simulated, scale.quick) {
        (true, true) => &[(1024, 1024), (2048, 2048)],
        (true, false) => &[(1024, 1024), (1024, 2048), (2048, 2048)],
        (false, _) => &[(16, 16 * KIB), (64, 16 * KIB)],
    };
    let grids: &[(u32, u32)] = match (simulated, scale.quick) {
        (true, false) => &[(2, 2), (4, 4), (8, 8), (16, 8), (16, 16)],
        (true, true) => &[(2, 2), (8, 8)],
        (false, _) => &[(2, 2), (4, 4)],
    };
    let mut cells = Vec::new();
    for bed in beds(scale.place) {
        for &grid in grids {
            for &(rows, row) in tiles {
                for calls in [COLLECTIVE, INDEPENDENT] {
                    cells.push(Cell {
                        waits: true,
                        experiment: "C4",
                        labels: bed.labels(labels([
                            ("procs", &(grid.0 * grid.1).to_string()),
                            ("size", &bytes(rows * row)),
                            ("calls", calls),
                        ])),
                        storage: bed.storage(if simulated {
                            1.0
                        } else {
                            slowing(scale, &bed, grid, rows * row)
                        }),
                        parts: vec![tile(&bed, grid, (rows, row), calls == COLLECTIVE)],
                        schemes: schemes.clone(),
                    });
                }
            }
        }
    }
    cells
}

/// Returns the factor by which to slow the servers, so that the bytes of all tiles take 0.8 s
/// (0.3 s if quick) if all servers work all the time.
fn slowing(scale: Scale, bed: &Bed, grid: (u32, u32), tile_bytes: u64) -> f64 {
    let disk = devices::hdd(devices::RANDOM_S).read.random;
    let bytes = tile_bytes * u64::from(grid.0 * grid.1);
    let alone_s = disk.per_byte_s * bytes as f64 / f64::from(bed.servers);
    two_digits(if scale.quick { 0.3 } else { 0.8 } / alone_s)
}

fn tile(bed: &Bed, (tiles_x, tiles_y): (u32, u32), (rows, row): (u64, u64), collective: bool) -> Part {
    let procs = tiles_x * tiles_y;
    let aggregators = if bed.clients > 1 { procs.min(bed.clients) } else { procs.min(4) };
    let program = Program::Tile(Tile {
        tiles_x,
        tiles_y,
        per_node: bed.per_node(procs),
        elements_x: row,
        elements_y: rows,
        element_size: 1,
        overlap_x: 0,
        overlap_y: 0,
        header: 0,
        direction: direction(Op::Read),
        collective: collective.then_some(TwoPhase { aggregators, buffer: 16 * MIB }),
        file: "tiles".into(),
    });
    Part { program, op: Op::Read }
}
