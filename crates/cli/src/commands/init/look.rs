//! Inspects the storage behind a directory.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use stripewise_drivers::{Pool, Probe};

/// A directory and the properties found.
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
pub fn look(path: PathBuf) -> anyhow::Result<Place> {
    let stat = fs::metadata(&path).with_context(|| format!("{} cannot be looked at", path.display()))?;
    ensure!(stat.is_dir(), "{} is no directory; name directories to keep targets in", path.display());
    let space = rustix::fs::statvfs(&path).with_context(|| format!("{}: statvfs", path.display()))?;
    let mut probes = stripewise_drivers::all().into_iter().map(|driver| driver.probe(&path));
    let probe = probes.find_map(Result::transpose).transpose()?;
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
    pub fn json(&self) -> Value {
        let path = self.path.display().to_string();
        let Some(probe) = &self.probe else {
            return json!({ "path": path, "driver": "dirs", "free_bytes": self.free_bytes, "rotational": self.rotational });
        };
        let pool = |pool: &Pool| {
            json!({
                "name": pool.name, "servers": pool.servers, "server_names": pool.server_names,
                "free_bytes": pool.free_bytes,
            })
        };
        json!({
            "path": path,
            "driver": probe.system.map_or("dirs", |system| system.name()),
            "mount": probe.mount.display().to_string(),
            "free_bytes": self.free_bytes,
            "servers": probe.servers,
            "pools": probe.pools.iter().map(pool).collect::<Vec<_>>(),
            "rights": probe.rights,
            "notes": probe.notes,
        })
    }
}
