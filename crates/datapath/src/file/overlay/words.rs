//! Files of shared words about servers, used by all processes of a user on the node.

use std::os::fd::BorrowedFd;
use std::path::Path;

use stripewise_sys::user::act_as;
use stripewise_sys::{Errno, Fd, Mode, OFlags, SharedMap, SysRef};

use crate::Result;

/// The directory with the run directories of a user's extent maps and these files.
#[derive(Clone, Copy)]
pub(super) struct Base<'a> {
    pub path: &'a Path,
    /// The owner of the files, if root creates them for another user.
    pub owner: Option<u32>,
}

/// Opens or creates a file of words in a directory below the base.
pub(super) fn open_words(sys: &SysRef, path: &Path, owner: Option<u32>) -> Result<Fd> {
    let _acting = act_as(owner);
    let parents: Vec<&Path> = path.ancestors().skip(1).take(2).collect();
    for parent in parents.into_iter().rev() {
        match sys.mkdir(None, parent, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
    }
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW;
    sys.open(None, path, flags, Mode::RUSR | Mode::WUSR)
}

/// Maps the words, which are 0 in a new file. Allocates memory for all of them, so that a shortage
/// is an error here and not a SIGBUS later.
pub(super) fn map_words(sys: &SysRef, file: BorrowedFd<'_>, words: usize) -> Result<SharedMap> {
    let bytes = (words * size_of::<u64>()) as u64;
    if (sys.stat(file)?.st_size as u64) < bytes {
        sys.truncate(file, bytes)?;
        sys.allocate(file, 0, bytes, true)?;
    }
    sys.map_shared(file, words)
}
