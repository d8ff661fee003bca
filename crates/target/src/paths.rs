//! Where components lie in a target, and the calls on their names.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use stripewise_sys::{Errno, Fd, FileType, Kind, Mode, OFlags, Result as SysResult, Stat, Sys, SysRef};

use crate::{FileId, Target, TargetError};

/// The directory of all components, in the target's directory.
pub const COMPONENTS: &str = "stripewise";

/// A file of a logical file on a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Name {
    /// `ID.manifest`
    Manifest,
    /// `ID.n`
    Component(u32),
}

/// `stripewise/ab`: the directory of the components of file `id`, relative to the target.
pub fn directory(id: FileId) -> PathBuf {
    PathBuf::from(format!("{COMPONENTS}/{:02x}", id.0[0]))
}

/// Relative to the target.
fn relative(id: FileId, name: Name) -> PathBuf {
    let file = match name {
        Name::Manifest => format!("{id}.manifest"),
        Name::Component(index) => format!("{id}.{index}"),
    };
    directory(id).join(file)
}

/// The inverse: what a file name in a component directory means.
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

pub fn failure(target: &Target, id: FileId, name: Name, what: &'static str, errno: Errno) -> TargetError {
    TargetError::Io { path: target.path().join(relative(id, name)), what, errno }
}

/// Creates a file that must not exist, with exactly `mode`, and its directory if need be.
pub fn create(sys: &SysRef, target: &Target, id: FileId, name: Name, mode: Mode) -> Result<Fd, TargetError> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
    let path = relative(id, name);
    let open = || sys.open(Some(target.dir()), &path, flags, mode);
    let fail = |errno| failure(target, id, name, "create", errno);
    let file = match open() {
        Err(Errno::NOENT) => {
            target.lasting.forget(id);
            make_directories(sys.as_ref(), target.dir(), id).map_err(fail)?;
            open()
        }
        other => other,
    };
    let file = file.map_err(fail)?;
    if let Err(errno) = sys.set_mode(Kind::Open(file.as_fd()), mode) {
        let _ = remove(sys, target, id, name);
        return Err(fail(errno));
    }
    Ok(file)
}

pub fn open(sys: &SysRef, target: &Target, id: FileId, name: Name, flags: OFlags) -> Result<Fd, TargetError> {
    let path = relative(id, name);
    sys.open(Some(target.dir()), &path, flags | OFlags::NOFOLLOW, Mode::empty())
        .map_err(|errno| failure(target, id, name, "open", errno))
}

/// What the kernel says of a regular file.
pub fn stat(sys: &SysRef, target: &Target, id: FileId, name: Name) -> Result<Stat, TargetError> {
    let stat = sys.stat_at(Some(target.dir()), &relative(id, name), false);
    let regular = |stat: &Stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    let stat = stat.and_then(|stat| if regular(&stat) { Ok(stat) } else { Err(Errno::LOOP) });
    stat.map_err(|errno| failure(target, id, name, "stat", errno))
}

/// Removes a name; one that is gone is fine.
pub fn remove(sys: &SysRef, target: &Target, id: FileId, name: Name) -> Result<(), TargetError> {
    match sys.unlink(Some(target.dir()), &relative(id, name)) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(failure(target, id, name, "unlink", errno)),
    }
}

/// Calls `call` with the target's directory and the file's path from there.
pub fn change(
    target: &Target,
    id: FileId,
    name: Name,
    what: &'static str,
    call: impl FnOnce(BorrowedFd<'_>, &Path) -> SysResult<()>,
) -> Result<(), TargetError> {
    call(target.dir(), &relative(id, name)).map_err(|errno| failure(target, id, name, what, errno))
}

/// The directories `stripewise` and `stripewise/ab`, with the mode of the target's own directory: who may create files in
/// the target may create components.
fn make_directories(sys: &dyn Sys, target: BorrowedFd<'_>, id: FileId) -> SysResult<()> {
    make_directory(sys, target, Path::new(COMPONENTS))?;
    make_directory(sys, target, &directory(id))
}

pub fn make_directory(sys: &dyn Sys, target: BorrowedFd<'_>, path: &Path) -> SysResult<()> {
    let mode = Mode::from_raw_mode(sys.stat(target)?.st_mode & 0o7777);
    match sys.mkdir(Some(target), path, mode) {
        Ok(()) => sys.set_mode(Kind::Named(Some(target), path), mode),
        Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Which of a target's directories `stripewise/ab` this process has made durable with those above them: nobody removes them, so that it
/// need not be done for every file.
#[derive(Debug, Default)]
pub struct Lasting([AtomicU64; 4]);

impl Lasting {
    fn place(&self, id: FileId) -> (&AtomicU64, u64) {
        (&self.0[usize::from(id.0[0] / 64)], 1 << (id.0[0] % 64))
    }

    fn knows(&self, id: FileId) -> bool {
        let (word, bit) = self.place(id);
        word.load(Ordering::Acquire) & bit != 0
    }

    fn note(&self, id: FileId) {
        let (word, bit) = self.place(id);
        word.fetch_or(bit, Ordering::Release);
    }

    /// The directory was not there.
    fn forget(&self, id: FileId) {
        let (word, bit) = self.place(id);
        word.fetch_and(!bit, Ordering::AcqRel);
    }
}

/// Syncs `stripewise/ab`; and, unless that is known to be done, `stripewise` and the target's directory.
pub fn sync_directories(sys: &SysRef, target: &Target, id: FileId) -> Result<(), TargetError> {
    let sync = |path: &Path| -> SysResult<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let directory = sys.open(Some(target.dir()), path, flags, Mode::empty())?;
        sys.sync(directory.as_fd())
    };
    let known = target.lasting.knows(id);
    let own = directory(id);
    let all = [own.as_path(), Path::new(COMPONENTS), Path::new(".")];
    for path in if known { &all[..1] } else { &all[..] } {
        sync(path).map_err(|errno| TargetError::Io {
            path: target.path().join(path),
            what: "fsync of the directory",
            errno,
        })?;
    }
    target.lasting.note(id);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_written_and_read_back() {
        let id = FileId([0xab; 16]);
        for name in [Name::Manifest, Name::Component(0), Name::Component(17), Name::Component(u32::MAX)] {
            let path = relative(id, name);
            assert!(path.starts_with("stripewise/ab"));
            let file = path.file_name().unwrap().to_str().unwrap();
            assert_eq!(parse(file), Some((id, name)));
        }
        let hex = id.to_string();
        for bad in ["", "x.0", ".0", &hex, &format!("{hex}."), &format!("{hex}.01"), &format!("{hex}.+1")] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
