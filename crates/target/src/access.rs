//! Who may use objects: what they take over from their anchor.

use std::ffi::OsStr;
use std::os::fd::BorrowedFd;

use stripewise_sys::{Kind, Mode, Result as SysResult, SysRef};

/// Who may use new objects: taken over from the anchor.
#[derive(Clone, Debug)]
pub struct Access<'a> {
    /// The permissions.
    pub mode: Mode,
    /// The group, if it is not that of a file that its owner makes there.
    pub group: Option<u32>,
    /// The access list (`system.posix_acl_access`), if there is one.
    pub list: Option<&'a [u8]>,
}

const ACCESS_LIST: &str = "system.posix_acl_access";

impl<'a> Access<'a> {
    /// Of a file that only has a mode.
    pub fn of_mode(mode: Mode) -> Self {
        Self { mode, group: None, list: None }
    }

    pub(crate) fn with(&self, mode: Mode) -> Self {
        Self { mode, ..self.clone() }
    }

    /// Gives an open file this group, list and mode. A group that this process may not give to
    /// files gets no rights.
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

/// The access list of an open file; `None` where there is none, or the file system has no such
/// lists.
pub fn access_list(sys: &SysRef, fd: BorrowedFd<'_>) -> Option<Vec<u8>> {
    sys.xattr(Kind::Open(fd), OsStr::new(ACCESS_LIST)).ok()
}
