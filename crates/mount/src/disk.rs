//! Reaches the files of the mounted directory: all calls are libc's, by name or descriptor.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use libc::statx;
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;

use crate::attributes;
use crate::nodes::{Identity, Nodes, ROOT, Reached};
use crate::opened::Opened;

/// The mounted directory and what the kernel knows of it.
pub struct Disk {
    root: OwnedFd,
    /// The files that the kernel knows.
    pub nodes: Nodes,
}

/// A descriptor that stands for a file, whatever happens to its name meanwhile.
pub enum Pinned {
    /// One that a program has open.
    Opened(Arc<Opened>),
    /// One that only names the file (O_PATH), or another one of the root.
    Found(OwnedFd),
}

impl AsFd for Pinned {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Opened(opened) => opened.as_fd(),
            Self::Found(fd) => fd.as_fd(),
        }
    }
}

impl Pinned {
    /// A path that leads to the file.
    pub fn path(&self) -> CString {
        path_of(self)
    }
}

/// A path that leads to an open file.
pub fn path_of(file: impl AsFd) -> CString {
    let path = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
    CString::new(path).expect("a number has no zero byte")
}

impl Disk {
    /// The directory behind this descriptor, of which the kernel knows nothing yet.
    ///
    /// # Errors
    /// Those of statx(2).
    pub fn new(root: OwnedFd) -> Result<Self, Errno> {
        let nodes = Nodes::new(attributes::identity_of(&root)?);
        Ok(Self { root, nodes })
    }

    /// The descriptor of the directory.
    pub fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// The attributes of a file.
    ///
    /// # Errors
    /// ESTALE: its name is another file's. Those of statx(2).
    pub fn attributes(&self, number: u64) -> Result<statx, Errno> {
        match self.nodes.reach(number)? {
            Reached::Opened(opened) => attributes::opened(opened.as_ref()),
            Reached::Path(path, identity) => {
                let found = attributes::named(&self.root, &path).map_err(of_path)?;
                check(identity, attributes::identity(&found))?;
                Ok(found)
            }
        }
    }

    /// A descriptor that stands for the file.
    ///
    /// # Errors
    /// ESTALE: its name is another file's. Those of open(2).
    pub fn pin(&self, number: u64) -> Result<Pinned, Errno> {
        if number == ROOT {
            return Ok(Pinned::Found(self.root.try_clone().map_err(of_io)?));
        }
        match self.nodes.reach(number)? {
            Reached::Opened(opened) => Ok(Pinned::Opened(opened)),
            Reached::Path(path, identity) => {
                Ok(Pinned::Found(self.open_as(&path, OFlag::O_PATH, identity)?.into()))
            }
        }
    }

    /// Opens a file.
    ///
    /// # Errors
    /// ESTALE: its name is another file's. Those of open(2).
    pub fn open(&self, number: u64, flags: OFlag) -> Result<File, Errno> {
        match self.nodes.reach(number)? {
            Reached::Opened(opened) => {
                let path = path_of(opened.as_ref());
                Ok(openat(&self.root, path.as_c_str(), flags | OFlag::O_CLOEXEC, Mode::empty())?.into())
            }
            Reached::Path(path, identity) => self.open_as(&path, flags, identity),
        }
    }

    fn open_as(&self, path: &Path, flags: OFlag, identity: Identity) -> Result<File, Errno> {
        let flags = flags | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let fd = openat(&self.root, path, flags, Mode::empty()).map_err(of_path)?;
        check(identity, attributes::identity_of(&fd)?)?;
        Ok(fd.into())
    }

    /// Looks up a name, and enters what it leads to. Returns the file's number and attributes.
    ///
    /// # Errors
    /// Those of statx(2).
    pub fn look_up(&self, parent: u64, name: &OsStr) -> Result<(u64, statx), Errno> {
        let found = attributes::named(self.pin(parent)?, Path::new(name))?;
        Ok((self.nodes.enter(parent, name, attributes::identity(&found)), found))
    }
}

fn check(expected: Identity, found: Identity) -> Result<(), Errno> {
    if expected == found { Ok(()) } else { Err(Errno::ESTALE) }
}

/// The error of a path that was remembered: if nothing is there any more, the kernel may find the
/// file under another name.
fn of_path(error: Errno) -> Errno {
    if matches!(error, Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) { Errno::ESTALE } else { error }
}

/// The error number of an I/O error.
pub fn of_io(error: std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_used_only_while_it_is_the_files() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::write(path("one"), "1").unwrap();
        std::fs::write(path("other"), "22").unwrap();
        let disk = Disk::new(File::open(dir.path()).unwrap().into()).unwrap();
        let (one, found) = disk.look_up(ROOT, OsStr::new("one")).unwrap();
        assert_eq!((found.stx_size, disk.attributes(one).unwrap().stx_size), (1, 1));
        disk.open(one, OFlag::O_RDONLY).unwrap();
        // Behind the back of the mount.
        std::fs::rename(path("other"), path("one")).unwrap();
        assert_eq!(disk.attributes(one).unwrap_err(), Errno::ESTALE);
        assert_eq!(disk.open(one, OFlag::O_RDONLY).unwrap_err(), Errno::ESTALE);
        assert_eq!(disk.pin(one).err(), Some(Errno::ESTALE));
        let (other, _) = disk.look_up(ROOT, OsStr::new("one")).unwrap();
        assert!(other != one && disk.pin(other).is_ok() && disk.attributes(ROOT).is_ok());
    }
}
