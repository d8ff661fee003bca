//! C2: one layout for all files of a mix, chosen by overall cost (CIL §6.3).

use stripewise_model::Op;
use stripewise_trace::synth::{Access, Tile, TwoPhase};

use super::setting::{Bed, ETHERNET, INFINIBAND, beds, three_layouts};
use crate::cell::{Cell, Part, Program, Scheme};
use crate::claim::{Claim, Experiment, Figure, Paper, Scale};
use crate::experiments::making::{KIB, MIB, access_name, direction, figure, gain, labels, largest};
use crate::record::{Labels, Place};

/// Returns the experiment.
pub fn c2() -> Experiment {
    Experiment {
        id: "C2",
        paper: Paper::Cil,
        title: "One layout for a mix of runs, by overall cost",
        setting: "10 mixes of 6 to 10 runs of IOR (a file for each process, requests of 4K to 4M) or tile-IO (tiles of 1, 2 or 4M of a shared \
                  file, half of them collective), of 1 to 96 processes (InfiniBand: 64), reads or writes, one run after the other; IOR in \
                  order, or at random. Sizes, processes and directions are drawn with a fixed seed: the paper does not print its \
                  own. A process of IOR moves 8M, but makes at most 256 requests. Of 1-DH, 2-D and 1-DV the one whose overall cost is \
                  least is used for all files (\"least cost\"); beside it, what the planner picks for each kind of file, of all its \
                  layouts. Measured: 8 servers without a network, 1 to 16 processes, a quarter of the data.",
        claimed: "Up to 57 % more bandwidth than with 1-DH on Ethernet, up to 35 % on InfiniBand.",
        claims: claims(),
        figures: figures(),
        cells,
    }
}

fn claims() -> Vec<Claim> {
    let up_to = |what: &str, of: Labels, claimed: f64| largest(what, of, "least cost", "1-DH", claimed);
    vec![
        up_to("up to, Ethernet", labels([("network", ETHERNET)]), 0.57),
        up_to("up to, InfiniBand", labels([("network", INFINIBAND)]), 0.35),
        gain(
            "all mixes together, no more than the most claimed",
            Labels::new(),
            "least cost",
            "1-DH",
            (0.0, 0.57),
        ),
    ]
}

fn figures() -> Vec<Figure> {
    let schemes = ["1-DH", "2-D", "1-DV", "least cost", "overall"];
    let of = |network: &str, access: &str| {
        let labels = labels([("network", network), ("access", access)]);
        figure(&format!("{network}, {access}"), labels, ("mix", "mix of runs"), &schemes)
    };
    [ETHERNET, INFINIBAND]
        .iter()
        .flat_map(|network| [of(network, "sequential"), of(network, "random")])
        .collect()
}

fn cells(scale: Scale) -> Vec<Cell> {
    let simulated = scale.place == Place::Simulated;
    let mixes = match (simulated, scale.quick) {
        (true, false) => 10,
        (false, true) => 2,
        _ => 4,
    };
    let mut schemes = three_layouts();
    schemes.extend([Scheme::LeastCost(three_layouts()), Scheme::Planner("overall")]);
    let mut cells = Vec::new();
    for bed in beds(scale.place) {
        for mix in 1..=mixes {
            for access in [Access::Sequential, Access::Random] {
                cells.push(Cell {
                    waits: true,
                    experiment: "C2",
                    labels: bed.labels(labels([("mix", &mix.to_string()), ("access", access_name(access))])),
                    storage: bed.storage(if simulated { 1.0 } else { 6.0 }),
                    parts: parts(&bed, mix, access, simulated),
                    schemes: schemes.clone(),
                });
            }
        }
    }
    cells
}

/// Returns the runs of a mix. They are the same for both kinds of access.
fn parts(bed: &Bed, mix: u64, access: Access, simulated: bool) -> Vec<Part> {
    let mut random = Random(mix);
    let runs = 6 + random.below(5);
    let procs: Vec<u32> = bed.procs.iter().copied().filter(|&procs| simulated || procs <= 16).collect();
    let parts = (0..runs).map(|run| {
        let op = if random.below(2) == 0 { Op::Read } else { Op::Write };
        if random.below(3) == 0 {
            let grid =
                [(2, 2), (4, 2), (4, 4), (8, 4), (8, 8)][random.below(if simulated { 5 } else { 3 }) as usize];
            let size = MIB << random.below(3);
            tile(bed, op, grid, size, random.below(2) == 0, simulated, run)
        } else {
            let procs = procs[random.below(procs.len() as u64) as usize];
            let size = (4 * KIB) << random.below(11);
            let (moved, most) = if simulated { (8 * MIB, 256) } else { (2 * MIB, 64) };
            let each = (moved / size).clamp(2, most);
            bed.ior(op, procs, size, each, access, format!("ior{run}"))
        }
    });
    parts.collect()
}

/// Returns a tile program with 64 rows per tile.
fn tile(
    bed: &Bed,
    op: Op,
    (tiles_x, tiles_y): (u32, u32),
    size: u64,
    collective: bool,
    simulated: bool,
    run: u64,
) -> Part {
    let procs = tiles_x * tiles_y;
    let aggregators = if simulated { procs.min(bed.clients) } else { procs.min(4) };
    let program = Program::Tile(Tile {
        tiles_x,
        tiles_y,
        per_node: bed.per_node(procs),
        elements_x: size / 64,
        elements_y: 64,
        element_size: 1,
        overlap_x: 0,
        overlap_y: 0,
        header: 0,
        direction: direction(op),
        collective: collective.then_some(TwoPhase { aggregators, buffer: 16 * MIB }),
        file: format!("tiles{run}"),
    });
    Part { program, op }
}

/// A SplitMix64 generator.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }
}
