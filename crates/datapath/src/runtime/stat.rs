//! What stat(2) of a name should have said.
//!
//! Programs ask this of files that they do not have open, `ls -l` of many: the components are asked by their names, none is
//! opened. Where that does not give the answer (an interrupted truncate, a component that is not there), the file is loaded as
//! for any other use, which waits, repairs and says what is wrong.

use std::os::fd::AsFd;
use std::path::Path;

use stripewise_sys::{Dir, Fd, Stat};
use stripewise_target::ComponentSet;

use super::{FileKey, Runtime, paths};
use crate::anchor::{self, Anchored};
use crate::file::Attributes;

/// How often a file may be replaced while it is looked at.
const TRIES: usize = 8;

impl Runtime {
    /// What stat(2) should have said: where `stat` (of the file at `path`, `follow` as it was asked for) is that of a
    /// managed file, sizes, blocks and times are replaced; and all of it where another file has meanwhile taken the name of
    /// the managed one. True then. Errors leave `stat` as it is.
    ///
    /// Costs one comparison for files that cannot be an anchor (not regular, or more blocks than a manifest has);
    /// others are opened and their first bytes read.
    pub fn correct_stat(&self, dir: Dir<'_>, path: &Path, follow: bool, stat: &mut Stat) -> bool {
        let mut replaced = false;
        for _ in 0..TRIES {
            if let Some(file) = self.find(FileKey::of(stat)) {
                return file.correct_stat(stat).is_ok() || replaced;
            }
            if !anchor::plausible(stat) && !anchor::dense(stat) {
                return replaced;
            }
            let Ok(Some((fd, anchored))) = self.open_for_look(dir, path, follow) else { return replaced };
            if let Some(now) = self.stat_of(dir, path, &fd, anchored) {
                *stat = now;
                return true;
            }
            // It was removed before its components could be asked: the name may be another file's.
            let removed = self.sys().stat(fd.as_fd()).is_ok_and(|now| now.st_nlink == 0);
            let Some(other) = removed.then(|| self.sys().stat_at(dir, path, follow).ok()).flatten() else {
                return replaced;
            };
            *stat = other;
            replaced = true;
        }
        replaced
    }

    /// What stat(2) should say of the managed file behind `fd`.
    fn stat_of(&self, dir: Dir<'_>, path: &Path, fd: &Fd, anchored: Anchored) -> Option<Stat> {
        let mut stat = self.sys().stat(fd.as_fd()).ok()?;
        if let Some(attributes) = self.attributes_by_name(&stat, &anchored) {
            attributes.put_into(&mut stat);
            return Some(stat);
        }
        if stat.st_nlink == 0 {
            return None;
        }
        let anchor = Fd::duplicate(fd.as_fd()).ok()?;
        let path = paths::absolute(self.sys(), dir, path).unwrap_or_else(|_| path.to_owned());
        let file = self.load(FileKey::of(&stat), path, anchored, anchor, false);
        match file {
            Ok(file) => file.correct_stat(&mut stat).ok().map(|()| stat),
            // Not worth a word if it was removed meanwhile.
            Err(_) if self.sys().stat(fd.as_fd()).is_ok_and(|now| now.st_nlink == 0) => None,
            Err(trouble) => {
                trouble.told();
                None
            }
        }
    }

    /// Without opening a component; `None` where that is not enough.
    fn attributes_by_name(&self, anchor: &Stat, anchored: &Anchored) -> Option<Attributes> {
        let manifest = &anchored.manifest;
        if manifest.pending_truncate.is_some() {
            return None;
        }
        let stats = manifest.all_copies().map(|copy| {
            let targets = self.targets_of(copy.targets).ok()?;
            Some((
                ComponentSet::stats_by_name(self.sys(), &targets, copy.objects(anchor.st_uid)).ok()?,
                copy.layout,
            ))
        });
        Some(Attributes::of(anchor, &stats.collect::<Option<Vec<_>>>()?))
    }
}
