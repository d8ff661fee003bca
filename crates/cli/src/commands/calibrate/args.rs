//! Flags of `calibrate`.

use std::path::PathBuf;

use stripewise_calibrate::Options;
use stripewise_calibrate::network::CLIENTS_MAX;
use stripewise_cluster::size;

/// Measures the parameters of the cost models: alpha and beta of each class of servers, e and t of
/// the network
///
/// For each class, the command reads and writes one server (or all), sequentially and at random,
/// with requests from 4K to 4M, in an unnamed test file that disappears even if the command is
/// killed. The average times are fitted by T = alpha + beta * size. The result is profile.toml,
/// which overrides the class tables of the cluster file. Measure while the servers are idle. On
/// parallel file systems the server's target is prepared and measured; for a pool, several files
/// are measured, whose servers the file system picks.
///
/// For each tier, the command also measures what open, create, close, stat, unlink and small
/// requests cost the program that makes them, on files with 1 to 16 objects and on plain files. The
/// medians are fitted by T = a + b * n. A file has an object on each of its servers, so striping
/// makes many small files slow to open; `plan` counts that. The trial files are removed, also after
/// Ctrl-C.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  stripewise calibrate -c cluster.toml
  stripewise calibrate -c cluster.toml --quick --tier ssd --points
  stripewise calibrate -c cluster.toml --all-servers --json > calibration.json
  node1$ stripewise calibrate --serve 7788
  node2$ stripewise calibrate -c cluster.toml --network node1:7788
  srun -w node3,node4 -n2 stripewise calibrate --only-network --clients 2 --network node1:7788,node2:7788")]
pub struct Args {
    /// The cluster file
    #[arg(short, long, env = "STRIPEWISE_CLUSTER", default_value = "cluster.toml", value_name = "FILE")]
    pub cluster: PathBuf,
    /// Write the profile here [default: profile.toml next to the cluster file]
    #[arg(short, long, env = "STRIPEWISE_PROFILE", value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Measure only this tier's class and keep the other classes of an existing profile. May be
    /// repeated
    #[arg(long, env = "STRIPEWISE_TIER", value_delimiter = ',', value_name = "NAME")]
    pub tier: Vec<String>,
    /// Measure every server, average over each class, and report servers that stand out
    #[arg(long, env = "STRIPEWISE_ALL_SERVERS")]
    pub all_servers: bool,
    /// Number of requests per size and kind of access [default: 4000; quick: 1000]
    #[arg(long, env = "STRIPEWISE_REPEATS", value_name = "N")]
    pub repeats: Option<u64>,
    /// Time limit per size and kind of access [default: 3; quick: 0.2]. Each server has 44 such
    /// points
    #[arg(long, env = "STRIPEWISE_SECONDS_PER_POINT", value_name = "SECONDS")]
    pub seconds_per_point: Option<f64>,
    /// Size of the test file [default: 256M; quick: 64M]
    #[arg(long, env = "STRIPEWISE_FILE_SIZE", value_parser = size::parse, value_name = "SIZE")]
    pub file_size: Option<u64>,
    /// Take about ten seconds per server instead of two minutes
    #[arg(long, env = "STRIPEWISE_QUICK")]
    pub quick: bool,
    /// Measure e and t too, against a host that runs `stripewise calibrate --serve PORT`. With
    /// several, separated by commas, against all of them at once: a single connection may not fill
    /// this host's link
    #[arg(long, env = "STRIPEWISE_NETWORK", value_delimiter = ',', value_name = "HOST:PORT")]
    pub network: Vec<String>,
    /// Measure only the network, and keep the classes of an existing profile
    #[arg(long, requires = "network")]
    pub only_network: bool,
    /// Measure the network from so many hosts at once. Each of them runs this command, and they
    /// wait for each other. One of them writes the profile
    #[arg(long, requires = "only_network", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=CLIENTS_MAX as u64), value_name = "N")]
    pub clients: u64,
    /// Act as the remote side of `--network` until Ctrl-C. Listens on all addresses unless one is
    /// given; port 0 picks a free port
    #[arg(long, value_name = "[ADDRESS:]PORT")]
    pub serve: Option<String>,
    /// Show the measurements of every request size
    #[arg(long)]
    pub points: bool,
    /// Overwrite the output even if it is not a profile
    #[arg(long)]
    pub force: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Suppress progress output
    #[arg(short, long, env = "STRIPEWISE_QUIET")]
    pub quiet: bool,
}

impl Args {
    pub fn options(&self) -> anyhow::Result<Options> {
        let mut options = if self.quick { Options::quick() } else { Options::thorough() };
        options.repeats = self.repeats.unwrap_or(options.repeats);
        options.seconds_per_point = self.seconds_per_point.unwrap_or(options.seconds_per_point);
        options.file_size = self.file_size.unwrap_or(options.file_size);
        options.check().map_err(anyhow::Error::msg)?;
        Ok(options)
    }

    pub fn output(&self) -> PathBuf {
        self.output.clone().unwrap_or_else(|| self.cluster.with_file_name("profile.toml"))
    }
}
