//! Migrates plain files of one chunk without a journal, which would cost more than copying them
//! again.
//!
//! The name of the temporary follows from the name of the file, and the lock on the temporary is
//! the right to migrate the file. After a kill the next run finds the temporary and starts again.
//! `docs/decisions/0009-native-migration.md` lists the steps by number.

use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use stripewise_sys::{LockKind, Mode, OFlags, SysRef};
use stripewise_target::FileId;

use super::contents::Contents;
use super::copy::{checksum, copy_range};
use super::error::{MigrateError, Result};
use super::job::{Job, Phase, Progress};
use crate::runtime::temporary_name;
use crate::{Errno, anchor};

/// The id in the name of the temporary for the file at `path`. It starts with 96 zero bits, which a
/// random id does not.
fn id_for(path: &Path) -> FileId {
    let sum = crc32fast::hash(path.file_name().unwrap_or_default().as_bytes());
    FileId(u128::from(sum).to_be_bytes())
}

fn temporary_for(path: &Path) -> PathBuf {
    path.with_file_name(temporary_name(id_for(path)))
}

/// Locks the open file if it still has the name and no other process has locked it. Returns whether
/// it did.
fn claim(sys: &SysRef, file: &Contents, name: &Path) -> std::result::Result<bool, Errno> {
    let Contents::Plain(_, fd) = file else { return Ok(false) };
    if !sys.try_lock(fd.as_fd(), 0, 1, LockKind::Exclusive)? {
        return Ok(false);
    }
    anchor::is_at(sys, fd.as_fd(), name)
}

/// Step 1: removes the temporary of an earlier run that was killed. Returns false if it belongs to
/// a running process.
pub(super) fn clear(sys: &SysRef, path: &Path) -> std::result::Result<bool, Errno> {
    let temporary = temporary_for(path);
    let fd = match sys.open(None, &temporary, OFlags::RDWR | OFlags::NOFOLLOW, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(true),
        opened => opened?,
    };
    if !claim(sys, &Contents::Plain(sys.clone(), fd), &temporary)? {
        return Ok(false);
    }
    sys.unlink(None, &temporary)?;
    Ok(true)
}

/// Steps 1 to 9. Leaves nothing behind after a failure.
pub(super) fn run(job: &mut Job<'_>) -> Result<()> {
    let (sys, path) = (job.runtime.sys().clone(), job.path);
    if !clear(&sys, path).map_err(job.io("remove what an earlier run left of"))? {
        return Err(MigrateError::Busy(path.into()));
    }
    job.source.refuse_if_open(path)?;
    job.check_space()?;
    let temporary = temporary_for(path);
    let copy = job.make(id_for(path))?;
    if !claim(&sys, &copy, &temporary).map_err(job.io("lock the copy of"))? {
        return Err(MigrateError::Busy(path.into()));
    }
    job.fill_short(&copy).and_then(|()| job.switch(&temporary)).inspect_err(|_| {
        let _ = sys.unlink(None, &temporary);
    })
}

impl Job<'_> {
    /// Steps 3 to 6.
    fn fill_short(&mut self, copy: &Contents) -> Result<()> {
        let total = self.version.size;
        for _ in 0..2 {
            let tell = |done| (self.progress)(Progress { phase: Phase::Copy, done, total });
            let sum = copy_range(&self.source, copy, (0, total), tell).map_err(self.io("copy"))?;
            copy.set_size(total).map_err(self.io("set the size of the copy of"))?;
            self.give_attributes(copy)?;
            copy.sync().map_err(self.io("sync the copy of"))?;
            copy.forget().map_err(self.io("read back the copy of"))?;
            let tell = |done| (self.progress)(Progress { phase: Phase::Verify, done, total });
            if checksum(copy, (0, total), tell).map_err(self.io("read back the copy of"))? == sum {
                return Ok(());
            }
        }
        Err(MigrateError::Damaged(self.path.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporaries_are_told_from_others_and_short() {
        let name = "x".repeat(255);
        let temporary = temporary_for(&Path::new("/d").join(name));
        let name = temporary.file_name().unwrap().to_str().unwrap();
        assert!(name.len() < 50 && name.starts_with(&format!(".stripewise-{}", "0".repeat(24))), "{name}");
        assert!(crate::runtime::temporary_id(name).is_some());
        assert_ne!(temporary_for(Path::new("/d/a")), temporary_for(Path::new("/d/b")));
    }
}
