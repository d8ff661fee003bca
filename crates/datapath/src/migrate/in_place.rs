//! Changes the layout of a plain file in place, where the file system can. The file keeps its
//! inode, and with it what a copy loses: its project, its number, and its place in backups.

use std::path::Path;

use super::contents::Contents;
use super::copy::checksum;
use super::error::{MigrateError, Result};
use super::job::{Phase, Progress};
use super::place::Maker;
use super::short;
use crate::error::{Errno, FileError};
use crate::notice;
use crate::runtime::Runtime;

/// Returns whether the file has its new layout. If not, the file system cannot change it, or
/// refused, which is reported; the file is then to be copied.
///
/// # Errors
/// The file is open elsewhere or cannot be read; [`MigrateError::Altered`] if its contents differ
/// afterwards.
pub(super) fn run(
    runtime: &Runtime,
    path: &Path,
    source: &Contents,
    maker: &dyn Maker,
    progress: &mut dyn FnMut(Progress),
) -> Result<bool> {
    if !maker.changes() {
        return Ok(false);
    }
    let io = |what| move |errno: Errno| MigrateError::File(FileError::io(path, what)(errno));
    // What an earlier run left that copied the file.
    if !short::clear(runtime.sys(), path).map_err(io("remove what an earlier run left of"))? {
        return Err(MigrateError::Busy(path.into()));
    }
    source.refuse_if_open(path)?;
    let before = source.stat().map_err(io("stat"))?;
    let size = before.st_size as u64;
    let mut sum = |file: &Contents, phase| {
        checksum(file, (0, size), |done| progress(Progress { phase, done, total: size }))
    };
    let expected = sum(source, Phase::Copy).map_err(io("read"))?;
    if let Err(reason) = maker.change(path) {
        notice::warn_once(&format!(
            "{}: is copied, because its layout cannot be changed: {reason}",
            path.display()
        ));
        return Ok(false);
    }
    let changed = Contents::open(runtime, path)?;
    let after = changed.stat().map_err(io("stat"))?;
    let version = |stat: &stripewise_sys::Stat| (stat.st_ino, stat.st_size, stat.st_mtime, stat.st_mtime_nsec);
    if version(&after) != version(&before) {
        return Err(MigrateError::Changed(path.into()));
    }
    changed.forget().map_err(io("read back"))?;
    if sum(&changed, Phase::Verify).map_err(io("read back"))? != expected {
        return Err(MigrateError::Altered(path.into()));
    }
    Ok(true)
}
