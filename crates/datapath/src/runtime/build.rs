//! Builds a new managed file completely under a temporary name, to be published under its own name.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stripewise_sys::{Dir, Fd, Kind, LockKind, Mode, OFlags, Stat, SysRef};
use stripewise_target::{Access, CACHED, FileId, ObjectSet, Objects, Target, access_list};

use super::Runtime;
use super::blueprint::{Blueprint, Missing, Shape};
use super::open::{Opened, Public};
use crate::anchor::{self, Anchored, FileKey};
use crate::error::{Errno, FileError, FileResult, Logged, Result};
use crate::file::{FileParts, LogicalFile, OpenCopy, sync_directory, without_write};
use crate::manifest::{CopyRef, Manifest};
use crate::paths;
use crate::permissions::of_file;

/// Temporary anchors are named `.stripewise-ID.new`.
pub(crate) const TEMPORARY_PREFIX: &str = ".stripewise-";
const TEMPORARY_SUFFIX: &str = ".new";

pub(crate) fn temporary_name(id: FileId) -> String {
    format!("{TEMPORARY_PREFIX}{id}{TEMPORARY_SUFFIX}")
}

pub(crate) fn temporary_id(name: &str) -> Option<FileId> {
    FileId::from_hex(name.strip_prefix(TEMPORARY_PREFIX)?.strip_suffix(TEMPORARY_SUFFIX)?)
}

/// A complete managed file under a temporary name. If it is dropped before it is published, it is
/// removed with everything that belongs to it.
pub(crate) struct NewFile {
    sys: SysRef,
    /// The directory to which the temporary name is relative; `None` if the path is absolute.
    dir: Option<Fd>,
    temporary: PathBuf,
    /// What to remove on drop; `None` once published.
    blueprint: Option<Blueprint>,
    id: FileId,
    owner: u32,
    file: Option<LogicalFile>,
}

impl Runtime {
    /// Builds an empty managed file of this shape. An extra copy with a missing target is left out.
    pub(crate) fn build_shape(
        &self,
        dir: Dir<'_>,
        path: &Path,
        mode: Mode,
        shape: Shape<'_>,
    ) -> FileResult<NewFile> {
        self.build(dir, path, mode, self.resolve(shape, Missing::LeaveOut)?, None)
    }

    /// Builds an empty managed file under a temporary name in the directory of `path`. `mode` is
    /// that of open(2): the umask applies. Without `id`, the file gets a random one.
    ///
    /// # Errors
    /// A target of the original is missing or full, or the directory of `path` is not writable.
    /// Nothing is left behind then.
    pub(crate) fn build(
        &self,
        dir: Dir<'_>,
        path: &Path,
        mode: Mode,
        blueprint: Blueprint,
        id: Option<FileId>,
    ) -> FileResult<NewFile> {
        let sys = self.sys();
        let io = |what| FileError::io(path, what);
        let id = id.map_or_else(|| FileId::random(&**sys), Ok).map_err(io("make an id"))?;
        let temporary = paths::directory_of(path).join(temporary_name(id));
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let anchor = sys.open(dir, &temporary, flags, mode).map_err(io("create the anchor"))?;
        let dir = dir.map(Fd::duplicate).transpose();
        let mut new = NewFile {
            sys: sys.clone(),
            dir: None,
            temporary,
            blueprint: Some(blueprint.clone()),
            id,
            owner: sys.user(),
            file: None,
        };
        new.dir = dir.map_err(io("create the anchor"))?;
        let stat = sys.stat(anchor.as_fd()).map_err(io("create the anchor"))?;
        let mode = Mode::from_raw_mode(stat.st_mode & 0o7777);
        let absolute = paths::absolute_if_possible(sys, new.dir(), path);
        let identity = sys.identity(anchor.as_fd()).map_err(io("create the anchor"))?;
        let created = utc(sys.wall_ns() / 1_000_000_000);
        let manifest = Arc::new(blueprint.manifest(id, &absolute, created, identity));
        let text = manifest.format()?;
        let anchored = Anchored { manifest, text_bytes: text.len() as u64 };
        let owner = stat.st_uid;
        new.owner = owner;
        let list = access_list(sys, anchor.as_fd());
        sys.set_mode(Kind::Open(anchor.as_fd()), without_write(mode)).map_err(io("create the anchor"))?;
        let access = Access { mode, group: Some(stat.st_gid), list: list.as_deref() };
        let manifest = &anchored.manifest;
        let mut copies = manifest.all_copies().zip(blueprint.targets());
        let create = |(copy, targets): (_, &Vec<_>)| self.create_copy(manifest, copy, targets, owner, &access);
        let original = copies.next().map(create).transpose()?.ok_or(Errno::IO).map_err(io("create"))?;
        let extra = copies.map(|copy| create(copy).map(Ok)).collect::<Result<_, _>>()?;
        let manifest_copy = original.objects().create_manifest(text.as_bytes(), &access)?;
        sys.write_all_at(anchor.as_fd(), text.as_bytes(), 0).map_err(io("write the manifest"))?;
        let key = FileKey::of(&stat);
        let overlay = self.overlay(manifest, &original, owner, true)?;
        let path = absolute;
        let parts =
            FileParts { key, path, anchored, anchor, manifest_copy, original, extra, overlay, writable: true };
        let file = LogicalFile::new(self.context.clone(), parts, self.leaving);
        file.join()?;
        new.file = Some(file);
        Ok(new)
    }

    fn create_copy(
        &self,
        manifest: &Arc<Manifest>,
        copy: CopyRef<'_>,
        targets: &[Arc<Target>],
        owner: u32,
        access: &Access<'_>,
    ) -> FileResult<OpenCopy> {
        let servers = self.targets.servers(targets)?;
        let mode = if copy.is_cache { access.mode | CACHED } else { access.mode - CACHED };
        let access = Access { mode, ..access.clone() };
        let objects = ObjectSet::create(self.sys(), targets.to_vec(), copy.objects(owner), &access)?;
        Ok(OpenCopy::new(manifest.clone(), copy.number, objects, servers, true))
    }
}

impl NewFile {
    /// The file, to be filled; `None` once published.
    pub fn file(&self) -> Option<&LogicalFile> {
        self.file.as_ref()
    }

    pub fn temporary(&self) -> &Path {
        &self.temporary
    }

    pub(super) fn dir(&self) -> Dir<'_> {
        self.dir.as_ref().map(AsFd::as_fd)
    }

    /// Gives the file its name unless one exists there.
    pub(super) fn publish(&mut self, path: &Path) -> Result<Option<LogicalFile>, Errno> {
        let dir = self.dir();
        match self.sys.rename_noreplace(dir, &self.temporary, dir, path) {
            Ok(()) => {}
            // The file system does not support RENAME_NOREPLACE: link and unlink, in the order in
            // which `path` never shows a partial file.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                self.sys.link(dir, &self.temporary, dir, path)?;
                // If this fails, a second name is left; `fsck` removes it.
                let _ = self.sys.unlink(dir, &self.temporary);
            }
            Err(error) => return Err(error),
        }
        self.blueprint = None;
        Ok(self.file.take())
    }

    /// Ends the removal on drop: the file keeps its temporary name.
    pub(super) fn keep(mut self) -> Option<LogicalFile> {
        self.blueprint = None;
        self.file.take()
    }

    /// Gives the file its name, replacing any file there, and makes that durable. The caller has
    /// synced the file if its contents must survive a power cut, and cleans up after the replaced
    /// file.
    ///
    /// # Errors
    /// Same as rename(2): the file stays unpublished. Same as fsync(2): the file is published.
    pub fn replace(mut self, path: &Path) -> Result<LogicalFile, Errno> {
        let dir = self.dir();
        self.sys.rename(dir, &self.temporary, dir, path)?;
        self.blueprint = None;
        sync_directory(&self.sys, self.dir(), path)?;
        self.file.take().ok_or(Errno::IO)
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        let Some(blueprint) = &self.blueprint else { return };
        if let Some(file) = &self.file {
            file.remove_map();
        }
        let dir = self.dir();
        let _ = self.sys.unlink(dir, &self.temporary);
        let _ = blueprint.remove(Objects { id: self.id, owner: self.owner });
    }
}

/// Formats seconds since 1970 as `2026-11-21T01:00:00Z`. (Days to civil date: H. Hinnant,
/// chrono-compatible algorithms.)
fn utc(seconds: u64) -> String {
    let (days, second) = ((seconds / 86_400) as i64, seconds % 86_400);
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The byte of an anchor that is locked while another file replaces it: far from bytes that
/// applications lock.
const REPLACING: u64 = i64::MAX as u64 - 1;

impl Runtime {
    /// Creates a managed file. EEXIST: a file exists there, possibly created a moment ago.
    pub(super) fn create(
        &self,
        dir: Dir<'_>,
        path: &Path,
        flags: OFlags,
        mode: Mode,
        shape: Shape<'_>,
    ) -> Result<Opened> {
        let mut new = self.build_shape(dir, path, mode, shape).logged()?;
        let raw = self.open_new(&new, flags).logged()?;
        let file = new.publish(path)?.ok_or(Errno::IO)?;
        Ok(Opened::Managed(raw.give(), self.enter(file)))
    }

    /// Opens the application's descriptor of a new file. The creator of a file may access it as
    /// asked regardless of its mode (open(2)). No other process knows the temporary name.
    fn open_new(&self, new: &NewFile, flags: OFlags) -> FileResult<Public> {
        let file = new.file().ok_or(Errno::IO);
        let opened = file.and_then(|file| self.open_lifted(file, new.dir(), new.temporary(), flags));
        opened.map_err(FileError::io(new.temporary(), "open the new anchor"))
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
        let old = anchor::with_lifted_mode(self.sys(), old.as_fd(), Mode::WUSR, open).map_err(io("replace"))?;
        self.sys().lock(old.as_fd(), REPLACING, 1, LockKind::Exclusive).map_err(io("replace"))?;
        let stat = self.sys().stat(old.as_fd()).map_err(io("replace"))?;
        let now = self.sys().stat_at(dir, path, false).map_err(io("replace"))?;
        if FileKey::of(&stat) != FileKey::of(&now) {
            return Ok(None);
        }
        let new = self.build(dir, path, self.mode_of_lost(lost, &stat), self.blueprint_of(lost)?, None)?;
        let raw = self.open_new(&new, flags)?;
        let file = new.replace(path).map_err(io("replace"))?;
        // Remove the objects that are left. `fsck` finds the rest.
        let _ = self.remove_objects(lost, stat.st_uid);
        Ok(Some(Opened::Managed(raw.give(), self.enter(file))))
    }

    /// The mode of a file with lost objects. If object 0 is lost too, only the owner is known to
    /// have had write permission.
    fn mode_of_lost(&self, lost: &Manifest, anchor: &Stat) -> Mode {
        let first = self.first_target(lost).ok();
        let stats = first.and_then(|first| ObjectSet::stats_by_name(&first, lost.objects(anchor.st_uid)).ok());
        let permissions = match stats.as_ref().and_then(|stats| stats.first()) {
            Some(object) => of_file(anchor.st_mode, object.st_mode),
            None => anchor.st_mode & 0o777 | 0o200,
        };
        Mode::from_raw_mode(anchor.st_mode & 0o7000 | permissions)
    }

    pub(crate) fn keep_temporary(&self, new: NewFile) -> Result<Arc<LogicalFile>> {
        new.keep().map(|file| self.enter(file)).ok_or(Errno::IO)
    }

    /// Creates a managed file at `path`, for commands.
    ///
    /// # Errors
    /// EEXIST; a target is missing or full; the directory is not writable.
    pub fn create_file(&self, path: &Path, mode: Mode, shape: Shape<'_>) -> FileResult<Arc<LogicalFile>> {
        let mut new = self.build_shape(None, path, mode, shape)?;
        let file = new.publish(path).and_then(|file| file.ok_or(Errno::IO));
        file.map(|file| self.enter(file)).map_err(FileError::io(path, "create"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_utc() {
        // date -u -d @N +%FT%TZ
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_795_222_799, "2026-11-21T00:59:59Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc(seconds), expected);
        }
    }
}
