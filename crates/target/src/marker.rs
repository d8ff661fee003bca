//! Targets: directories with a marker, so that an unmounted disk is never mistaken for an empty
//! target.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde::Deserialize;
use stripewise_sys::{Errno, Fd, LockKind, Mode, OFlags, SysRef};

use crate::home::{Homes, make_directory};
use crate::orphans::list_components;
use crate::paths::{Objects, directory_with};
use crate::{FileId, TargetError};

/// Name of the marker file in a target's directory.
pub const MARKER: &str = "stripewise-target.toml";
/// Maximum length of a marker, bytes.
const MARKER_BYTES_MAX: usize = 4096;
/// The value of `format` in a marker.
const FORMAT: u32 = 1;

/// A reference to a target in a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetRef {
    /// The target's name in the cluster (`hdd/0`).
    pub name: String,
    /// The directory, absolute.
    pub path: PathBuf,
    /// The id in the target's marker.
    pub id: String,
}

/// An opened target: its identity and a descriptor of its directory.
#[derive(Debug)]
pub struct Target {
    name: String,
    path: PathBuf,
    id: String,
    dir: Fd,
    pub(crate) homes: Homes,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Marker {
    format: u32,
    name: String,
    id: String,
}

impl Target {
    /// Makes the existing directory `path` a target called `name`, or opens it when it already is
    /// one of that name.
    ///
    /// Writes the marker (atomically: a crash leaves it whole or absent, and two concurrent
    /// processes agree on one) and the directory for objects. That directory gets the mode of the
    /// target's directory, so users who may create files in the target may create objects.
    ///
    /// # Errors
    /// [`TargetError::Missing`] when there is no such directory; [`TargetError::Foreign`] when it
    /// is a target of another name; [`TargetError::Unusable`] when there are objects without a
    /// marker, or the file system lacks fallocate or locks.
    pub fn prepare(sys: &SysRef, path: &Path, name: &str) -> Result<Self, TargetError> {
        let dir = open_directory(sys, path)?;
        let marker = match read_marker(sys, path, &dir)? {
            Some(marker) => marker,
            None => {
                write_marker(sys, path, &dir, name)?;
                let vanished = || missing(path, "its marker vanished while it was prepared");
                read_marker(sys, path, &dir)?.ok_or_else(vanished)?
            }
        };
        if marker.name != name {
            let (path, expected) = (path.to_owned(), name.to_owned());
            return Err(TargetError::Foreign { path, expected, found: marker.name });
        }
        let target =
            Self { name: marker.name, path: path.to_owned(), id: marker.id, dir, homes: Homes::default() };
        make_directory(sys, &target).map(|()| target)
    }

    /// Opens the target at `path`, which must have the id `expected_id` if one is given. Creates
    /// nothing.
    ///
    /// # Errors
    /// [`TargetError::Missing`] without directory or marker; [`TargetError::Foreign`] with another
    /// id.
    pub fn open(sys: &SysRef, path: &Path, expected_id: Option<&str>) -> Result<Self, TargetError> {
        let dir = open_directory(sys, path)?;
        let marker = read_marker(sys, path, &dir)?.ok_or_else(|| missing(path, "it has no marker file"))?;
        match expected_id {
            Some(expected) if expected != marker.id => {
                let (path, expected) = (path.to_owned(), expected.to_owned());
                Err(TargetError::Foreign { path, expected, found: format!("{} ({})", marker.id, marker.name) })
            }
            _ => Ok(Self {
                name: marker.name,
                path: path.to_owned(),
                id: marker.id,
                dir,
                homes: Homes::default(),
            }),
        }
    }

    /// The target's name in the cluster (`hdd/0`).
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The directory, as given to `prepare` or `open`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The random id in the marker, 32 hexadecimal digits.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The reference that a manifest records.
    pub fn reference(&self) -> TargetRef {
        TargetRef { name: self.name.clone(), path: self.path.clone(), id: self.id.clone() }
    }

    /// Bytes that this user may still write there (statvfs).
    ///
    /// # Errors
    /// [`TargetError::Io`].
    pub fn free_bytes(&self, sys: &SysRef) -> Result<u64, TargetError> {
        let stat = sys.stat_fs(self.dir.as_fd()).map_err(io(&self.path, "statvfs"))?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    /// The directory, relative to the target's, that holds `file` of these objects, or that would
    /// hold it if it existed.
    pub fn directory_of(&self, sys: &SysRef, of: Objects, file: &str) -> PathBuf {
        directory_with(sys, self, of, file)
    }

    /// A descriptor of the target's directory.
    pub fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    /// Whether the directory was removed since it was opened.
    fn is_gone(&self, sys: &SysRef) -> bool {
        sys.stat(self.dir.as_fd()).is_ok_and(|stat| stat.st_nlink == 0)
    }
}

/// The opened targets of a process, each opened once. Never waits for a lock: a thread that finds
/// it held (or a forked child whose parent held it) opens the target for itself.
pub struct Targets {
    sys: SysRef,
    opened: Mutex<HashMap<(PathBuf, String), Arc<Target>>>,
}

impl Targets {
    /// An empty collection.
    pub fn new(sys: SysRef) -> Self {
        Self { sys, opened: Mutex::default() }
    }

    /// The target that `reference` names, opened before or now. Failures are not cached: the next
    /// call tries again.
    ///
    /// # Errors
    /// As [`Target::open`].
    pub fn get(&self, reference: &TargetRef) -> Result<Arc<Target>, TargetError> {
        let key = (reference.path.clone(), reference.id.clone());
        let known = self.opened.try_lock().ok().and_then(|opened| opened.get(&key).cloned());
        if let Some(target) = known.filter(|target| !target.is_gone(&self.sys)) {
            return Ok(target);
        }
        let target = Arc::new(Target::open(&self.sys, &reference.path, Some(&reference.id))?);
        if let Ok(mut opened) = self.opened.try_lock() {
            opened.insert(key, target.clone());
        }
        Ok(target)
    }
}

fn missing(path: &Path, why: &'static str) -> TargetError {
    TargetError::Missing { path: path.to_owned(), why }
}

fn io(path: &Path, what: &'static str) -> impl FnOnce(Errno) -> TargetError {
    let path = path.to_owned();
    move |errno| TargetError::Io { path, what, errno }
}

fn open_directory(sys: &SysRef, path: &Path) -> Result<Fd, TargetError> {
    match sys.open(None, path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()) {
        Ok(dir) => Ok(dir),
        Err(Errno::NOENT) => Err(missing(path, "no such directory")),
        Err(Errno::NOTDIR) => Err(missing(path, "not a directory")),
        Err(errno) => Err(io(path, "open")(errno)),
    }
}

/// Returns `None` if there is no marker.
fn read_marker(sys: &SysRef, path: &Path, dir: &Fd) -> Result<Option<Marker>, TargetError> {
    let path = path.join(MARKER);
    let file = match sys.open_beneath(dir.as_fd(), Path::new(MARKER), OFlags::RDONLY, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(io(&path, "open")(errno)),
    };
    let text = sys.read_start(file.as_fd(), MARKER_BYTES_MAX + 1).map_err(io(&path, "read"))?;
    match parse(&text) {
        Ok(marker) => Ok(Some(marker)),
        Err(problem) => Err(TargetError::Unusable { path, problem }),
    }
}

/// The remedy for a damaged marker.
const RESTORE: &str = "restore the marker from a backup; the target's id stands in the manifests of its files";

fn parse(text: &[u8]) -> Result<Marker, String> {
    if text.len() > MARKER_BYTES_MAX {
        return Err(format!("is longer than {MARKER_BYTES_MAX} bytes, so not a marker; {RESTORE}"));
    }
    let text = std::str::from_utf8(text).map_err(|_| format!("is not text; {RESTORE}"))?;
    let marker: Marker = toml::from_str(text).map_err(|error| {
        // The parser's message has several lines, with an excerpt of the text.
        let line = error.message().lines().next().unwrap_or_default().to_owned();
        format!("{line}; {RESTORE}")
    })?;
    if marker.format != FORMAT {
        let found = marker.format;
        return Err(format!(
            "key `format`: {found} is not {FORMAT}, the only format known here; use a newer stripewise"
        ));
    }
    if FileId::from_hex(&marker.id).is_none() {
        return Err(format!("key `id`: {:?} must be 32 hexadecimal digits; {RESTORE}", marker.id));
    }
    if marker.name.is_empty() || marker.name.chars().any(char::is_control) {
        return Err(format!("key `name`: {:?} must be a name such as \"hdd/0\"; {RESTORE}", marker.name));
    }
    Ok(marker)
}

/// Writes a marker with a new id. If another process writes one first, that marker stays.
fn write_marker(sys: &SysRef, path: &Path, dir: &Fd, name: &str) -> Result<(), TargetError> {
    let id = FileId::random(sys.as_ref()).map_err(io(path, "random bytes"))?;
    refuse_components(sys, path, dir)?;
    let text = format!(
        "# This directory holds pieces of files, and this file says which target of stripewise it is.\n\
         # Without it the target is taken for missing. Leave it where it is.\n\
         format = {FORMAT}\n\
         name = {}\n\
         id = \"{id}\"\n",
        toml::Value::from(name)
    );
    let temporary = format!(".{MARKER}.{id}");
    let result = place_marker(sys, dir, Path::new(&temporary), &text);
    let _ = sys.unlink(Some(dir.as_fd()), Path::new(&temporary));
    result.map_err(|refusal| match refusal {
        Refusal::Lacks(what) => {
            let problem = format!(
                "its file system has no {what}, which a target needs; use a directory on a local disk (ext4, xfs, btrfs, tmpfs) or NFS 4.2"
            );
            TargetError::Unusable { path: path.to_owned(), problem }
        }
        Refusal::Failed(errno) => io(&path.join(MARKER), "write")(errno),
    })
}

/// Why no marker could be written.
enum Refusal {
    /// The file system cannot do what objects need.
    Lacks(&'static str),
    Failed(Errno),
}

impl From<Errno> for Refusal {
    fn from(errno: Errno) -> Self {
        Self::Failed(errno)
    }
}

impl Refusal {
    /// Converts the errno of the first use of a feature that a file system may lack.
    fn of(what: &'static str) -> impl FnOnce(Errno) -> Self {
        move |errno| match errno {
            Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::NOLCK => Self::Lacks(what),
            errno => Self::Failed(errno),
        }
    }
}

fn place_marker(sys: &SysRef, dir: &Fd, temporary: &Path, text: &str) -> Result<(), Refusal> {
    let dir = dir.as_fd();
    let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
    let file = sys.open(Some(dir), temporary, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL, mode)?;
    sys.grow(file.as_fd(), 1).map_err(Refusal::of("fallocate"))?;
    sys.try_lock(file.as_fd(), 0, 1, LockKind::Exclusive)
        .map_err(Refusal::of("open file description locks (F_OFD_SETLK)"))?;
    sys.write_all_at(file.as_fd(), text.as_bytes(), 0)?;
    // Readable for all users of the directory, whatever this process's umask.
    sys.set_mode(stripewise_sys::Kind::Open(file.as_fd()), mode)?;
    sys.sync(file.as_fd())?;
    match sys.link(Some(dir), temporary, Some(dir), Path::new(MARKER)) {
        Ok(()) | Err(Errno::EXIST) => Ok(sys.sync(dir)?),
        Err(errno) => Err(errno.into()),
    }
}

/// Refuses objects without a marker: the target's marker was lost, and it must not get another id.
fn refuse_components(sys: &SysRef, path: &Path, dir: &Fd) -> Result<(), TargetError> {
    let dir = Fd::duplicate(dir.as_fd()).map_err(io(path, "dup"))?;
    let nameless =
        Target { name: String::new(), path: path.to_owned(), id: String::new(), dir, homes: Homes::default() };
    let found = list_components(sys, &nameless)?.len();
    if found == 0 {
        return Ok(());
    }
    let problem = format!("holds {found} components but no {MARKER}; {RESTORE}");
    Err(TargetError::Unusable { path: path.to_owned(), problem })
}

#[cfg(test)]
mod tests;
