//! Flags that several commands share.

use std::fs::ReadDir;
use std::io::ErrorKind::NotFound;
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use stripewise_cluster::{Cluster, CopySpec, OverlayKind, Rule, TargetKind, TargetSpec, size};
use stripewise_target::{MARKER, OBJECTS};

use crate::files;

/// Selects a cluster with its measured parameters.
#[derive(clap::Args)]
pub struct ClusterFlags {
    /// The cluster file; a plan that is given contains its own
    #[arg(
        short = 'c',
        long = "cluster",
        env = "STRIPEWISE_CLUSTER",
        value_name = "CLUSTER",
        default_value = "cluster.toml"
    )]
    pub path: PathBuf,
    /// The profile from `stripewise calibrate`; `none` for no profile [default: profile.toml next
    /// to the cluster file, if there is one]
    #[arg(long, env = "STRIPEWISE_PROFILE")]
    pub profile: Option<PathBuf>,
}

impl ClusterFlags {
    /// Reads the files. Returns the cluster and the profile's path.
    pub fn read(&self) -> anyhow::Result<(Cluster, Option<PathBuf>)> {
        files::cluster(&self.path, self.profile.as_deref())
    }
}

/// Selects targets by cluster file or plan.
#[derive(clap::Args)]
pub struct TargetsOf {
    /// The targets of this cluster
    #[arg(short, long, value_name = "FILE")]
    cluster: Option<PathBuf>,
    /// The targets of this plan's cluster, unless -c is given
    #[arg(short, long, value_name = "PLAN", env = "STRIPEWISE_PLAN")]
    plan: Option<PathBuf>,
}

/// Directory of a target.
pub struct TargetDirectory {
    pub path: PathBuf,
    pub emulated: bool,
    /// Limit on cache bytes in this target, or in all targets of its pool together. The largest
    /// limit of the plan's rules that put a cache there; without one, the tier's capacity per
    /// server.
    pub cache_limit_bytes: u64,
}

impl TargetsOf {
    /// Returns the targets of the cluster file if one is given, else those of the plan.
    pub fn directories(&self) -> anyhow::Result<Vec<TargetDirectory>> {
        let (mut cluster, rules) = match (&self.cluster, &self.plan) {
            (Some(path), _) => (files::uncalibrated_cluster(path)?, Vec::new()),
            (None, Some(path)) => {
                let plan = files::plan(path)?;
                (plan.cluster, plan.rules)
            }
            (None, None) => return Ok(Vec::new()),
        };
        find_native_targets(&mut cluster);
        let directory = |(number, target): (u32, TargetSpec)| {
            let tier = &cluster.tiers[target.tier];
            // Cached bytes are counted for all targets of a pool together.
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

/// Adds the native targets that were prepared in the roots of pool tiers, including those of other
/// plans. A root that cannot be read adds none.
fn find_native_targets(cluster: &mut Cluster) {
    for tier in cluster.tiers.clone() {
        let root = tier.driver.native().filter(|_| tier.driver.is_pool()).map(|(_, root)| root);
        let entries = root.and_then(|root| std::fs::read_dir(root).ok()).into_iter().flatten().flatten();
        let targets = entries.filter(|entry| !was_only_measured(&entry.path()));
        let mut names: Vec<String> = targets.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        for label in names.iter().filter_map(|name| name.strip_prefix(&tier.name)?.strip_prefix('-')) {
            cluster.target_or_native(&format!("{}/{label}", tier.name));
        }
    }
}

/// Whether `directory` is what `stripewise calibrate` leaves: a layout, but neither marker nor
/// objects. With objects, a missing marker is a loss that has to be reported.
fn was_only_measured(directory: &Path) -> bool {
    let is_missing =
        |name| std::fs::symlink_metadata(directory.join(name)).is_err_and(|e| e.kind() == NotFound);
    let is_empty = |objects: ReadDir| objects.flatten().next().is_none();
    is_missing(MARKER)
        && (is_missing(OBJECTS) || std::fs::read_dir(directory.join(OBJECTS)).is_ok_and(is_empty))
}

/// Cache limit per server that `rule` sets, if one of its caches uses `target`.
fn capacity_on(rule: &Rule, target: u32) -> Option<u64> {
    let overlay = rule.overlay.as_ref()?;
    let OverlayKind::Cache { capacity_per_server, .. } = overlay.kind else { return None };
    let there = overlay.copies.iter().flat_map(CopySpec::targets).any(|other| other == target);
    there.then_some(capacity_per_server)
}

/// Parses a size of at least 1 byte.
pub fn positive_size(text: &str) -> Result<u64, String> {
    let bytes = size::parse(text).map_err(|error| error.to_string())?;
    if bytes > 0 { Ok(bytes) } else { Err("must be at least 1 byte".to_owned()) }
}

/// Parses one of some names, each with its value.
pub fn one_of<T, const N: usize>(choices: [(&'static str, T); N]) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    let names = choices.map(|(name, _)| name);
    PossibleValuesParser::new(names).map(move |given| {
        let choice = choices.iter().find(|(name, _)| name.eq_ignore_ascii_case(&given));
        choice.expect("the parser accepts these names only").1
    })
}
