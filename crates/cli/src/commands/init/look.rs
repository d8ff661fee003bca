//! What a directory is on.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use stripewise_drivers::Probe;

/// A directory, and what is known of it.
#[derive(Debug)]
pub struct Place {
    /// Absolute, without links.
    pub path: PathBuf,
    /// The device of its file system: what has the same one shares a disk.
    pub device: u64,
    /// Bytes that this user may still write there.
    pub free_bytes: u64,
    /// Whether its disk turns; `None`: not known.
    pub rotational: Option<bool>,
    /// What a parallel file system says; `None`: it is on none.
    pub probe: Option<Probe>,
}

/// Looks at a directory with all drivers.
///
/// # Errors
/// It is no directory, may not be written to, or cannot be looked at.
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

/// What the kernel says of a block device, or the one that it is a part of.
fn rotational(device: u64) -> Option<bool> {
    let block = format!("/sys/dev/block/{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    let read = |file: &str| fs::read_to_string(format!("{block}/{file}")).ok();
    let text = read("queue/rotational").or_else(|| read("../queue/rotational"))?;
    Some(text.trim() == "1")
}

impl Place {
    /// What this user may not do, with the remedy.
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
