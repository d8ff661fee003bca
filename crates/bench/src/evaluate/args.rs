//! Flags of `evaluate`.

use std::path::PathBuf;

use anyhow::bail;
use stripewise_evaluate::{Experiment, Labels, Scheme};

/// Runs the experiments of the papers, and reports which of their claims hold
///
/// Every experiment consists of cells: a workload on a storage configuration, under several
/// schemes. Cells are simulated at the papers' full size, or measured with real programs on
/// emulated servers, where sizes are scaled down and ratios kept. The records are in
/// DIR/simulated.jsonl, DIR/emulated.jsonl and DIR/disks.jsonl. A run that has a record is not
/// repeated, so an interrupted command continues where it stopped.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    stripewise-bench evaluate --list\n  \
    stripewise-bench evaluate all --simulated\n  \
    stripewise-bench evaluate C1 C2 --measured --quick --dir /scratch/evaluation\n  \
    stripewise-bench evaluate P1 --measured --again --only op=read --only scheme=PSA\n  \
    stripewise-bench evaluate all --render docs")]
pub struct Args {
    /// C1 to C4, P1 to P7, S1 to S7, or all
    #[arg(value_name = "EXPERIMENT", default_value = "all")]
    experiments: Vec<String>,
    /// Run the experiments in the simulator, at the published size [default, unless --measured,
    /// --render or --list is given]
    #[arg(long)]
    simulated: bool,
    /// Run real programs on emulated servers, or on disks where some are given
    #[arg(long)]
    pub measured: bool,
    /// With --measured: directory of the emulated servers and their files during the run; a
    /// directory in memory keeps disks out of the measurement
    #[arg(long, value_name = "DIR", default_value = "/dev/shm", env = "STRIPEWISE_SCRATCH")]
    pub scratch: PathBuf,
    /// With --measured: directory of the built MPI programs [default: build/ next to this program,
    /// in a directory above it, or in the current directory]
    #[arg(long, value_name = "DIR", env = "STRIPEWISE_WORKLOADS")]
    pub workloads: Option<PathBuf>,
    /// Run fewer cells and repetitions
    #[arg(long)]
    pub quick: bool,
    /// Run only cells with this label, or only this scheme (scheme=NAME), as they appear in the
    /// records; if given several times, all must match
    #[arg(long, value_name = "LABEL=VALUE", value_parser = label)]
    only: Vec<(String, String)>,
    /// Repeat runs that have a record
    #[arg(long)]
    pub again: bool,
    /// Directory of the records
    #[arg(
        long,
        value_name = "DIR",
        default_value = "stripewise-evaluation",
        env = "STRIPEWISE_EVALUATION_DIR"
    )]
    pub dir: PathBuf,
    /// Write evaluation.md and its drawings from the records in DIR into this directory
    #[arg(long, value_name = "DIR")]
    pub render: Option<PathBuf>,
    /// List experiments, settings, claims and cells, and run nothing
    #[arg(long)]
    pub list: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Suppress progress output
    #[arg(long, short, env = "STRIPEWISE_QUIET")]
    pub quiet: bool,
}

impl Args {
    pub fn simulated(&self) -> bool {
        self.simulated || !(self.measured || self.render.is_some())
    }

    /// Returns the named experiments, in their own order.
    pub fn chosen(&self, all: Vec<Experiment>) -> anyhow::Result<Vec<Experiment>> {
        let names = |name: &str, experiment: &Experiment| {
            name.eq_ignore_ascii_case("all") || name.eq_ignore_ascii_case(experiment.id)
        };
        let is_known = |name: &&String| all.iter().any(|experiment| names(name, experiment));
        if let Some(unknown) = self.experiments.iter().find(|name| !is_known(name)) {
            let known = all.iter().map(|experiment| experiment.id).collect::<Vec<_>>().join(", ");
            bail!("there is no experiment {unknown:?}; there are {known}, and all");
        }
        let wanted = |experiment: &Experiment| self.experiments.iter().any(|name| names(name, experiment));
        Ok(all.into_iter().filter(wanted).collect())
    }

    /// Returns whether the flags select a scheme of a cell with these labels.
    pub fn wants(&self, labels: &Labels, scheme: &Scheme) -> bool {
        self.only.iter().all(|(label, value)| match label.as_str() {
            SCHEME => scheme.name() == *value,
            _ => labels.get(label) == Some(value),
        })
    }

    /// Returns the command line that repeats this command.
    pub fn command(&self) -> String {
        let mut words = vec!["stripewise-bench evaluate".to_owned(), self.experiments.join(" ")];
        let flags = [(self.simulated(), "--simulated"), (self.measured, "--measured"), (self.quick, "--quick")];
        words.extend(flags.iter().filter(|(given, _)| *given).map(|(_, flag)| (*flag).to_owned()));
        words.extend(self.only.iter().map(|(label, value)| format!("--only '{label}={value}'")));
        words.join(" ")
    }
}

/// Key that selects a scheme where `--only` otherwise takes a label.
const SCHEME: &str = "scheme";

fn label(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(label, _)| !label.is_empty());
    let (label, value) = pair.ok_or_else(|| format!("'{text}' is not LABEL=VALUE, op=read say"))?;
    Ok((label.to_owned(), value.to_owned()))
}
