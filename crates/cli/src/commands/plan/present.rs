//! Examines the files of a trace that exist: their present layouts, from the manifests of managed
//! files and from the file system, their present sizes, and which of them are programs.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::Context;
use stripewise_cluster::{Cluster, format_cycle};
use stripewise_console::progress;
use stripewise_datapath::inspect::manifest_of;
use stripewise_datapath::manifest::Manifest;
use stripewise_datapath::{FileError, Runtime};
use stripewise_layout::Layout;
use stripewise_plan::workload::FileSet;
use stripewise_plan::{Present, Workload};

use super::striped::Mounted;
use crate::managed;

/// Maximum number of files inspected per set.
const FILES_MAX: usize = 4096;
/// Maximum number of files of a set whose layouts the file system is asked for, in some ms each.
const ASKED_MAX: usize = 512;

/// Maximum number of stripes that the name of a present layout has.
const STRIPES_NAMED: usize = 16;

/// Stores in every set of the workload the present layouts of its files: that of their manifests;
/// of files without one `said`, or if that is `None` what the file system says. Files that have
/// grown since the trace count with their present sizes, unless there are so many that sets do not
/// list all of theirs. A set counts as managed if all of its files with a layout are.
pub fn find(
    workload: &mut Workload,
    cluster: &Cluster,
    said: Option<&Present>,
    quiet: bool,
) -> anyhow::Result<()> {
    let runtime = managed::runtime(None);
    let mounted = if said.is_none() { Some(Mounted::of(cluster)?) } else { None };
    let looking = progress::looking(quiet);
    for set in &mut workload.file_sets {
        set.present = said.cloned().unwrap_or_default();
        let (mut asked, mut managed) = (0, true);
        let mut layouts: Vec<Layout> = Vec::new();
        let mut layout_of = HashMap::new();
        for file in set.files.iter_mut().take(FILES_MAX) {
            // The size of a file that stands for others is their mean.
            if file.others == 0 {
                file.size = file.size.max(size_now(&runtime, Path::new(&*file.name)).unwrap_or(0));
            }
            let mut layout = layout_now(&runtime, &file.name, cluster, layout_of.len())?;
            if let Some(mounted) = mounted.as_ref().filter(|_| layout.is_none() && asked < ASKED_MAX) {
                layout = mounted.layout(Path::new(&*file.name), file.size, layout_of.len())?;
                asked += 1;
                managed &= layout.is_none();
            }
            let Some(layout) = layout else { continue };
            let index = layouts.iter().position(|known| *known == layout).unwrap_or_else(|| {
                layouts.push(layout);
                layouts.len() - 1
            });
            layout_of.insert(file.name.clone(), index as u32);
        }
        if let Some(first) = layouts.first() {
            let cycle = &first.regions()[0].cycle;
            let named = &cycle[..cycle.len().min(STRIPES_NAMED)];
            let more = layouts.len() > 1 || first.regions().len() > 1 || named.len() < cycle.len();
            let more = if more { ", ..." } else { "" };
            let cycle = format_cycle(named, cluster);
            let name = format!("as they are now: {cycle}{more}");
            set.present = Present::Known { name, layouts, layout_of: Some(layout_of), managed };
        }
    }
    looking.finish_and_clear();
    Ok(())
}

/// Returns the size of a file, bytes; `None` if it does not exist or cannot be told.
fn size_now(runtime: &Runtime, path: &Path) -> Option<u64> {
    let metadata = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    match runtime.open_file(path).ok()? {
        Some(managed) => managed.size().ok(),
        None => Some(metadata.len()),
    }
}

/// Returns the layout of a managed file, with target numbers of this cluster. Returns `None` if the
/// file is not managed, does not exist, or lies on targets that the cluster does not have. `others`
/// is the number of such files before; where the file system stripes, they use the preceding
/// servers.
///
/// # Errors
/// A file that is there and may be read cannot be recognised, or its manifest is damaged.
fn layout_now(
    runtime: &Runtime,
    path: &str,
    cluster: &Cluster,
    others: usize,
) -> anyhow::Result<Option<Layout>> {
    let Some(manifest) = manifest_now(runtime, Path::new(path))? else { return Ok(None) };
    let mut cluster = cluster.clone();
    let layout = layout_of(&manifest, &mut cluster)?;
    Ok(layout.map(|layout| cluster.unfold(&layout, others)))
}

/// Returns the manifest of a managed file; `None` if it is not managed or does not exist.
///
/// # Errors
/// As [`layout_now`].
pub fn manifest_now(runtime: &Runtime, path: &Path) -> anyhow::Result<Option<Manifest>> {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => {}
        Ok(_) => return Ok(None),
        Err(error) if is_out_of_sight(&error) => return Ok(None),
        Err(error) => return Err(error).with_context(|| path.display().to_string()),
    }
    match manifest_of(runtime, path) {
        Ok(found) => Ok(found.map(|(manifest, _)| manifest)),
        Err(FileError::Io { errno, .. }) if is_out_of_sight(&errno.into()) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns the layout of a manifest with target numbers of the cluster, which gets the native
/// targets that it lacks. Returns `None` if it does not have the targets.
pub fn layout_of(manifest: &Manifest, cluster: &mut Cluster) -> anyhow::Result<Option<Layout>> {
    let numbers: Option<Vec<u32>> =
        manifest.targets.iter().map(|target| cluster.target_or_native(&target.name)).collect();
    let renumbered = numbers.map(|numbers| manifest.layout.renumbered(|target| numbers[target as usize]));
    Ok(renumbered.transpose()?)
}

/// Whether a file of the trace is gone, cannot exist, or is not for this user to read: it is then
/// planned like one that does not exist yet.
fn is_out_of_sight(error: &io::Error) -> bool {
    use ErrorKind::{InvalidFilename, InvalidInput, NotADirectory, NotFound, PermissionDenied};
    matches!(error.kind(), NotFound | NotADirectory | PermissionDenied | InvalidFilename | InvalidInput)
}

/// Returns warnings about sets with executable files, by the pattern of the set. The kernel cannot
/// run a program from a managed file.
pub fn executables(workload: &Workload) -> HashMap<String, String> {
    let is_executable = |path: &str| {
        let metadata = std::fs::metadata(path);
        metadata.is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    };
    let of_set = |set: &FileSet| {
        let mut names = set.files.iter().take(FILES_MAX).map(|file| &*file.name);
        let first = names.find(|name| is_executable(name))?;
        let more = names.filter(|name| is_executable(name)).count();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let text = format!(
            "{first}{more} may be run as a program, which is not possible from a managed file; `place` leaves it where it \
             is unless it is named, but a new file of this pattern is managed: if programs are made here, leave the \
             pattern out of the plan (--only)"
        );
        Some((set.pattern.clone(), text))
    };
    workload.file_sets.iter().filter_map(of_set).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only files that are certainly not there count as new: an error is no answer.
    #[test]
    fn a_file_that_cannot_be_examined_is_an_error() {
        let runtime = managed::runtime(None);
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).display().to_string();
        std::fs::write(path("plain"), "text").unwrap();
        let layout = |path: &str| layout_now(&runtime, path, &Cluster::default(), 0);
        for name in [".", "plain", "plain/below", "missing", &"x".repeat(300), "a\0b"] {
            assert_eq!(layout(&path(name)).unwrap(), None, "{name}");
        }
        std::os::unix::fs::symlink("loop", path("loop")).unwrap();
        std::fs::write(path("damaged"), format!("stripewise file, format 1\n{}", "x".repeat(1000))).unwrap();
        for name in ["loop", "damaged"] {
            let error = layout(&path(name)).unwrap_err();
            assert!(format!("{error:#}").contains(&path(name)), "{error:#}");
        }
    }
}
