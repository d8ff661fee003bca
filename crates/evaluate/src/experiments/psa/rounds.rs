//! X2, an addition to the papers' experiments: what decides the results of P6, the collective
//! tiles. Its cells are those of P6 with four things changed, alone and in pairs: the SServers'
//! space, whether rounds wait for their slowest aggregator, whether the last buffer of each
//! aggregator is as large as the others, and the network.

use stripewise_model::{Network, Op};

use super::collective::{BUFFER, TILES, tile_cell};
use super::setting::SCHEMES;
use crate::cell::{Cell, Program};
use crate::claim::{Experiment, Figure, Paper, Scale};
use crate::experiments::making::{BOTH, MIB, figure, labels, name};
use crate::record::{Labels, Place};

/// The range of the file that each aggregator serves, 25, 50 or 100 MiB, is a multiple of this.
const EVEN_BUFFER: u64 = 25 * MIB / 2;

/// A variant of P6, as label values: (`space`, `waiting`, `buffers`, `network`).
type Change = (&'static str, &'static str, &'static str, &'static str);

/// P6 unchanged, and its variants.
const CHANGES: [Change; 9] = [
    ("1/4", "rounds", "16M", "ethernet"),
    ("whole file", "rounds", "16M", "ethernet"),
    ("1/4", "none", "16M", "ethernet"),
    ("1/4", "rounds", "even", "ethernet"),
    ("1/4", "rounds", "16M", "none"),
    ("whole file", "rounds", "16M", "none"),
    ("whole file", "none", "16M", "ethernet"),
    ("whole file", "rounds", "even", "ethernet"),
    ("1/4", "rounds", "even", "none"),
];

fn labels_of((space, waiting, buffers, network): Change) -> Labels {
    labels([("space", space), ("waiting", waiting), ("buffers", buffers), ("network", network)])
}

fn changed(mut cell: Cell, change: Change) -> Cell {
    let (space, waiting, buffers, network) = change;
    cell.experiment = "X2";
    cell.labels.extend(labels_of(change));
    cell.waits = waiting == "rounds";
    if space == "whole file" {
        cell.storage.tiers[1].capacity_per_server *= 4;
    }
    if network == "none" {
        cell.storage.network = Network::default();
    }
    for part in &mut cell.parts {
        if let Program::Tile(tile) = &mut part.program
            && let Some(collective) = &mut tile.collective
        {
            collective.buffer = if buffers == "even" { EVEN_BUFFER } else { BUFFER };
        }
    }
    cell
}

fn cells(scale: Scale) -> Vec<Cell> {
    if scale.place != Place::Simulated {
        return Vec::new();
    }
    let of_p6 = TILES.iter().flat_map(|&(procs, tiles)| BOTH.map(|op| tile_cell(scale, procs, tiles, op)));
    of_p6.flat_map(|cell| CHANGES.map(|change| changed(cell.clone(), change))).collect()
}

/// Returns X2.
pub fn x2() -> Experiment {
    let plot = |change: Change| -> Figure {
        let (space, waiting, buffers, network) = change;
        let mut of = labels_of(change);
        of.insert("op".into(), name(Op::Read).into());
        let title = format!(
            "reads; SServers hold: {space}; waiting: {waiting}; buffers: {buffers}; network: {network}"
        );
        figure(&title, of, ("procs", "processes"), &SCHEMES)
    };
    Experiment {
        id: "X2",
        paper: Paper::Psa,
        title: "What decides collective tiles",
        setting: "ours, no row of the papers: P6's cells with SServers that hold the whole file, without waiting between collective \
                  rounds, with buffers of 12.5 MiB, of which each aggregator's part of the file is a multiple; and all three",
        claimed: "nothing; see P6",
        claims: Vec::new(),
        figures: CHANGES[..6].iter().copied().map(plot).collect(),
        cells,
    }
}
