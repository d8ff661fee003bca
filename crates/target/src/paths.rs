//! Paths of objects in a target, their owners, and the calls on their names.
//!
//! A user's objects are in a directory of their own, whose names other users cannot list: the ids
//! in the names are random and appear only in manifests. Targets may be writable for all users, so
//! a file is used only once it is known to be a regular file of the right user
//! (`docs/security.md`).

use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};

use stripewise_sys::{Errno, Fd, FileType, Kind, Mode, OFlags, Result as SysResult, Stat};

use crate::TargetError;
use crate::access::Access;
use crate::id::FileId;
use crate::target::Target;

/// The directory of all objects, relative to the target's directory.
pub const OBJECTS: &str = "stripewise";
/// The file in a user's directory through which nodes share the space of the user's caches.
const LEDGER: &str = "space";

/// The objects of one copy of a file on its targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Objects {
    /// The id with which their names begin.
    pub id: FileId,
    /// The user that they belong to: the owner of the file's anchor. Files of other users are not
    /// used.
    pub owner: u32,
}

impl Objects {
    /// The shell pattern of their usual paths, relative to a target's directory.
    pub fn pattern(&self) -> PathBuf {
        home(self.owner).join(format!("{}.*", self.id))
    }
}

/// One of a logical file's files on a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Name {
    /// `ID.manifest`
    Manifest,
    /// `ID.n`
    Object(u32),
}

/// `stripewise/u1000`: the directory of a user's objects, relative to the target.
pub fn home(owner: u32) -> PathBuf {
    PathBuf::from(format!("{OBJECTS}/u{owner}"))
}

/// `stripewise/ab`, shared by all users: where earlier versions put the objects of file `id`.
fn earlier(id: FileId) -> PathBuf {
    PathBuf::from(format!("{OBJECTS}/{:02x}", id.0[0]))
}

/// The possible directories of the objects, the usual one first.
fn directories(of: Objects) -> [PathBuf; 2] {
    [home(of.owner), earlier(of.id)]
}

pub fn file_name(id: FileId, name: Name) -> String {
    match name {
        Name::Manifest => format!("{id}.manifest"),
        Name::Object(index) => format!("{id}.{index}"),
    }
}

/// The inverse of [`file_name`].
pub fn parse(file: &str) -> Option<(FileId, Name)> {
    let (id, name) = file.split_once('.')?;
    let id = FileId::from_hex(id)?;
    match name {
        "manifest" => Some((id, Name::Manifest)),
        number if number == "0" || !number.starts_with(['0', '+']) => {
            number.parse().ok().map(|index| (id, Name::Object(index)))
        }
        _ => None,
    }
}

impl Target {
    /// The error of a call on a path relative to the target.
    pub(crate) fn io(&self, path: &Path, what: &'static str, errno: Errno) -> TargetError {
        TargetError::Io { path: self.path().join(path), what, errno }
    }

    /// The error of a call on an object.
    pub(crate) fn failure(&self, of: Objects, name: Name, what: &'static str, errno: Errno) -> TargetError {
        self.io(&home(of.owner).join(file_name(of.id, name)), what, errno)
    }

    /// Opens `file` in one of the directories of `of` and verifies that it is a regular file of its
    /// user.
    ///
    /// # Errors
    /// ENOENT when none of the directories has it; [`TargetError::NotOwned`].
    pub(crate) fn open_file(&self, of: Objects, file: &str, flags: OFlags) -> Result<(Fd, Stat), TargetError> {
        let open = |path: &Path| self.sys.open_beneath(self.dir(), path, flags, Mode::empty());
        let (path, fd) = self.find(of, file, "open", open)?;
        let path = self.path().join(path);
        let stat = match self.sys.stat(fd.as_fd()) {
            Ok(stat) => stat,
            Err(errno) => return Err(TargetError::Io { path, what: "stat", errno }),
        };
        check_owned(path, of.owner, &stat).map(|()| (fd, stat))
    }

    /// The result of `call` on the path of `file` in the first directory of `of` that has it.
    fn find<T>(
        &self,
        of: Objects,
        file: &str,
        what: &'static str,
        call: impl Fn(&Path) -> SysResult<T>,
    ) -> Result<(PathBuf, T), TargetError> {
        for directory in directories(of) {
            let path = directory.join(file);
            match call(&path) {
                Ok(found) => return Ok((path, found)),
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(self.io(&path, what, errno)),
            }
        }
        Err(self.io(&home(of.owner).join(file), what, Errno::NOENT))
    }

    /// Opens a directory of the target without following links. Calls on names in it use this
    /// descriptor, because the user who owns the directory may exchange it.
    pub(crate) fn open_directory(&self, path: &Path, flags: OFlags) -> SysResult<Fd> {
        self.sys.open_beneath(self.dir(), path, flags | OFlags::DIRECTORY, Mode::empty())
    }

    /// Creates an object that must not exist, with exactly this access. Also makes its directory.
    pub(crate) fn create_object(
        &self,
        of: Objects,
        name: Name,
        access: &Access<'_>,
    ) -> Result<Fd, TargetError> {
        let file = match self.create_file(of, &file_name(of.id, name)) {
            Err(error) if error.errno() == Errno::NOENT => {
                self.homes.forget(of.owner);
                self.create_file(of, &file_name(of.id, name))?
            }
            created => created?,
        };
        let mode = if name == Name::Manifest { access.mode | OWNERS } else { access.mode };
        if let Err(error) = access.with(mode).give(&self.sys, file.as_fd()) {
            let _ = self.remove_object(of, name);
            return Err(self.failure(of, name, "create", error));
        }
        Ok(file)
    }

    /// Replaces `ID.manifest`, whatever is there: see [`crate::ObjectSet::replace_manifest`].
    pub(crate) fn replace_manifest(
        &self,
        of: Objects,
        text: &[u8],
        access: &Access<'_>,
    ) -> Result<(), TargetError> {
        let (name, temporary) = (file_name(of.id, Name::Manifest), format!("{}.manifest.new", of.id));
        // Left by a process that was killed.
        self.remove_file(of, &temporary)?;
        let file = self.create_file(of, &temporary)?;
        let write = || {
            access.with(access.mode | OWNERS).give(&self.sys, file.as_fd())?;
            self.sys.write_all_at(file.as_fd(), text, 0)?;
            self.sys.sync(file.as_fd())?;
            let home = self.open_directory(&home(of.owner), OFlags::PATH)?;
            let home = Some(home.as_fd());
            self.sys.rename(home, Path::new(&temporary), home, Path::new(&name))
        };
        write().map_err(|errno| self.failure(of, Name::Manifest, "replace", errno))?;
        // Where earlier versions put it.
        self.remove_in(of, &earlier(of.id), &name)
    }

    /// Creates `file` in the directory of the user, private to the owner.
    pub(crate) fn create_file(&self, of: Objects, file: &str) -> Result<Fd, TargetError> {
        self.make_home(of.owner)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let path = home(of.owner).join(file);
        let fd = self.sys.open_beneath(self.dir(), &path, flags, OWNERS);
        let fd = fd.map_err(|errno| self.io(&path, "create", errno))?;
        let stat = self.sys.stat(fd.as_fd()).map_err(|errno| self.io(&path, "create", errno))?;
        let give = || self.sys.set_owner(Kind::Open(fd.as_fd()), Some(of.owner), None);
        if stat.st_uid == of.owner || give().is_ok() {
            return Ok(fd);
        }
        let made = Objects { owner: stat.st_uid, ..of };
        let _ = self.remove_in(made, &home(of.owner), file);
        let path = self.path().join(path);
        Err(TargetError::NotOwned { path, expected: of.owner, found: stat.st_uid })
    }

    /// Opens an object with these flags and verifies that it is a regular file of its user.
    pub(crate) fn open_object(&self, of: Objects, name: Name, flags: OFlags) -> Result<Fd, TargetError> {
        self.open_file(of, &file_name(of.id, name), flags).map(|(fd, _)| fd)
    }

    /// stat of an object.
    pub(crate) fn stat_object(&self, of: Objects, name: Name) -> Result<Stat, TargetError> {
        let stat = |path: &Path| self.sys.stat_beneath(self.dir(), path);
        let (path, stat) = self.find(of, &file_name(of.id, name), "stat", stat)?;
        check_owned(self.path().join(path), of.owner, &stat).map(|()| stat)
    }

    /// Removes a name. A missing name is not an error; another user's file is left alone.
    pub(crate) fn remove_object(&self, of: Objects, name: Name) -> Result<(), TargetError> {
        self.remove_file(of, &file_name(of.id, name))
    }

    /// As [`Target::remove_object`], for any file there.
    pub(crate) fn remove_file(&self, of: Objects, file: &str) -> Result<(), TargetError> {
        directories(of).iter().try_for_each(|directory| self.remove_in(of, directory, file))
    }

    fn remove_in(&self, of: Objects, directory: &Path, file: &str) -> Result<(), TargetError> {
        let path = directory.join(file);
        let fail = |errno| self.io(&path, "unlink", errno);
        let parent = match self.open_directory(directory, OFlags::PATH) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
            parent => parent.map_err(fail)?,
        };
        let (parent, file) = (Some(parent.as_fd()), Path::new(file));
        match self.sys.stat_at(parent, file, false) {
            Err(Errno::NOENT) => return Ok(()),
            stat => check_owned(self.path().join(&path), of.owner, &stat.map_err(fail)?)?,
        }
        match self.sys.unlink(parent, file) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(fail(errno)),
        }
    }

    /// Changes attributes of an object (neither name nor content). `call` gets a name of the object
    /// that no other file can take.
    pub(crate) fn change(
        &self,
        of: Objects,
        name: Name,
        what: &'static str,
        call: impl FnOnce(Kind<'_>) -> SysResult<()>,
    ) -> Result<(), TargetError> {
        let (fd, _) = self.open_file(of, &file_name(of.id, name), OFlags::PATH)?;
        call(Kind::Named(None, &link_of(&fd))).map_err(|errno| self.failure(of, name, what, errno))
    }

    /// Moves an object from the directory of its user to that of user `to` and gives it to that
    /// user. A repeated call continues after a kill.
    pub(crate) fn give_away(&self, of: Objects, file: &str, to: u32) -> Result<(), TargetError> {
        self.make_home(to)?;
        let new = home(to).join(file);
        let fail = |errno| self.io(&new, "move an object to", errno);
        let new_home = self.open_directory(&home(to), OFlags::PATH).map_err(fail)?;
        for directory in directories(of) {
            let old = directory.join(file);
            let object = match self.sys.open_beneath(self.dir(), &old, OFlags::PATH, Mode::empty()) {
                Err(Errno::NOENT) => continue,
                object => object.map_err(fail)?,
            };
            let stat = self.sys.stat(object.as_fd()).map_err(fail)?;
            // The file already belongs to the new user if an earlier call was killed before the
            // rename.
            let given = stat.st_uid == to && stat.st_nlink == 1;
            check_owned(self.path().join(&old), if given { to } else { of.owner }, &stat)?;
            let old_home = self.open_directory(&directory, OFlags::PATH).map_err(fail)?;
            self.sys.set_owner(Kind::Named(None, &link_of(&object)), Some(to), None).map_err(fail)?;
            let name = Path::new(file);
            return self.sys.rename(Some(old_home.as_fd()), name, Some(new_home.as_fd()), name).map_err(fail);
        }
        self.open_file(Objects { owner: to, ..of }, file, OFlags::PATH).map(drop)
    }

    /// Whether the user has the file through which nodes share the space of caches.
    pub fn has_ledger(&self, user: u32) -> bool {
        self.sys.stat_at(Some(self.dir()), &home(user).join(LEDGER), false).is_ok()
    }

    /// Opens or creates the file through which nodes share the space of the user's caches, and
    /// verifies that it is a regular file of the user.
    pub fn open_ledger(&self, user: u32) -> Result<Fd, TargetError> {
        self.make_home(user)?;
        let path = home(user).join(LEDGER);
        let fail = |errno| self.io(&path, "open", errno);
        let flags = OFlags::RDWR | OFlags::CREATE;
        let file = self.sys.open_beneath(self.dir(), &path, flags, OWNERS).map_err(fail)?;
        let stat = self.sys.stat(file.as_fd()).map_err(fail)?;
        check_owned(self.path().join(&path), user, &stat)?;
        Ok(file)
    }

    /// Syncs the directories that have objects of `of`, and the directories above unless they are
    /// known to be synced.
    pub(crate) fn sync_directories(&self, of: Objects) -> Result<(), TargetError> {
        let sync = |path: &Path| -> Result<bool, TargetError> {
            let fail = |errno| self.io(path, "fsync of the directory", errno);
            match self.open_directory(path, OFlags::RDONLY) {
                Ok(directory) => self.sys.sync(directory.as_fd()).map(|()| true).map_err(fail),
                Err(Errno::NOENT) => Ok(false),
                // Another user's directory, which cannot be opened for reading; its names may be as
                // new as the file.
                Err(Errno::ACCESS) => self.sys.sync_file_system(self.dir()).map(|()| true).map_err(fail),
                Err(errno) => Err(fail(errno)),
            }
        };
        let [usual, earlier] = directories(of);
        if !sync(&usual)? && !sync(&earlier)? {
            return Err(self.io(&usual, "fsync of the directory", Errno::NOENT));
        }
        if !self.homes.synced.is(of.owner) {
            sync(Path::new(OBJECTS))?;
            self.sys
                .sync(self.dir())
                .map_err(|errno| self.io(Path::new("."), "fsync of the directory", errno))?;
            self.homes.synced.set(of.owner);
        }
        Ok(())
    }

    /// The directory, relative to the target, that has `file` of these objects, or that would get
    /// it if none has.
    pub fn directory_of(&self, of: Objects, file: &str) -> PathBuf {
        let [usual, earlier] = directories(of);
        let has = |directory: &Path| {
            let path = directory.join(file);
            self.sys.open_beneath(self.dir(), &path, OFlags::PATH, Mode::empty()).is_ok()
        };
        if !has(&usual) && has(&earlier) { earlier } else { usual }
    }
}

fn link_of(fd: &Fd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", fd.as_raw_fd()))
}

fn check_owned(path: PathBuf, owner: u32, stat: &Stat) -> Result<(), TargetError> {
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(TargetError::Io { path, what: "use, as it is no regular file,", errno: Errno::LOOP });
    }
    if stat.st_uid != owner {
        return Err(TargetError::NotOwned { path, expected: owner, found: stat.st_uid });
    }
    Ok(())
}

/// The owner keeps using the manifest's copy for locks, even for a read-only file.
const OWNERS: Mode = Mode::RUSR.union(Mode::WUSR);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_written_and_read_back() {
        let id = FileId([0xab; 16]);
        for name in [Name::Manifest, Name::Object(0), Name::Object(17), Name::Object(u32::MAX)] {
            assert_eq!(parse(&file_name(id, name)), Some((id, name)));
        }
        let hex = id.to_string();
        for bad in ["", "x.0", ".0", &hex, &format!("{hex}."), &format!("{hex}.01"), &format!("{hex}.+1")] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_users_directory_is_never_that_of_earlier_versions() {
        let of = Objects { id: FileId([0x10; 16]), owner: 10 };
        assert_eq!(directories(of), [Path::new("stripewise/u10"), Path::new("stripewise/10")]);
    }
}
