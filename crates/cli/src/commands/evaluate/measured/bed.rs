//! New servers, a plan and nothing else: what one run is made on.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use stripewise_cluster::{Cluster, Plan};
use stripewise_datapath::Runtime;
use stripewise_evaluate::{Program, Storage};

use super::program::{self, Direction, Output};
use super::usage::Watch;
use crate::managed;
use crate::shell::{self, words};
use crate::workloads::Workloads;

/// The servers of a storage below `root`: emulated.
pub fn cluster(storage: &Storage, root: &Path) -> Cluster {
    storage.cluster(&|tier, index| root.join(format!("servers/{tier}{index}")), true)
}

/// Where a cell's files are.
pub fn data(root: &Path) -> PathBuf {
    root.join("data")
}

/// One run's servers. Make it in an empty directory.
pub struct Bed<'a> {
    workloads: &'a Workloads,
    root: &'a Path,
    /// Without pace: this process's.
    pub runtime: Arc<Runtime>,
    /// What the servers do.
    pub watch: Watch,
    limit: Duration,
}

/// How long the servers take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// What their class says.
    Emulated,
    /// As long as this machine's memory.
    None,
}

impl<'a> Bed<'a> {
    /// Makes the directories and the plan files. No program may run longer than `limit`.
    ///
    /// # Errors
    /// The file system's.
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
        let bed = Self { workloads, root, runtime: managed::runtime(Some(plan)), watch, limit };
        let mut unpaced = plan.clone();
        unpaced.cluster.tiers.iter_mut().for_each(|tier| tier.emulate = false);
        for (pace, plan) in [(Pace::Emulated, plan), (Pace::None, &unpaced)] {
            crate::files::write_whole(&bed.plan(pace), &plan.to_toml())?;
        }
        Ok(bed)
    }

    /// Where the files are.
    pub fn data(&self) -> PathBuf {
        data(self.root)
    }

    fn plan(&self, pace: Pace) -> PathBuf {
        self.root.join(if pace == Pace::Emulated { "plan.toml" } else { "unpaced.toml" })
    }

    /// What [`Bed::run`] counted last.
    pub fn statistics(&self) -> PathBuf {
        self.root.join("statistics.jsonl")
    }

    /// Runs a program over the plan; all that it read was right.
    ///
    /// # Errors
    /// It fails or takes too long; wrong bytes.
    pub fn run(&self, program: &Program, direction: Direction, pace: Pace) -> anyhow::Result<Output> {
        let mut line = words![&self.workloads.stripewise, "run", "-p", self.plan(pace)];
        line.extend(words!["--statistics", self.statistics(), "--"]);
        line.extend(program::command(self.workloads, program, direction, &data(self.root))?);
        let mut variables = program::VARIABLES.to_vec();
        let build = self.workloads.build.to_string_lossy();
        variables.push(("STRIPEWISE_MPI_LIB", &build));
        Output::parse(&shell::output_within(&line, self.root, &variables, self.limit)?)
    }

    /// Writes back and fetches what runs have left to be done so, at the speed of this machine's memory.
    ///
    /// # Errors
    /// The data path's.
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
