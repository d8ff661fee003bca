//! Command lines of the workloads.

use std::ffi::OsString;
use std::path::Path;

use stripewise_evaluate::Program;
use stripewise_trace::synth::{Access, Btio, Direction, Hpio, Ior, RandomWithin, Tile, TwoPhase};

use crate::shell::arguments;
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
    let mut line = arguments![&workloads.mpirun, "-n", ranks(program).to_string(), workloads.program(name)?];
    line.extend(arguments!["--file", root.join(file), "--op", direction.name(), "--seed", SEED.to_string()]);
    line.push("--json".into());
    if direction != Direction::Write {
        line.push("--verify".into());
    }
    line.extend(own.split_whitespace().map(OsString::from));
    Ok(line)
}

fn ior(ior: &Ior) -> String {
    let Ior { transfer, block, segments, seed, .. } = ior;
    let mut line = format!("--transfer {transfer} --block {block} --segments {segments}");
    if !ior.shared {
        line += " --file-per-process";
    }
    if ior.access == Access::Random {
        let within = if ior.random_within == RandomWithin::File { "file" } else { "block" };
        line += &format!(" --access random --random-within {within} --order {seed}");
    }
    line
}

fn hpio(hpio: &Hpio) -> String {
    let Hpio { regions, region_size, spacing, .. } = hpio;
    let interleaved = if hpio.interleaved { "--interleaved" } else { "" };
    let collective = collective(hpio.collective);
    format!("--regions {regions} --region-size {region_size} --spacing {spacing} {interleaved} {collective}")
}

fn tile(tile: &Tile) -> String {
    let Tile { tiles_x, tiles_y, elements_x, elements_y, element_size, overlap_x, overlap_y, header, .. } =
        tile;
    format!(
        "--tiles-x {tiles_x} --tiles-y {tiles_y} --elements-x {elements_x} --elements-y {elements_y} \
         --element-size {element_size} --overlap-x {overlap_x} --overlap-y {overlap_y} --header {header} {}",
        collective(tile.collective)
    )
}

fn btio(btio: &Btio) -> String {
    let subtype = if btio.full.is_some() { "full" } else { "simple" };
    format!("--class {:?} --subtype {subtype} {}", btio.class, btio.full.map(hints).unwrap_or_default())
}

fn collective(two_phase: Option<TwoPhase>) -> String {
    two_phase.map_or(String::new(), |two_phase| format!("--collective {}", hints(two_phase)))
}

/// ROMIO uses the requested number of aggregators on one node only if the hints also set how many
/// each node may have.
fn hints(TwoPhase { aggregators, buffer }: TwoPhase) -> String {
    format!(
        "--hint cb_nodes={aggregators} --hint cb_buffer_size={buffer} --hint cb_config_list=*:* \
         --hint romio_cb_write=enable --hint romio_cb_read=enable"
    )
}
