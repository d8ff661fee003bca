//! Flags that several commands have.

use std::path::PathBuf;

use stripewise_cluster::{Cluster, CopySpec, OverlayKind, Rule, TargetKind, TargetSpec, size};

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

/// A target's directory.
pub struct TargetDirectory {
    pub path: PathBuf,
    pub emulated: bool,
    /// Bytes that caches may fill there, or in all targets of its pool together: what the plan says of those that it has there, else the
    /// tier's capacity.
    pub cache_limit_bytes: u64,
}

impl TargetsOf {
    /// The targets of the cluster or the plan, whichever is given.
    ///
    /// # Errors
    /// The file cannot be read, or is wrong.
    pub fn directories(&self) -> anyhow::Result<Vec<TargetDirectory>> {
        let (mut cluster, rules) = match (&self.cluster, &self.plan) {
            (Some(path), _) => {
                (Cluster::parse_uncalibrated(&files::read(path)?, &path.display().to_string())?, Vec::new())
            }
            (None, Some(path)) => {
                let plan = managed::plan(path)?;
                (plan.cluster, plan.rules)
            }
            (None, None) => return Ok(Vec::new()),
        };
        find_native_targets(&mut cluster);
        let directory = |(number, target): (u32, TargetSpec)| {
            let tier = &cluster.tiers[target.tier];
            // What caches hold is counted for all targets of a pool together.
            let servers = match target.kind {
                TargetKind::Native(native) => cluster.targets_of(native.tier).len() as u64,
                _ => 1,
            };
            let planned = rules.iter().filter_map(|rule| capacity_on(rule, number)).max();
            TargetDirectory {
                path: target.path,
                emulated: tier.emulate,
                cache_limit_bytes: planned.unwrap_or(tier.capacity_per_server).saturating_mul(servers),
            }
        };
        Ok(cluster.directories().map(directory).collect())
    }
}

/// The native targets that were prepared in the roots of pool tiers, also those of other plans. A root that cannot be read is
/// as one without any.
fn find_native_targets(cluster: &mut Cluster) {
    for tier in cluster.tiers.clone() {
        let root = tier.driver.native().filter(|_| tier.driver.is_pool()).map(|(_, root)| root);
        let entries = root.and_then(|root| std::fs::read_dir(root).ok()).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        for label in names.iter().filter_map(|name| name.strip_prefix(&tier.name)?.strip_prefix('-')) {
            cluster.target_or_native(&format!("{}/{label}", tier.name));
        }
    }
}

/// What a rule's caches may fill on a target, if they lie there.
fn capacity_on(rule: &Rule, target: u32) -> Option<u64> {
    let overlay = rule.overlay.as_ref()?;
    let OverlayKind::Cache { capacity_per_server, .. } = overlay.kind else { return None };
    let there = overlay.copies.iter().flat_map(CopySpec::targets).any(|other| other == target);
    there.then_some(capacity_per_server)
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
