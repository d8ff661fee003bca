//! The directories of users on a target, created safely by the first process that needs them.

use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use stripewise_sys::{Errno, Kind, Mode, OFlags, Result as SysResult, Stat, SysRef};

use crate::paths::{COMPONENTS, home, io, open_directory};
use crate::{Target, TargetError};

/// Mode of a user's directory: others can open files whose names they know, and cannot list it.
const HOME_MODE: Mode = Mode::RWXU.union(Mode::XGRP).union(Mode::XOTH);
const ROOT: u32 = 0;

/// Ensures that a user's directory exists. The directory belongs to the user and lies in one whose
/// entries other users cannot exchange.
pub fn make_home(sys: &SysRef, target: &Target, owner: u32) -> Result<(), TargetError> {
    if target.homes.knows(owner) {
        return Ok(());
    }
    make_components(sys, target, owner)?;
    let path = home(owner);
    let fail = |errno| io(target, &path, "make", errno);
    match sys.mkdir(Some(target.dir()), &path, HOME_MODE) {
        Ok(()) => adopt_home(sys, target, &path, owner).map_err(fail)?,
        Err(Errno::EXIST) => {}
        Err(errno) => return Err(fail(errno)),
    }
    let stat = directory(sys, target, &path)?;
    if stat.st_uid != owner {
        return Err(TargetError::NotOwned {
            path: target.path().join(&path),
            expected: owner,
            found: stat.st_uid,
        });
    }
    target.homes.note(owner);
    Ok(())
}

/// Sets mode and owner of a directory that this process has just created. Only root and the owner
/// can have put another directory in its place.
fn adopt_home(sys: &SysRef, target: &Target, path: &Path, owner: u32) -> SysResult<()> {
    let fd = open_directory(sys, target, path, OFlags::RDONLY)?;
    sys.set_mode(Kind::Open(fd.as_fd()), HOME_MODE)?;
    if sys.user() == ROOT && owner != ROOT {
        sys.set_owner(Kind::Open(fd.as_fd()), Some(owner), None)?;
    }
    Ok(())
}

fn directory(sys: &SysRef, target: &Target, path: &Path) -> Result<Stat, TargetError> {
    let fail = |errno| io(target, path, "use", errno);
    let fd = open_directory(sys, target, path, OFlags::PATH).map_err(fail)?;
    sys.stat(fd.as_fd()).map_err(fail)
}

/// `stripewise`, with the mode of the target's directory: users who may create files in the target
/// may have objects there. It must belong to root, to the target's owner or to `owner`, because its
/// owner could exchange all users' directories.
fn make_components(sys: &SysRef, target: &Target, owner: u32) -> Result<(), TargetError> {
    let path = Path::new(COMPONENTS);
    make_directory(sys, target)?;
    let found = directory(sys, target, path)?.st_uid;
    let above = sys.stat(target.dir()).map_err(|errno| io(target, Path::new("."), "stat", errno))?.st_uid;
    if [ROOT, above, owner].contains(&found) {
        return Ok(());
    }
    Err(TargetError::NotOwned { path: target.path().join(path), expected: above, found })
}

/// Creates `stripewise` if it does not exist.
pub fn make_directory(sys: &SysRef, target: &Target) -> Result<(), TargetError> {
    let path = Path::new(COMPONENTS);
    let made = || {
        let mode = Mode::from_raw_mode(sys.stat(target.dir())?.st_mode & 0o7777);
        match sys.mkdir(Some(target.dir()), path, mode) {
            Ok(()) => {
                let fd = open_directory(sys, target, path, OFlags::RDONLY)?;
                sys.set_mode(Kind::Open(fd.as_fd()), mode)
            }
            Err(Errno::EXIST) => Ok(()),
            Err(errno) => Err(errno),
        }
    };
    made().map_err(|errno| io(target, path, "mkdir", errno))
}

/// The users whose directory on a target this process has verified, and those among them whose
/// directory it has made durable, with the ones above. Only root and the user can change a
/// directory, so neither check is repeated for every file.
#[derive(Debug, Default)]
pub struct Homes {
    known: LastUser,
    pub(crate) synced: LastUser,
}

/// One user, since a process usually works for one. 0: none, otherwise the uid plus 1.
#[derive(Debug, Default)]
pub(crate) struct LastUser(AtomicU64);

impl LastUser {
    pub(crate) fn is(&self, user: u32) -> bool {
        self.0.load(Ordering::Acquire) == u64::from(user) + 1
    }

    pub(crate) fn set(&self, user: u32) {
        self.0.store(u64::from(user) + 1, Ordering::Release);
    }
}

impl Homes {
    pub(crate) fn knows(&self, owner: u32) -> bool {
        self.known.is(owner)
    }

    pub(crate) fn note(&self, owner: u32) {
        self.known.set(owner);
    }

    /// Forgets a user whose directory turned out to be missing.
    pub(crate) fn forget(&self, owner: u32) {
        if self.known.is(owner) || self.synced.is(owner) {
            self.known.0.store(0, Ordering::Release);
            self.synced.0.store(0, Ordering::Release);
        }
    }
}
