//! The commands that give a set's files the chosen layout on parallel file systems, or why there are none.

use std::path::Path;

use serde::{Deserialize, Serialize};
use stripewise_cluster::{Cluster, FileSystem};
use stripewise_native::{commands, express_spread, note};

use crate::candidate::Candidate;
use crate::workload::FileSet;

/// How one file system is told a layout.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Native {
    /// `Lustre`, `CephFS`, `BeeGFS` or `OrangeFS`.
    pub system: String,
    /// To be given in order; empty where the layout cannot be expressed.
    pub commands: Vec<String>,
    /// Why it cannot be expressed, or what to know about the commands.
    pub note: Option<String>,
}

/// In the order in which they are said.
const SYSTEMS: [FileSystem; 4] =
    [FileSystem::Lustre, FileSystem::CephFs, FileSystem::BeeGfs, FileSystem::OrangeFs];

/// The commands of every system for a set's candidate; none for one with several copies, which no system has.
pub fn native(candidate: &Candidate, set: &FileSet, cluster: &Cluster) -> Vec<Native> {
    if candidate.overlay.is_some() {
        return Vec::new();
    }
    let directory = directory(&set.pattern);
    let told = |system: FileSystem| {
        let (path, is_dir) = match &set.files[..] {
            [file] if sets_files(system) => (file.name.as_str(), false),
            _ => (directory.as_str(), true),
        };
        let layout = express_spread(system, &candidate.layouts, cluster, set.largest());
        let (commands, note) = match layout {
            Ok(layout) => (
                commands(system, &layout, Path::new(path), is_dir),
                note(system, candidate.layouts.len()).map(str::to_owned),
            ),
            Err(reason) => (Vec::new(), Some(format!("cannot be expressed because {reason}"))),
        };
        Native { system: system.title().to_owned(), commands, note }
    };
    SYSTEMS.into_iter().map(told).collect()
}

/// Whether a file is given a layout by name; the others' commands are for the directory that it is made in.
fn sets_files(system: FileSystem) -> bool {
    matches!(system, FileSystem::Lustre | FileSystem::CephFs)
}

/// The directory of a pattern, as far as it has no wildcards.
fn directory(pattern: &str) -> String {
    let fixed = pattern.find(['<', '*']).map_or(pattern, |end| &pattern[..end]);
    match fixed.rsplit_once('/') {
        Some(("", _)) | None => "/".to_owned(),
        Some((directory, _)) => directory.replace('\\', ""),
    }
}

#[cfg(test)]
mod tests;
