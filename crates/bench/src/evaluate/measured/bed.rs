//! Creates the servers and the plan of one measured run.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use stripewise_cluster::{Cluster, Plan};
use stripewise_datapath::Runtime;
use stripewise_evaluate::{Program, Storage};
use stripewise_sys::Real;
use stripewise_trace::synth::Direction;

use super::program;
use super::usage::Watch;
use crate::output::Output;
use crate::shell::{self, words};
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
    root: &'a Path,
    /// Data path of this process; its requests to emulated servers are not delayed.
    pub runtime: Arc<Runtime>,
    /// Counters of the servers.
    pub watch: Watch,
    limit: Duration,
}

/// Speed of the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// As the parameters of their class say.
    Emulated,
    /// As fast as this machine's memory.
    None,
}

impl<'a> Bed<'a> {
    /// Creates the directories and the plan files. No program may run longer than `limit`.
    ///
    /// # Errors
    /// The file system's error.
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
        let watch = Watch::begin(&plan.cluster)?;
        let mut unpaced = plan.clone();
        unpaced.cluster.tiers.iter_mut().for_each(|tier| tier.emulate = false);
        let runtime = Runtime::new(Arc::new(Real), Some(&unpaced));
        let bed = Self { workloads, root, runtime, watch, limit };
        for (pace, plan) in [(Pace::Emulated, plan), (Pace::None, &unpaced)] {
            stripewise_console::files::write_whole(&bed.plan(pace), &plan.to_toml())?;
        }
        Ok(bed)
    }

    /// Returns the directory of the files.
    pub fn data(&self) -> PathBuf {
        data(self.root)
    }

    fn plan(&self, pace: Pace) -> PathBuf {
        self.root.join(if pace == Pace::Emulated { "plan.toml" } else { "unpaced.toml" })
    }

    /// Returns the path of the statistics of the last [`Bed::run`].
    pub fn statistics(&self) -> PathBuf {
        self.root.join("statistics.jsonl")
    }

    /// Runs a program over the plan and checks that all bytes it read were right.
    ///
    /// # Errors
    /// The program fails, takes too long, or reads wrong bytes.
    pub fn run(&self, program: &Program, direction: Direction, pace: Pace) -> anyhow::Result<Output> {
        let mut line = words![&self.workloads.stripewise, "run", "-p", self.plan(pace)];
        line.extend(words!["--statistics", self.statistics(), "--"]);
        line.extend(program::command(self.workloads, program, direction, &data(self.root))?);
        let mut variables = program::VARIABLES.to_vec();
        let build = self.workloads.build.to_string_lossy();
        variables.push(("STRIPEWISE_MPI_LIB", &build));
        Output::parse(&shell::output_within(&line, self.root, &variables, self.limit)?)
    }

    /// Writes back and fetches what earlier runs left over, at the speed of this machine's memory.
    ///
    /// # Errors
    /// The data path's error.
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
