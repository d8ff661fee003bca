//! Command lines of the workloads.

use std::ffi::OsString;
use std::path::Path;

use stripewise_evaluate::Program;
use stripewise_trace::synth::{Access, Btio, Direction, Hpio, Ior, RandomWithin, Tile, TwoPhase};

use crate::shell::words;
use crate::workloads::Workloads;

/// Variables for Open MPI. The synthetic requests of collective calls are those of ROMIO, so the
/// programs must use Open MPI's ROMIO as their MPI-IO. The other variables disable components that
/// one node does not need, which makes an `mpirun` start a fifth sooner.
pub const VARIABLES: [(&str, &str); 5] = [
    ("OMPI_MCA_io", "romio321"),
    ("OMPI_MCA_pml", "ob1"),
    ("OMPI_MCA_btl", "self,vader"),
    ("OMPI_MCA_plm", "isolated"),
    ("OMPI_MCA_hwloc_base_binding_policy", "none"),
];

/// Seed of the contents. Programs share it, so that each can read what another wrote.
pub const SEED: u64 = 1;

/// Returns the number of processes of a program.
pub fn ranks(program: &Program) -> u32 {
    program.benchmark().job().processes
}

/// Returns the program with its direction replaced by a fixed one, so that programs can be compared
/// regardless of direction.
pub fn undirected(program: &Program) -> Program {
    let direction = Direction::Write;
    match program {
        Program::Ior(ior) => Program::Ior(Ior { direction, ..ior.clone() }),
        Program::Hpio(hpio) => Program::Hpio(Hpio { direction, ..hpio.clone() }),
        Program::Tile(tile) => Program::Tile(Tile { direction, ..tile.clone() }),
        Program::Btio(btio) => Program::Btio(Btio { direction, ..btio.clone() }),
    }
}

/// Returns the command line of a run below `root`. The program verifies what it reads outside of
/// the timed phase.
///
/// # Errors
/// The program was not built.
pub fn command(
    workloads: &Workloads,
    program: &Program,
    direction: Direction,
    root: &Path,
) -> anyhow::Result<Vec<OsString>> {
    let (name, file, own) = match program {
        Program::Ior(program) => ("ior", &program.file, ior(program)),
        Program::Hpio(program) => ("hpio", &program.file, hpio(program)),
        Program::Tile(program) => ("tile", &program.file, tile(program)),
        Program::Btio(program) => ("btio", &program.file, btio(program)),
    };
    let mut line = words![&workloads.mpirun, "-n", ranks(program).to_string(), workloads.program(name)?];
    line.extend(words!["--file", root.join(file), "--op", direction.name(), "--seed", SEED.to_string()]);
    line.push("--json".into());
    if direction != Direction::Write {
        line.push("--verify".into());
    }
    line.extend(own.into_iter().map(OsString::from));
    Ok(line)
}

/// Returns `["--name", "7", ...]`.
fn numbers<const N: usize>(flags: [(&str, u64); N]) -> Vec<String> {
    flags.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value.to_string()]).collect()
}

fn ior(ior: &Ior) -> Vec<String> {
    let mut words =
        numbers([("--transfer", ior.transfer), ("--block", ior.block), ("--segments", ior.segments)]);
    if !ior.shared {
        words.push("--file-per-process".into());
    }
    if ior.access == Access::Random {
        let within = if ior.random_within == RandomWithin::File { "file" } else { "block" };
        words.extend(["--access", "random", "--random-within", within].map(String::from));
        words.extend(numbers([("--order", ior.seed.into())]));
    }
    words
}

fn hpio(hpio: &Hpio) -> Vec<String> {
    let mut words = numbers([
        ("--regions", hpio.regions),
        ("--region-size", hpio.region_size),
        ("--spacing", hpio.spacing),
    ]);
    if hpio.interleaved {
        words.push("--interleaved".into());
    }
    words.extend(collective(hpio.collective));
    words
}

fn tile(tile: &Tile) -> Vec<String> {
    let mut words = numbers([
        ("--tiles-x", tile.tiles_x.into()),
        ("--tiles-y", tile.tiles_y.into()),
        ("--elements-x", tile.elements_x),
        ("--elements-y", tile.elements_y),
        ("--element-size", tile.element_size),
        ("--overlap-x", tile.overlap_x),
        ("--overlap-y", tile.overlap_y),
        ("--header", tile.header),
    ]);
    words.extend(collective(tile.collective));
    words
}

fn btio(btio: &Btio) -> Vec<String> {
    let mut words = vec!["--class".to_owned(), format!("{:?}", btio.class)];
    words.extend(["--subtype".to_owned(), if btio.full.is_some() { "full" } else { "simple" }.to_owned()]);
    words.extend(btio.full.map(hints).unwrap_or_default());
    words
}

fn collective(two_phase: Option<TwoPhase>) -> Vec<String> {
    let flag = two_phase.map(|_| "--collective".to_owned());
    flag.into_iter().chain(two_phase.map(hints).unwrap_or_default()).collect()
}

/// ROMIO uses the requested number of aggregators on one node only if the hints also set how many
/// each node may have.
fn hints(two_phase: TwoPhase) -> Vec<String> {
    let hints = [
        format!("cb_nodes={}", two_phase.aggregators),
        format!("cb_buffer_size={}", two_phase.buffer),
        "cb_config_list=*:*".to_owned(),
        "romio_cb_write=enable".to_owned(),
        "romio_cb_read=enable".to_owned(),
    ];
    hints.into_iter().flat_map(|hint| ["--hint".to_owned(), hint]).collect()
}
