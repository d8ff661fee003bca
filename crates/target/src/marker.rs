//! Targets: directories with a marker, so that an unmounted disk is never mistaken for an empty
//! target.

use std::os::fd::AsFd;
use std::path::Path;

use serde::Deserialize;
use stripewise_sys::{Errno, Fd, Kind, LockKind, Mode, OFlags, SysRef};

use crate::TargetError;
use crate::id::FileId;
use crate::target::{Homes, Target};

/// Name of the marker file in a target's directory.
pub const MARKER: &str = "stripewise-target.toml";
/// Maximum length of a marker, bytes.
const MARKER_BYTES_MAX: usize = 4096;
/// The value of `format` in a marker.
const FORMAT: u32 = 1;

/// What the file system of a target is known to give to several nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nodes {
    /// Nothing.
    One,
    /// Locks that are coherent, and freed only once nothing that their node does takes effect any
    /// more (E1 and E3 of `docs/formats/nodes.md`).
    Fenced,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Marker {
    format: u32,
    name: String,
    id: String,
    #[serde(default)]
    sessions: bool,
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
        Self::prepare_for(sys, path, name, Nodes::One)
    }

    /// As [`Target::prepare`]. A marker that is written gets `sessions = true` if the file system
    /// frees no lock of a node that may still write (`nodes`), and if it is mounted here so that
    /// the kernel keeps no pages.
    ///
    /// # Errors
    /// As [`Target::prepare`].
    pub fn prepare_for(sys: &SysRef, path: &Path, name: &str, nodes: Nodes) -> Result<Self, TargetError> {
        let dir = open_directory(sys, path)?;
        let marker = match read_marker(sys, path, &dir)? {
            Some(marker) => marker,
            None => {
                write_marker(sys, path, &dir, name, nodes)?;
                let vanished = || missing(path, "its marker vanished while it was prepared");
                read_marker(sys, path, &dir)?.ok_or_else(vanished)?
            }
        };
        if marker.name != name {
            let (path, expected) = (path.to_owned(), name.to_owned());
            return Err(TargetError::Foreign { path, expected, found: marker.name });
        }
        let target = Self::of(sys, path, marker, dir);
        target.make_directory().map(|()| target)
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
            _ => Ok(Self::of(sys, path, marker, dir)),
        }
    }

    fn of(sys: &SysRef, path: &Path, Marker { name, id, sessions, .. }: Marker, dir: Fd) -> Self {
        let (sys, path, homes) = (sys.clone(), path.to_owned(), Homes::default());
        Self { sys, name, path, id, sessions, dir, homes }
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
    // A read behind the end may cost a parallel file system another access to a disk.
    let len = sys.stat(file.as_fd()).map_err(io(&path, "stat"))?.st_size as usize;
    let text = sys.read_start(file.as_fd(), len.min(MARKER_BYTES_MAX + 1)).map_err(io(&path, "read"))?;
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
fn write_marker(sys: &SysRef, path: &Path, dir: &Fd, name: &str, nodes: Nodes) -> Result<(), TargetError> {
    let id = FileId::random(sys.as_ref()).map_err(io(path, "random bytes"))?;
    refuse_objects(sys, path, dir)?;
    let text = format!(
        "# This directory holds pieces of files, and this file says which target of stripewise it is.\n\
         # Without it the target is taken for missing. Leave it where it is.\n\
         format = {FORMAT}\n\
         name = {}\n\
         id = \"{id}\"\n",
        toml::Value::from(name)
    );
    let temporary = format!(".{MARKER}.{id}");
    let result = place_marker(sys, path, dir, Path::new(&temporary), text, nodes);
    let _ = sys.unlink(Some(dir.as_fd()), Path::new(&temporary));
    result
}

fn place_marker(
    sys: &SysRef,
    path: &Path,
    dir: &Fd,
    temporary: &Path,
    mut text: String,
    nodes: Nodes,
) -> Result<(), TargetError> {
    let dir = dir.as_fd();
    let failed = |errno| io(&path.join(MARKER), "write")(errno);
    let lacks = |what| {
        move |errno| match errno {
            Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::NOLCK => {
                let problem = format!(
                    "its file system has no {what}, which a target needs; use a directory on a local disk (ext4, xfs, btrfs, tmpfs) or NFS 4.2"
                );
                TargetError::Unusable { path: path.to_owned(), problem }
            }
            errno => failed(errno),
        }
    };
    let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
    let file = sys.open(Some(dir), temporary, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL, mode);
    let file = file.map_err(failed)?;
    sys.grow(file.as_fd(), 1).map_err(lacks("fallocate"))?;
    sys.try_lock(file.as_fd(), 0, 1, LockKind::Exclusive)
        .map_err(lacks("open file description locks (F_OFD_SETLK)"))?;
    if nodes == Nodes::Fenced && sys.keeps_pages(file.as_fd()).map_err(failed)? == Some(false) {
        text += "sessions = true\n";
    }
    let written = (|| {
        sys.write_all_at(file.as_fd(), text.as_bytes(), 0)?;
        // Readable for all users of the directory, whatever this process's umask.
        sys.set_mode(Kind::Open(file.as_fd()), mode)?;
        sys.sync(file.as_fd())?;
        match sys.link(Some(dir), temporary, Some(dir), Path::new(MARKER)) {
            Ok(()) | Err(Errno::EXIST) => sys.sync(dir),
            error => error,
        }
    })();
    written.map_err(failed)
}

/// Refuses objects without a marker: the target's marker was lost, and it must not get another id.
fn refuse_objects(sys: &SysRef, path: &Path, dir: &Fd) -> Result<(), TargetError> {
    let dir = Fd::duplicate(dir.as_fd()).map_err(io(path, "dup"))?;
    let none = Marker { format: FORMAT, name: String::new(), id: String::new(), sessions: false };
    let found = Target::of(sys, path, none, dir).list_objects()?.len();
    if found == 0 {
        return Ok(());
    }
    let problem = format!("holds {found} objects but no {MARKER}; {RESTORE}");
    Err(TargetError::Unusable { path: path.to_owned(), problem })
}

#[cfg(test)]
mod tests;
