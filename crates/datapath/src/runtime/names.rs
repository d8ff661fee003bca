//! Calls on files by name.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;

use stripewise_extents::{MapError, MapSpec, repair};
use stripewise_sys::{Dir, Fd, Kind, Mode, OFlags};
use stripewise_target::{ObjectSet, TargetError};

use super::Runtime;
use crate::anchor::{self, Anchored, FileKey};
use crate::error::{Errno, FileError, FileResult, LogOnce, Logged, Result};
use crate::file::{CachedBytes, Change, LogicalFile, forget_times, sync_directory, without_write};
use crate::manifest::{Manifest, TEXT_BYTES_MAX};
use crate::{notice, paths};

const RENAME_NOREPLACE: u32 = 1;

/// The errors of objects that are lost or may not be changed.
const UNREACHABLE: [Errno; 5] = [Errno::NOENT, Errno::NOTDIR, Errno::ACCESS, Errno::PERM, Errno::ROFS];

struct Victim {
    manifest: Arc<Manifest>,
    /// Shows afterwards whether the name was the last one.
    anchor: Anchor,
    owner: u32,
    /// The objects belong to this anchor. False for a copy of another anchor.
    has_objects: bool,
}

enum Anchor {
    Open(Arc<LogicalFile>),
    Own(Fd),
}

impl Anchor {
    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Open(file) => file.anchor(),
            Self::Own(fd) => fd.as_fd(),
        }
    }
}

impl Runtime {
    /// The manifest of the file at `path`; `None` if it is not managed, does not exist or may not
    /// be read.
    ///
    /// # Errors
    /// EIO, with a line on stderr: the file is managed but damaged. Others: the file could not be
    /// examined.
    pub fn manifest_at(&self, dir: Dir<'_>, path: &Path, follow: bool) -> Result<Option<Manifest>> {
        match self.look(dir, path, follow) {
            Err(Errno::ACCESS) => Ok(None),
            found => Ok(found?.map(|anchored| Arc::unwrap_or_clone(anchored.manifest))),
        }
    }

    /// Opens the managed file at `path` for reading and, if permitted, writing; `None` if it is not
    /// managed.
    ///
    /// # Errors
    /// It does not exist or may not be read; its manifest is damaged; a target or object is
    /// missing.
    pub fn open_file(&self, path: &Path) -> FileResult<Option<Arc<LogicalFile>>> {
        let io = |what| FileError::io(path, what);
        let stat = self.sys().stat_at(None, path, true).map_err(io("open"))?;
        // Closing another descriptor of the anchor would drop the application's POSIX locks on it.
        if let Some(file) = self.find(FileKey::of(&stat)) {
            return Ok(Some(file));
        }
        if !anchor::is_possible(&stat) {
            return Ok(None);
        }
        let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::NONBLOCK;
        let anchor = self.sys().open(None, path, flags, Mode::empty()).map_err(io("open"))?;
        let stat = self.sys().stat(anchor.as_fd()).map_err(io("open"))?;
        if let Some(file) = self.find(FileKey::of(&stat)) {
            return Ok(Some(file));
        }
        let Some(anchored) = self.read_manifest(anchor.as_fd(), FileKey::of(&stat), path)? else {
            return Ok(None);
        };
        let absolute = paths::absolute_if_possible(self.sys(), None, path);
        self.load_and_enter(absolute, anchored, anchor).map(Some)
    }

    /// truncate(2) of a managed file. Returns false, without doing anything, if the file is not
    /// managed.
    ///
    /// # Errors
    /// Same as truncate(2).
    pub fn truncate(&self, path: &Path, size: u64) -> Result<bool> {
        match self.open_file(path) {
            Ok(Some(file)) if file.is_writable() => file.truncate(size).map(|()| true),
            Ok(Some(file)) => Err(self.why_read_only(&file)),
            Ok(None) => Ok(false),
            Err(error) => Err(error.log_once()),
        }
    }

    /// unlinkat(2) (without AT_REMOVEDIR) of any file. The objects of a managed file are removed
    /// with its last name. Open descriptors keep working.
    ///
    /// # Errors
    /// Same as unlinkat(2); also if the file could not be examined. EBUSY: the name is the last one
    /// of a file with copies that another node has open. A failure to remove an object is logged on
    /// stderr and not returned.
    pub fn unlink(&self, dir: Dir<'_>, path: &Path) -> Result<()> {
        let victim = self.victim(dir, path)?;
        self.sys().unlink(dir, path)?;
        self.bury(victim, dir, path);
        Ok(())
    }

    /// renameat2(2) of any file, with `flags` 0 or RENAME_NOREPLACE. (RENAME_EXCHANGE replaces
    /// nothing, so it may bypass the library.) A replaced managed file is removed as in
    /// [`Runtime::unlink`].
    ///
    /// # Errors
    /// Same as renameat2(2); EINVAL for other flags.
    pub fn rename(&self, old_dir: Dir<'_>, old: &Path, new_dir: Dir<'_>, new: &Path, flags: u32) -> Result<()> {
        match flags {
            0 => {}
            RENAME_NOREPLACE => return self.sys().rename_noreplace(old_dir, old, new_dir, new),
            _ => return Err(Errno::INVAL),
        }
        let victim = self.victim(new_dir, new)?;
        self.sys().rename(old_dir, old, new_dir, new)?;
        self.bury(victim, new_dir, new);
        Ok(())
    }

    /// utimensat(2), chmod(2) or chown(2) of a managed file: changes anchor and objects. Returns
    /// false, without doing anything, if the file is not managed.
    ///
    /// # Errors
    /// Same as those calls.
    pub fn change(&self, of: Kind<'_>, change: &Change) -> Result<bool> {
        let (stat, looked) = match of {
            Kind::Open(fd) => (self.sys().stat(fd)?, Ok(None)),
            Kind::Named(dir, path) => {
                let stat = self.sys().stat_at(dir, path, true)?;
                let plausible = anchor::is_possible(&stat);
                let known = self.find(FileKey::of(&stat)).is_some();
                (stat, if plausible && !known { self.look_if_readable(dir, path) } else { Ok(None) })
            }
        };
        if let Some(file) = self.find(FileKey::of(&stat)) {
            return file.change(change).map(|()| true);
        }
        let mut looked = looked?;
        let mut done = false;
        if let (Kind::Named(dir, path), Change::Mode(mode), None) = (of, change, &looked) {
            // The owner may be about to make the file readable. Only then can it be examined.
            if stat.st_mode & 0o400 == 0 {
                self.sys().set_mode(of, without_write(*mode))?;
                looked = self.look_if_readable(dir, path)?;
                done = true;
                if looked.is_none() {
                    self.sys().set_mode(of, *mode)?;
                }
            }
        }
        let Some((anchor, anchored)) = looked else { return Ok(done) };
        let path = anchored.manifest.path.clone().into();
        self.load(path, anchored, anchor, false).logged()?.change(change).map(|()| true)
    }

    /// The manifest of the file at `path`; `None` if it is not managed or does not exist.
    ///
    /// # Errors
    /// EACCES: the file may not be read. Others: the file could not be examined.
    pub(super) fn look(&self, dir: Dir<'_>, path: &Path, follow: bool) -> Result<Option<Anchored>> {
        let stat = match self.sys().stat_at(dir, path, follow) {
            Err(Errno::NOENT) => return Ok(None),
            stat => stat?,
        };
        if let Some(file) = self.find(FileKey::of(&stat)) {
            return Ok(Some(file.anchored().clone()));
        }
        if !anchor::is_possible(&stat) {
            return Ok(None);
        }
        let found = self.open_for_look(dir, path, follow).logged()?;
        Ok(found.map(|(_, anchored)| anchored))
    }

    /// [`Runtime::open_for_look`] with symbolic links followed; `None` also if the file may not be
    /// read.
    fn look_if_readable(&self, dir: Dir<'_>, path: &Path) -> Result<Option<(Fd, Anchored)>> {
        match self.open_for_look(dir, path, true) {
            Err(error) if error.errno() == Errno::ACCESS => Ok(None),
            found => found.logged(),
        }
    }

    /// Opens and reads a possible anchor; `None` if it is not one or does not exist any more. Uses
    /// O_NOATIME where permitted.
    ///
    /// # Errors
    /// EACCES: the file may not be read. Others: the file could not be examined, or its manifest is
    /// damaged.
    pub(super) fn open_for_look(
        &self,
        dir: Dir<'_>,
        path: &Path,
        follow: bool,
    ) -> FileResult<Option<(Fd, Anchored)>> {
        let mut flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        flags.set(OFlags::NOFOLLOW, !follow);
        let open = |flags| self.sys().open(dir, path, flags, Mode::empty());
        let opened = match open(flags | OFlags::NOATIME) {
            Err(Errno::PERM) => open(flags),
            opened => opened,
        };
        let fd = match opened {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO) => return Ok(None),
            Err(Errno::PERM) => Err(Errno::ACCESS),
            opened => opened,
        };
        let fd = fd.map_err(FileError::io(path, "look"))?;
        let stat = self.sys().stat(fd.as_fd()).map_err(FileError::io(path, "look")).map_err(of_open_file)?;
        if !self.may_be_anchor(&stat, fd.as_fd()) {
            return Ok(None);
        }
        let read = self.read_manifest(fd.as_fd(), FileKey::of(&stat), path).map_err(of_open_file)?;
        Ok(read.map(|anchored| (fd, anchored)))
    }

    /// The managed file whose name is about to go. A file that is damaged or may not be read is
    /// left to `fsck`.
    fn victim(&self, dir: Dir<'_>, path: &Path) -> Result<Option<Victim>> {
        let stat = match self.sys().stat_at(dir, path, false) {
            Err(Errno::NOENT) => return Ok(None),
            stat => stat?,
        };
        if let Some(file) = self.find(FileKey::of(&stat)) {
            let manifest = file.anchored().manifest.clone();
            return self.victim_of(manifest, Anchor::Open(file), path).map(Some);
        }
        if !anchor::is_possible(&stat) {
            return Ok(None);
        }
        match self.open_for_look(dir, path, false) {
            Ok(None) => Ok(None),
            Ok(Some((fd, anchored))) => self.victim_of(anchored.manifest, Anchor::Own(fd), path).map(Some),
            Err(FileError::Io { errno: Errno::ACCESS, .. }) => Ok(None),
            Err(FileError::Io { errno, .. }) => Err(errno),
            Err(error) => {
                error.log_once();
                Ok(None)
            }
        }
    }

    fn victim_of(&self, manifest: Arc<Manifest>, anchor: Anchor, path: &Path) -> Result<Victim> {
        let (fd, sys) = (anchor.fd(), self.sys());
        let stat = sys.stat(fd)?;
        let owner = stat.st_uid;
        let has_objects = match self.refuse_copied(&manifest, fd, path) {
            Ok(()) => self.is_bound(&manifest, fd, owner)?,
            Err(FileError::Io { errno, .. }) => return Err(errno),
            Err(_) => false,
        };
        if has_objects && stat.st_nlink == 1 && manifest.copies.is_some() {
            self.refuse_in_use(&manifest, owner, path)?;
        }
        Ok(Victim { manifest, anchor, owner, has_objects })
    }

    /// Refuses to remove a file with copies that another node has open. If the objects cannot be
    /// reached, the name may go, as that of any other file.
    fn refuse_in_use(&self, manifest: &Manifest, owner: u32, path: &Path) -> Result<()> {
        let Ok(spec) = self.map_spec(manifest, owner) else { return Ok(()) };
        match repair::check_removable(self.sys(), &spec) {
            Err(MapError::InUse { node, .. }) => {
                Err(MapError::InUse { path: path.to_owned(), node }.log_once())
            }
            Err(MapError::Io { errno, .. }) if !UNREACHABLE.contains(&errno) => Err(errno),
            _ => Ok(()),
        }
    }

    /// Whether `ID.manifest` names this anchor. It changes when another anchor is made the file's
    /// (`fsck --adopt`). True if it is lost or may not be read, false if it is damaged.
    fn is_bound(&self, manifest: &Manifest, anchor: BorrowedFd<'_>, owner: u32) -> Result<bool> {
        if manifest.anchor.is_unknown() {
            return Ok(true);
        }
        let identity = self.sys().identity(anchor)?;
        let targets = self.first_target(manifest);
        let Some(target) = targets.ok().and_then(|targets| targets.into_iter().next()) else { return Ok(true) };
        match target.read_manifest_copy(manifest.objects(owner), TEXT_BYTES_MAX) {
            Ok(text) => Ok(Manifest::parse(&text, "copy").is_ok_and(|copy| copy.anchor.matches(&identity))),
            Err(TargetError::Io { errno: Errno::NOENT | Errno::ACCESS, .. }) => Ok(true),
            Err(TargetError::Io { errno, .. }) => Err(errno),
            Err(_) => Ok(false),
        }
    }

    /// Removes the objects if the last name is gone. Makes the removal of the name durable first: a
    /// power cut must not bring back an anchor without its objects, least of all that of a file
    /// which a new one was to replace.
    fn bury(&self, victim: Option<Victim>, dir: Dir<'_>, path: &Path) {
        let Some(Victim { manifest, anchor, owner, has_objects }) = victim else { return };
        let gone = self.sys().stat(anchor.fd()).is_ok_and(|stat| stat.st_nlink == 0);
        if !gone || !has_objects {
            return;
        }
        let synced = sync_directory(self.sys(), dir, path).map_err(FileError::io(path, "sync the directory"));
        if let Err(error) = synced.and_then(|()| self.remove_objects(&manifest, owner)) {
            let path = &manifest.path;
            notice::warn_once(&format!("{error} (objects of {path} are left; `stripewise fsck` finds them)"));
        }
    }

    /// The extent map of a file with several copies whose anchor belongs to `owner`.
    ///
    /// # Errors
    /// The first target of the original is missing; this machine cannot be distinguished from
    /// others.
    pub(crate) fn map_spec(&self, manifest: &Manifest, owner: u32) -> FileResult<MapSpec> {
        let targets = self.first_target(manifest)?;
        let target = targets.first().ok_or(FileError::Io {
            path: manifest.path.clone().into(),
            what: "find its first target",
            errno: Errno::IO,
        })?;
        self.context.spec(manifest, target, owner)
    }

    /// Removes the objects of all copies of a file whose anchor is gone and belonged to `owner`.
    ///
    /// # Errors
    /// A target is missing, or an object cannot be removed. EBUSY: another node has the file open;
    /// all objects are left.
    pub fn remove_objects(&self, manifest: &Manifest, owner: u32) -> FileResult<()> {
        let map = self.remove_map(manifest, owner);
        if let Err(in_use @ FileError::Map(MapError::InUse { .. })) = map {
            return Err(in_use);
        }
        // Remove the original last: its `ID.manifest` shows to which file the other objects belong.
        // All are tried.
        let copies: Vec<_> = manifest.all_copies().collect();
        let removed = copies.into_iter().rev().map(|copy| -> FileResult<()> {
            let targets = self.targets_of(copy.targets)?;
            Ok(ObjectSet::remove(&targets, copy.objects(owner))?)
        });
        removed.fold(Ok(()), std::result::Result::and)?;
        let Some((spec, cached)) = map? else { return Ok(()) };
        for (target, bytes) in cached {
            self.context.release_removed(&spec, &*self.targets.named(&target)?, bytes);
        }
        Ok(())
    }

    /// Removes the extent map of a file, without which processes that have the file open continue.
    /// Returns what was in its cache copies; `None` if the file has one copy.
    fn remove_map(&self, manifest: &Manifest, owner: u32) -> FileResult<Option<(MapSpec, CachedBytes)>> {
        if manifest.copies.is_none() {
            return Ok(None);
        }
        let spec = self.map_spec(manifest, owner)?;
        let cached = self.context.cached_bytes(manifest, &spec);
        forget_times(self.sys(), &spec);
        repair::remove(self.sys(), &spec)?;
        Ok(Some((spec, cached)))
    }
}

/// Converts the error of a call on an anchor that could be opened. EACCES from such a call is a
/// server error, while callers take EACCES for missing permission to read the file.
fn of_open_file(error: FileError) -> FileError {
    match error {
        FileError::Io { path, what, errno: Errno::ACCESS } => FileError::Io { path, what, errno: Errno::IO },
        error => error,
    }
}
