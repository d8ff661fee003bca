//! The commands that give a set's files the chosen layout on parallel file systems, or the reason
//! why there are none.

use std::path::Path;

use serde::{Deserialize, Serialize};
use stripewise_cluster::{Cluster, FileSystem};
use stripewise_native::{commands, express_spread, note};

use crate::candidate::Candidate;
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

#[cfg(test)]
mod tests;
