//! What lies on a target: for fsck.

use std::os::fd::AsFd;
use std::path::Path;

use stripewise_sys::{Errno, Mode, OFlags, SysRef};

use crate::paths::{self, COMPONENTS, Name};
use crate::{FileId, Target, TargetError};

/// The bit in the mode of components of cache copies that tells them from others, so that their space can be counted without
/// their files' manifests: the sticky bit, which means nothing on files.
pub const CACHED: Mode = Mode::SVTX;

/// A file in the component directories of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The logical file it belongs to.
    pub id: FileId,
    /// Component number, or `None` for the manifest copy.
    pub component: Option<u32>,
    /// Bytes of its size.
    pub size: u64,
    /// Bytes that it takes on the disk.
    pub allocated: u64,
    /// Whether it is of a cache copy: has [`CACHED`] in its mode.
    pub cached: bool,
    /// Seconds since 1970 of its last change.
    pub modified_s: i64,
}

/// All components and manifest copies on a target, by id, then number (the manifest copy first).
/// Other files there are left out.
///
/// # Errors
/// [`TargetError::Io`] when a directory cannot be read.
pub fn list_components(sys: &SysRef, target: &Target) -> Result<Vec<Found>, TargetError> {
    let mut found = Vec::new();
    for directory in list(sys, target, Path::new(COMPONENTS))? {
        let directory = Path::new(COMPONENTS).join(directory);
        for file in list(sys, target, &directory)? {
            let Some((id, name)) = paths::parse(&file) else { continue };
            let path = directory.join(&file);
            let stat = match sys.stat_at(Some(target.dir()), &path, false) {
                Ok(stat) => stat,
                // Removed since it was listed.
                Err(Errno::NOENT) => continue,
                Err(errno) => {
                    return Err(TargetError::Io { path: target.path().join(path), what: "stat", errno });
                }
            };
            let component = match name {
                Name::Manifest => None,
                Name::Component(index) => Some(index),
            };
            let (size, allocated) = (stat.st_size as u64, stat.st_blocks as u64 * 512);
            let cached = Mode::from_raw_mode(stat.st_mode).contains(CACHED);
            found.push(Found { id, component, size, allocated, cached, modified_s: stat.st_mtime });
        }
    }
    found.sort_by_key(|found| (found.id, found.component));
    Ok(found)
}

/// The text of the manifest copy of file `id` on `target`, at most `bytes_max` of it.
///
/// # Errors
/// [`TargetError::Io`], ENOENT when there is none.
pub fn read_manifest_copy(
    sys: &SysRef,
    target: &Target,
    id: FileId,
    bytes_max: usize,
) -> Result<Vec<u8>, TargetError> {
    let copy = paths::open(sys, target, id, Name::Manifest, OFlags::RDONLY)?;
    let read = sys.read_start(copy.as_fd(), bytes_max);
    read.map_err(|errno| paths::failure(target, id, Name::Manifest, "read", errno))
}

/// Removes the journal of the extent map that may lie beside the components of file `id`; one that is not there is fine.
///
/// # Errors
/// [`TargetError::Io`].
pub fn remove_extents(sys: &SysRef, target: &Target, id: FileId) -> Result<(), TargetError> {
    for suffix in [".wanted", ".times", ".new", ""] {
        let path = paths::directory(id).join(format!("{id}.extents{suffix}"));
        match sys.unlink(Some(target.dir()), &path) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => {
                return Err(TargetError::Io { path: target.path().join(path), what: "unlink", errno });
            }
        }
    }
    Ok(())
}

/// The UTF-8 names in a directory; none when it is absent or no directory.
fn list(sys: &SysRef, target: &Target, path: &Path) -> Result<Vec<String>, TargetError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
    let fail = |errno| TargetError::Io { path: target.path().join(path), what: "list", errno };
    let directory = match sys.open(Some(target.dir()), path, flags, Mode::empty()) {
        Ok(directory) => directory,
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(Vec::new()),
        Err(errno) => return Err(fail(errno)),
    };
    let listed = sys.list(directory.as_fd()).map_err(fail)?;
    Ok(listed.into_iter().filter_map(|entry| entry.name.into_string().ok()).collect())
}
