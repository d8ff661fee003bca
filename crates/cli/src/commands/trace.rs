//! `stripewise trace` records what a command does to its files.

mod child;
mod record;
mod summary;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use stripewise_cluster::size;
use stripewise_recorder::{ENV_EXCLUDE, ENV_LIMIT, ENV_ONLY};
use stripewise_trace::Meta;

use crate::preload;
use summary::print_summary;

const EXAMPLES: &str = "\
Examples:
  stripewise trace -o t -- mpirun -n 16 ./app input         record a job on this machine
  stripewise trace --only '*.h5' -o t -- python3 train.py   only files whose name ends in .h5
  stripewise trace --summary t                              what the application does
A job of a launcher is recorded in a directory that all nodes have, and merged when it has ended:
  mkdir /scratch/spool
  STRIPEWISE_TRACE_DIR=/scratch/spool LD_PRELOAD=/path/libstripewise_posix.so srun ./app
  stripewise trace --merge /scratch/spool -o t

With Open MPI on several machines, pass the environment on: mpirun -x LD_PRELOAD -x STRIPEWISE_TRACE_DIR ...
Not seen: programs that do not use the C library (static ones, Go), and accesses through mappings of a file.
Files of the system and of installed software are left out unless --only names them.";

/// Records what a command does to its files, or shows the contents of a trace
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The trace to write
    #[arg(short, long, value_name = "TRACE")]
    output: Option<PathBuf>,
    /// Show the statistics of this trace
    #[arg(long, value_name = "TRACE", conflicts_with_all = ["output", "merge", "command"])]
    summary: Option<PathBuf>,
    /// Merge the spool that recorded processes left in this directory
    #[arg(long, value_name = "DIR", conflicts_with = "command", requires = "output")]
    merge: Option<PathBuf>,
    /// Print the statistics as JSON
    #[arg(long)]
    json: bool,

    /// Record only files whose absolute path matches; a pattern without / applies to the file's
    /// name (repeatable)
    ///
    /// ? matches any character except /, * any number of such characters, ** any number of any
    /// characters.
    #[arg(long, value_name = "GLOB", env = ENV_ONLY, value_delimiter = ':')]
    only: Vec<String>,
    /// Do not record files whose absolute path matches (repeatable)
    #[arg(long, value_name = "GLOB", env = ENV_EXCLUDE, value_delimiter = ':')]
    exclude: Vec<String>,
    /// Maximum bytes that one process may spool; calls beyond it are counted, and the trace is
    /// marked as incomplete
    #[arg(long, value_name = "SIZE", env = ENV_LIMIT, default_value = "1G", value_parser = size::parse)]
    limit: u64,
    /// Directory where processes spool their records; all nodes must share it [default:
    /// TRACE.spool]
    #[arg(long, value_name = "DIR")]
    spool: Option<PathBuf>,
    /// Keep the spool
    #[arg(long)]
    keep_spool: bool,
    #[command(flatten)]
    preload: preload::Flags,
    /// Print only errors
    #[arg(short, long)]
    quiet: bool,
    /// The command to record and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Shows a trace, merges a spool into one, or runs a command and records it.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match (&args.summary, &args.merge, &args.output) {
        (Some(trace), ..) => print_summary(trace, args.json, usize::MAX)?,
        (None, Some(spool), Some(output)) => {
            record::merge_spool(spool, output, &Meta::default(), args.quiet)?;
            if args.json || !args.quiet {
                print_summary(output, args.json, usize::MAX)?;
            }
        }
        (None, None, _) if args.command.is_empty() => {
            bail!("nothing to do: give a command to record after --, or --summary TRACE, or --merge DIR")
        }
        (None, None, Some(output)) => return record::run(&args, output),
        (None, _, None) => bail!("where to? Name the trace to write with -o TRACE"),
    }
    Ok(ExitCode::SUCCESS)
}
