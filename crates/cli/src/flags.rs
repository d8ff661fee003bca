//! Flags that several commands have.

use std::path::PathBuf;

use stripewise_cluster::{Cluster, size};

use crate::{files, managed};

/// Whose targets.
#[derive(clap::Args)]
pub struct TargetsOf {
    /// The targets of this cluster
    #[arg(short, long, value_name = "FILE")]
    cluster: Option<PathBuf>,
    /// The targets of this plan's cluster, unless -c is given
    #[arg(short, long, value_name = "PLAN", env = "STRIPEWISE_PLAN")]
    plan: Option<PathBuf>,
}

/// A target's directory, and whether it is emulated.
pub struct TargetDirectory {
    pub path: PathBuf,
    pub emulated: bool,
}

impl TargetsOf {
    /// The targets of the cluster or the plan, whichever is given.
    ///
    /// # Errors
    /// The file cannot be read, or is wrong.
    pub fn directories(&self) -> anyhow::Result<Vec<TargetDirectory>> {
        let cluster = match (&self.cluster, &self.plan) {
            (Some(path), _) => Cluster::parse_uncalibrated(&files::read(path)?, &path.display().to_string())?,
            (None, Some(path)) => managed::plan(path)?.cluster,
            (None, None) => return Ok(Vec::new()),
        };
        let emulated = |tier: usize| cluster.tiers[tier].emulate;
        let targets = cluster.targets().into_iter();
        Ok(targets
            .map(|target| TargetDirectory { emulated: emulated(target.tier), path: target.path })
            .collect())
    }
}

/// A size that is not 0.
///
/// # Errors
/// Says what is wrong with the text.
pub fn positive_size(text: &str) -> Result<u64, String> {
    match size::parse(text) {
        Ok(0) => Err("must be at least 1 byte".to_owned()),
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(error.to_string()),
    }
}
