//! The kernel's extended attributes.

use std::ffi::{OsStr, OsString};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{self, XattrFlags};
use rustix::io::{Errno, retry_on_intr};

use crate::{Dir, Kind, Result};

/// First buffer size, bytes: sufficient for most values.
const USUAL_BYTES: usize = 1 << 10;
/// Largest size of a value or list of names, bytes (XATTR_SIZE_MAX, XATTR_LIST_MAX).
const MOST_BYTES: usize = 64 << 10;

pub fn get(of: Kind<'_>, name: &OsStr) -> Result<Vec<u8>> {
    growing(|buffer| match of {
        Kind::Open(fd) => fs::fgetxattr(fd, name, buffer),
        Kind::Named(dir, path) => fs::getxattr(named(dir, path), name, buffer),
    })
}

pub fn list(of: Kind<'_>) -> Result<Vec<OsString>> {
    let names = growing(|buffer| match of {
        Kind::Open(fd) => fs::flistxattr(fd, buffer),
        Kind::Named(dir, path) => fs::listxattr(named(dir, path), buffer),
    })?;
    let names = names.split(|&byte| byte == 0).filter(|name| !name.is_empty());
    Ok(names.map(|name| OsString::from_vec(name.to_vec())).collect())
}

pub fn set(of: Kind<'_>, name: &OsStr, value: &[u8]) -> Result<()> {
    retry_on_intr(|| match of {
        Kind::Open(fd) => fs::fsetxattr(fd, name, value, XattrFlags::empty()),
        Kind::Named(dir, path) => fs::setxattr(named(dir, path), name, value, XattrFlags::empty()),
    })
}

pub fn remove(of: Kind<'_>, name: &OsStr) -> Result<()> {
    retry_on_intr(|| match of {
        Kind::Open(fd) => fs::fremovexattr(fd, name),
        Kind::Named(dir, path) => fs::removexattr(named(dir, path), name),
    })
}

/// The path as seen from the process's working directory: these calls have no variants that take a
/// directory.
fn named(dir: Dir<'_>, path: &Path) -> PathBuf {
    match dir {
        Some(dir) if path.is_relative() => {
            Path::new(OsStr::from_bytes(format!("/proc/self/fd/{}", dir.as_raw_fd()).as_bytes())).join(path)
        }
        _ => path.to_owned(),
    }
}

/// Calls `read` with a buffer that is large enough, and returns its content.
fn growing(read: impl Fn(&mut [u8]) -> Result<usize>) -> Result<Vec<u8>> {
    let attempt = |bytes| {
        let mut buffer = vec![0; bytes];
        let len = retry_on_intr(|| read(&mut buffer))?;
        buffer.truncate(len);
        Ok(buffer)
    };
    match attempt(USUAL_BYTES) {
        Err(Errno::RANGE) => attempt(MOST_BYTES),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::{Mode, OFlags, Real, Sys};

    fn name(text: &str) -> &OsStr {
        OsStr::new(text)
    }

    #[test]
    fn set_read_listed_and_removed_by_descriptor_and_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        let file = Real.open(None, &path, OFlags::RDWR | OFlags::CREATE, Mode::from_raw_mode(0o600)).unwrap();
        let directory =
            Real.open(None, folder.path(), OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
        let ways = [
            Kind::Open(file.as_fd()),
            Kind::Named(None, &path),
            Kind::Named(Some(directory.as_fd()), Path::new("f")),
            // An absolute path does not start at the directory.
            Kind::Named(Some(directory.as_fd()), &path),
        ];
        for (number, writes) in ways.into_iter().enumerate() {
            let value = format!("value {number}").into_bytes();
            Real.set_xattr(writes, name("user.a"), &value).unwrap();
            for reads in ways {
                assert_eq!(Real.xattr(reads, name("user.a")), Ok(value.clone()));
                assert!(Real.list_xattr(reads).unwrap().contains(&name("user.a").to_owned()));
            }
            Real.remove_xattr(writes, name("user.a")).unwrap();
            for reads in ways {
                assert_eq!(Real.xattr(reads, name("user.a")), Err(Errno::NODATA));
                assert!(!Real.list_xattr(reads).unwrap().contains(&name("user.a").to_owned()));
            }
        }
        assert_eq!(Real.remove_xattr(ways[0], name("user.a")), Err(Errno::NODATA));
        assert_eq!(Real.xattr(Kind::Named(None, &folder.path().join("g")), name("user.a")), Err(Errno::NOENT));
    }

    #[test]
    fn values_of_any_length() {
        let folder = tempfile::tempdir().unwrap();
        let of = Kind::Named(None, folder.path());
        // ext4 stores less than a block.
        for len in [0, 1, USUAL_BYTES - 1, USUAL_BYTES, USUAL_BYTES + 1, 3000] {
            let value: Vec<u8> = (0..len).map(|byte| byte as u8).collect();
            Real.set_xattr(of, name("user.a"), &value).unwrap();
            assert_eq!(Real.xattr(of, name("user.a")), Ok(value), "{len}");
        }
    }

    #[test]
    fn names_of_file_systems_that_are_not_there_are_not_supported() {
        let folder = tempfile::tempdir().unwrap();
        let of = Kind::Named(None, folder.path());
        assert_eq!(Real.xattr(of, name("ceph.dir.layout")), Err(Errno::OPNOTSUPP));
        assert_eq!(Real.set_xattr(of, name("ceph.dir.layout"), b"x"), Err(Errno::OPNOTSUPP));
    }
}
