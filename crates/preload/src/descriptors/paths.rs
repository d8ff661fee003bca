//! Paths without `malloc`, so that signal handlers may open files.

use std::ffi::{CStr, OsStr, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs;
use rustix::path::DecInt;
use stripewise_sys::{Dir, Errno, Result};

use crate::process::{Scratch, kernel};

/// The path `/proc/self/fd/N` of a descriptor, terminated.
pub struct FdPath([u8; 32]);

impl FdPath {
    pub fn new(fd: c_int) -> Self {
        const DIRECTORY: &[u8] = b"/proc/self/fd/";
        // The standard library's formatting uses much stack.
        let (mut text, number) = ([0; 32], DecInt::new(fd));
        let (start, rest) = text.split_at_mut(DIRECTORY.len());
        start.copy_from_slice(DIRECTORY);
        rest[..number.as_bytes().len()].copy_from_slice(number.as_bytes());
        Self(text)
    }

    pub fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.0).unwrap_or_default()
    }
}

/// An absolute path without symbolic links.
pub struct Absolute {
    page: Scratch,
    len: usize,
}

impl Absolute {
    /// The current path of an open file, or its last one if the file was removed.
    /// Errors: ENOENT if the file has no path (a socket), and those of readlink(2).
    pub fn of(fd: c_int) -> Result<Self> {
        let mut page = Scratch::new()?;
        let (link, rest) = fs::readlinkat_raw(fs::CWD, FdPath::new(fd).as_c_str(), page.as_uninit())?;
        if rest.is_empty() {
            return Err(Errno::NAMETOOLONG);
        }
        let len = link.len();
        if page.first() == Some(&b'/') { Ok(Self { page, len }) } else { Err(Errno::NOENT) }
    }

    pub fn root() -> Result<Self> {
        Ok(Self { page: Scratch::new()?, len: 0 })
    }

    /// The kernel's path of the working directory, which may have been moved or changed without the
    /// library's knowledge.
    pub fn of_working_directory() -> Result<Self> {
        let mut page = Scratch::new()?;
        let memory = page.as_uninit();
        let arguments = [memory.as_mut_ptr() as usize, memory.len()];
        // SAFETY: the kernel fills at most the given number of bytes and terminates the path.
        let len = unsafe { kernel::call(libc::SYS_getcwd, arguments)? } - 1;
        if page.first() == Some(&b'/') { Ok(Self { page, len }) } else { Err(Errno::NOENT) }
    }

    /// Appends a relative path, or replaces the whole by an absolute one. `.` and `..` are resolved
    /// as if there were no symbolic links.
    pub fn join(mut self, path: &[u8]) -> Result<Self> {
        if self.as_bytes() == b"/" || path.starts_with(b"/") {
            self.len = 0;
        }
        for part in path.split(|byte| *byte == b'/') {
            match part {
                b"" | b"." => {}
                b".." => self.len = self.as_bytes().iter().rposition(|byte| *byte == b'/').unwrap_or(0),
                part => {
                    let end = self.len + 1 + part.len();
                    let place = self.page.get_mut(self.len..end).ok_or(Errno::NAMETOOLONG)?;
                    place[0] = b'/';
                    place[1..].copy_from_slice(part);
                    self.len = end;
                }
            }
        }
        Ok(self)
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.page[..self.len]
    }

    pub fn as_path(&self) -> &Path {
        to_path(self.as_bytes())
    }
}

pub fn to_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// The directory descriptor of a call in the form that the data path takes.
pub fn borrow_dir(dir: c_int) -> Dir<'static> {
    (dir != libc::AT_FDCWD).then(|| kernel::borrow(dir))
}

/// Whether the AT_ flags of a call ask to follow a symbolic link at the end of the path.
pub fn follows(flags: c_int) -> bool {
    flags & libc::AT_SYMLINK_NOFOLLOW == 0
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn where_an_open_file_is() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = Absolute::of(file.as_file().as_raw_fd()).unwrap();
        assert_eq!(path.as_path(), file.path().canonicalize().unwrap());
        for fd in [0, 7, 10, 65_535, i32::MAX] {
            assert_eq!(FdPath::new(fd).as_c_str().to_str(), Ok(format!("/proc/self/fd/{fd}").as_str()));
        }
        assert!(Absolute::of(i32::MAX).is_err());
    }

    #[test]
    fn paths_from_a_directory() {
        let here = std::env::current_dir().unwrap();
        assert_eq!(Absolute::of_working_directory().unwrap().as_path(), here);
        let joined = |base: &[u8], path: &[u8]| {
            let whole = Absolute::root()?.join(base)?.join(path)?;
            Ok::<_, Errno>(String::from_utf8(whole.as_bytes().to_vec()).unwrap())
        };
        for (base, path, whole) in [
            ("/a/b", "c", "/a/b/c"),
            ("/a/b", "./c//d/.", "/a/b/c/d"),
            ("/a/b", "../c/../../d", "/d"),
            ("/a/b", "../../../../d", "/d"),
            ("/a/b", "/c/d", "/c/d"),
            ("/", "c", "/c"),
            ("/", "../c/..", ""),
            ("/a", "...", "/a/..."),
        ] {
            assert_eq!(joined(base.as_bytes(), path.as_bytes()).as_deref(), Ok(whole), "{base} {path}");
        }
        let longest = [b'n'; Scratch::BYTES];
        assert!(joined(b"/", &longest[1..]).is_ok());
        assert_eq!(joined(b"/", &longest), Err(Errno::NAMETOOLONG));
    }
}
