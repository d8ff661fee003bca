//! Why a driver could not do what it was asked.

use std::path::{Path, PathBuf};

use stripewise_cluster::FileSystem;
use stripewise_native::NativeLayout;
use stripewise_sys::Errno;
use thiserror::Error;

/// What a driver's call returns.
pub type Result<T> = std::result::Result<T, DriverError>;

/// One line for people: the file, the value and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DriverError {
    /// Found out without asking the file system; nothing was made.
    #[error("{system} has no layout {layout}: {problem}")]
    Unsupported {
        /// The file system, as people write it.
        system: &'static str,
        /// What was asked for.
        layout: NativeLayout,
        /// Why not, and what would do.
        problem: String,
    },
    /// The file system said no to a value.
    #[error("{}: {value:?} was refused: {problem}", path.display())]
    Refused {
        /// The file or directory.
        path: PathBuf,
        /// What was set.
        value: String,
        /// Why, and the remedy.
        problem: String,
    },
    /// The file or directory did not get what was asked for.
    #[error("{}: {asked} was asked for, but it has {}; {remedy}", path.display(),
        got.as_ref().map_or("no layout of its own".to_owned(), ToString::to_string))]
    Differs {
        /// The file or directory.
        path: PathBuf,
        /// What was asked for.
        asked: NativeLayout,
        /// What it has.
        got: Option<NativeLayout>,
        /// What to do about it.
        remedy: String,
    },
    /// There is such a file.
    #[error("{}: exists; a layout is given to new files only, so name a new one", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// Not on such a file system.
    #[error("{}: is not on {system}; name a directory on a mounted {system}", path.display())]
    Elsewhere {
        /// The file or directory.
        path: PathBuf,
        /// The file system, as people write it.
        system: &'static str,
    },
    /// This user may not do it.
    #[error("{}: {doing} is not permitted: {remedy}", path.display())]
    Denied {
        /// The file or directory.
        path: PathBuf,
        /// What was tried.
        doing: String,
        /// Who can change that, and how.
        remedy: String,
    },
    /// No space, or no more of the user's quota.
    #[error("{}: {doing}: no space: {remedy}", path.display())]
    Full {
        /// The file or directory.
        path: PathBuf,
        /// What was tried.
        doing: String,
        /// What to do about it.
        remedy: String,
    },
    /// A tool of the file system failed, or said what cannot be understood.
    #[error("`{command}` {how}{}", if output.is_empty() { String::new() } else { format!(": {output}") })]
    Tool {
        /// As it could be typed.
        command: String,
        /// `ended with status 2`, `cannot be run: ...`, ...
        how: String,
        /// What it wrote, shortened.
        output: String,
    },
    /// Any other failure of the kernel's.
    #[error("{}: {doing}: {errno}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What was tried.
        doing: String,
        /// Why it failed.
        errno: Errno,
    },
}

impl DriverError {
    /// A layout that the file system does not have.
    pub fn unsupported(system: FileSystem, layout: &NativeLayout, problem: impl Into<String>) -> Self {
        Self::Unsupported { system: system.title(), layout: layout.clone(), problem: problem.into() }
    }

    /// A system call's failure, said as what it means to people.
    pub fn io(path: &Path, doing: impl Into<String>, errno: Errno) -> Self {
        let (path, doing) = (path.to_owned(), doing.into());
        match errno {
            Errno::ACCESS | Errno::PERM => {
                let remedy =
                    "be the owner, or ask the owner or an administrator for write permission".to_owned();
                Self::Denied { path, doing, remedy }
            }
            Errno::ROFS => {
                Self::Denied { path, doing, remedy: "it is mounted read-only, mount it for writing".to_owned() }
            }
            Errno::NOSPC | Errno::DQUOT => {
                let remedy = format!("remove files, have the quota raised, or use another pool ({errno})");
                Self::Full { path, doing, remedy }
            }
            _ => Self::Io { path, doing, errno },
        }
    }

    /// `asked` and `got` compared.
    ///
    /// # Errors
    /// [`DriverError::Differs`] unless `got` is what was asked for.
    pub fn compare(
        path: &Path,
        asked: &NativeLayout,
        got: Option<NativeLayout>,
        remedy: impl Into<String>,
    ) -> Result<()> {
        match got {
            Some(got) if asked.is_met_by(&got) => Ok(()),
            got => {
                Err(Self::Differs { path: path.to_owned(), asked: asked.clone(), got, remedy: remedy.into() })
            }
        }
    }
}
