//! `stripewise synth` generates the trace of a benchmark without running it.

use std::path::PathBuf;

use anyhow::{Context, bail, ensure};
use clap::Subcommand;
use serde_json::json;
use stripewise_cluster::size;
use stripewise_console::{interrupt, progress};
use stripewise_trace::synth::{
    self, Access, Benchmark, Btio, BtioClass, Direction, Hpio, Ior, Job, RandomWithin, Tile, TwoPhase,
};
use stripewise_trace::{Meta, TraceWriter};

use crate::flags::{one_of, positive_size};
use crate::output;

/// Writes the trace that a benchmark would give, without running it
///
/// The trace has the requests of the real benchmark, in the same order. Times are nominal: every
/// process issues its n-th request in the n-th millisecond.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  stripewise synth ior --procs 16 --procs-per-node 2 --transfer 512K --total 16G --access random --op read --shared -o t
  stripewise synth hpio --procs 32 --regions 1024 --region-size 64K -o t
  stripewise synth tile --tiles-x 10 --tiles-y 10 --elements-x 8 --elements-y 8 --element-size 32K --collective -o t
  stripewise synth btio --class C --procs 16 --procs-per-node 2 -o t")]
pub struct Args {
    #[command(subcommand)]
    benchmark: Which,
}

const DIRECTIONS: [Direction; 3] = [Direction::Write, Direction::Read, Direction::Both];
const ORDERS: [(&str, Order); 3] =
    [("sequential", Order::Sequential), ("random", Order::Random), ("strided", Order::Strided)];
const RANGES: [(&str, RandomWithin); 2] = [("file", RandomWithin::File), ("own", RandomWithin::OwnBlock)];
const CLASSES: [(&str, BtioClass); 6] = {
    use BtioClass::{A, B, C, D, S, W};
    [("S", S), ("W", W), ("A", A), ("B", B), ("C", C), ("D", D)]
};

/// Flags of all benchmarks.
#[derive(clap::Args)]
struct Common {
    /// The trace to write
    #[arg(short, long, value_name = "TRACE")]
    output: PathBuf,
    /// Absolute path of the file that the benchmark would use
    #[arg(long, value_name = "PATH", default_value = "/synthetic/data")]
    file: String,
    /// Number of processes on each node [default: all on one]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    procs_per_node: Option<u32>,
    /// Operations to trace; both: first write everything, then read everything
    #[arg(long, value_parser = one_of(DIRECTIONS.map(|op| (op.name(), op))), default_value = "both")]
    op: Direction,
    /// Print what was written as JSON
    #[arg(long)]
    json: bool,
}

/// Hints of collective I/O.
#[derive(clap::Args)]
struct Collective {
    /// Number of aggregators of a collective call (ROMIO's hint) [default: one per node]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    cb_nodes: Option<u32>,
    /// Maximum bytes of one request of an aggregator (ROMIO's hint)
    #[arg(long, value_parser = positive_size, default_value = "16M")]
    cb_buffer_size: u64,
}

#[derive(Subcommand)]
enum Which {
    Ior(IorArgs),
    Hpio(HpioArgs),
    Tile(TileArgs),
    Btio(BtioArgs),
}

/// The order in which a process of IOR goes through the file.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    Sequential,
    Random,
    Strided,
}

/// IOR: blocks of transfers, in one shared file or in one file per process
#[derive(clap::Args)]
struct IorArgs {
    #[command(flatten)]
    common: Common,
    /// Number of processes
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    procs: u32,
    /// Bytes per request (-t)
    #[arg(long, value_parser = positive_size)]
    transfer: u64,
    /// Bytes of one process in a segment (-b)
    #[arg(long, value_parser = positive_size, conflicts_with = "total")]
    block: Option<u64>,
    /// Bytes of all processes together, instead of --block
    #[arg(long, value_parser = positive_size)]
    total: Option<u64>,
    /// Number of segments (-s) [default: 1; with --access strided as many as --total needs]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    segments: Option<u64>,
    /// Order in which a process goes through the file; strided: blocks of one transfer each,
    /// interleaved by process
    #[arg(long, value_parser = one_of(ORDERS), default_value = "sequential")]
    access: Order,
    /// Range of the random requests to a shared file: anywhere in the file, as with IOR's -z, or
    /// the process's own block
    #[arg(long, value_parser = one_of(RANGES), default_value = "file")]
    random_within: RandomWithin,
    /// Use one file for all processes instead of one per process (-F)
    #[arg(long)]
    shared: bool,
    /// Seed of the random order (-G)
    #[arg(long, default_value_t = 0)]
    seed: u32,
}

impl IorArgs {
    /// Returns the bytes of a block, and the number of segments.
    fn shape(&self) -> anyhow::Result<(u64, u64)> {
        let procs = u64::from(self.procs);
        if self.access == Order::Strided {
            let one_transfer = self.block.is_none_or(|block| block == self.transfer);
            ensure!(one_transfer, "--access strided means blocks of one transfer: leave --block out");
            let segments = match (self.total, self.segments) {
                (Some(total), None) => divided(total, self.transfer.saturating_mul(procs), "transfer * procs")?,
                (None, Some(segments)) => segments,
                _ => bail!("--access strided needs either --total or --segments"),
            };
            return Ok((self.transfer, segments));
        }
        let segments = self.segments.unwrap_or(1);
        let block = match (self.block, self.total) {
            (Some(block), _) => block,
            (None, Some(total)) => divided(total, procs.saturating_mul(segments), "procs * segments")?,
            (None, None) => bail!("how much? Give --block (bytes of one process) or --total (of all)"),
        };
        Ok((block, segments))
    }

    fn benchmark(&self) -> anyhow::Result<Box<dyn Benchmark>> {
        let (block, segments) = self.shape()?;
        let ior = Ior {
            processes: self.procs,
            per_node: self.common.procs_per_node.unwrap_or(self.procs),
            transfer: self.transfer,
            block,
            segments,
            access: match self.access {
                Order::Random => Access::Random,
                Order::Sequential | Order::Strided => Access::Sequential,
            },
            random_within: self.random_within,
            direction: self.common.op,
            shared: self.shared,
            seed: self.seed,
            file: self.common.file.clone(),
        };
        ior.check()?;
        Ok(Box::new(ior))
    }
}

/// HPIO: regions of one size with spacing between them
#[derive(clap::Args)]
struct HpioArgs {
    #[command(flatten)]
    common: Common,
    /// Number of processes
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    procs: u32,
    /// Number of regions of each process
    #[arg(long)]
    regions: u64,
    /// Bytes of a region
    #[arg(long, value_parser = positive_size)]
    region_size: u64,
    /// Bytes between regions; 0 makes the file contiguous
    #[arg(long, value_parser = size::parse, default_value = "0")]
    spacing: u64,
    /// Interleave the processes' regions in the file; otherwise each process has a contiguous range
    /// of its own
    #[arg(long)]
    interleaved: bool,
    /// Use two-phase collective I/O; otherwise every region is a request
    #[arg(long)]
    collective: bool,
    #[command(flatten)]
    hints: Collective,
}

impl HpioArgs {
    fn benchmark(&self) -> anyhow::Result<Box<dyn Benchmark>> {
        let per_node = self.common.procs_per_node.unwrap_or(self.procs);
        let hpio = Hpio {
            processes: self.procs,
            per_node,
            regions: self.regions,
            region_size: self.region_size,
            spacing: self.spacing,
            interleaved: self.interleaved,
            direction: self.common.op,
            collective: self.collective.then(|| self.hints.two_phase(self.procs, per_node)),
            file: self.common.file.clone(),
        };
        hpio.check()?;
        Ok(Box::new(hpio))
    }
}

/// mpi-tile-io: a two-dimensional array of elements, one tile per process
#[derive(clap::Args)]
struct TileArgs {
    #[command(flatten)]
    common: Common,
    /// Number of tiles in x
    #[arg(long)]
    tiles_x: u32,
    /// Number of tiles in y; x times y is the number of processes
    #[arg(long)]
    tiles_y: u32,
    /// Elements of a tile in x
    #[arg(long)]
    elements_x: u64,
    /// Elements of a tile in y
    #[arg(long)]
    elements_y: u64,
    /// Bytes of an element
    #[arg(long, value_parser = positive_size)]
    element_size: u64,
    /// Number of elements that neighbors in x share
    #[arg(long, default_value_t = 0)]
    overlap_x: u64,
    /// Number of elements that neighbors in y share
    #[arg(long, default_value_t = 0)]
    overlap_y: u64,
    /// Bytes of the file before the array
    #[arg(long, value_parser = size::parse, default_value = "0")]
    header: u64,
    /// Use two-phase collective I/O; otherwise every contiguous piece of a tile (a row) is a
    /// request
    #[arg(long)]
    collective: bool,
    #[command(flatten)]
    hints: Collective,
}

impl TileArgs {
    fn benchmark(&self) -> anyhow::Result<Box<dyn Benchmark>> {
        let Some(processes) = self.tiles_x.checked_mul(self.tiles_y).filter(|processes| *processes > 0) else {
            bail!("{} x {} tiles: that is no possible number of processes", self.tiles_x, self.tiles_y);
        };
        let per_node = self.common.procs_per_node.unwrap_or(processes);
        let tile = Tile {
            tiles_x: self.tiles_x,
            tiles_y: self.tiles_y,
            per_node,
            elements_x: self.elements_x,
            elements_y: self.elements_y,
            element_size: self.element_size,
            overlap_x: self.overlap_x,
            overlap_y: self.overlap_y,
            header: self.header,
            direction: self.common.op,
            collective: self.collective.then(|| self.hints.two_phase(processes, per_node)),
            file: self.common.file.clone(),
        };
        tile.check()?;
        Ok(Box::new(tile))
    }
}

/// BT-IO of the NAS Parallel Benchmarks: the solution of a solver, written every five time steps
#[derive(clap::Args)]
struct BtioArgs {
    #[command(flatten)]
    common: Common,
    /// Number of processes: a square number
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    procs: u32,
    /// Problem size
    #[arg(long, value_parser = one_of(CLASSES), ignore_case = true)]
    class: BtioClass,
    /// How the solution is written: with collective I/O (full), or every row of a cell as a request
    /// (simple)
    #[arg(long, value_parser = ["full", "simple"], default_value = "full")]
    subtype: String,
    #[command(flatten)]
    hints: Collective,
}

impl BtioArgs {
    fn benchmark(&self) -> anyhow::Result<Box<dyn Benchmark>> {
        let per_node = self.common.procs_per_node.unwrap_or(self.procs);
        let btio = Btio {
            class: self.class,
            processes: self.procs,
            per_node,
            full: (self.subtype == "full").then(|| self.hints.two_phase(self.procs, per_node)),
            direction: self.common.op,
            file: self.common.file.clone(),
        };
        btio.check()?;
        Ok(Box::new(btio))
    }
}

impl Collective {
    fn two_phase(&self, processes: u32, per_node: u32) -> TwoPhase {
        let nodes = processes.div_ceil(per_node);
        TwoPhase { aggregators: self.cb_nodes.unwrap_or(nodes), buffer: self.cb_buffer_size }
    }
}

fn divided(total: u64, by: u64, what: &str) -> anyhow::Result<u64> {
    ensure!(total.is_multiple_of(by), "--total {total} is no multiple of {what} = {by}: choose one that is");
    Ok(total / by)
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let (common, benchmark) = match &args.benchmark {
        Which::Ior(args) => (&args.common, args.benchmark()),
        Which::Hpio(args) => (&args.common, args.benchmark()),
        Which::Tile(args) => (&args.common, args.benchmark()),
        Which::Btio(args) => (&args.common, args.benchmark()),
    };
    let Common { output, file, json, .. } = common;
    ensure!(file.starts_with('/'), "--file {file}: must be an absolute path, since plans go by absolute paths");
    let benchmark = benchmark?;
    let failed = || format!("trace {} cannot be written", output.display());
    interrupt::remove(&TraceWriter::temporary(output));
    let mut writer = TraceWriter::create(output).with_context(failed)?;
    let bar = progress::counting("requests", false);
    synth::write(benchmark.as_ref(), &mut writer, &mut |calls| bar.set_position(calls)).with_context(failed)?;
    bar.finish_and_clear();
    let meta =
        Meta { origin: "synthetic".into(), command: std::env::args().skip(1).collect(), ..Meta::default() };
    let (trace, calls) = (output.display().to_string(), writer.requests());
    let trace_bytes = writer.finish(&meta).with_context(failed)?;
    let Job { program, processes, files, .. } = benchmark.job();
    let files = files.len();
    if *json {
        return output::json(&json!({
            "trace": trace, "benchmark": program, "processes": processes, "files": files, "calls": calls,
            "trace_bytes": trace_bytes,
        }));
    }
    println!("{trace}: {calls} calls of {processes} processes on {files} file(s), as {program} makes them");
    println!("({trace_bytes} bytes; `stripewise trace --summary {trace}` shows what is in it)");
    Ok(())
}
