//! The location of a journal and its locks.

use std::ffi::OsString;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use stripewise_sys::{Errno, Fd, FileType, Kind, LockKind, Mode, OFlags, Stat, SysRef};

use crate::error::io;
use crate::hooks;
use crate::{MapError, MapSpec, Result};

/// Locked while a process joins, leaves, or renames a new journal over the old one.
pub(crate) const JOIN_BYTE: u64 = 0;
/// Locked while a process changes the journal.
pub(crate) const COMMIT_BYTE: u64 = 1;

/// Descriptors that threads of this process open and close while another one may fork. A forked
/// child closes its duplicates, because they would keep locks alive after the parent's death.
#[derive(Debug, Default)]
pub(crate) struct Held([AtomicI32; 16]);

impl Held {
    /// Adds a descriptor, stored plus 1 because 0 means free. A descriptor that does not fit is
    /// left out.
    pub fn add(&self, raw: i32) {
        let free =
            |slot: &&AtomicI32| slot.compare_exchange(0, raw + 1, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        let _ = self.0.iter().find(free);
    }

    pub fn remove(&self, raw: i32) {
        let own =
            |slot: &&AtomicI32| slot.compare_exchange(raw + 1, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        let _ = self.0.iter().find(own);
    }

    /// Closes the inherited descriptors in a forked child.
    pub fn close_inherited(&self) {
        for slot in &self.0 {
            if let Some(raw) = slot.swap(0, Ordering::AcqRel).checked_sub(1).filter(|&raw| raw >= 0) {
                stripewise_sys::fd::close_inherited(raw);
            }
        }
    }
}

/// An open file that a forked child closes.
pub(crate) struct Kept {
    held: Arc<Held>,
    file: Fd,
}

impl Kept {
    pub fn new(place: &Place, file: Fd) -> Self {
        place.held.add(file.as_raw_fd());
        Self { held: place.held.clone(), file }
    }
}

impl AsFd for Kept {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // The descriptor is closed after this.
        self.held.remove(self.file.as_raw_fd());
    }
}

/// Locks that an open file description has on a file. They are released on drop.
pub(crate) struct Locked {
    sys: SysRef,
    file: Arc<Kept>,
    /// The bytes that are released: the first one and how many, 0 for all.
    bytes: (u64, u64),
    is_held: bool,
}

impl Locked {
    /// Takes over a description that already holds its locks, all of them.
    pub fn new(place: &Place, file: Fd) -> Self {
        Self::of_kept(place, Arc::new(Kept::new(place, file)), (0, 0))
    }

    /// Takes over the locks of these bytes of a description that is also read and written through,
    /// by one thread at a time. The description's other locks stay when these are released.
    pub fn of_kept(place: &Place, file: Arc<Kept>, bytes: (u64, u64)) -> Self {
        Self { sys: place.sys.clone(), file, bytes, is_held: true }
    }

    /// The locked file.
    pub fn kept(&self) -> &Arc<Kept> {
        &self.file
    }

    /// Releases the locks.
    ///
    /// # Errors
    /// As fcntl(2); the locks are then held until the description is closed.
    pub fn release(mut self) -> std::result::Result<(), Errno> {
        self.is_held = false;
        let (start, len) = self.bytes;
        self.sys.unlock(self.file.as_fd(), start, len)
    }

    /// Whether the locks are of this description.
    pub fn is_of(&self, file: &Arc<Kept>) -> bool {
        Arc::ptr_eq(&self.file, file)
    }
}

impl AsFd for Locked {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        if self.is_held && !hooks::dead() {
            // Unlocked explicitly, because a child forked meanwhile holds a duplicate of the
            // descriptor.
            let (start, len) = self.bytes;
            let _ = self.sys.unlock(self.file.as_fd(), start, len);
        }
    }
}

/// The directory and the name of a journal, and the locks that this process holds there.
pub(crate) struct Place {
    pub sys: SysRef,
    pub dir: Fd,
    pub name: OsString,
    /// The full path, for error messages.
    pub path: PathBuf,
    /// User id of the owner of these files.
    owner: u32,
    pub held: Arc<Held>,
}

impl Place {
    pub fn new(sys: &SysRef, spec: &MapSpec) -> Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let failed = |path: PathBuf| move |errno| io(&path, "open")(errno);
        let base = sys.open(None, &spec.journal_base, flags, Mode::empty());
        let mut dir = base.map_err(failed(spec.journal_base.clone()))?;
        if !spec.journal_below.as_os_str().is_empty() {
            let below = sys.open_beneath(dir.as_fd(), &spec.journal_below, flags, Mode::empty());
            dir = below.map_err(failed(spec.journal_base.join(&spec.journal_below)))?;
        }
        let owner = spec.owner.unwrap_or_else(|| sys.user());
        let (name, path, held) = (spec.journal_name.clone(), spec.journal(), Arc::default());
        Ok(Self { sys: sys.clone(), dir, name, path, owner, held })
    }

    /// The name of a file next to the journal.
    pub fn beside(&self, suffix: &str) -> PathBuf {
        let mut name = self.name.clone();
        name.push(suffix);
        name.into()
    }

    pub fn new_name(&self) -> PathBuf {
        self.beside(".new")
    }

    /// Opens a regular file of the owner. Anything else that other users may have put there is
    /// refused.
    pub fn open(&self, name: &Path, flags: OFlags) -> std::result::Result<Fd, Errno> {
        self.open_with_stat(name, flags).map(|(file, _)| file)
    }

    /// As [`Place::open`], with the file's stat result.
    pub fn open_with_stat(&self, name: &Path, flags: OFlags) -> std::result::Result<(Fd, Stat), Errno> {
        let file = self.sys.open_beneath(self.dir.as_fd(), name, flags, Mode::empty())?;
        let stat = self.sys.stat(file.as_fd())?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile if stat.st_uid == self.owner => Ok((file, stat)),
            FileType::RegularFile => Err(Errno::PERM),
            _ => Err(Errno::LOOP),
        }
    }

    /// Creates a file that must not exist. It belongs to the owner, and only the owner may access
    /// it.
    pub fn create(&self, name: &Path) -> std::result::Result<Fd, Errno> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let file = self.sys.open_beneath(self.dir.as_fd(), name, flags, Mode::RUSR | Mode::WUSR)?;
        if self.sys.stat(file.as_fd())?.st_uid != self.owner {
            self.sys.set_owner(Kind::Open(file.as_fd()), Some(self.owner), None)?;
        }
        Ok(file)
    }

    /// Creates a file as [`Place::create`] does, and removes an existing one. The existing file is
    /// never written to, because it may be a hard link to another file.
    pub fn create_anew(&self, name: &Path) -> std::result::Result<Fd, Errno> {
        match self.sys.unlink(Some(self.dir.as_fd()), name) {
            Ok(()) | Err(Errno::NOENT) => self.create(name),
            Err(errno) => Err(errno),
        }
    }

    /// `ID.manifest`, which the sessions of several nodes lock.
    pub fn manifest_name(&self) -> PathBuf {
        Path::new(&self.name).with_extension("manifest")
    }

    /// Waits for the lock of `byte` of the journal, and ensures that the locked file still has the
    /// journal's name. `create`: create the journal if it is missing.
    pub fn lock(&self, byte: u64, create: bool) -> Result<Locked> {
        self.lock_with_stat(byte, create).map(|(locked, _)| locked)
    }

    /// Waits for the join lock as [`Place::lock`] does, by a description that may get other locks,
    /// which stay when this one is released. Returns the journal's stat result under the lock as
    /// well.
    pub fn lock_join(&self, create: bool) -> Result<(Locked, Stat)> {
        let (mut locked, stat) = self.lock_with_stat(JOIN_BYTE, create)?;
        locked.bytes = (JOIN_BYTE, 1);
        Ok((locked, stat))
    }

    fn lock_with_stat(&self, byte: u64, create: bool) -> Result<(Locked, Stat)> {
        let wait = |fd: BorrowedFd<'_>| self.sys.lock(fd, byte, 1, LockKind::Exclusive).map(|()| true);
        let locked = self.lock_named_with_stat(Path::new(&self.name), create, wait)?;
        locked.ok_or_else(|| io(&self.path, "lock")(Errno::AGAIN))
    }

    /// Opens the file `name` and takes a lock with `take`, which returns false if there is a
    /// conflicting one. Ensures that the locked file still has that name.
    pub fn lock_named(
        &self,
        name: &Path,
        create: bool,
        take: impl Fn(BorrowedFd<'_>) -> std::result::Result<bool, Errno>,
    ) -> Result<Option<Locked>> {
        let locked = self.lock_named_with_stat(name, create, take)?;
        Ok(locked.map(|(locked, _)| locked))
    }

    /// As [`Place::lock_named`], with the file's stat result after it was locked.
    fn lock_named_with_stat(
        &self,
        name: &Path,
        create: bool,
        take: impl Fn(BorrowedFd<'_>) -> std::result::Result<bool, Errno>,
    ) -> Result<Option<(Locked, Stat)>> {
        let (sys, path) = (&self.sys, || self.path.with_file_name(name));
        loop {
            let (file, own) = match self.open_with_stat(name, OFlags::RDWR) {
                Err(Errno::NOENT) if create => match self.create(name) {
                    Err(Errno::EXIST) => continue,
                    made => {
                        let file = made.map_err(io(&path(), "create"))?;
                        let own = sys.stat(file.as_fd()).map_err(io(&path(), "stat"))?;
                        (file, own)
                    }
                },
                Err(Errno::NOENT) if name == self.name => {
                    return Err(MapError::Missing { path: self.path.clone() });
                }
                Err(Errno::PERM) => return Err(io(&path(), "use, as it is another user's,")(Errno::PERM)),
                file => file.map_err(io(&path(), "open"))?,
            };
            let locked = Locked::new(self, file);
            let fd = locked.as_fd();
            if !take(fd).map_err(io(&path(), "lock"))? {
                return Ok(None);
            }
            // The file may have been replaced while this call waited.
            match sys.stat_at(Some(self.dir.as_fd()), name, false) {
                Ok(named) if (named.st_dev, named.st_ino) == (own.st_dev, own.st_ino) => {
                    return Ok(Some((locked, named)));
                }
                Ok(_) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(io(&path(), "stat")(errno)),
            }
        }
    }

    pub fn sync_dir(&self) -> Result<()> {
        self.sys.sync(self.dir.as_fd()).map_err(io(&self.path, "sync its directory"))
    }
}

impl MapSpec {
    /// Opens the file next to the journal whose name is the journal's with `suffix` appended.
    ///
    /// # Errors
    /// As open(2); EPERM if the file belongs to another user.
    pub fn open_beside(&self, sys: &SysRef, suffix: &str) -> std::result::Result<Fd, Errno> {
        let place = Place::new(sys, self).map_err(|error| error.errno())?;
        place.open(&place.beside(suffix), OFlags::RDONLY)
    }

    /// Creates such a file and replaces an existing one.
    pub fn create_beside(&self, sys: &SysRef, suffix: &str) -> std::result::Result<Fd, Errno> {
        let place = Place::new(sys, self).map_err(|error| error.errno())?;
        place.create_anew(&place.beside(suffix))
    }

    /// Removes such a file.
    pub fn remove_beside(&self, sys: &SysRef, suffix: &str) -> std::result::Result<(), Errno> {
        let place = Place::new(sys, self).map_err(|error| error.errno())?;
        place.sys.unlink(Some(place.dir.as_fd()), &place.beside(suffix))
    }
}
