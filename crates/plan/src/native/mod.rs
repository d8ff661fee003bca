//! The commands that give files the same layout on parallel file systems, or why there are none.
//!
//! Syntax as each system's tools document it; OrangeFS's as its 2.10 tools were found to work. Names that
//! only the site knows are in capitals: `ADDR(hdd/0)` is the address of the server that target hdd/0 stands for, `POOL(hdd)`
//! the pool of its tier's servers. OSTs are numbered as the targets are.

mod beegfs;
mod ceph;
mod lustre;
mod orangefs;

use serde::Serialize;
use stripewise_cluster::Cluster;
use stripewise_layout::{Layout, Region};

use crate::candidate::Candidate;
use crate::workload::FileSet;

/// How one file system is told a layout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Native {
    /// `Lustre`, `CephFS`, `BeeGFS` or `OrangeFS`.
    pub system: &'static str,
    /// To be given in order; empty where the layout cannot be expressed.
    pub commands: Vec<String>,
    /// Why it cannot be expressed, or what to know about the commands.
    pub note: Option<String>,
}

impl Native {
    fn commands(system: &'static str, commands: Vec<String>, note: Option<&str>) -> Self {
        Self { system, commands, note: note.map(str::to_owned) }
    }

    fn impossible(system: &'static str, reason: &str) -> Self {
        Self { system, commands: Vec::new(), note: Some(format!("cannot be expressed because {reason}")) }
    }
}

/// The commands of every system for a set's candidate; none for one with several copies, which no system has.
pub fn native(candidate: &Candidate, set: &FileSet, cluster: &Cluster) -> Vec<Native> {
    if candidate.overlay.is_some() {
        return Vec::new();
    }
    let subject = Subject {
        layouts: candidate.layouts.iter().map(|layout| regions_used(layout, set.largest())).collect(),
        cluster,
        file: if let [file] = &set.files[..] { Some(&file.name) } else { None },
        directory: directory(&set.pattern),
    };
    vec![lustre::native(&subject), ceph::native(&subject), beegfs::native(&subject), orangefs::native(&subject)]
}

/// What is to be expressed.
struct Subject<'a> {
    layouts: Vec<Vec<Region>>,
    cluster: &'a Cluster,
    /// The file, where there is one only.
    file: Option<&'a str>,
    /// Where the files are.
    directory: String,
}

impl Subject<'_> {
    /// The file or directory that a command is for, quoted for a shell.
    fn path(&self) -> String {
        shell(self.file.unwrap_or(&self.directory))
    }

    /// The tier that all of `targets` are in, if they are in one.
    fn tier_of(&self, targets: &[u32]) -> Option<usize> {
        let tier = self.cluster.tier_of(*targets.first()?)?;
        targets.iter().all(|&target| self.cluster.tier_of(target) == Some(tier)).then_some(tier)
    }

    /// The tier whose targets `targets` are, all of them.
    fn whole_tier(&self, targets: &[u32]) -> Option<&str> {
        let tier = self.tier_of(targets)?;
        (self.cluster.targets_of(tier).len() == targets.len()).then_some(self.cluster.tiers[tier].name.as_str())
    }

    /// Whether `targets` are all targets of the cluster.
    fn whole_cluster(&self, targets: &[u32]) -> bool {
        targets.len() == self.cluster.target_count()
    }

    fn name_of(&self, target: u32) -> String {
        self.cluster.targets().get(target as usize).map_or_else(|| target.to_string(), |spec| spec.name.clone())
    }
}

/// The regions that files of up to `largest` bytes reach.
fn regions_used(layout: &Layout, largest: u64) -> Vec<Region> {
    let used = |region: &&Region| region.start == 0 || region.start < largest;
    layout.regions().iter().filter(used).cloned().collect()
}

/// A cycle in which every target occurs once, all with the same width.
struct Even {
    targets: Vec<u32>,
    width: u64,
}

fn even(region: &Region) -> Option<Even> {
    let targets: Vec<u32> = region.cycle.iter().map(|stripe| stripe.target).collect();
    let width = region.cycle[0].width;
    let mut once = targets.clone();
    once.sort_unstable();
    once.dedup();
    let even = once.len() == targets.len() && region.cycle.iter().all(|stripe| stripe.width == width);
    even.then_some(Even { targets, width })
}

/// The directory of a pattern, as far as it has no wildcards.
fn directory(pattern: &str) -> String {
    let fixed = pattern.find(['<', '*']).map_or(pattern, |end| &pattern[..end]);
    match fixed.rsplit_once('/') {
        Some(("", _)) | None => "/".to_owned(),
        Some((directory, _)) => directory.replace('\\', ""),
    }
}

fn shell(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests;
