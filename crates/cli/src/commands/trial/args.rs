//! Flags of `stripewise try`.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::flags::ClusterFlags;

/// Measures whether a plan makes a command faster, and keeps the files in its layouts only if it
/// does
///
/// Runs the command as it is now and traces it, plans, places the existing files, and runs the
/// command over the new layouts. Both are repeated until the spread of the runs allows a statement.
/// What counts is the time that the command's busiest process spends in calls on the planned
/// files, and it is told for each pattern of files. If that is less by more than the spread, the
/// files stay in their new layouts; else they get back those that they had.
///
/// The command runs several times, so it must be one that can be repeated: it may write its output
/// files anew each time. Its exit code counts: if a run fails, the files get back their layouts,
/// and `try` exits with the code of the command.
///
/// Ctrl-C ends `try` at any moment. It then says in which state the files are, and prints the
/// command that undoes it. The same command line continues where it stopped: finished runs count.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  stripewise try -c cluster.toml -- ./app input
  stripewise try --undo                                      the layouts from before, also if new ones were kept
  stripewise try -c cluster.toml --cold -d cold -- ./app     with an empty page cache, as root
  stripewise try -p plan.toml -d given -- ./app input        a plan that is there already
  stripewise try --over now.toml -p new.toml -d new -- ./app input   for files that are in a plan's layouts now
  stripewise try --undo -d new
  stripewise try -c cluster.toml --native -- mpirun -n 16 ./app   in the file system's own layouts

What remains in the directory of the try (-d): the traces of all runs (for `stripewise report
--before before-1.trace -t after-1.trace`), the plan, and what is needed to undo it. The preload
library and the libraries for MPI are selected by STRIPEWISE_LIB and STRIPEWISE_MPI, as for `trace`
and `run`.")]
pub struct Args {
    #[command(flatten)]
    pub cluster: ClusterFlags,
    /// Try this plan instead of making one
    #[arg(short, long, value_name = "PLAN", conflicts_with_all = ["scheme", "min_gain", "only"])]
    pub plan: Option<PathBuf>,
    /// The plan that the command runs over now, before the change [default: none]
    #[arg(long, value_name = "PLAN", env = "STRIPEWISE_PLAN", conflicts_with = "native")]
    pub over: Option<PathBuf>,
    /// As for `plan`: one scheme instead of the best
    #[arg(long, value_name = "SCHEME")]
    pub scheme: Option<String>,
    /// As for `plan`: try a change only if it is predicted to save at least this fraction
    #[arg(long, value_name = "GAIN", allow_hyphen_values = true)]
    pub min_gain: Option<String>,
    /// As for `plan`: only files that match this pattern; may be repeated
    #[arg(long, value_name = "PATTERN")]
    pub only: Vec<String>,
    /// Place the plan in the file system's own layouts, as `place --native` does
    #[arg(long)]
    pub native: bool,
    /// Run the command at least so often in each layout
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(2..=100))]
    pub runs: u32,
    /// Run it at most so often in each layout
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(2..=100))]
    pub at_most: u32,
    /// Empty the page cache of this machine before each run; only root may. It serves all programs
    /// of the machine
    #[arg(long)]
    pub cold: bool,
    /// As for `place`: move files of other users, and any number of files, without asking
    #[arg(short, long)]
    pub yes: bool,
    /// Where the traces, the plan, and what is needed to undo are kept
    #[arg(short, long, value_name = "DIR", default_value = "stripewise-try")]
    pub dir: PathBuf,
    /// Give the files the layouts back that they had before the try of --dir
    #[arg(long, conflicts_with_all = ["command", "plan", "native", "cold"])]
    pub undo: bool,
    /// Print the result as JSON; what the command prints goes to stderr
    #[arg(long)]
    pub json: bool,
    /// Print only the result and errors
    #[arg(short, long)]
    pub quiet: bool,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "undo")]
    pub command: Vec<OsString>,
}
