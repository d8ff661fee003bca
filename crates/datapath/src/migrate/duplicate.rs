//! Copies a file to another path.

use std::path::Path;

use stripewise_sys::{FileType, Mode, OFlags};
use stripewise_target::FileId;

use super::contents::Contents;
use super::copy::{checksum, copy_range};
use super::error::MigrateError;
use super::job::{Phase, Progress};
use crate::error::{Errno, FileError};
use crate::runtime::{Runtime, Shape, temporary_name};

/// Copies the file at `from` to `to`, atomically: `to` always shows its old state or the complete
/// copy. The copy gets `shape`; without one, the layout of the managed file at `to`; without that,
/// it is a plain file. Its mode is that of the source, and its times are the current time. Returns
/// the bytes of the file.
///
/// # Errors
/// `to` is unchanged after any error.
pub fn copy_file(
    runtime: &Runtime,
    from: &Path,
    to: &Path,
    shape: Option<Shape<'_>>,
    progress: &mut dyn FnMut(Progress),
) -> Result<u64, MigrateError> {
    let source = Contents::open(runtime, from)?;
    let version = source.version().map_err(FileError::io(from, "stat"))?;
    let mode = source.stat().map_err(FileError::io(from, "stat"))?.st_mode;
    if FileType::from_raw_mode(mode) != FileType::RegularFile {
        return Err(MigrateError::NotRegular(from.into()));
    }
    let (temporary, destination) = make(runtime, to, Mode::from_raw_mode(mode & 0o777), shape)?;
    let copied = copy_checked(&source, &destination, from, to, version.size, progress).and_then(|()| {
        if source.version().map_err(FileError::io(from, "stat"))? != version {
            return Err(MigrateError::Changed(from.into()));
        }
        Ok(runtime.rename(None, &temporary, None, to, 0).map_err(FileError::io(to, "create"))?)
    });
    if copied.is_err() {
        let _ = runtime.unlink(None, &temporary);
    }
    copied.map(|()| version.size)
}

fn make(
    runtime: &Runtime,
    to: &Path,
    mode: Mode,
    shape: Option<Shape<'_>>,
) -> Result<(std::path::PathBuf, Contents), MigrateError> {
    let sys = runtime.sys();
    let io = |what| FileError::io(to, what);
    if matches!(sys.stat_at(None, to, true), Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
    {
        return Err(io("create")(Errno::ISDIR).into());
    }
    let new = match shape {
        Some(shape) => Some(runtime.build_shape(None, to, mode, shape)?),
        None => match runtime.manifest_at(None, to, true).map_err(io("open"))? {
            Some(like) => Some(runtime.build(
                None,
                to,
                mode,
                runtime.blueprint_of(&like).map_err(FileError::from)?,
                None,
            )?),
            None => None,
        },
    };
    if let Some(new) = new {
        let temporary = new.temporary().to_owned();
        let file = runtime.keep_temporary(new).map_err(io("create"))?;
        return Ok((temporary, Contents::Managed(file)));
    }
    let temporary = to.with_file_name(temporary_name(FileId::random(&**sys).map_err(io("create"))?));
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
    let fd = sys.open(None, &temporary, flags, mode).map_err(io("create"))?;
    Ok((temporary, Contents::Plain(sys.clone(), fd)))
}

fn copy_checked(
    source: &Contents,
    destination: &Contents,
    from: &Path,
    to: &Path,
    total: u64,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), MigrateError> {
    let mut tell = |phase, done| progress(Progress { phase, done, total });
    let all = (0, total);
    let sum = copy_range(source, destination, all, |done| tell(Phase::Copy, done))
        .map_err(FileError::io(from, "copy"))?;
    let finish = || {
        destination.set_size(total)?;
        destination.settle()?;
        destination.sync()
    };
    finish().map_err(FileError::io(to, "write"))?;
    let arrived =
        checksum(destination, all, |done| tell(Phase::Verify, done)).map_err(FileError::io(to, "read back"))?;
    if arrived == sum { Ok(()) } else { Err(MigrateError::Damaged(to.into())) }
}
