//! Paths of objects in a target, their owners, and the calls on their names.
//!
//! A user's objects are in a directory of their own, whose names other users cannot list: the ids
//! in the names are random and appear only in manifests. Targets may be writable for all users, so
//! a file is used only once it is known to be a regular file of the right user
//! (`docs/security.md`).

use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};

use stripewise_sys::{Errno, Fd, FileType, Kind, Mode, OFlags, Result as SysResult, Stat, SysRef};

use crate::access::Access;
use crate::home::make_home;
use crate::{FileId, Target, TargetError};

/// The directory of all objects, relative to the target's directory.
pub const COMPONENTS: &str = "stripewise";

/// The objects of one copy of a file on its targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Objects {
    /// The id with which their names begin.
    pub id: FileId,
    /// The user that they belong to: the owner of the file's anchor. Files of other users are not
    /// used.
    pub owner: u32,
}

/// One of a logical file's files on a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Name {
    /// `ID.manifest`
    Manifest,
    /// `ID.n`
    Component(u32),
}

/// `stripewise/u1000`: the directory of a user's objects, relative to the target.
pub fn home(owner: u32) -> PathBuf {
    PathBuf::from(format!("{COMPONENTS}/u{owner}"))
}

/// `stripewise/ab`, shared by all users: where earlier versions put the objects of file `id`.
fn earlier(id: FileId) -> PathBuf {
    PathBuf::from(format!("{COMPONENTS}/{:02x}", id.0[0]))
}

/// The possible directories of the objects, the usual one first.
fn directories(of: Objects) -> [PathBuf; 2] {
    [home(of.owner), earlier(of.id)]
}

pub fn file_name(id: FileId, name: Name) -> String {
    match name {
        Name::Manifest => format!("{id}.manifest"),
        Name::Component(index) => format!("{id}.{index}"),
    }
}

/// The inverse of [`file_name`].
pub fn parse(file: &str) -> Option<(FileId, Name)> {
    let (id, name) = file.split_once('.')?;
    let id = FileId::from_hex(id)?;
    match name {
        "manifest" => Some((id, Name::Manifest)),
        number if number == "0" || !number.starts_with(['0', '+']) => {
            number.parse().ok().map(|index| (id, Name::Component(index)))
        }
        _ => None,
    }
}

/// The path of an object, for messages.
pub fn path_of(target: &Target, of: Objects, name: Name) -> PathBuf {
    target.path().join(home(of.owner)).join(file_name(of.id, name))
}

pub fn failure(target: &Target, of: Objects, name: Name, what: &'static str, errno: Errno) -> TargetError {
    TargetError::Io { path: path_of(target, of, name), what, errno }
}

/// Opens `file` in one of the directories of `of` and verifies that it is a regular file of its
/// user.
///
/// # Errors
/// ENOENT when none of the directories has it; [`TargetError::NotOwned`].
pub fn open_file(
    sys: &SysRef,
    target: &Target,
    of: Objects,
    file: &str,
    flags: OFlags,
) -> Result<(Fd, Stat), TargetError> {
    for directory in directories(of) {
        let path = directory.join(file);
        match sys.open_beneath(target.dir(), &path, flags, Mode::empty()) {
            Ok(fd) => return owned(sys, target.path().join(path), of.owner, fd),
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(io(target, &path, "open", errno)),
        }
    }
    Err(io(target, &home(of.owner).join(file), "open", Errno::NOENT))
}

pub(crate) fn io(target: &Target, path: &Path, what: &'static str, errno: Errno) -> TargetError {
    TargetError::Io { path: target.path().join(path), what, errno }
}

/// Opens a directory of the target without following links. Calls on names in it use this
/// descriptor, because the user who owns the directory may exchange it.
pub(crate) fn open_directory(sys: &SysRef, target: &Target, path: &Path, flags: OFlags) -> SysResult<Fd> {
    sys.open_beneath(target.dir(), path, flags | OFlags::DIRECTORY, Mode::empty())
}

fn link_of(fd: &Fd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", fd.as_raw_fd()))
}

/// Refuses a file that is not a regular file of this user.
fn owned(sys: &SysRef, path: PathBuf, owner: u32, fd: Fd) -> Result<(Fd, Stat), TargetError> {
    let stat = match sys.stat(fd.as_fd()) {
        Ok(stat) => stat,
        Err(errno) => return Err(TargetError::Io { path, what: "stat", errno }),
    };
    check_owned(path, owner, &stat).map(|()| (fd, stat))
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

/// Creates a file that must not exist, with exactly `mode`, and its directory if necessary.
pub fn create(
    sys: &SysRef,
    target: &Target,
    of: Objects,
    name: Name,
    access: &Access<'_>,
) -> Result<Fd, TargetError> {
    let file = match create_file(sys, target, of, &file_name(of.id, name)) {
        Err(error) if error.errno() == Errno::NOENT => {
            target.homes.forget(of.owner);
            create_file(sys, target, of, &file_name(of.id, name))?
        }
        created => created?,
    };
    let mode = if name == Name::Manifest { access.mode | OWNERS } else { access.mode };
    if let Err(error) = access.with(mode).give(sys, file.as_fd()) {
        let _ = remove(sys, target, of, name);
        return Err(failure(target, of, name, "create", error));
    }
    Ok(file)
}

/// Replaces `ID.manifest`, whatever is there: see [`crate::ComponentSet::replace_manifest`].
pub fn replace_manifest(
    sys: &SysRef,
    target: &Target,
    of: Objects,
    text: &[u8],
    access: &Access<'_>,
) -> Result<(), TargetError> {
    let (name, temporary) = (file_name(of.id, Name::Manifest), format!("{}.manifest.new", of.id));
    // Left by a process that was killed.
    remove_file(sys, target, of, &temporary)?;
    let file = create_file(sys, target, of, &temporary)?;
    let write = || {
        access.with(access.mode | OWNERS).give(sys, file.as_fd())?;
        sys.write_all_at(file.as_fd(), text, 0)?;
        sys.sync(file.as_fd())?;
        let home = open_directory(sys, target, &home(of.owner), OFlags::PATH)?;
        let home = Some(home.as_fd());
        sys.rename(home, Path::new(&temporary), home, Path::new(&name))
    };
    write().map_err(|errno| failure(target, of, Name::Manifest, "replace", errno))?;
    // Where earlier versions put it.
    remove_in(sys, target, of, &earlier(of.id), &name)
}

/// The owner keeps using the manifest's copy for locks, even for a read-only file.
const OWNERS: Mode = Mode::RUSR.union(Mode::WUSR);

/// Creates `file` in the directory of the user, private to the owner.
pub fn create_file(sys: &SysRef, target: &Target, of: Objects, file: &str) -> Result<Fd, TargetError> {
    make_home(sys, target, of.owner)?;
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
    let path = home(of.owner).join(file);
    let fd = sys.open_beneath(target.dir(), &path, flags, OWNERS);
    let fd = fd.map_err(|errno| io(target, &path, "create", errno))?;
    let stat = sys.stat(fd.as_fd()).map_err(|errno| io(target, &path, "create", errno))?;
    let given = if stat.st_uid == of.owner {
        Ok(())
    } else {
        sys.set_owner(Kind::Open(fd.as_fd()), Some(of.owner), None)
    };
    match given {
        Ok(()) => Ok(fd),
        Err(_) => {
            let made = Objects { owner: stat.st_uid, ..of };
            let _ = remove_in(sys, target, made, &home(of.owner), file);
            let path = target.path().join(path);
            Err(TargetError::NotOwned { path, expected: of.owner, found: stat.st_uid })
        }
    }
}

/// Opens an object with these flags and verifies that it is a regular file of its user.
pub fn open(sys: &SysRef, target: &Target, of: Objects, name: Name, flags: OFlags) -> Result<Fd, TargetError> {
    open_file(sys, target, of, &file_name(of.id, name), flags).map(|(fd, _)| fd)
}

/// stat of an object.
pub fn stat(sys: &SysRef, target: &Target, of: Objects, name: Name) -> Result<Stat, TargetError> {
    for directory in directories(of) {
        let path = directory.join(file_name(of.id, name));
        match sys.stat_beneath(target.dir(), &path) {
            Ok(stat) => return check_owned(target.path().join(path), of.owner, &stat).map(|()| stat),
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(io(target, &path, "stat", errno)),
        }
    }
    Err(failure(target, of, name, "stat", Errno::NOENT))
}

/// Removes a name. A missing name is not an error; another user's file is left alone.
pub fn remove(sys: &SysRef, target: &Target, of: Objects, name: Name) -> Result<(), TargetError> {
    remove_file(sys, target, of, &file_name(of.id, name))
}

/// As [`remove`], for any file there.
pub fn remove_file(sys: &SysRef, target: &Target, of: Objects, file: &str) -> Result<(), TargetError> {
    directories(of).iter().try_for_each(|directory| remove_in(sys, target, of, directory, file))
}

fn remove_in(
    sys: &SysRef,
    target: &Target,
    of: Objects,
    directory: &Path,
    file: &str,
) -> Result<(), TargetError> {
    let path = directory.join(file);
    let fail = |errno| io(target, &path, "unlink", errno);
    let parent = match open_directory(sys, target, directory, OFlags::PATH) {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
        parent => parent.map_err(fail)?,
    };
    let (parent, file) = (Some(parent.as_fd()), Path::new(file));
    match sys.stat_at(parent, file, false) {
        Err(Errno::NOENT) => return Ok(()),
        stat => check_owned(target.path().join(&path), of.owner, &stat.map_err(fail)?)?,
    }
    match sys.unlink(parent, file) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(fail(errno)),
    }
}

/// Changes attributes of an object (neither name nor content). `call` gets a name of the object
/// that no other file can take.
pub fn change(
    sys: &SysRef,
    target: &Target,
    of: Objects,
    name: Name,
    what: &'static str,
    call: impl FnOnce(Kind<'_>) -> SysResult<()>,
) -> Result<(), TargetError> {
    let (fd, _) = open_file(sys, target, of, &file_name(of.id, name), OFlags::PATH)?;
    call(Kind::Named(None, &link_of(&fd))).map_err(|errno| failure(target, of, name, what, errno))
}

/// Moves an object from the directory of its user to that of user `to` and gives it to that user. A
/// repeated call continues after a kill.
pub fn give_away(sys: &SysRef, target: &Target, of: Objects, file: &str, to: u32) -> Result<(), TargetError> {
    make_home(sys, target, to)?;
    let new = home(to).join(file);
    let fail = |errno| io(target, &new, "move an object to", errno);
    let new_home = open_directory(sys, target, &home(to), OFlags::PATH).map_err(fail)?;
    for directory in directories(of) {
        let old = directory.join(file);
        let object = match sys.open_beneath(target.dir(), &old, OFlags::PATH, Mode::empty()) {
            Err(Errno::NOENT) => continue,
            object => object.map_err(fail)?,
        };
        let stat = sys.stat(object.as_fd()).map_err(fail)?;
        // The file already belongs to the new user if an earlier call was killed before the rename.
        let given = stat.st_uid == to && stat.st_nlink == 1;
        check_owned(target.path().join(&old), if given { to } else { of.owner }, &stat)?;
        let old_home = open_directory(sys, target, &directory, OFlags::PATH).map_err(fail)?;
        sys.set_owner(Kind::Named(None, &link_of(&object)), Some(to), None).map_err(fail)?;
        let name = Path::new(file);
        return sys.rename(Some(old_home.as_fd()), name, Some(new_home.as_fd()), name).map_err(fail);
    }
    open_file(sys, target, Objects { owner: to, ..of }, file, OFlags::PATH).map(drop)
}

/// Syncs the directories that have objects of `of`, and the directories above unless they are known
/// to be synced.
pub fn sync_directories(sys: &SysRef, target: &Target, of: Objects) -> Result<(), TargetError> {
    let sync = |path: &Path| -> Result<bool, TargetError> {
        let fail = |errno| io(target, path, "fsync of the directory", errno);
        match open_directory(sys, target, path, OFlags::RDONLY) {
            Ok(directory) => sys.sync(directory.as_fd()).map(|()| true).map_err(fail),
            Err(Errno::NOENT) => Ok(false),
            // Another user's directory, which cannot be opened for reading; its names may be as new
            // as the file.
            Err(Errno::ACCESS) => sys.sync_file_system(target.dir()).map(|()| true).map_err(fail),
            Err(errno) => Err(fail(errno)),
        }
    };
    let [usual, earlier] = directories(of);
    if !sync(&usual)? && !sync(&earlier)? {
        return Err(io(target, &usual, "fsync of the directory", Errno::NOENT));
    }
    if !target.homes.synced.is(of.owner) {
        sync(Path::new(COMPONENTS))?;
        sys.sync(target.dir()).map_err(|errno| io(target, Path::new("."), "fsync of the directory", errno))?;
        target.homes.synced.set(of.owner);
    }
    Ok(())
}

/// The directory, relative to the target, that has `file` of these objects, or that would get it if
/// none has.
pub fn directory_with(sys: &SysRef, target: &Target, of: Objects, file: &str) -> PathBuf {
    let [usual, earlier] = directories(of);
    let has = |directory: &Path| {
        let path = directory.join(file);
        sys.open_beneath(target.dir(), &path, OFlags::PATH, Mode::empty()).is_ok()
    };
    if !has(&usual) && has(&earlier) { earlier } else { usual }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_written_and_read_back() {
        let id = FileId([0xab; 16]);
        for name in [Name::Manifest, Name::Component(0), Name::Component(17), Name::Component(u32::MAX)] {
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
