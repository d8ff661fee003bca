//! The error of a managed file that cannot be used.

use std::path::{Path, PathBuf};

use stripewise_extents::MapError;
pub use stripewise_sys::Errno;
use stripewise_target::TargetError;

use crate::manifest::ManifestError;
use crate::notice;

/// The result of every call of the data path.
pub type Result<T, E = Errno> = std::result::Result<T, E>;

/// The result of opening a file, or of an operation on one that is not a call of an application.
pub type FileResult<T> = std::result::Result<T, FileError>;

/// One line that names the file, the problem and, if there is one, the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// The manifest is damaged or of another version.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// A target or object is missing or fails.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The extent map of a file with several copies cannot be used.
    #[error(transparent)]
    Map(#[from] MapError),
    /// The file is a copy of an anchor.
    #[error(
        "{path}: is a copy of the manifest of {original}, made or restored without stripewise, and not a file of its own: \
         copy files with `stripewise cp`; if the original is gone, `stripewise fsck --repair --adopt` makes this one the file",
        path = path.display()
    )]
    Copied {
        /// The file.
        path: PathBuf,
        /// The path at which the original was created, according to the manifest.
        original: String,
    },
    /// A system call on the anchor failed.
    #[error("{path}: {what}: {errno}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The operation that failed.
        what: &'static str,
        /// The errno of the system call.
        errno: Errno,
    },
}

impl FileError {
    pub(crate) fn io<'a>(path: &'a Path, what: &'static str) -> impl FnOnce(Errno) -> Self + 'a {
        move |errno| Self::Io { path: path.to_owned(), what, errno }
    }

    /// The errno for the application.
    pub fn errno(&self) -> Errno {
        match self {
            Self::Manifest(_) | Self::Copied { .. } => Errno::IO,
            Self::Target(error) => errno_of(error),
            Self::Map(error) => error.errno(),
            Self::Io { errno, .. } => *errno,
        }
    }
}

pub(crate) trait LogOnce {
    /// The errno for the application. Logs on stderr what the errno alone cannot explain.
    fn log_once(&self) -> Errno;
}

pub(crate) trait Logged<T> {
    fn logged(self) -> Result<T>;
}

impl<T, E: LogOnce> Logged<T> for std::result::Result<T, E> {
    fn logged(self) -> Result<T> {
        self.map_err(|error| error.log_once())
    }
}

impl LogOnce for FileError {
    fn log_once(&self) -> Errno {
        match self {
            Self::Io { .. } => self.errno(),
            Self::Target(error) => error.log_once(),
            Self::Map(error) => error.log_once(),
            Self::Manifest(_) | Self::Copied { .. } => {
                notice::warn_once(&self.to_string());
                self.errno()
            }
        }
    }
}

/// Ordinary errors of the application's own call are not logged.
impl LogOnce for TargetError {
    fn log_once(&self) -> Errno {
        let own = matches!(
            self.errno(),
            Errno::ACCESS
                | Errno::PERM
                | Errno::ROFS
                | Errno::INTR
                | Errno::FBIG
                | Errno::INVAL
                | Errno::MFILE
                | Errno::NFILE
        );
        if self.errno() == Errno::NOENT {
            notice::warn_once(&format!(
                "{self}: a part of the file is lost; `stripewise fsck` on the file says what to do"
            ));
        } else if !own {
            notice::warn_once(&self.to_string());
        }
        errno_of(self)
    }
}

/// EINTR is not logged, nor is a failed operation of the caller ([`MapError::Caller`]), which was
/// logged where it failed.
impl LogOnce for MapError {
    fn log_once(&self) -> Errno {
        if !matches!(self, Self::Caller { .. }) && self.errno() != Errno::INTR {
            notice::warn_once(&self.to_string());
        }
        self.errno()
    }
}

/// Turns ENOENT and ENOTDIR into EIO: the application did not ask for the object by name.
fn errno_of(error: &TargetError) -> Errno {
    match error.errno() {
        Errno::NOENT | Errno::NOTDIR => Errno::IO,
        errno => errno,
    }
}
