//! The destination of a migration.

use std::fmt::Debug;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use stripewise_sys::{Fd, Mode, OFlags};
use stripewise_target::FileId;

use super::contents::Contents;
use super::error::{MigrateError, Result};
use crate::error::{FileError, FileResult};
use crate::runtime::{Blueprint, Missing, Runtime, Shape, temporary_name};

/// The goal of a migration.
#[derive(Clone, Copy, Debug)]
pub enum Goal<'a> {
    /// A managed file of this shape.
    Managed(Shape<'a>),
    /// A plain file.
    Plain,
    /// A plain file with a native layout of its file system.
    Native(&'a dyn Maker),
}

/// A [`Goal`] resolved to targets or a maker.
pub(super) enum Place<'a> {
    Managed(Blueprint),
    Plain,
    Native(&'a dyn Maker),
}

impl<'a> Place<'a> {
    pub fn of(runtime: &Runtime, goal: Goal<'a>) -> Result<Self> {
        Ok(match goal {
            Goal::Plain => Self::Plain,
            Goal::Native(maker) => Self::Native(maker),
            Goal::Managed(shape) => {
                Self::Managed(runtime.resolve(shape, Missing::Fail).map_err(FileError::from)?)
            }
        })
    }

    /// A checksum that identifies the goal.
    pub fn sum(&self) -> u32 {
        match self {
            Self::Plain => 0,
            Self::Managed(blueprint) => crc32fast::hash(blueprint.description().as_bytes()) | 1,
            Self::Native(maker) => crc32fast::hash(format!("native {}", maker.description()).as_bytes()) | 1,
        }
    }

    /// Creates the temporary with the given id for the file at `path`. Errors call that `what`.
    pub fn make(
        &self,
        runtime: &Runtime,
        path: &Path,
        id: FileId,
        mode: Mode,
        what: &'static str,
    ) -> Result<Contents> {
        let io = FileError::io(path, what);
        let sys = runtime.sys();
        let temporary = path.with_file_name(temporary_name(id));
        match self {
            Self::Plain => {
                let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
                let fd = sys.open(None, &temporary, flags, mode).map_err(io)?;
                Ok(Contents::Plain(sys.clone(), fd))
            }
            Self::Native(maker) => match maker.make(&temporary, mode) {
                Ok(fd) => Ok(Contents::Plain(sys.clone(), fd)),
                Err(reason) => Err(MigrateError::Native { path: path.into(), reason }),
            },
            Self::Managed(blueprint) => {
                let new = runtime.build(None, path, mode, blueprint.clone(), Some(id))?;
                Ok(Contents::Managed(runtime.keep_temporary(new).map_err(io)?))
            }
        }
    }

    /// Opens the temporary of an earlier run, if it is of the kind that `make` would create.
    pub fn open(&self, runtime: &Runtime, temporary: &Path) -> Option<Contents> {
        match (self, Contents::open(runtime, temporary).ok()?) {
            (Self::Managed(_), Contents::Managed(file)) if file.is_writable() => Some(Contents::Managed(file)),
            (Self::Native(maker), Contents::Plain(_, fd))
                if maker.is_made(temporary, fd.as_fd()) != Ok(true) =>
            {
                None
            }
            (Self::Plain | Self::Native(_), Contents::Plain(sys, _)) => {
                let fd = sys.open(None, temporary, OFlags::RDWR | OFlags::NOFOLLOW, Mode::empty()).ok()?;
                Some(Contents::Plain(sys, fd))
            }
            _ => None,
        }
    }

    /// Checks that there is space for a file of `size` bytes, of which `data` are outside holes:
    /// the old and the new file exist side by side until the end.
    pub fn check_space(&self, runtime: &Runtime, path: &Path, size: u64, data: u64) -> Result<()> {
        let sys = runtime.sys();
        let check = |where_: &Path, need_bytes: u64, ask: &dyn Fn() -> FileResult<u64>| {
            let promised = runtime.space.promise(where_, need_bytes, sys.now_ns(), ask)?;
            let (path, where_) = (path.into(), where_.into());
            promised.map_err(|free_bytes| MigrateError::NoSpace { path, where_, need_bytes, free_bytes })
        };
        let io = |what| FileError::io(path, what);
        match self {
            Self::Plain | Self::Native(_) => {
                let parent = path.parent().unwrap_or(Path::new("/"));
                check(parent, size.min(data), &|| {
                    let flags = OFlags::PATH | OFlags::DIRECTORY;
                    let fd =
                        sys.open(None, parent, flags, Mode::empty()).map_err(io("open the directory of"))?;
                    let free = sys.stat_fs(fd.as_fd()).map_err(io("find the free space beside"))?;
                    Ok(free.f_bavail.saturating_mul(free.f_frsize))
                })
            }
            // Copies that share a disk may need more in total; writing them then fails.
            Self::Managed(blueprint) => blueprint.whole_copies().try_for_each(|(layout, targets)| {
                (0..).zip(targets).try_for_each(|(index, target)| {
                    let need = layout.object_size(index, size).min(data);
                    check(target.path(), need, &|| target.free_bytes().map_err(FileError::from))
                })
            }),
        }
    }
}

/// Creates files with one native layout of a file system. Used by several threads at once.
pub trait Maker: Debug + Sync {
    /// A text that identifies the layout: makers with equal descriptions create equal files.
    fn description(&self) -> String;

    /// Whether the file found at `path`, open as `open`, already has the layout.
    ///
    /// # Errors
    /// The layout cannot be determined; one line that names the file and the remedy.
    fn is_made(&self, path: &Path, open: BorrowedFd<'_>) -> Result<bool, String>;

    /// Creates an empty file at `path` with the layout and permissions `mode` (less the umask),
    /// open for reading and writing.
    ///
    /// # Errors
    /// The file exists, or it did not get the layout and was removed again; one line that names the
    /// file and the remedy.
    fn make(&self, path: &Path, mode: Mode) -> Result<Fd, String>;

    /// Whether the file system can change the layout of an existing file.
    fn changes(&self) -> bool {
        false
    }

    /// Gives the existing file at `path` the layout. It keeps its inode and its contents.
    ///
    /// # Errors
    /// The file system refused; the reason in one line. The contents are as before.
    fn change(&self, path: &Path) -> Result<(), String> {
        Err(format!("{}: its file system sets layouts on new files only", path.display()))
    }
}
