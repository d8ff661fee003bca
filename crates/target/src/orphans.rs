//! Lists the contents of a target for fsck.

use std::os::fd::AsFd;
use std::path::Path;

use stripewise_sys::{Errno, FileType, Mode, OFlags};

use crate::TargetError;
use crate::id::FileId;
use crate::paths::{self, Name, OBJECTS, Objects};
use crate::target::Target;

/// The mode bit that marks objects of cache copies, so that their space can be counted without
/// their files' manifests: the sticky bit, which has no meaning on files.
pub const CACHED: Mode = Mode::SVTX;

/// A file in the object directories of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The id of its logical file.
    pub id: FileId,
    /// Object number, or `None` for the manifest copy.
    pub object: Option<u32>,
    /// The user that it belongs to.
    pub owner: u32,
    /// Size, bytes.
    pub size: u64,
    /// Allocated disk space, bytes.
    pub allocated: u64,
    /// Whether it belongs to a cache copy: its mode has [`CACHED`].
    pub cached: bool,
    /// Time of its last change, seconds since 1970.
    pub modified_s: i64,
}

impl Found {
    /// The set of objects that it belongs to.
    pub fn objects(&self) -> Objects {
        Objects { id: self.id, owner: self.owner }
    }
}

/// The suffixes that may follow `ID.extents` in the names of a map's journal and its companion
/// files.
const EXTENTS: [&str; 4] = [".wanted", ".times", ".new", ""];

impl Target {
    /// All objects and manifest copies on a target, by id, then number (the manifest copy first).
    /// Omits other files, other users' directories (which only root can list), and files in a
    /// user's directory that belong to another user.
    pub fn list_objects(&self) -> Result<Vec<Found>, TargetError> {
        let mut found = Vec::new();
        for name in self.list(Path::new(OBJECTS))? {
            let owner = name.strip_prefix('u').and_then(|user| user.parse().ok());
            let directory = Path::new(OBJECTS).join(&name);
            let in_it = match self.list(&directory) {
                Err(error) if owner.is_some() && error.errno() == Errno::ACCESS => continue,
                listed => self.list_in(&directory, listed?)?,
            };
            found.extend(in_it.into_iter().filter(|found| owner.is_none_or(|owner| found.owner == owner)));
        }
        found.sort_by_key(|found| (found.id, found.object));
        Ok(found)
    }

    fn list_in(&self, directory: &Path, names: Vec<String>) -> Result<Vec<Found>, TargetError> {
        let mut found = Vec::new();
        for file in names {
            let Some((id, name)) = paths::parse(&file) else { continue };
            let path = directory.join(&file);
            let stat = match self.sys.stat_at(Some(self.dir()), &path, false) {
                Ok(stat) => stat,
                // Removed since it was listed.
                Err(Errno::NOENT) => continue,
                Err(errno) => return Err(self.io(&path, "stat", errno)),
            };
            if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
                continue;
            }
            found.push(Found {
                id,
                object: match name {
                    Name::Manifest => None,
                    Name::Object(index) => Some(index),
                },
                owner: stat.st_uid,
                size: stat.st_size as u64,
                allocated: stat.st_blocks as u64 * 512,
                cached: Mode::from_raw_mode(stat.st_mode).contains(CACHED),
                modified_s: stat.st_mtime,
            });
        }
        Ok(found)
    }

    /// The text of the manifest copy of a file on this target, at most `bytes_max` of it.
    ///
    /// # Errors
    /// [`TargetError::Io`], ENOENT when there is none.
    pub fn read_manifest_copy(&self, of: Objects, bytes_max: usize) -> Result<Vec<u8>, TargetError> {
        let copy = self.open_object(of, Name::Manifest, OFlags::RDONLY)?;
        let read = self.sys.read_start(copy.as_fd(), bytes_max);
        read.map_err(|errno| self.failure(of, Name::Manifest, "read", errno))
    }

    /// Removes the journal of the extent map that may be next to the objects of a file. A missing
    /// journal is not an error.
    pub fn remove_extents(&self, of: Objects) -> Result<(), TargetError> {
        let names = EXTENTS.iter().map(|suffix| format!("{}.extents{suffix}", of.id));
        names.into_iter().try_for_each(|name| self.remove_file(of, &name))
    }

    /// Gives the journal and its companion files to another user, with the rest of the file.
    pub(crate) fn give_extents(&self, of: Objects, user: u32) -> Result<(), TargetError> {
        for suffix in EXTENTS {
            let name = format!("{}.extents{suffix}", of.id);
            match self.give_away(of, &name, user) {
                Err(error) if error.errno() == Errno::NOENT => {}
                given => given?,
            }
        }
        Ok(())
    }

    /// The UTF-8 names in a directory; empty when it is absent or not a directory.
    fn list(&self, path: &Path) -> Result<Vec<String>, TargetError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        let fail = |errno| self.io(path, "list", errno);
        let directory = match self.sys.open_beneath(self.dir(), path, flags, Mode::empty()) {
            Ok(directory) => directory,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(Vec::new()),
            Err(errno) => return Err(fail(errno)),
        };
        let listed = self.sys.list(directory.as_fd()).map_err(fail)?;
        Ok(listed.into_iter().filter_map(|entry| entry.name.into_string().ok()).collect())
    }
}
