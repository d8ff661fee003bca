//! The objects of one logical file.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use stripewise_sys::{Errno, Fd, Kind, Mode, OFlags, Stat, SysRef, Timestamps};

use crate::TargetError;
use crate::access::{Access, set_access_list};
use crate::emulate::Server;
use crate::id::FileId;
use crate::paths::{self, Name, Objects};
use crate::target::Target;

/// Number of objects opened with the set. A higher limit would use up a process's descriptors for a
/// few files.
const OPENED_AT_ONCE: usize = 64;

/// How the objects are opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// Open for reading only; otherwise for reading and writing.
    pub read_only: bool,
    /// Additional open(2) flags: O_DIRECT, O_SYNC, O_DSYNC.
    pub flags: OFlags,
}

/// The objects of one logical file: object `n` is on target `n`, at `TARGET/stripewise/uUSER/ID.n`.
///
/// Every failure names its object. A change of all objects tries all of them, and returns the first
/// failure.
///
/// The first 64 objects are opened with the set, so that it keeps working after their names are
/// removed; later ones are opened on first use. Threads may share a set, and it survives fork (the
/// child has the same descriptors).
pub struct ObjectSet {
    sys: SysRef,
    id: FileId,
    /// The owner of the objects, as far as this process knows.
    owner: AtomicU32,
    opening: Opening,
    targets: Vec<Arc<Target>>,
    files: Vec<Slot>,
    servers: Vec<Option<Server>>,
}

impl ObjectSet {
    /// Creates all objects, empty, with exactly this access (no umask), opened for reading and
    /// writing. Root creates them for any user.
    ///
    /// All or nothing: after a failure the objects created so far are removed again. A crash leaves
    /// orphans ([`crate::Target::list_objects`]).
    pub fn create(
        sys: &SysRef,
        targets: Vec<Arc<Target>>,
        of: Objects,
        access: &Access<'_>,
    ) -> Result<Self, TargetError> {
        let opening = Opening { read_only: false, flags: OFlags::empty() };
        let mut set = Self::closed(sys, targets, of, opening);
        for index in 0..set.len() {
            let created = set.targets[index].create_object(of, Name::Object(index as u32), access);
            match created {
                Ok(fd) if index < OPENED_AT_ONCE => set.files[index] = Slot::opened(fd),
                Ok(_) => {}
                Err(error) => {
                    for (number, target) in (0..).zip(&set.targets[..index]) {
                        let _ = target.remove_object(of, Name::Object(number));
                    }
                    return Err(error);
                }
            }
        }
        Ok(set)
    }

    /// Opens existing objects.
    ///
    /// # Errors
    /// [`TargetError::Io`] with ENOENT for a lost object, EACCES, EMFILE, ...;
    /// [`TargetError::NotOwned`].
    pub fn open(
        sys: &SysRef,
        targets: Vec<Arc<Target>>,
        of: Objects,
        opening: Opening,
    ) -> Result<Self, TargetError> {
        let set = Self::closed(sys, targets, of, opening);
        for index in 0..set.len().min(OPENED_AT_ONCE) {
            set.fd(index)?;
        }
        Ok(set)
    }

    fn closed(sys: &SysRef, targets: Vec<Arc<Target>>, of: Objects, opening: Opening) -> Self {
        let files = targets.iter().map(|_| Slot::default()).collect();
        let Objects { id, owner } = of;
        let owner = AtomicU32::new(owner);
        Self { sys: sys.clone(), id, owner, opening, targets, files, servers: Vec::new() }
    }

    /// Paces object `n` as emulated server `servers[n]` from now on. `None`, or a list too short,
    /// means not emulated.
    #[must_use]
    pub fn with_servers(mut self, servers: Vec<Option<Server>>) -> Self {
        self.servers = servers;
        self
    }

    /// The id that the names of all objects share.
    pub fn id(&self) -> FileId {
        self.id
    }

    /// The id and the owner of these objects.
    pub fn objects(&self) -> Objects {
        Objects { id: self.id, owner: self.owner.load(Ordering::Relaxed) }
    }

    /// Records that the objects belong to this user from now on, after a chown of the file.
    pub fn now_owned_by(&self, owner: u32) {
        self.owner.store(owner, Ordering::Relaxed);
    }

    /// Number of objects.
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// The targets, in the order of the objects.
    pub fn targets(&self) -> &[Arc<Target>] {
        &self.targets
    }

    /// The emulated server of an object, if it has one.
    #[inline]
    pub fn server(&self, object: u32) -> Option<&Server> {
        self.servers.get(object as usize)?.as_ref()
    }

    /// Whether any object is emulated.
    pub(crate) fn is_emulated(&self) -> bool {
        self.servers.iter().any(Option::is_some)
    }

    /// Whether all objects are emulated.
    pub(crate) fn is_all_emulated(&self) -> bool {
        self.servers.iter().flatten().count() >= self.len()
    }

    /// Whether reads and writes bypass the page cache or wait for the device.
    pub(crate) fn is_uncached(&self) -> bool {
        self.opening.flags.intersects(OFlags::DIRECT | OFlags::SYNC | OFlags::DSYNC)
    }

    /// The descriptor of object `index`, which is opened now if necessary.
    ///
    /// # Errors
    /// As [`ObjectSet::open`]; ENOENT when there is no such object.
    pub fn fd(&self, index: usize) -> Result<BorrowedFd<'_>, TargetError> {
        let (Some(slot), Some(target)) = (self.files.get(index), self.targets.get(index)) else {
            let path = PathBuf::from(format!("{}.{index}", self.id));
            return Err(TargetError::Io { path, what: "no such object", errno: Errno::NOENT });
        };
        if let Some(fd) = slot.get() {
            return Ok(fd);
        }
        let access = if self.opening.read_only { OFlags::RDONLY } else { OFlags::RDWR };
        let flags = access | self.opening.flags;
        let fd = target.open_object(self.objects(), Name::Object(index as u32), flags)?;
        Ok(slot.fill(fd))
    }

    /// The descriptor of object `index` if it is open already and its server is not emulated.
    #[inline]
    pub fn opened(&self, index: u32) -> Option<BorrowedFd<'_>> {
        if self.server(index).is_some() { None } else { self.files.get(index as usize)?.get() }
    }

    /// The sizes of all objects, bytes.
    pub fn sizes(&self) -> Result<Vec<u64>, TargetError> {
        Ok(self.stats()?.iter().map(|stat| stat.st_size as u64).collect())
    }

    /// fstat of all objects.
    pub fn stats(&self) -> Result<Vec<Stat>, TargetError> {
        (0..self.len()).map(|index| self.named(index, "fstat", self.sys.stat(self.fd(index)?))).collect()
    }

    /// stat of all objects of a file by their names, without opening them.
    ///
    /// # Errors
    /// [`TargetError::Io`], with ELOOP for an object that is not a regular file.
    pub fn stats_by_name(targets: &[Arc<Target>], of: Objects) -> Result<Vec<Stat>, TargetError> {
        (0..).zip(targets).map(|(index, target)| target.stat_object(of, Name::Object(index))).collect()
    }

    /// Whether this process, as its effective or its real user, may write to the objects of a file.
    /// `targets` are those of the original; the permissions of object 0 decide.
    ///
    /// # Errors
    /// [`TargetError::Io`] with EACCES, EROFS; others as [`ObjectSet::stats_by_name`].
    pub fn may_write_by_name(targets: &[Arc<Target>], of: Objects, effective: bool) -> Result<(), TargetError> {
        let (target, name) = (first(targets, of)?, Name::Object(0));
        let object = target.open_object(of, name, OFlags::PATH)?;
        let answer = target.sys.may_write(object.as_fd(), effective);
        answer.map_err(|errno| target.failure(of, name, "write to", errno))
    }

    /// stat of `ID.manifest` by its name; `targets` are those of the original.
    pub fn stat_manifest_by_name(targets: &[Arc<Target>], of: Objects) -> Result<Stat, TargetError> {
        first(targets, of)?.stat_object(of, Name::Manifest)
    }

    /// Cuts (or, under the caller's lock, lengthens) object `index` to exactly `size` bytes.
    pub fn truncate(&self, index: usize, size: u64) -> Result<(), TargetError> {
        self.named(index, "ftruncate", self.sys.truncate(self.fd(index)?, size))
    }

    /// Makes object `index` at least `size` bytes long. Never shortens it, even under a race.
    pub fn grow(&self, index: usize, size: u64) -> Result<(), TargetError> {
        self.named(index, "fallocate", self.sys.grow(self.fd(index)?, size))
    }

    /// Makes the names of the objects and the manifest copy durable: syncs that copy and all
    /// directories that lead to them, up to the targets' own.
    pub fn sync_names(&self) -> Result<(), TargetError> {
        if let Some(target) = self.targets.first() {
            match target.open_object(self.objects(), Name::Manifest, OFlags::RDONLY) {
                Ok(copy) => self.named(0, "fsync of the manifest copy", self.sys.sync(copy.as_fd()))?,
                Err(error) if error.errno() == Errno::NOENT => {}
                Err(error) => return Err(error),
            }
        }
        let of = self.objects();
        self.targets.iter().try_for_each(|target| target.sync_directories(of))
    }

    /// Removes the names of all objects and of the manifest copy; open descriptors keep working. A
    /// name that is already gone is not a failure.
    pub fn remove(targets: &[Arc<Target>], of: Objects) -> Result<(), TargetError> {
        each_name(targets, |target, name| target.remove_object(of, name))
    }

    /// chmod of all objects and the manifest copy; the latter stays readable and writable for its
    /// owner.
    pub fn set_mode(&self, mode: Mode) -> Result<(), TargetError> {
        self.change_all("chmod", |name, kind| {
            let owner = if name == Name::Manifest { Mode::RUSR | Mode::WUSR } else { Mode::empty() };
            self.sys.set_mode(kind, mode | owner)
        })
    }

    /// Gives all objects and the manifest copy an access control list (`system.posix_acl_access`).
    pub fn set_access_list(&self, list: &[u8]) -> Result<(), TargetError> {
        self.change_all("setfacl", |_, kind| set_access_list(&self.sys, kind, list))
    }

    /// Gives all objects and the manifest copy to a group.
    pub fn set_group(&self, group: u32) -> Result<(), TargetError> {
        self.change_all("chown", |_, kind| self.sys.set_owner(kind, None, Some(group)))
    }

    /// Changes attributes of all objects and the manifest copy.
    fn change_all(
        &self,
        what: &'static str,
        call: impl Fn(Name, Kind<'_>) -> Result<(), Errno>,
    ) -> Result<(), TargetError> {
        let of = self.objects();
        each_name(&self.targets, |target, name| target.change(of, name, what, |kind| call(name, kind)))
    }

    /// Gives all objects, the manifest copy and the journal of an extent map next to it to another
    /// user, and moves them into that user's directories. A repeated call continues after a kill.
    ///
    /// # Errors
    /// The first failure, after trying all objects; EPERM for all users but root.
    pub fn give_to(&self, user: u32) -> Result<(), TargetError> {
        if self.objects().owner == user { Ok(()) } else { self.move_to(user) }
    }

    /// Moves the objects of a file of an earlier version, whose directories all users shared, to
    /// the directories of their own user. A repeated call continues after a kill.
    pub fn bring_home(&self) -> Result<(), TargetError> {
        self.move_to(self.objects().owner)
    }

    /// Whether any object is where earlier versions put it.
    pub fn is_at_earlier_place(&self) -> bool {
        let of = self.objects();
        let away = |(index, target): (u32, &Arc<Target>)| {
            let file = paths::file_name(of.id, Name::Object(index));
            target.directory_of(of, &file) != paths::home(of.owner)
        };
        (0..).zip(&self.targets).any(away)
    }

    fn move_to(&self, user: u32) -> Result<(), TargetError> {
        let of = self.objects();
        if let Some(target) = self.targets.first() {
            target.give_extents(of, user)?;
        }
        each_name(&self.targets, |target, name| target.give_away(of, &paths::file_name(of.id, name), user))?;
        self.now_owned_by(user);
        Ok(())
    }

    /// utimens of all objects.
    pub fn set_times(&self, times: &Timestamps) -> Result<(), TargetError> {
        let set = |index| {
            let result = self.sys.set_times(Kind::Open(self.fd(index)?), times);
            self.named(index, "utimensat", result)
        };
        first_failure((0..self.len()).map(set))
    }

    /// Creates `ID.manifest` next to object 0 with `text` in it. Removes it again if that fails.
    /// Does not sync it ([`ObjectSet::sync_names`] does).
    ///
    /// # Errors
    /// [`TargetError::Io`], EEXIST when it exists.
    pub fn create_manifest(&self, text: &[u8], access: &Access<'_>) -> Result<Fd, TargetError> {
        let (target, of) = (self.manifest_target()?, self.objects());
        let file = target.create_object(of, Name::Manifest, access)?;
        let written = self.sys.write_all_at(file.as_fd(), text, 0);
        if written.is_err() {
            let _ = target.remove_object(of, Name::Manifest);
        }
        written.map_err(|errno| target.failure(of, Name::Manifest, "write", errno))?;
        Ok(file)
    }

    /// Durably replaces `ID.manifest`, whatever is there, by a new one with `text` in it. At any
    /// time either the old or the new one exists.
    pub fn replace_manifest(&self, text: &[u8], access: &Access<'_>) -> Result<(), TargetError> {
        self.manifest_target()?.replace_manifest(self.objects(), text, access)
    }

    /// Opens `ID.manifest` with a new open file description each time, so that each has OFD locks
    /// of its own.
    pub fn open_manifest(&self, flags: OFlags) -> Result<Fd, TargetError> {
        self.manifest_target()?.open_object(self.objects(), Name::Manifest, flags)
    }

    fn manifest_target(&self) -> Result<&Target, TargetError> {
        first(&self.targets, self.objects())
    }

    /// Adds the object's path to an errno.
    pub(crate) fn named<T>(
        &self,
        index: usize,
        what: &'static str,
        result: Result<T, Errno>,
    ) -> Result<T, TargetError> {
        let name = Name::Object(index as u32);
        result.map_err(|errno| self.targets[index].failure(self.objects(), name, what, errno))
    }
}

impl std::fmt::Debug for ObjectSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let targets: Vec<&Path> = self.targets.iter().map(|target| target.path()).collect();
        f.debug_struct("ObjectSet").field("id", &self.id).field("targets", &targets).finish_non_exhaustive()
    }
}

/// The target that has `ID.manifest`.
fn first(targets: &[Arc<Target>], of: Objects) -> Result<&Target, TargetError> {
    let path = || PathBuf::from(format!("{}.manifest", of.id));
    let none = || TargetError::Io { path: path(), what: "no target", errno: Errno::NOENT };
    targets.first().map(Arc::as_ref).ok_or_else(none)
}

/// Calls `change` for every object and the manifest copy. The manifest copy may be missing.
fn each_name(
    targets: &[Arc<Target>],
    change: impl Fn(&Target, Name) -> Result<(), TargetError>,
) -> Result<(), TargetError> {
    let change_copy = |target: &Arc<Target>| match change(target, Name::Manifest) {
        Err(error) if error.errno() == Errno::NOENT => Ok(()),
        other => other,
    };
    let objects = (0..).zip(targets).map(|(index, target)| change(target, Name::Object(index)));
    // The manifest copy comes last: it names the owner of whatever a failure or a kill leaves.
    first_failure(objects.chain(targets.iter().take(1).map(change_copy)))
}

fn first_failure(results: impl Iterator<Item = Result<(), TargetError>>) -> Result<(), TargetError> {
    results.fold(Ok(()), Result::and)
}

/// A descriptor that is set once, by the first thread; never blocks.
#[derive(Debug, Default)]
struct Slot(AtomicPtr<Fd>);

impl Slot {
    fn opened(fd: Fd) -> Self {
        Self(AtomicPtr::new(Box::into_raw(Box::new(fd))))
    }

    #[inline]
    fn get(&self) -> Option<BorrowedFd<'_>> {
        // SAFETY: from `Box::into_raw`, and freed only in drop.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }.map(Fd::as_fd)
    }

    /// Stores `fd` unless another thread was faster.
    fn fill(&self, fd: Fd) -> BorrowedFd<'_> {
        let new = Box::into_raw(Box::new(fd));
        let empty = std::ptr::null_mut();
        let kept = match self.0.compare_exchange(empty, new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => new,
            Err(earlier) => {
                // SAFETY: just made by `into_raw`, and not shared.
                drop(unsafe { Box::from_raw(new) });
                earlier
            }
        };
        // SAFETY: as in `get`.
        unsafe { &*kept }.as_fd()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let pointer = *self.0.get_mut();
        if !pointer.is_null() {
            // SAFETY: from `Box::into_raw`; `&mut self` excludes other references.
            drop(unsafe { Box::from_raw(pointer) });
        }
    }
}

#[cfg(test)]
mod tests;
