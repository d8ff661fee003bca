//! Inspects the storage behind a directory.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use stripewise_drivers::Probe;

/// A directory and the properties found.
#[derive(Debug)]
pub struct Place {
    /// Absolute path without symbolic links.
    pub path: PathBuf,
    /// Device of its file system. Directories with the same device share a disk.
    pub device: u64,
    /// Bytes that this user can still write there.
    pub free_bytes: u64,
    /// Whether the disk is rotational; `None` if unknown.
    pub rotational: Option<bool>,
    /// Findings of the parallel file system's driver; `None` if the directory is on none.
    pub probe: Option<Probe>,
}

/// Inspects a directory with all drivers.
///
/// # Errors
/// The path is not a directory, may not be written to, or cannot be inspected.
pub fn look(directory: &Path) -> anyhow::Result<Place> {
    let path = directory.canonicalize().with_context(|| format!("{} cannot be used", directory.display()))?;
    let stat = fs::metadata(&path).with_context(|| format!("{} cannot be looked at", path.display()))?;
    ensure!(stat.is_dir(), "{} is no directory; name directories to keep targets in", path.display());
    let space = rustix::fs::statvfs(&path).with_context(|| format!("{}: statvfs", path.display()))?;
    let mut probe = None;
    for driver in stripewise_drivers::all() {
        probe = driver.probe(&path)?;
        if probe.is_some() {
            break;
        }
    }
    if probe.is_none() {
        tempfile::tempfile_in(&path).with_context(|| {
            format!("files cannot be made in {}; name a directory that you may write to", path.display())
        })?;
    }
    let device = stat.dev();
    let free_bytes = space.f_bavail.saturating_mul(space.f_frsize);
    Ok(Place { path, device, free_bytes, rotational: rotational(device), probe })
}

/// Returns the kernel's `rotational` flag of a block device, or of the disk that a partition
/// belongs to.
fn rotational(device: u64) -> Option<bool> {
    let block = format!("/sys/dev/block/{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    let read = |file: &str| fs::read_to_string(format!("{block}/{file}")).ok();
    let text = read("queue/rotational").or_else(|| read("../queue/rotational"))?;
    Some(text.trim() == "1")
}

impl Place {
    /// Returns what this user is not permitted to do, with the remedy.
    pub fn warnings(&self) -> Vec<String> {
        let rights = self.probe.iter().flat_map(|probe| &probe.rights);
        rights.map(|right| format!("{}: {right}", self.path.display())).collect()
    }

    pub fn json(&self) -> Value {
        let path = self.path.display().to_string();
        let Some(probe) = &self.probe else {
            return json!({ "path": path, "driver": "dirs", "free_bytes": self.free_bytes, "rotational": self.rotational });
        };
        let pools: Vec<Value> = probe
            .pools
            .iter()
            .map(|pool| {
                json!({ "name": pool.name, "servers": pool.servers, "server_names": pool.server_names, "free_bytes": pool.free_bytes })
            })
            .collect();
        json!({
            "path": path,
            "driver": probe.system.map_or("dirs", |system| system.name()),
            "mount": probe.mount.display().to_string(),
            "free_bytes": self.free_bytes,
            "servers": probe.servers,
            "pools": pools,
            "rights": probe.rights,
            "notes": probe.notes,
        })
    }
}
