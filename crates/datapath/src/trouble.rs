//! The error of a managed file that cannot be used.

use std::path::{Path, PathBuf};

use stripewise_extents::MapError;
use stripewise_target::TargetError;

use crate::manifest::ManifestError;
use crate::{Errno, notice};

/// One line that names the file, the problem and, if there is one, the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
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

impl Trouble {
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

    /// Returns [`Trouble::errno`]; logs on stderr what the errno alone cannot explain.
    pub(crate) fn told(&self) -> Errno {
        match self {
            Self::Io { .. } => {}
            Self::Target(error) => tell_target(error),
            Self::Map(error) => return map_told(error),
            Self::Manifest(_) | Self::Copied { .. } => notice::say(&self.to_string()),
        }
        self.errno()
    }
}

/// The errno of a target's error. Logs the error on stderr unless it is an ordinary error of the
/// application's own call.
pub(crate) fn told(error: &TargetError) -> Errno {
    tell_target(error);
    errno_of(error)
}

/// The errno of an extent map's error, which is logged on stderr. EINTR is not logged, nor is a
/// failed operation of the caller ([`MapError::Caller`]), which was logged where it failed.
pub(crate) fn map_told(error: &MapError) -> Errno {
    if !matches!(error, MapError::Caller { .. }) && error.errno() != Errno::INTR {
        notice::say(&error.to_string());
    }
    error.errno()
}

/// Turns ENOENT and ENOTDIR into EIO: the application did not ask for the object by name.
fn errno_of(error: &TargetError) -> Errno {
    match error.errno() {
        Errno::NOENT | Errno::NOTDIR => Errno::IO,
        errno => errno,
    }
}

fn tell_target(error: &TargetError) {
    let own = matches!(
        error.errno(),
        Errno::ACCESS
            | Errno::PERM
            | Errno::ROFS
            | Errno::INTR
            | Errno::FBIG
            | Errno::INVAL
            | Errno::MFILE
            | Errno::NFILE
    );
    if error.errno() == Errno::NOENT {
        notice::say(&format!(
            "{error}: a part of the file is lost; `stripewise fsck` on the file says what to do"
        ));
    } else if !own {
        notice::say(&error.to_string());
    }
}
