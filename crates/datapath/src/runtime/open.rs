//! open(2) of managed and other files.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stripewise_extents::{MapError, MapSpec};
use stripewise_sys::fd::{borrow, close_public};
use stripewise_sys::{Dir, Fd, Mode, OFlags, Stat, StatVfsMountFlags};
use stripewise_target::{ObjectSet, Opening, TargetError};

use super::Runtime;
use crate::anchor::{self, Anchored, FileKey};
use crate::error::{FileError, FileResult, LogOnce, Logged};
use crate::file::{FileParts, LogicalFile, OpenCopy, OpenOrLost, Overlay, Rates, check_times};
use crate::manifest::{CopyRef, Manifest};
use crate::paths;
use crate::{Errno, Result, notice};

/// The result of [`Runtime::open`]: a descriptor for the application (the lowest free number,
/// close-on-exec as asked).
#[derive(Debug)]
pub enum Opened {
    /// A descriptor of a file that is not managed: all calls on it pass through.
    Plain(RawFd),
    /// A descriptor of the anchor of a managed file, and the file.
    Managed(RawFd, Arc<LogicalFile>),
}

/// Attempts to open or create a file that other processes remove and create at the same time.
const TRIES: usize = 8;

impl Runtime {
    /// open(2) of any file, with the application's `flags` and `mode`. Creates a managed file if
    /// the plan has a rule for the path and no file exists there. Finishes an interrupted truncate.
    /// O_TRUNC of a managed file empties its objects and is not passed to the kernel.
    ///
    /// # Errors
    /// Same as open(2). EIO, with a line on stderr: the manifest is damaged, or a target that it
    /// needs is missing.
    pub fn open(&self, dir: Dir<'_>, path: &Path, flags: OFlags, mode: Mode) -> Result<Opened> {
        if flags.intersects(OFlags::PATH | OFlags::DIRECTORY) || flags.contains(OFlags::TMPFILE) {
            return self.sys().open_public(dir, path, flags, mode).map(Opened::Plain);
        }
        let shape = if flags.contains(OFlags::CREATE) { self.shape_for_open(dir, path)? } else { None };
        let Some(shape) = shape else { return self.open_any(dir, path, flags, mode) };
        for _ in 0..TRIES {
            if !flags.contains(OFlags::EXCL) {
                match self.open_any(dir, path, flags - OFlags::CREATE, mode) {
                    Err(Errno::NOENT) => {}
                    opened => return opened,
                }
            }
            match self.create(dir, path, flags, mode, shape) {
                Err(Errno::EXIST) if !flags.contains(OFlags::EXCL) => {}
                created => return created,
            }
        }
        // A dangling symbolic link: the kernel creates the file to which it points.
        self.open_any(dir, path, flags, mode)
    }

    fn open_any(&self, dir: Dir<'_>, path: &Path, flags: OFlags, mode: Mode) -> Result<Opened> {
        let exclusive = flags.contains(OFlags::CREATE | OFlags::EXCL);
        let only_reads = flags & OFlags::RWMODE == OFlags::RDONLY && !flags.contains(OFlags::TRUNC);
        if !only_reads && !exclusive {
            // The library must know whether the file is an anchor before the kernel truncates it or
            // opens it for writing.
            let follow = !flags.contains(OFlags::NOFOLLOW);
            while let Some(found) = self.look(dir, path, follow)? {
                if let Some(opened) = self.open_found(dir, path, flags, found)? {
                    return Ok(opened);
                }
            }
            return self.sys().open_public(dir, path, flags, mode).map(Opened::Plain);
        }
        let raw = Public(self.sys().open_public(dir, path, flags, mode)?);
        if exclusive {
            return Ok(Opened::Plain(raw.give()));
        }
        Ok(match self.attach_public(&raw, (dir, path), None, flags).logged()? {
            Some(file) => Opened::Managed(raw.give(), file),
            None => Opened::Plain(raw.give()),
        })
    }

    /// Opens a file that is known to be managed. `None`: another process has replaced it meanwhile.
    fn open_found(&self, dir: Dir<'_>, path: &Path, flags: OFlags, found: Anchored) -> Result<Option<Opened>> {
        let truncates = flags.contains(OFlags::TRUNC);
        let kept = flags - (OFlags::TRUNC | OFlags::CREATE);
        let raw = self.open_reading(dir, path, kept)?;
        let manifest = truncates.then(|| found.manifest.clone());
        let file = match (self.attach_public(&raw, (dir, path), Some(found), flags), manifest) {
            (Err(error), Some(lost)) if is_lost(&error) => {
                return self.create_anew(dir, path, kept, &lost).logged();
            }
            (attached, _) => attached.logged()?,
        };
        let Some(file) = file else { return Ok(None) };
        if anchor::writes(flags) || truncates {
            self.check_permission(&file)?;
        }
        if truncates {
            file.truncate(0)?;
        }
        Ok(Some(Opened::Managed(raw.give(), file)))
    }

    /// Opens the application's descriptor of a file that is known to be managed: read-only
    /// regardless of `flags`.
    fn open_reading(&self, dir: Dir<'_>, path: &Path, flags: OFlags) -> Result<Public> {
        match self.sys().open_public(dir, path, anchor::public_flags(flags), Mode::empty()) {
            Err(Errno::ACCESS) if flags & OFlags::RWMODE == OFlags::WRONLY => {}
            opened => return opened.map(Public),
        }
        let stat = self.sys().stat_at(dir, path, !flags.contains(OFlags::NOFOLLOW))?;
        let file = self.find(FileKey::of(&stat)).ok_or(Errno::ACCESS)?;
        self.open_again(&file, flags).map(Public)
    }

    /// Opens another descriptor of an open file for the application, which has the permission that
    /// `flags` ask for. The descriptor is read-only regardless of `flags`, so that calls that
    /// bypass the library cannot write to the anchor.
    ///
    /// # Errors
    /// Same as open(2). EACCES: this process may neither read the anchor nor change its mode.
    pub fn open_again(&self, file: &LogicalFile, flags: OFlags) -> Result<RawFd> {
        let link = paths::link_of(file.anchor().as_raw_fd());
        self.open_lifted(file, None, &link, flags - OFlags::NOFOLLOW).map(Public::give)
    }

    /// Opens a descriptor of the file's anchor, which is at `path`, for the application: read-only
    /// regardless of `flags`. Lifts the anchor's mode for the open if that denies it.
    pub(super) fn open_lifted(
        &self,
        file: &LogicalFile,
        dir: Dir<'_>,
        path: &Path,
        flags: OFlags,
    ) -> Result<Public> {
        let flags = anchor::public_flags(flags);
        let open = || self.sys().open_public(dir, path, flags, Mode::empty()).map(Public);
        match open() {
            Err(Errno::ACCESS) => anchor::with_lifted_mode(self.sys(), file.anchor(), Mode::RUSR, open),
            opened => opened,
        }
    }

    /// Checks that this process may open the file for writing now. Another thread may have opened
    /// it before, with the rights of another user.
    fn check_permission(&self, file: &LogicalFile) -> Result<()> {
        if file.is_writable() {
            return self.may_write(file.anchor(), file.objects());
        }
        Err(self.why_read_only(file))
    }

    /// The errno for a write to a file that this process could open only for reading.
    pub(super) fn why_read_only(&self, file: &LogicalFile) -> Errno {
        self.may_write(file.anchor(), file.objects()).err().unwrap_or(Errno::ACCESS)
    }

    /// Checks that this process, with its current user, may write to object 0, and so to the file.
    /// (The anchor is never writable.)
    fn may_write(&self, anchor: BorrowedFd<'_>, objects: &ObjectSet) -> Result<()> {
        self.refuse_read_only(anchor)?;
        self.sys().may_write(objects.fd(0).logged()?, true)
    }

    /// Checks that this process, with its effective or its real user, may write to the managed file
    /// at `path`.
    ///
    /// # Errors
    /// EACCES, EROFS; ESTALE if there is no managed file; otherwise the errors of
    /// [`Runtime::manifest_at`].
    pub fn may_write_named(&self, dir: Dir<'_>, path: &Path, follow: bool, effective: bool) -> Result<()> {
        let found = self.open_for_look(dir, path, follow).logged()?;
        let (anchor, anchored) = found.ok_or(Errno::STALE)?;
        self.refuse_read_only(anchor.as_fd())?;
        let of = anchored.manifest.objects(self.sys().stat(anchor.as_fd())?.st_uid);
        let targets = self.first_target(&anchored.manifest).logged()?;
        let answer = ObjectSet::may_write_by_name(&targets, of, effective);
        answer.map_err(|error| match error.errno() {
            errno @ (Errno::ACCESS | Errno::PERM | Errno::ROFS) => errno,
            _ => error.log_once(),
        })
    }

    /// Fails if the anchor's file system is mounted read-only.
    pub(super) fn refuse_read_only(&self, anchor: BorrowedFd<'_>) -> Result<()> {
        let read_only = self.sys().stat_fs(anchor)?.f_flag.contains(StatVfsMountFlags::RDONLY);
        if read_only { Err(Errno::ROFS) } else { Ok(()) }
    }

    /// The managed file of a descriptor that was not opened by [`Runtime::open`] (inherited,
    /// received, or opened in a way that bypasses the library); `None` for every other file.
    ///
    /// # Errors
    /// Same as [`Runtime::open`].
    pub fn attach(&self, fd: BorrowedFd<'_>) -> Result<Option<Arc<LogicalFile>>> {
        let stat = self.sys().stat(fd)?;
        // The descriptor may be open for writing.
        self.attach_stat(fd, &stat, None, None, OFlags::RDWR).map_err(|error| match stat.st_nlink {
            0 => self.removed(fd),
            _ => error.log_once(),
        })
    }

    /// Logs that a removed file cannot be opened, and returns EIO. Its objects lost their names
    /// with it. Only processes that had it open before hold descriptors of them.
    fn removed(&self, fd: BorrowedFd<'_>) -> Errno {
        notice::warn_once(&format!(
            "{}: was removed; only programs that had opened it themselves by then can use it",
            self.path_of(fd).display()
        ));
        Errno::IO
    }

    fn attach_public(
        &self,
        raw: &Public,
        name: (Dir<'_>, &Path),
        found: Option<Anchored>,
        flags: OFlags,
    ) -> FileResult<Option<Arc<LogicalFile>>> {
        // SAFETY: `raw` owns it.
        let fd = unsafe { borrow(raw.0) };
        let stat = self.sys().stat(fd).map_err(FileError::io(name.1, "open"))?;
        self.attach_stat(fd, &stat, Some(name), found, flags)
    }

    fn attach_stat(
        &self,
        fd: BorrowedFd<'_>,
        stat: &Stat,
        name: Option<(Dir<'_>, &Path)>,
        found: Option<Anchored>,
        flags: OFlags,
    ) -> FileResult<Option<Arc<LogicalFile>>> {
        if !self.may_be_anchor(stat, fd) {
            return Ok(None);
        }
        let writes = flags & OFlags::RWMODE != OFlags::RDONLY;
        if let Some(file) = self.find(FileKey::of(stat)).filter(|file| file.is_writable() || !writes) {
            file.acquire_map()?;
            return Ok(Some(file));
        }
        let path = match name {
            Some((dir, path)) => paths::absolute_if_possible(self.sys(), dir, path),
            None => self.path_of(fd),
        };
        let found = found.map_or_else(|| self.read_anchor(fd, stat, &path), |found| Ok(Some(found)))?;
        let Some(anchored) = found else { return Ok(None) };
        let anchor = self.reopen(fd, stat, name).map_err(FileError::io(&path, "open"))?;
        self.load_and_enter(path, anchored, anchor).map(Some)
    }

    pub(super) fn load_and_enter(
        &self,
        path: PathBuf,
        anchored: Anchored,
        anchor: Fd,
    ) -> FileResult<Arc<LogicalFile>> {
        let file = self.load(path, anchored, anchor, true)?;
        file.join()?;
        Ok(self.enter(file))
    }

    pub(super) fn load(
        &self,
        path: PathBuf,
        anchored: Anchored,
        anchor: Fd,
        mut writable: bool,
    ) -> FileResult<LogicalFile> {
        let manifest = &anchored.manifest;
        let stat = self.sys().stat(anchor.as_fd()).map_err(FileError::io(&path, "stat"))?;
        let (key, owner) = (FileKey::of(&stat), stat.st_uid);
        self.refuse_copied(manifest, anchor.as_fd(), &path)?;
        writable = writable && self.refuse_read_only(anchor.as_fd()) != Err(Errno::ROFS);
        let open = |writable: bool| {
            let original = self.open_copy(manifest, manifest.original(), owner, writable)?;
            let flags = if writable { OFlags::RDWR } else { OFlags::RDONLY };
            let manifest_copy = original.objects().open_manifest(flags)?;
            Ok::<_, FileError>((original, manifest_copy))
        };
        let mut opened = open(writable);
        if writable && is_refused(&opened) {
            // A missing permission is refused every time. A transient server error with the same
            // errno must not make the file read-only for as long as it is open, so try twice.
            opened = open(true);
            if is_refused(&opened) {
                writable = false;
                opened = open(false);
            }
        }
        let (original, manifest_copy) = opened?;
        let extra = self.open_extra_copies(manifest, owner, writable)?;
        let overlay = self.overlay(manifest, &original, owner, false)?;
        let times = overlay.as_ref().map(Overlay::known_times).unwrap_or_default();
        check_times(&times, &original)?;
        let checked = |copy: OpenOrLost| {
            let copy = copy?;
            check_times(&times, &copy).map(|()| copy)
        };
        let extra = extra.into_iter().map(checked).collect();
        let parts =
            FileParts { key, path, anchored, anchor, manifest_copy, original, extra, overlay, writable };
        let file = LogicalFile::new(self.context.clone(), parts, self.leaving);
        if file.is_interrupted() != Ok(false) {
            file.settle().map_err(FileError::io(file.path(), "finish an interrupted truncate"))?;
        }
        file.follow_anchor(&stat);
        Ok(file)
    }

    /// Refuses a copy of an anchor: it leads to the objects of the original, and removing it would
    /// remove them.
    pub(crate) fn refuse_copied(
        &self,
        manifest: &Manifest,
        anchor: BorrowedFd<'_>,
        path: &Path,
    ) -> FileResult<()> {
        if manifest.anchor.is_unknown() {
            return Ok(());
        }
        let identity = self.sys().identity(anchor).map_err(FileError::io(path, "stat"))?;
        if identity.matches(&manifest.anchor) {
            return Ok(());
        }
        Err(FileError::Copied { path: path.to_owned(), original: manifest.path.clone() })
    }

    /// Opens the objects of a copy for reading, to examine them.
    pub(crate) fn open_objects(&self, copy: CopyRef<'_>, owner: u32) -> Result<ObjectSet, TargetError> {
        let opening = Opening { read_only: true, flags: OFlags::empty() };
        ObjectSet::open(self.sys(), self.targets_of(copy.targets)?, copy.objects(owner), opening)
    }

    fn open_copy(
        &self,
        manifest: &Arc<Manifest>,
        copy: CopyRef<'_>,
        owner: u32,
        writable: bool,
    ) -> FileResult<OpenCopy> {
        let targets = self.targets_of(copy.targets)?;
        let servers = self.targets.servers(&targets)?;
        let opening = Opening { read_only: !writable, flags: OFlags::empty() };
        let objects = ObjectSet::open(self.sys(), targets, copy.objects(owner), opening)?;
        Ok(OpenCopy::new(manifest.clone(), copy.number, objects, servers, writable))
    }

    /// The overlay of a file with several copies. `create`: the file is being created.
    pub(super) fn overlay(
        &self,
        manifest: &Arc<Manifest>,
        original: &OpenCopy,
        owner: u32,
        create: bool,
    ) -> FileResult<Option<Overlay>> {
        let (Some(copies), Some(target)) = (&manifest.copies, original.objects().targets().first()) else {
            return Ok(None);
        };
        let context = &self.context;
        let spec = MapSpec { create, ..context.spec(manifest, target, owner)? };
        let planned = |copy: CopyRef<'_>| {
            copy.targets.iter().map(|target| self.targets.planned_at(&target.path)).collect()
        };
        let targets: Option<Vec<Vec<_>>> = manifest.all_copies().map(planned).collect();
        let rates = targets.zip(self.plan.clone()).map(|(targets, plan)| Rates { plan, targets });
        Ok(Some(Overlay::new(context, manifest, copies, spec, rates)))
    }

    /// Opens copies 1, 2, ...; one with a missing target or object is lost.
    ///
    /// # Errors
    /// This process is out of descriptors or memory, or may not use a copy.
    fn open_extra_copies(
        &self,
        manifest: &Arc<Manifest>,
        owner: u32,
        writable: bool,
    ) -> FileResult<Vec<OpenOrLost>> {
        let open = |copy| match self.open_copy(manifest, copy, owner, writable) {
            Err(error) if is_ours(error.errno()) => Err(error),
            opened => Ok(opened),
        };
        manifest.all_copies().skip(1).map(open).collect()
    }

    /// Whether the file may be an anchor. Costs a statfs only for large files.
    pub(super) fn may_be_anchor(&self, stat: &Stat, fd: BorrowedFd<'_>) -> bool {
        anchor::plausible(stat) || (anchor::dense(stat) && anchor::counts_holes(self.sys(), fd))
    }

    /// Reads the manifest through `fd` if that is open for reading, else through a new descriptor.
    fn read_anchor(&self, fd: BorrowedFd<'_>, stat: &Stat, path: &Path) -> FileResult<Option<Anchored>> {
        let key = FileKey::of(stat);
        match self.read_manifest(fd, key, path) {
            Err(FileError::Io { errno: Errno::BADF | Errno::INVAL, .. }) => {}
            read => return read,
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        match self.sys().open(None, &paths::link_of(fd.as_raw_fd()), flags, Mode::empty()) {
            Ok(own) => self.read_manifest(own.as_fd(), key, path),
            Err(errno) => Err(FileError::io(path, "look")(errno)),
        }
    }

    /// Reads the manifest at the start of the open file `key`; `None` if the file is not an anchor.
    pub(super) fn read_manifest(
        &self,
        fd: BorrowedFd<'_>,
        key: FileKey,
        path: &Path,
    ) -> FileResult<Option<Anchored>> {
        let Some(head) = anchor::head(self.sys(), fd, path)? else { return Ok(None) };
        let known = self.manifests.lock().find(key, &head);
        if known.is_some() {
            return Ok(known);
        }
        let anchored = anchor::parse(self.sys(), fd, &head, path)?;
        self.manifests.lock().note(key, &head, &anchored);
        Ok(Some(anchored))
    }

    /// Opens a private open file description of the same file, read-only: by name if the name still
    /// leads to it, else through /proc.
    fn reopen(&self, fd: BorrowedFd<'_>, stat: &Stat, name: Option<(Dir<'_>, &Path)>) -> Result<Fd> {
        let flags = OFlags::RDONLY | OFlags::NOCTTY;
        if let Some((dir, path)) = name {
            let own = self.sys().open(dir, path, flags, Mode::empty())?;
            if self.sys().stat(own.as_fd()).is_ok_and(|own| FileKey::of(&own) == FileKey::of(stat)) {
                return Ok(own);
            }
        }
        self.sys().open(None, &paths::link_of(fd.as_raw_fd()), flags, Mode::empty())
    }

    fn path_of(&self, fd: BorrowedFd<'_>) -> PathBuf {
        let link = self.sys().read_link(None, &paths::link_of(fd.as_raw_fd()));
        link.map_or_else(|_| PathBuf::from(format!("descriptor {}", fd.as_raw_fd())), PathBuf::from)
    }
}

fn is_lost(error: &FileError) -> bool {
    matches!(
        error,
        FileError::Target(TargetError::Io { errno: Errno::NOENT, .. })
            | FileError::Map(MapError::Missing { .. })
    )
}

fn is_refused<T>(opened: &FileResult<T>) -> bool {
    let refusals = [Errno::ACCESS, Errno::ROFS, Errno::PERM];
    opened.as_ref().is_err_and(|error| refusals.contains(&error.errno()))
}

fn is_ours(errno: Errno) -> bool {
    matches!(errno, Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::ACCESS | Errno::PERM)
}

/// A descriptor for the application; closed on drop unless it was handed over with `give`.
pub(super) struct Public(pub RawFd);

impl Public {
    pub fn give(self) -> RawFd {
        let raw = self.0;
        std::mem::forget(self);
        raw
    }
}

impl Drop for Public {
    fn drop(&mut self) {
        close_public(self.0);
    }
}
