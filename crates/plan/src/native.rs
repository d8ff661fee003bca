//! Layouts in the terms of parallel file systems: the commands that give a set's files the chosen
//! layout, and the restriction of plans to the layouts of one file system, which is then used
//! without stripewise.

use std::path::Path;

use serde::{Deserialize, Serialize};
use stripewise_cluster::{Cluster, Driver, FileSystem};
use stripewise_layout::{Layout, Region};
use stripewise_native::{NativeLayout, commands, express_spread, note};

use crate::candidate::Candidate;
use crate::error::PlanError;
use crate::layouts::Layouts;
use crate::workload::FileSet;

/// How to express a layout to one file system.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Native {
    /// `Lustre`, `CephFS`, `BeeGFS` or `OrangeFS`.
    pub system: String,
    /// Shell commands, to be run in this order; empty if the layout cannot be expressed.
    pub commands: Vec<String>,
    /// Why the layout cannot be expressed, or what to know about the commands.
    pub note: Option<String>,
}

/// All systems, in the order of the output.
const SYSTEMS: [FileSystem; 4] =
    [FileSystem::Lustre, FileSystem::CephFs, FileSystem::BeeGfs, FileSystem::OrangeFs];

/// The commands of every system for a set's candidate. Empty for a candidate with several copies,
/// which no system supports.
pub fn native(candidate: &Candidate, set: &FileSet, cluster: &Cluster) -> Vec<Native> {
    if candidate.overlay.is_some() {
        return Vec::new();
    }
    let layouts = candidate.layouts.build();
    let directory = directory(&set.pattern);
    let told = |system: FileSystem| {
        let (path, is_dir) = match &set.files[..] {
            [file] if file.count() == 1 && sets_files(system) => (&*file.name, false),
            _ => (directory.as_str(), true),
        };
        let layout = express_spread(system, &layouts, cluster, set.largest());
        let (commands, note) = match layout {
            Ok(layout) => (
                commands(system, &layout, Path::new(path), is_dir),
                note(system, layouts.len()).map(str::to_owned),
            ),
            Err(reason) => (Vec::new(), Some(format!("cannot be expressed because {reason}"))),
        };
        Native { system: system.title().to_owned(), commands, note }
    };
    SYSTEMS.into_iter().map(told).collect()
}

/// Whether the system sets the layout of a single file by name. The commands of the others set it
/// for the directory in which the file is created.
fn sets_files(system: FileSystem) -> bool {
    matches!(system, FileSystem::Lustre | FileSystem::CephFs)
}

/// The directory of a pattern, up to its first wildcard.
fn directory(pattern: &str) -> String {
    let fixed = pattern.find(['<', '*']).map_or(pattern, |end| &pattern[..end]);
    match fixed.rsplit_once('/') {
        Some(("", _)) | None => "/".to_owned(),
        Some((directory, _)) => directory.replace('\\', ""),
    }
}

/// Restricts planning to the layouts of one file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnlyNative {
    /// The file system that all tiers are on.
    pub system: FileSystem,
    /// The only layout allowed, because other files of the same directory get it; `None`: any.
    pub layout: Option<NativeLayout>,
}

impl OnlyNative {
    /// The restriction for the file system that the cluster's tiers are on.
    ///
    /// # Errors
    /// The tiers are on several file systems, or one of them is on none.
    pub fn of(cluster: &Cluster) -> Result<Self, PlanError> {
        let mut systems = Vec::new();
        for tier in &cluster.tiers {
            match &tier.driver {
                Driver::Native { system, .. } => systems.push(*system),
                Driver::Dirs { .. } => {
                    return Err(PlanError::new(format!(
                        "tier {} has driver \"dirs\", over which only stripewise itself stripes: nothing can be placed \
                         natively there; describe the file system in the cluster file (`stripewise init DIR` writes one)",
                        tier.name
                    )));
                }
            }
        }
        systems.dedup();
        match systems[..] {
            [system] => Ok(Self { system, layout: None }),
            _ => Err(PlanError::new(
                "the tiers are on several file systems, and a file lies on one: nothing can be placed natively over \
                 all of them; write a cluster file for one of them",
            )),
        }
    }

    /// The candidate's layouts, cut to the size of the largest file, if new files of its directory
    /// can get them; otherwise the reason.
    pub(crate) fn admit(
        &self,
        candidate: &Candidate,
        set: &FileSet,
        cluster: &Cluster,
    ) -> Result<Layouts, String> {
        let title = self.system.title();
        if candidate.overlay.is_some() {
            return Err(format!("{title} does not keep several copies of a file in step"));
        }
        let native = self.native(candidate, set, cluster);
        let native = native.map_err(|reason| format!("{title} has no such layout: {reason}"))?;
        match &self.layout {
            Some(only) if *only != native => {
                Err(format!("the directory's new files get {only}, which other files need"))
            }
            _ => {
                let layouts = candidate.layouts.build();
                let reached: Vec<Layout> =
                    layouts.iter().map(|layout| reached(layout, set.largest())).collect();
                Ok(reached.into())
            }
        }
    }

    /// The file system's own layout for a candidate.
    pub(crate) fn native(
        &self,
        candidate: &Candidate,
        set: &FileSet,
        cluster: &Cluster,
    ) -> Result<NativeLayout, String> {
        express_spread(self.system, &candidate.layouts.build(), cluster, set.largest())
    }
}

/// The layout without the regions that files of `size` bytes do not reach, so that placing the plan
/// does not require the file size.
fn reached(layout: &Layout, size: u64) -> Layout {
    let used = |region: &&Region| region.start == 0 || region.start < size;
    let mut regions: Vec<Region> = layout.regions().iter().filter(used).cloned().collect();
    if let Some(last) = regions.last_mut() {
        last.end = None;
    }
    Layout::new(regions).unwrap_or_else(|_| layout.clone())
}

#[cfg(test)]
mod tests;
