//! The servers and the plan of one measured run, and its counters.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use stripewise_cluster::{Cluster, Counts, Plan};
use stripewise_datapath::Runtime;
use stripewise_evaluate::{Program, Storage};
use stripewise_report::Statistics;
use stripewise_sys::{Real, SysRef};
use stripewise_target::Target;
use stripewise_target::emulate::{Emulation, Server};
use stripewise_trace::synth::Direction;

use super::program;
use crate::output::Output;
use crate::shell::{self, arguments};
use crate::workloads::Workloads;

/// Returns the emulated servers of a storage configuration below `root`.
pub fn cluster(storage: &Storage, root: &Path) -> Cluster {
    storage.cluster(&|tier, index| root.join(format!("servers/{tier}{index}")), true)
}

/// Returns the directory of a cell's files.
pub fn data(root: &Path) -> PathBuf {
    root.join("data")
}

/// The servers of one run. Create it in an empty directory.
pub struct Bed<'a> {
    workloads: &'a Workloads,
    pub root: &'a Path,
    /// Data path of this process; its requests to emulated servers are not delayed.
    pub runtime: Arc<Runtime>,
    servers: Vec<Server>,
    limit: Duration,
}

/// Speed of the servers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// As the parameters of their class say.
    Emulated,
    /// As fast as this machine's memory.
    None,
}

impl<'a> Bed<'a> {
    /// Creates the directories and the plan files. No program may run longer than `limit`.
    pub fn make(
        workloads: &'a Workloads,
        root: &'a Path,
        plan: &Plan,
        limit: Duration,
    ) -> anyhow::Result<Self> {
        let directories = plan.cluster.targets().into_iter().map(|target| target.path);
        for directory in directories.chain([data(root)]) {
            std::fs::create_dir_all(&directory)
                .with_context(|| format!("cannot make {}", directory.display()))?;
        }
        let servers = attach(&plan.cluster)?;
        let mut unpaced = plan.clone();
        unpaced.cluster.tiers.iter_mut().for_each(|tier| tier.emulate = false);
        let runtime = Runtime::new(Arc::new(Real), Some(&unpaced));
        let bed = Self { workloads, root, runtime, servers, limit };
        for (pace, plan) in [(Pace::Emulated, plan), (Pace::None, &unpaced)] {
            stripewise_console::files::write_whole(&bed.plan(pace), &plan.to_toml())?;
        }
        Ok(bed)
    }

    fn plan(&self, pace: Pace) -> PathBuf {
        self.root.join(if pace == Pace::Emulated { "plan.toml" } else { "unpaced.toml" })
    }

    /// Returns the path of the statistics of the last [`Bed::run`].
    pub fn statistics(&self) -> PathBuf {
        self.root.join("statistics.jsonl")
    }

    /// Runs a program over the plan and checks that all bytes it read were right.
    pub fn run(&self, program: &Program, direction: Direction, pace: Pace) -> anyhow::Result<Output> {
        let mut line = arguments![&self.workloads.stripewise, "run", "-p", self.plan(pace)];
        line.extend(arguments!["--statistics", self.statistics(), "--"]);
        line.extend(program::command(self.workloads, program, direction, &data(self.root))?);
        let mut variables = program::VARIABLES.to_vec();
        let build = self.workloads.build.to_string_lossy();
        variables.push(("STRIPEWISE_MPI_LIB", &build));
        Output::parse(&shell::output_within(&line, self.root, &variables, self.limit)?)
    }

    /// Returns the seconds for which the busiest server was busy. No work at all is an error.
    pub fn busy_s(&self) -> anyhow::Result<f64> {
        let busy_ns = self.servers.iter().map(|server| server.usage().busy_ns).max().unwrap_or(0);
        ensure!(busy_ns > 0, "no emulated server did anything");
        Ok(busy_ns as f64 / 1e9)
    }

    /// Writes back and fetches what earlier runs left over, at the speed of this machine's memory.
    pub fn settle(&self, path: &Path) -> anyhow::Result<()> {
        let shown = path.display();
        let Some(file) = self.runtime.open_file(path)? else { bail!("{shown} is not managed") };
        let mut tell = |_, _| ControlFlow::Continue(());
        file.drain(&mut tell).with_context(|| format!("cannot drain {shown}"))?;
        file.warm(&mut tell).with_context(|| format!("cannot warm {shown}"))?;
        file.closing();
        Ok(())
    }
}

/// Makes the directories of the cluster targets, and attaches to the emulated servers. While the
/// servers live, no process clears their shared state.
fn attach(cluster: &Cluster) -> anyhow::Result<Vec<Server>> {
    let sys: SysRef = Arc::new(Real);
    let emulation = Emulation::attach(&sys, None).context("cannot attach to the emulated servers")?;
    let mut servers = Vec::new();
    for (index, spec) in (0..).zip(cluster.targets()) {
        let target = Target::prepare(&sys, &spec.path, &spec.name)?;
        if let Some(class) = cluster.emulation_of(index) {
            servers.push(emulation.server(target.id(), class).context("too many emulated servers")?);
        }
    }
    Ok(servers)
}

/// Returns the counters of a statistics file (`docs/formats/statistics.md`), added up over
/// processes and files. The result is empty if no file had several copies.
pub fn statistics(path: &Path) -> anyhow::Result<BTreeMap<String, f64>> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let mut statistics = Statistics::default();
    statistics.read(&text, &path.display().to_string())?;
    if statistics.files.is_empty() {
        return Ok(BTreeMap::new());
    }
    let sum =
        |count: fn(&Counts) -> u64| statistics.files.iter().map(|file| count(&file.line.counts)).sum::<u64>();
    let sums = [
        ("requests", sum(|counts| counts.requests)),
        ("hits", sum(|counts| counts.hits)),
        ("partial_hits", sum(|counts| counts.partial_hits)),
        ("misses", sum(|counts| counts.requests.saturating_sub(counts.hits + counts.partial_hits))),
        ("critical", sum(|counts| counts.critical)),
        ("evictions", sum(|counts| counts.evictions)),
        ("write_backs", sum(|counts| counts.write_backs)),
    ];
    Ok(sums.map(|(name, sum)| (name.to_owned(), sum as f64)).into())
}
