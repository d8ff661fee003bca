//! Selects the directories to measure and states the limits of each measurement.

use std::path::PathBuf;

use anyhow::{Context, ensure};
use stripewise_calibrate::Options;
use stripewise_cluster::{Cluster, Driver, NativeTarget, TargetKind, TargetSpec, Tier, size};

use super::args::Args;
use crate::preparing;

/// Stripe size in bytes of the files measured in a pool. The largest request then lies on one
/// server.
const WIDTH: u64 = 4 << 20;
/// Maximum number of files measured in a pool. The file system picks a server for each.
const FILES_MAX: u32 = 4;

/// Location of a test file.
pub struct Subject {
    pub name: String,
    pub class: String,
    pub path: PathBuf,
    /// Index of the target, which identifies its emulated server.
    pub target: u32,
    /// Number of files that share the measuring time of one server.
    pub sharing: u32,
}

impl Subject {
    pub fn options(&self, options: &Options) -> Options {
        Options {
            repeats: (options.repeats / u64::from(self.sharing)).max(2),
            seconds_per_point: options.seconds_per_point / f64::from(self.sharing),
            ..options.clone()
        }
    }
}

/// Returns the files to measure for each class: on one server or on all, and several for a pool.
/// Prepares the directories on parallel file systems.
pub fn of(cluster: &mut Cluster, args: &Args) -> anyhow::Result<Vec<Subject>> {
    let known: Vec<&str> = cluster.tiers.iter().map(|tier| tier.name.as_str()).collect();
    for name in &args.tier {
        ensure!(known.contains(&name.as_str()), "there is no tier {name:?}; there are {}", known.join(", "));
    }
    let mut classes: Vec<String> = Vec::new();
    let mut subjects = Vec::new();
    for (index, tier) in cluster.tiers.clone().iter().enumerate() {
        let wanted = args.tier.is_empty() || args.tier.contains(&tier.name);
        if !wanted || (!args.all_servers && classes.contains(&tier.class)) {
            continue;
        }
        classes.push(tier.class.clone());
        if tier.driver.is_pool() {
            subjects.extend(in_pool(cluster, index, tier));
            continue;
        }
        let targets = cluster.targets();
        let servers = cluster.targets_of(index).take(if args.all_servers { usize::MAX } else { 1 });
        subjects.extend(servers.map(|target| subject(&targets[target as usize], target, tier)));
    }
    let targets = cluster.targets();
    for subject in &subjects {
        let spec = &targets[subject.target as usize];
        preparing::prepare_directory(cluster, subject.target, spec)
            .with_context(|| format!("target {}", spec.name))?;
    }
    Ok(subjects)
}

/// Returns directories of a tier in which files may be made: those of its servers; of a parallel
/// file system, one that is prepared.
pub fn directories(cluster: &mut Cluster, tier: usize) -> anyhow::Result<Vec<PathBuf>> {
    let spec = cluster.tiers[tier].clone();
    if spec.driver.native().is_none() {
        let targets = cluster.targets();
        return Ok(cluster.targets_of(tier).map(|target| targets[target as usize].path.clone()).collect());
    }
    let target = match spec.driver.is_pool() {
        true => in_pool(cluster, tier, &spec).first().map_or(0, |subject| subject.target),
        false => cluster.targets_of(tier).start,
    };
    let found = cluster.targets().swap_remove(target as usize);
    preparing::prepare_directory(cluster, target, &found).with_context(|| format!("target {}", found.name))?;
    Ok(vec![found.path])
}

fn subject(spec: &TargetSpec, target: u32, tier: &Tier) -> Subject {
    Subject { name: spec.name.clone(), class: tier.class.clone(), path: spec.path.clone(), target, sharing: 1 }
}

/// Returns files that are on one server each, which the file system picks.
fn in_pool(cluster: &mut Cluster, tier: usize, spec: &Tier) -> Vec<Subject> {
    let native = NativeTarget { tier, width: WIDTH, count: 1 };
    if !cluster.native_targets.contains(&native) {
        cluster.native_targets.push(native);
    }
    let files = u32::try_from(spec.driver.servers()).unwrap_or(FILES_MAX).min(FILES_MAX);
    let found = cluster.directories().find(|(_, target)| target.kind == TargetKind::Native(native));
    let file = |(target, found): &(u32, TargetSpec), number| {
        let name = format!("{} file {number}", found.name);
        Subject { name, sharing: files, ..subject(found, *target, spec) }
    };
    found.iter().flat_map(|found| (1..=files).map(move |number| file(found, number))).collect()
}

/// Returns one sentence per tier about effects that were measured together with the servers and
/// cannot be separated from them.
pub fn inseparable(cluster: &Cluster, subjects: &[Subject], network: bool) -> Vec<String> {
    let mut notes = Vec::new();
    for (index, tier) in cluster.tiers.iter().enumerate() {
        let Driver::Native { system, .. } = &tier.driver else { continue };
        let of_tier = |subject: &&Subject| cluster.tier_of(subject.target) == Some(index);
        let files = subjects.iter().filter(of_tier).count();
        if files == 0 {
            continue;
        }
        let (name, system, width) = (&tier.name, system.title(), size::format(WIDTH));
        let advice = match network {
            true => "the network that was measured beside them counts twice: leave it out",
            false => "leave [network] at 0",
        };
        notes.push(format!(
            "tier {name}: measured through {system}, so alpha and beta are those of the network, the servers' software and the \
             devices together; {advice}"
        ));
        if tier.driver.is_pool() {
            notes.push(format!(
                "tier {name}: {system} picked the server of each of the {files} files with stripes of {width}: which it was is \
                 not known, so servers cannot be told from one another, and a slow one is a part of the spread"
            ));
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster() -> Cluster {
        let text = "[[tier]]\nname = \"a\"\nclass = \"a\"\ndriver = \"dirs\"\nservers = [\"/a0\"]\ncapacity_per_server = \"1G\"\n\
                    [[tier]]\nname = \"b\"\nclass = \"b\"\ndriver = \"cephfs\"\nroot = \"/mnt\"\npool = \"p\"\ncount = 9\n\
                    capacity_per_server = \"1G\"\n";
        Cluster::parse_uncalibrated(text, "cluster.toml").unwrap()
    }

    #[test]
    fn a_pool_is_measured_in_several_files_that_share_the_time() {
        let mut cluster = cluster();
        let tier = cluster.tiers[1].clone();
        let subjects = in_pool(&mut cluster, 1, &tier);
        assert_eq!(subjects.len(), FILES_MAX as usize);
        assert!(
            subjects.iter().all(|subject| subject.path.as_os_str() == "/mnt/b-4Mx1" && subject.target == 10)
        );
        let (whole, shared) = (Options::quick(), subjects[0].options(&Options::quick()));
        assert_eq!(shared.repeats * u64::from(FILES_MAX), whole.repeats);
        shared.check().unwrap();
        let notes = inseparable(&cluster, &subjects, false);
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert!(notes[0].contains("leave [network] at 0") && notes[1].contains("4 files"), "{notes:?}");
        assert!(inseparable(&cluster, &[], false).is_empty(), "nothing was measured");
    }
}
