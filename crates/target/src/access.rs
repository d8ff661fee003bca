//! Permissions that objects take over from their anchor.

use std::ffi::OsStr;
use std::os::fd::BorrowedFd;

use stripewise_sys::{Kind, Mode, Result as SysResult, SysRef};

/// The permissions of new objects, taken over from the anchor.
#[derive(Clone, Debug)]
pub struct Access<'a> {
    /// The mode bits.
    pub mode: Mode,
    /// The group, unless it is the one that a file gets when its owner creates it there.
    pub group: Option<u32>,
    /// The access control list (`system.posix_acl_access`), if there is one.
    pub list: Option<&'a [u8]>,
}

const ACCESS_LIST: &str = "system.posix_acl_access";

impl<'a> Access<'a> {
    /// The permissions of a file that has only a mode.
    pub fn of_mode(mode: Mode) -> Self {
        Self { mode, group: None, list: None }
    }

    pub(crate) fn with(&self, mode: Mode) -> Self {
        Self { mode, ..self.clone() }
    }

    /// Gives an open file this group, list and mode. If this process may not set the group, the
    /// group gets no permissions.
    pub(crate) fn give(&self, sys: &SysRef, fd: BorrowedFd<'_>) -> SysResult<()> {
        let of = Kind::Open(fd);
        let mut mode = self.mode;
        if let Some(group) = self.group {
            let now = sys.stat(fd)?.st_gid;
            if now != group && sys.set_owner(of, None, Some(group)).is_err() {
                mode -= Mode::RWXG;
            }
        }
        if let Some(list) = self.list {
            set_access_list(sys, of, list)?;
        }
        sys.set_mode(of, mode)
    }
}

pub(crate) fn set_access_list(sys: &SysRef, of: Kind<'_>, list: &[u8]) -> SysResult<()> {
    sys.set_xattr(of, OsStr::new(ACCESS_LIST), list)
}

/// The access control list of an open file; `None` where there is none or the file system does not
/// support them.
pub fn access_list(sys: &SysRef, fd: BorrowedFd<'_>) -> Option<Vec<u8>> {
    sys.xattr(Kind::Open(fd), OsStr::new(ACCESS_LIST)).ok()
}
