//! The directories of users on a target, created safely by the first process that needs them.

use std::os::fd::AsFd;
use std::path::Path;

use stripewise_sys::{Errno, Kind, Mode, OFlags, Result as SysResult, Stat};

use crate::TargetError;
use crate::paths::{OBJECTS, home};
use crate::target::Target;

/// Mode of a user's directory: others can open files whose names they know, and cannot list it.
const HOME_MODE: Mode = Mode::RWXU.union(Mode::XGRP).union(Mode::XOTH);
const ROOT: u32 = 0;

impl Target {
    /// Ensures that a user's directory exists. The directory belongs to the user and lies in one
    /// whose entries other users cannot exchange.
    pub(crate) fn make_home(&self, owner: u32) -> Result<(), TargetError> {
        if self.homes.known.is(owner) {
            return Ok(());
        }
        self.make_objects_directory(owner)?;
        let path = home(owner);
        let fail = |errno| self.io(&path, "make", errno);
        match self.sys.mkdir(Some(self.dir()), &path, HOME_MODE) {
            Ok(()) => self.adopt_home(&path, owner).map_err(fail)?,
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(fail(errno)),
        }
        let found = self.directory(&path)?.st_uid;
        if found != owner {
            return Err(TargetError::NotOwned { path: self.path().join(&path), expected: owner, found });
        }
        self.homes.known.set(owner);
        Ok(())
    }

    /// Sets mode and owner of a directory that this process has just created. Only root and the
    /// owner can have put another directory in its place.
    fn adopt_home(&self, path: &Path, owner: u32) -> SysResult<()> {
        let fd = self.open_directory(path, OFlags::RDONLY)?;
        self.sys.set_mode(Kind::Open(fd.as_fd()), HOME_MODE)?;
        if self.sys.user() == ROOT && owner != ROOT {
            self.sys.set_owner(Kind::Open(fd.as_fd()), Some(owner), None)?;
        }
        Ok(())
    }

    fn directory(&self, path: &Path) -> Result<Stat, TargetError> {
        let fail = |errno| self.io(path, "use", errno);
        let fd = self.open_directory(path, OFlags::PATH).map_err(fail)?;
        self.sys.stat(fd.as_fd()).map_err(fail)
    }

    /// `stripewise`, with the mode of the target's directory: users who may create files in the
    /// target may have objects there. It must belong to root, to the target's owner or to `owner`,
    /// because its owner could exchange all users' directories.
    fn make_objects_directory(&self, owner: u32) -> Result<(), TargetError> {
        let path = Path::new(OBJECTS);
        self.make_directory()?;
        let found = self.directory(path)?.st_uid;
        let above = self.sys.stat(self.dir()).map_err(|errno| self.io(Path::new("."), "stat", errno))?.st_uid;
        if [ROOT, above, owner].contains(&found) {
            return Ok(());
        }
        Err(TargetError::NotOwned { path: self.path().join(path), expected: above, found })
    }

    /// Creates `stripewise` if it does not exist.
    pub(crate) fn make_directory(&self) -> Result<(), TargetError> {
        let path = Path::new(OBJECTS);
        let made = || {
            let mode = Mode::from_raw_mode(self.sys.stat(self.dir())?.st_mode & 0o7777);
            match self.sys.mkdir(Some(self.dir()), path, mode) {
                Ok(()) => {
                    let fd = self.open_directory(path, OFlags::RDONLY)?;
                    self.sys.set_mode(Kind::Open(fd.as_fd()), mode)
                }
                Err(Errno::EXIST) => Ok(()),
                Err(errno) => Err(errno),
            }
        };
        made().map_err(|errno| self.io(path, "mkdir", errno))
    }
}
