//! Flags of `stripewise sim`.

use std::path::PathBuf;

/// Simulates a traced application on plans: how long it would take, and which server would be
/// busiest
///
/// Every traced process issues its requests one after the other, as fast as the plan's servers
/// serve them. A server serves requests in order of arrival, and each takes the time that the
/// parameters of the server's class give. Files with several copies are served by the same
/// decisions as at run time. None of the application's files is read or written, and the servers
/// need not exist.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The trace, from `stripewise trace` or `stripewise synth`
    pub trace: PathBuf,
    /// A plan to simulate; may be given several times [default: the best candidates of
    /// `stripewise plan`]
    #[arg(short, long = "plan", value_name = "PLAN.TOML", env = "STRIPEWISE_PLAN", value_delimiter = ':')]
    pub plans: Vec<PathBuf>,
    /// The cluster file, used without plans; a plan contains its own cluster
    #[arg(short, long, env = "STRIPEWISE_CLUSTER", default_value = "cluster.toml")]
    pub cluster: PathBuf,
    /// The profile from `stripewise calibrate`; `none` for no profile [default: profile.toml next
    /// to the cluster file, if there is one]
    #[arg(long, env = "STRIPEWISE_PROFILE")]
    pub profile: Option<PathBuf>,
    /// Without plans: number of candidates to simulate, starting with those that the planner
    /// expects to be fastest
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    pub top: u32,
    /// Simulate the network, too: connections (e) and bytes (t), at the nodes of the processes and
    /// at the servers
    #[arg(long)]
    pub network: bool,
    /// Treat the time between a process's requests as computation, which takes as long as in the
    /// trace
    #[arg(long)]
    pub compute: bool,
    /// Number of runs of the application, one after the other; caches keep their content between
    /// runs
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: u32,
    /// Between runs, write back caches, synchronize replicas and fetch what the prefetch queue
    /// holds, as `stripewise drain` and `stripewise warm` do
    #[arg(long)]
    pub settle: bool,
    /// Random seed for the service times, which vary by 1 %
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Simulate a trace that is known to lack calls
    #[arg(long, env = "STRIPEWISE_ACCEPT_INCOMPLETE")]
    pub accept_incomplete: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Show no progress bar
    #[arg(short, long, env = "STRIPEWISE_QUIET")]
    pub quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  stripewise sim app.trace -c cluster.toml                       the planner's best candidates
  stripewise sim app.trace -p now.toml -p new.toml --network     two plans
  stripewise sim app.trace -p cache.toml --runs 2 --settle       what a second run gains from a cache
  stripewise synth ior --procs 4096 --transfer 1M --total 64G --shared -o big.trace && stripewise sim big.trace -c big.toml --json";
