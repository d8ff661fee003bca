//! The entries of an open directory.

use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, Mutex, PoisonError};

use fuser::FileType;
use nix::dir::{Dir, Type};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::Mode;

/// One entry.
pub struct Entry {
    /// The inode number on the directory's device.
    pub ino: u64,
    /// What kind of file it is.
    pub kind: FileType,
    /// Its name.
    pub name: OsString,
}

/// The entries as they were when a program read the first of them. So each is there once, whatever
/// is created and removed meanwhile, as POSIX asks for those that are neither.
#[derive(Default)]
pub struct Listing(Mutex<Option<Arc<[Entry]>>>);

impl Listing {
    /// The entries of the open directory; read anew if the program begins at the first.
    ///
    /// # Errors
    /// Those of opening and reading a directory.
    pub fn from(&self, directory: impl AsFd, is_first: bool) -> Result<Arc<[Entry]>, Errno> {
        let mut listing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(entries), false) = (&*listing, is_first) {
            return Ok(entries.clone());
        }
        let entries = read(directory)?;
        *listing = Some(entries.clone());
        Ok(entries)
    }
}

fn read(directory: impl AsFd) -> Result<Arc<[Entry]>, Errno> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    // A description of its own: the offset of the other one is shared by all who read it.
    let mut dir = Dir::openat(directory, ".", flags, Mode::empty())?;
    let entry = |entry: nix::dir::Entry| Entry {
        ino: entry.ino(),
        kind: entry.file_type().map_or(FileType::RegularFile, kind_of),
        name: OsStr::from_bytes(entry.file_name().to_bytes()).to_owned(),
    };
    dir.iter().map(|found| found.map(entry)).collect()
}

fn kind_of(kind: Type) -> FileType {
    match kind {
        Type::Fifo => FileType::NamedPipe,
        Type::CharacterDevice => FileType::CharDevice,
        Type::Directory => FileType::Directory,
        Type::BlockDevice => FileType::BlockDevice,
        Type::File => FileType::RegularFile,
        Type::Symlink => FileType::Symlink,
        Type::Socket => FileType::Socket,
    }
}
