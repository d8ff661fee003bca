//! Paths on the stack: nothing here allocates, so that signal handlers may open files.

use std::ffi::{CStr, OsStr, c_int};
use std::io::Write;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{self, Mode, OFlags};
use stripewise_sys::{Errno, Result};

use crate::closing::Closing;

/// `/proc/self/fd/N`.
pub struct FdPath([u8; 32]);

impl FdPath {
    /// The name of a descriptor.
    pub fn new(fd: c_int) -> Self {
        let mut text = [0; 32];
        let _ = write!(&mut text[..31], "/proc/self/fd/{fd}");
        Self(text)
    }

    /// As the kernel takes it.
    pub fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.0).unwrap_or_default()
    }
}

/// An absolute path without symbolic links.
pub struct Absolute {
    bytes: [MaybeUninit<u8>; Self::MAX],
    len: usize,
}

impl Absolute {
    const MAX: usize = libc::PATH_MAX as usize;

    /// Of an open file: where it is now, or was when it lost its name.
    ///
    /// # Errors
    /// ENAMETOOLONG, ENOENT where it has no path (a socket), or whatever readlink says.
    pub fn of(fd: c_int) -> Result<Self> {
        let mut path = Self { bytes: [MaybeUninit::uninit(); Self::MAX], len: 0 };
        let (link, rest) = fs::readlinkat_raw(fs::CWD, FdPath::new(fd).as_c_str(), &mut path.bytes)?;
        if rest.is_empty() {
            return Err(Errno::NAMETOOLONG);
        }
        path.len = link.len();
        if path.as_bytes().first() == Some(&b'/') { Ok(path) } else { Err(Errno::NOENT) }
    }

    /// Of a name that need not exist, in a directory that does; the name itself is not followed if it is a link.
    ///
    /// # Errors
    /// As openat(2) of the directory; EINVAL for names that are none (empty, `.`, `..`, `a/`).
    pub fn of_new(dir: BorrowedFd<'_>, path: &CStr) -> Result<Self> {
        let bytes = path.to_bytes();
        let split = bytes.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
        let (parent, name) = bytes.split_at(split);
        if matches!(name, b"" | b"." | b"..") {
            return Err(Errno::INVAL);
        }
        let parent = if parent.is_empty() { b"." } else { parent };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let parent = Closing::new(fs::openat(dir, parent, flags, Mode::empty())?);
        use std::os::fd::{AsFd, AsRawFd};
        let mut found = Self::of(parent.as_fd().as_raw_fd())?;
        if found.as_bytes() != b"/" {
            found.push(b"/")?;
        }
        found.push(name)?;
        Ok(found)
    }

    fn push(&mut self, more: &[u8]) -> Result<()> {
        let room = self.bytes.get_mut(self.len..self.len + more.len()).ok_or(Errno::NAMETOOLONG)?;
        for (to, from) in room.iter_mut().zip(more) {
            to.write(*from);
        }
        self.len += more.len();
        Ok(())
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        // SAFETY: `len` bytes were written.
        unsafe { std::slice::from_raw_parts(self.bytes.as_ptr().cast(), self.len) }
    }

    /// As a path.
    pub fn as_path(&self) -> &Path {
        to_path(self.as_bytes())
    }
}

/// Bytes as a path.
pub fn to_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_name_is_made_absolute_without_links() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap();
        std::fs::create_dir(real.join("sub")).unwrap();
        std::os::unix::fs::symlink("sub", real.join("link")).unwrap();
        let handle = std::fs::File::open(&real).unwrap();
        use std::os::fd::AsFd;
        let of = |path: &CStr| Absolute::of_new(handle.as_fd(), path).map(|found| found.as_path().to_owned());
        assert_eq!(of(c"new").unwrap(), real.join("new"));
        assert_eq!(of(c"link/../link/new").unwrap(), real.join("sub/new"));
        assert_eq!(of(c"/new").unwrap(), Path::new("/new"));
        assert_eq!(of(c"none/new"), Err(Errno::NOENT));
        for bad in [c"", c".", c"sub/", c"sub/.."] {
            assert_eq!(of(bad), Err(Errno::INVAL), "{bad:?}");
        }
    }
}
