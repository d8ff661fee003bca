//! Operations on files and directories that drivers share, whatever the file system.

use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use stripewise_sys::{Dir, Errno, Fd, FileType, Kind, Mode, OFlags, Stat, Sys};

use crate::error::{DriverError, Result};

/// Prefix of temporary files and directories that drivers create to learn which layout they get. A
/// killed process may leave an empty one.
pub const TRIAL_PREFIX: &str = ".stripewise-trial-";

/// Relative paths start from the working directory.
pub const HERE: Dir<'static> = None;

/// `path`, or its nearest ancestor that exists.
pub fn existing(sys: &dyn Sys, path: &Path) -> Result<PathBuf> {
    let mut at = path;
    loop {
        match sys.stat_at(HERE, or_here(at), true) {
            Ok(_) => return Ok(or_here(at).to_owned()),
            Err(Errno::NOENT) => match at.parent() {
                Some(parent) => at = parent,
                None => return Err(DriverError::io(path, "looking for it", Errno::NOENT)),
            },
            Err(errno) => return Err(DriverError::io(at, "looking at it", errno)),
        }
    }
}

/// The parent of a name without slashes is the empty path, which means the working directory.
fn or_here(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

/// A path as an argument for the file systems' tools. Refused if it is not UTF-8, because a tool
/// would get another name, and if it begins with a dash, because that would be taken for an option.
pub fn for_tools(path: &Path) -> Result<&str> {
    match path.to_str() {
        Some(text) if !text.starts_with('-') => Ok(text),
        text => {
            let problem = match text {
                Some(_) => "it begins with a dash; write ./ before it",
                None => "its name is not UTF-8, which the file system's tools are not given; rename it",
            };
            Err(DriverError::refused(path, &path.to_string_lossy(), problem))
        }
    }
}

/// The directory that contains a file.
pub fn parent(file: &Path) -> &Path {
    or_here(file.parent().unwrap_or(file))
}

/// Whether the name exists. Links are followed.
pub fn exists(sys: &dyn Sys, path: &Path) -> bool {
    !matches!(sys.stat_at(HERE, path, true), Err(Errno::NOENT))
}

/// The absolute path without links.
pub fn absolute(path: &Path) -> Result<PathBuf> {
    path.canonicalize().map_err(|error| {
        DriverError::io(path, "looking for it", Errno::from_io_error(&error).unwrap_or(Errno::IO))
    })
}

/// The absolute path without links. Of a path that does not exist, the part that does has none.
pub fn without_links(path: &Path) -> Result<PathBuf> {
    match (absolute(path), path.file_name()) {
        (Err(DriverError::Io { errno: Errno::NOENT, .. }), Some(name)) => {
            Ok(without_links(parent(path))?.join(name))
        }
        (place, _) => place,
    }
}

/// Whether a path is a directory. Links are followed.
pub fn is_directory(sys: &dyn Sys, path: &Path) -> Result<bool> {
    Ok(FileType::from_raw_mode(look(sys, path)?.st_mode) == FileType::Directory)
}

/// stat of a path; links are followed.
pub fn look(sys: &dyn Sys, path: &Path) -> Result<Stat> {
    sys.stat_at(HERE, path, true).map_err(|errno| DriverError::io(path, "looking at it", errno))
}

/// Creates a directory with its missing ancestors, and lets `fill` prepare it. On failure, the
/// created directories are removed again, as far as they are empty.
pub fn prepare(sys: &dyn Sys, dir: &Path, fill: impl FnOnce() -> Result<()>) -> Result<()> {
    let first = existing(sys, dir)?;
    let missing: Vec<&Path> =
        dir.ancestors().take_while(|path| **path != first && !path.as_os_str().is_empty()).collect();
    let mut made = Vec::new();
    let make = |path: &&Path| match sys.mkdir(HERE, path, Mode::from_raw_mode(0o777)) {
        Ok(()) => {
            made.push(path.to_path_buf());
            Ok(())
        }
        // Another process was faster.
        Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(DriverError::io(path, "making the directory", errno)),
    };
    let prepared = missing.iter().rev().try_for_each(make).and_then(|()| match is_directory(sys, dir)? {
        true => fill(),
        false => Err(DriverError::io(dir, "preparing it as a directory", Errno::NOTDIR)),
    });
    if prepared.is_err() {
        for path in made.iter().rev() {
            let _ = sys.rmdir(HERE, path);
        }
    }
    prepared
}

/// Creates a file, for reading and writing.
pub fn create_new(sys: &dyn Sys, file: &Path, mode: u32) -> Result<Fd> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
    sys.open(HERE, file, flags, Mode::from_raw_mode(mode)).map_err(|errno| match errno {
        Errno::EXIST => DriverError::Exists { path: file.to_owned() },
        errno => DriverError::io(file, "creating the file", errno),
    })
}

/// Changes attributes of a file that this process has just created, even though its permissions may
/// not let even the owner write.
pub fn writable(sys: &dyn Sys, file: &Path, change: impl FnOnce() -> Result<()>) -> Result<()> {
    const OWNER_WRITES: u32 = 0o200;
    let mode = look(sys, file)?.st_mode & 0o7777;
    if mode & OWNER_WRITES != 0 {
        return change();
    }
    set_mode(sys, file, mode | OWNER_WRITES)?;
    change().and_then(|()| set_mode(sys, file, mode))
}

fn set_mode(sys: &dyn Sys, file: &Path, mode: u32) -> Result<()> {
    sys.set_mode(Kind::Named(HERE, file), Mode::from_raw_mode(mode))
        .map_err(|errno| DriverError::io(file, "setting its permissions", errno))
}

/// Ensures that the name does not exist; [`DriverError::Exists`] if it does.
pub fn must_not_exist(sys: &dyn Sys, file: &Path) -> Result<()> {
    match sys.stat_at(HERE, file, false) {
        Err(Errno::NOENT) => Ok(()),
        Ok(_) => Err(DriverError::Exists { path: file.to_owned() }),
        Err(errno) => Err(DriverError::io(file, "looking at it", errno)),
    }
}

/// Gives a file that a tool created the permissions that open(2) would have given it with `mode`.
pub fn give_mode(sys: &dyn Sys, file: &Path, mode: u32) -> Result<()> {
    set_mode(sys, file, mode & !umask())
}

/// The process's umask. Querying it through umask(2) would change it for a moment, for all threads.
pub fn umask() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    line.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok()).unwrap_or(0o022)
}

/// An unused name in `dir`.
pub fn scratch(sys: &dyn Sys, dir: &Path) -> Result<PathBuf> {
    let mut bytes = [0; 8];
    sys.random(&mut bytes).map_err(|errno| DriverError::io(dir, "choosing a name for a trial", errno))?;
    Ok(dir.join(format!("{TRIAL_PREFIX}{:016x}", u64::from_ne_bytes(bytes))))
}

/// Creates a file by way of a temporary directory next to it. `make` gets the directory and the
/// file's name in it, gives the directory hints and creates the file, which is then moved to its
/// place. The directory is removed in any case.
pub fn made_apart(sys: &dyn Sys, file: &Path, make: impl FnOnce(&Path, &Path) -> Result<()>) -> Result<()> {
    must_not_exist(sys, file)?;
    let dir = scratch(sys, parent(file))?;
    sys.mkdir(HERE, &dir, Mode::from_raw_mode(0o700))
        .map_err(|errno| DriverError::io(parent(file), "making a directory in it", errno))?;
    let inside = dir.join(file.file_name().unwrap_or(OsStr::new("file")));
    let made = make(&dir, &inside).and_then(|()| match sys.rename_noreplace(HERE, &inside, HERE, file) {
        Ok(()) => Ok(()),
        Err(Errno::EXIST) => Err(DriverError::Exists { path: file.to_owned() }),
        // Not every file system supports it.
        Err(Errno::INVAL | Errno::NOSYS) => must_not_exist(sys, file).and_then(|()| {
            let renamed = sys.rename(HERE, &inside, HERE, file);
            renamed.map_err(|errno| DriverError::io(file, "moving the new file there", errno))
        }),
        Err(errno) => Err(DriverError::io(file, "moving the new file there", errno)),
    });
    let _ = sys.unlink(HERE, &inside);
    remove_if_empty(sys, &dir)?;
    made
}

/// The operation of [`try_out`] during which the servers of a new file refuse.
pub const WRITING: &str = "writing to a new file in it";

/// Creates a file in `dir`, calls `look` with it, writes a byte and removes it. This shows the
/// layout that a new file of the directory gets, and whether its servers accept bytes.
pub fn try_out(sys: &dyn Sys, dir: &Path, look: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let trial = scratch(sys, dir)?;
    let file = create_new(sys, &trial, 0o600).map_err(|error| renamed(error, dir))?;
    let tried = look(&trial).map_err(|error| renamed(error, dir));
    let tried = tried.and_then(|()| {
        let written = sys.write_all_at(file.as_fd(), b"?", 0).and_then(|()| sys.sync(file.as_fd()));
        written.map_err(|errno| DriverError::io(dir, WRITING, errno))
    });
    let removed = sys.unlink(HERE, &trial);
    tried.and(removed.map_err(|errno| DriverError::io(&trial, "removing the trial", errno)))
}

/// Replaces the path in an error of a trial, which the user has never seen, by its directory's.
fn renamed(mut error: DriverError, dir: &Path) -> DriverError {
    if let DriverError::Differs { path, .. }
    | DriverError::Denied { path, .. }
    | DriverError::Full { path, .. }
    | DriverError::Refused { path, .. }
    | DriverError::Io { path, .. } = &mut error
    {
        *path = dir.to_owned();
    }
    error
}

/// Removes a directory if it is empty. A missing directory is not an error.
pub fn remove_if_empty(sys: &dyn Sys, dir: &Path) -> Result<()> {
    match sys.rmdir(HERE, dir) {
        Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST | Errno::BUSY) => Ok(()),
        Err(errno) => Err(DriverError::io(dir, "removing the directory", errno)),
    }
}

/// An attribute's value as text; `None`: the attribute is not set.
pub fn attribute(sys: &dyn Sys, of: Kind<'_>, name: &str) -> std::result::Result<Option<String>, Errno> {
    match sys.xattr(of, OsStr::new(name)) {
        // Some versions end values with a zero byte.
        Ok(value) => Ok(Some(String::from_utf8_lossy(&value).trim_end_matches('\0').to_owned())),
        Err(Errno::NODATA) => Ok(None),
        Err(errno) => Err(errno),
    }
}
