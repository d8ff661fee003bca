//! Errors of targets and objects.

use std::path::PathBuf;

use stripewise_sys::Errno;

/// Why a target or object could not be used: one line that names the file and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum TargetError {
    /// The directory or its marker is missing: most likely a disk that is not mounted.
    #[error(
        "{path}: target is missing ({why}); mount its disk, or prepare the directory with `stripewise place`",
        path = path.display()
    )]
    Missing { path: PathBuf, why: &'static str },
    /// The marker belongs to another target: a wrong disk is mounted here, or the directory was
    /// created anew.
    #[error(
        "{path}: holds target {found}, but target {expected} is expected; mount the right disk there",
        path = path.display()
    )]
    Foreign { path: PathBuf, expected: String, found: String },
    /// The marker cannot be read, or the directory cannot become a target.
    #[error("{path}: {problem}", path = path.display())]
    Unusable { path: PathBuf, problem: String },
    /// A file or directory in a target belongs to a user other than the expected one, who may have
    /// created it to get at others' data.
    #[error(
        "{path}: belongs to user {found}, not to user {expected}, and is not used; if nobody meant harm, \
         let root give it to user {expected} with chown",
        path = path.display()
    )]
    NotOwned { path: PathBuf, expected: u32, found: u32 },
    /// A system call failed.
    #[error("{path}: {what}: {errno}", path = path.display())]
    Io { path: PathBuf, what: &'static str, errno: Errno },
}

impl TargetError {
    /// The errno that an application gets: EIO for a missing, foreign or unusable target, otherwise
    /// the kernel's own.
    pub fn errno(&self) -> Errno {
        match self {
            Self::Io { errno, .. } => *errno,
            _ => Errno::IO,
        }
    }
}
