//! Flags of `stripewise trace`.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::bail;
use stripewise_cluster::size;
use stripewise_recorder::{ENV_EXCLUDE, ENV_LIMIT, ENV_ONLY};

use crate::mpi;

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
    pub json: bool,

    /// Record only files whose absolute path matches; a pattern without / applies to the file's
    /// name (repeatable)
    ///
    /// ? matches any character except /, * any number of such characters, ** any number of any
    /// characters.
    #[arg(long, value_name = "GLOB", env = ENV_ONLY, value_delimiter = ':')]
    pub only: Vec<String>,
    /// Do not record files whose absolute path matches (repeatable)
    #[arg(long, value_name = "GLOB", env = ENV_EXCLUDE, value_delimiter = ':')]
    pub exclude: Vec<String>,
    /// Maximum bytes that one process may spool; calls beyond it are counted, and the trace is
    /// marked as incomplete
    #[arg(long, value_name = "SIZE", env = ENV_LIMIT, default_value = "1G", value_parser = size::parse)]
    pub limit: u64,
    /// Directory where processes spool their records; all nodes must share it [default:
    /// TRACE.spool]
    #[arg(long, value_name = "DIR")]
    pub spool: Option<PathBuf>,
    /// Keep the spool
    #[arg(long)]
    pub keep_spool: bool,
    /// The preload library [default: libstripewise_posix.so next to this executable]
    #[arg(long, value_name = "FILE", env = "STRIPEWISE_LIB")]
    pub lib: Option<PathBuf>,
    #[command(flatten)]
    pub mpi: mpi::Flags,
    /// Print only errors
    #[arg(short, long)]
    pub quiet: bool,
    /// The command to record and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// What the command does.
pub enum Mode {
    /// Shows a trace.
    Summary(PathBuf),
    /// Merges a spool into a trace.
    Merge {
        /// Directory of the spool.
        spool: PathBuf,
        /// Path of the trace to write.
        output: PathBuf,
    },
    /// Runs a command and records a trace of it.
    Record {
        /// Path of the trace to write.
        output: PathBuf,
    },
}

impl Args {
    /// Returns the mode; exactly one must be selected.
    pub fn mode(&self) -> anyhow::Result<Mode> {
        match (&self.summary, &self.merge, &self.output) {
            (Some(trace), ..) => Ok(Mode::Summary(trace.clone())),
            (None, Some(spool), Some(output)) => {
                Ok(Mode::Merge { spool: spool.clone(), output: output.clone() })
            }
            (None, None, _) if self.command.is_empty() => {
                bail!("nothing to do: give a command to record after --, or --summary TRACE, or --merge DIR")
            }
            (None, None, Some(output)) => Ok(Mode::Record { output: output.clone() }),
            (None, _, None) => bail!("where to? Name the trace to write with -o TRACE"),
        }
    }
}
