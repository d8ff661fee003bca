//! Creation of managed files by open(2) with O_CREAT.

use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;

use stripewise_sys::fd::close_public;
use stripewise_sys::{Dir, LockKind, Mode, OFlags, Stat};
use stripewise_target::{ComponentSet, Objects};

use super::build::NewFile;
use super::open::Public;
use super::{Opened, Runtime, Shape, access};
use crate::error::{Errno, FileError, FileResult, Logged, Result};
use crate::file::LogicalFile;
use crate::key::FileKey;
use crate::manifest::Manifest;
use crate::paths;
use crate::permissions::of_file;

/// The byte of an anchor that is locked while another file replaces it: far from bytes that
/// applications lock.
const REPLACING: u64 = i64::MAX as u64 - 1;

impl Runtime {
    /// The shape of a file that an open would create. The plan's rules are matched against the path
    /// as given, then against the path with symbolic links followed. `None` if no rule matches or
    /// no file can be created.
    ///
    /// # Errors
    /// The links could not be followed: the file may match a rule of the plan.
    pub(super) fn shape_for_open(&self, dir: Dir<'_>, path: &Path) -> Result<Option<Shape<'_>>> {
        let Some(plan) = self.plan() else { return Ok(None) };
        if plan.rules.iter().all(|rule| rule.layouts.is_empty()) || path.as_os_str().is_empty() {
            return Ok(None);
        }
        let absolute = paths::absolute(self.sys(), dir, path)?;
        if let Some(rule) = plan.rule_for(&absolute) {
            return Ok(Shape::of(rule, &absolute));
        }
        match paths::canonical(self.sys(), dir, path) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::INVAL | Errno::LOOP | Errno::NAMETOOLONG) => Ok(None),
            followed => Ok(self.shape_for(&followed?)),
        }
    }

    /// Creates a managed file. EEXIST: a file exists there, possibly created a moment ago.
    pub(super) fn create(
        &self,
        dir: Dir<'_>,
        path: &Path,
        flags: OFlags,
        mode: Mode,
        shape: Shape<'_>,
    ) -> Result<Opened> {
        let mut new = self.build(dir, path, mode, shape).logged()?;
        let raw = self.open_new(&new, flags).logged()?;
        match new.publish(path) {
            Ok(Some(file)) => Ok(Opened::Managed(raw, self.enter(file))),
            Ok(None) => Err(Errno::IO),
            Err(error) => {
                close_public(raw);
                Err(error)
            }
        }
    }

    /// Opens the application's descriptor of a new file, read-only regardless of `flags`. The
    /// creator of a file may access it as asked regardless of its mode (open(2)), so the mode is
    /// lifted for the open. No other process knows the temporary name.
    fn open_new(&self, new: &NewFile, flags: OFlags) -> FileResult<i32> {
        let io = |what| FileError::io(new.temporary(), what);
        let file = new.file().ok_or(Errno::IO).map_err(io("open the new anchor"))?;
        let flags = access::public(flags);
        let open = || self.sys().open_public(new.dir(), new.temporary(), flags, Mode::empty()).map(Public);
        let opened = match open() {
            Err(Errno::ACCESS) => access::with_lifted_mode(self.sys(), file.anchor(), Mode::RUSR, open),
            opened => opened,
        };
        opened.map(Public::give).map_err(io("open the new anchor"))
    }

    /// O_TRUNC of a managed file whose objects are lost, for example because it was never synced
    /// before a power cut. O_TRUNC discards its contents anyway, so a new file replaces it. `None`:
    /// another process has just done that.
    pub(super) fn create_anew(
        &self,
        dir: Dir<'_>,
        path: &Path,
        flags: OFlags,
        lost: &Manifest,
    ) -> FileResult<Option<Opened>> {
        let io = |what| FileError::io(path, what);
        let open = |flags| self.sys().open(dir, path, flags | OFlags::NOFOLLOW, Mode::empty());
        let old = open(OFlags::RDONLY).map_err(io("replace"))?;
        // One process at a time: a second one would replace the new file, which the first already
        // uses.
        let open = || open(OFlags::RDWR);
        let old = access::with_lifted_mode(self.sys(), old.as_fd(), Mode::WUSR, open).map_err(io("replace"))?;
        self.sys().lock(old.as_fd(), REPLACING, 1, LockKind::Exclusive).map_err(io("replace"))?;
        let stat = self.sys().stat(old.as_fd()).map_err(io("replace"))?;
        let now = self.sys().stat_at(dir, path, false).map_err(io("replace"))?;
        if FileKey::of(&stat) != FileKey::of(&now) {
            return Ok(None);
        }
        let new = self.build_like(dir, path, self.mode_of_lost(lost, &stat), lost)?;
        let raw = self.open_new(&new, flags)?;
        let file = new.replace(path).map_err(io("replace")).inspect_err(|_| close_public(raw))?;
        // Remove the objects that are left. `fsck` finds the rest.
        let _ = self.remove_components(lost, stat.st_uid);
        Ok(Some(Opened::Managed(raw, self.enter(file))))
    }

    /// The mode of a file with lost objects. If object 0 is lost too, only the owner is known to
    /// have had write permission.
    fn mode_of_lost(&self, lost: &Manifest, anchor: &Stat) -> Mode {
        let first = self.first_target(lost).ok();
        let of = Objects { id: lost.id, owner: anchor.st_uid };
        let stats = first.and_then(|first| ComponentSet::stats_by_name(self.sys(), &first, of).ok());
        let permissions = match stats.as_ref().and_then(|stats| stats.first()) {
            Some(component) => of_file(anchor.st_mode, component.st_mode),
            None => anchor.st_mode & 0o777 | 0o200,
        };
        Mode::from_raw_mode(anchor.st_mode & 0o7000 | permissions)
    }

    /// Enters a file that keeps its temporary name.
    ///
    /// # Errors
    /// None for a file that was just built.
    pub(crate) fn keep_temporary(&self, new: NewFile) -> Result<Arc<LogicalFile>> {
        new.keep().map(|file| self.enter(file)).ok_or(Errno::IO)
    }

    /// Creates a managed file at `path`, for commands.
    ///
    /// # Errors
    /// EEXIST; a target is missing or full; the directory is not writable.
    pub fn create_file(&self, path: &Path, mode: Mode, shape: Shape<'_>) -> FileResult<Arc<LogicalFile>> {
        let mut new = self.build(None, path, mode, shape)?;
        let file = new.publish(path).and_then(|file| file.ok_or(Errno::IO));
        file.map(|file| self.enter(file)).map_err(FileError::io(path, "create"))
    }
}
