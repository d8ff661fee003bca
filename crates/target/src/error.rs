//! What can be wrong with a target or a component.

use std::path::PathBuf;

use stripewise_sys::Errno;

/// Why a target or component could not be used: one line that names the file and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// The directory or its marker is not there: most likely a disk that is not mounted.
    #[error(
        "{path}: target is missing ({why}); mount its disk, or prepare the directory with `stripewise place`",
        path = path.display()
    )]
    Missing {
        /// The target's directory.
        path: PathBuf,
        /// No directory, no marker, ...
        why: &'static str,
    },
    /// The marker belongs to another target: a wrong disk is mounted here, or the directory was made anew.
    #[error(
        "{path}: holds target {found}, but target {expected} is expected; mount the right disk there",
        path = path.display()
    )]
    Foreign {
        /// The target's directory.
        path: PathBuf,
        /// Name or id asked for.
        expected: String,
        /// Name or id of the marker.
        found: String,
    },
    /// The marker cannot be read, or the directory cannot become a target.
    #[error("{path}: {problem}", path = path.display())]
    Unusable {
        /// The target's directory or its marker.
        path: PathBuf,
        /// What is wrong, and the remedy.
        problem: String,
    },
    /// A file or directory in a target belongs to a user who has no business there: who made it may
    /// have done so to get at others' data.
    #[error(
        "{path}: belongs to user {found}, not to user {expected}, and is not used; if nobody meant harm, \
         let root give it to user {expected} with chown",
        path = path.display()
    )]
    NotOwned {
        /// The object, or a directory that leads to it.
        path: PathBuf,
        /// Whose it should be.
        expected: u32,
        /// Whose it is.
        found: u32,
    },
    /// A system call failed.
    #[error("{path}: {what}: {errno}", path = path.display())]
    Io {
        /// The directory or component.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// What the kernel said.
        errno: Errno,
    },
}

impl TargetError {
    /// What an application is told: EIO for a missing, foreign or unusable target, else the kernel's own.
    pub fn errno(&self) -> Errno {
        match self {
            Self::Io { errno, .. } => *errno,
            _ => Errno::IO,
        }
    }
}
