//! stat(2) of managed files by name.
//!
//! Programs stat files that they do not have open, and `ls -l` many of them. The objects are
//! therefore queried by name, without opening any. Where that is not enough (an interrupted
//! truncate, a missing object), the file is loaded as for any other use, which waits, repairs, and
//! reports what is wrong.

use std::os::fd::AsFd;
use std::path::Path;

use stripewise_extents::MapError;
use stripewise_sys::{Dir, Fd, Stat};
use stripewise_target::{ObjectSet, TargetError};

use super::Runtime;
use crate::anchor::{self, Anchored, FileKey};
use crate::error::{FileError, LogOnce};
use crate::file::Attributes;
use crate::paths;
use crate::{Errno, Result, intent};

/// Attempts to stat a file that other processes replace at the same time.
const TRIES: usize = 100;

impl Runtime {
    /// Corrects `stat`, the kernel's result for the file at `path` (`follow`: symbolic links were
    /// followed). If it is that of a managed file, size, permissions, blocks and times are
    /// replaced; if another file has meanwhile taken the name of the managed one, all of it is.
    /// Returns whether `stat` was changed. A file that may not be read, and a damaged one (reported
    /// on stderr), keep the kernel's result.
    ///
    /// Costs one comparison for a file that cannot be an anchor (not regular, or more blocks than a
    /// manifest has). Every other file is opened and its first bytes are read.
    ///
    /// # Errors
    /// The file could not be examined, or its size could not be determined. ESTALE: the name is
    /// given to another file all the time.
    pub fn correct_stat(&self, dir: Dir<'_>, path: &Path, follow: bool, stat: &mut Stat) -> Result<bool> {
        let mut replaced = false;
        for _ in 0..TRIES {
            if let Some(file) = self.find(FileKey::of(stat)) {
                return file.correct_stat(stat).map(|()| true);
            }
            if !anchor::is_possible(stat) {
                return Ok(replaced);
            }
            let (fd, anchored) = match self.open_for_look(dir, path, follow) {
                Ok(Some(found)) if self.is_key(&found.0, stat)? => found,
                // Since `stat` was made, the name was removed or given to another file.
                Ok(_) => {
                    let now = self.sys().stat_at(dir, path, follow)?;
                    if FileKey::of(&now) == FileKey::of(stat) {
                        return Ok(replaced);
                    }
                    *stat = now;
                    replaced = true;
                    continue;
                }
                Err(FileError::Io { errno: Errno::ACCESS, .. }) => return Ok(replaced),
                Err(error) => return unless_damaged(error).map(|()| replaced),
            };
            if let Some(now) = self.stat_of(dir, path, &fd, anchored)? {
                *stat = now;
                return Ok(true);
            }
            // The file was removed before its objects could be queried. The name may now be another
            // file's.
            if self.sys().stat(fd.as_fd())?.st_nlink > 0 {
                return Ok(replaced);
            }
            *stat = self.sys().stat_at(dir, path, follow)?;
            replaced = true;
        }
        // The kernel's result may be that of an anchor, whose size is not the file's.
        Err(Errno::STALE)
    }

    fn is_key(&self, fd: &Fd, stat: &Stat) -> Result<bool> {
        Ok(FileKey::of(&self.sys().stat(fd.as_fd())?) == FileKey::of(stat))
    }

    /// The corrected stat(2) result of the managed file behind `fd`; `None` if it is damaged or was
    /// removed.
    fn stat_of(&self, dir: Dir<'_>, path: &Path, fd: &Fd, anchored: Anchored) -> Result<Option<Stat>> {
        let mut stat = self.sys().stat(fd.as_fd())?;
        if let Some(attributes) = self.attributes_by_name(&stat, &anchored) {
            attributes.put_into(&mut stat);
            return Ok(Some(stat));
        }
        if stat.st_nlink == 0 {
            return Ok(None);
        }
        let anchor = Fd::duplicate(fd.as_fd())?;
        let path = paths::absolute_if_possible(self.sys(), dir, path);
        match self.load(path, anchored, anchor, false) {
            Ok(file) => file.correct_stat(&mut stat).map(|()| Some(stat)),
            // No report if the file was removed meanwhile.
            Err(_) if self.sys().stat(fd.as_fd())?.st_nlink == 0 => Ok(None),
            Err(error) => unless_damaged(error).map(|()| None),
        }
    }

    /// Computes the attributes without opening an object; `None` if that is not enough.
    fn attributes_by_name(&self, anchor: &Stat, anchored: &Anchored) -> Option<Attributes> {
        let manifest = &anchored.manifest;
        let first = self.first_target(manifest).ok()?;
        let copy = ObjectSet::stat_manifest_by_name(&first, manifest.objects(anchor.st_uid)).ok()?;
        if manifest.pending_truncate.is_some() || intent::is_possible(&copy, anchored.text_bytes) {
            return None;
        }
        let stats = manifest.all_copies().map(|copy| {
            let targets = self.targets_of(copy.targets).ok()?;
            Some((ObjectSet::stats_by_name(&targets, copy.objects(anchor.st_uid)).ok()?, copy.layout))
        });
        Some(Attributes::of(anchor, &stats.collect::<Option<Vec<_>>>()?))
    }
}

/// Reports a damaged file on stderr and returns Ok. Returns an error if the file could not be
/// examined.
fn unless_damaged(error: FileError) -> Result<()> {
    let damaged = match &error {
        FileError::Map(MapError::Io { .. } | MapError::Index { .. } | MapError::Caller { .. })
        | FileError::Io { .. } => false,
        FileError::Manifest(_) | FileError::Copied { .. } | FileError::Map(_) => true,
        FileError::Target(TargetError::Io { errno, .. }) => {
            matches!(*errno, Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS | Errno::PERM)
        }
        FileError::Target(_) => true,
    };
    let errno = error.log_once();
    if damaged { Ok(()) } else { Err(errno) }
}
