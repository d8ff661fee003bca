//! Errors of drivers.

use std::path::{Path, PathBuf};

use stripewise_cluster::FileSystem;
use stripewise_native::{Call, NativeLayout, shell};
use stripewise_sys::Errno;
use thiserror::Error;

/// What a driver's call returns.
pub type Result<T> = std::result::Result<T, DriverError>;

/// One line for people: the file, the value and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DriverError {
    /// Detected without asking the file system; nothing was created.
    #[error("{system} has no layout {layout}: {problem}")]
    Unsupported {
        /// The file system's name for people.
        system: &'static str,
        /// The requested layout.
        layout: NativeLayout,
        /// The reason, and an alternative.
        problem: String,
    },
    /// The file system refused a value.
    #[error("{}: {value:?} was refused: {problem}", path.display())]
    Refused {
        /// The file or directory.
        path: PathBuf,
        /// The value.
        value: String,
        /// The reason, and the remedy.
        problem: String,
    },
    /// The file or directory did not get the requested layout.
    #[error("{}: {asked} was asked for, but it has {}; {remedy}", path.display(),
        got.as_ref().map_or("no layout of its own".to_owned(), ToString::to_string))]
    Differs {
        /// The file or directory.
        path: PathBuf,
        /// The requested layout.
        asked: NativeLayout,
        /// The actual layout.
        got: Option<NativeLayout>,
        /// The remedy.
        remedy: String,
    },
    /// The file exists already.
    #[error("{}: exists; a layout is given to new files only, so name a new one", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The path is not on such a file system.
    #[error("{}: is not on {system}; name a directory on a mounted {system}", path.display())]
    Elsewhere {
        /// The file or directory.
        path: PathBuf,
        /// The file system's name for people.
        system: &'static str,
    },
    /// This user lacks the permission.
    #[error("{}: {doing} is not permitted: {remedy}", path.display())]
    Denied {
        /// The file or directory.
        path: PathBuf,
        /// The operation.
        doing: String,
        /// Who can grant the permission, and how.
        remedy: String,
    },
    /// There is no space, or the user's quota is used up.
    #[error("{}: {doing}: no space: {remedy}", path.display())]
    Full {
        /// The file or directory.
        path: PathBuf,
        /// The operation.
        doing: String,
        /// The remedy.
        remedy: String,
    },
    /// A change failed halfway, and the former layout could not be put back.
    #[error("{}: its former layout was not put back: {why}; before that: {after}{}", path.display(),
        typed(by_hand))]
    NotPutBack {
        /// The file or directory.
        path: PathBuf,
        /// Why the former layout was not put back.
        why: Box<DriverError>,
        /// The error of the change.
        after: Box<DriverError>,
        /// The calls that put the former layout back; empty: none are known.
        by_hand: Vec<Call>,
    },
    /// A tool of the file system failed, or its output was not understood.
    #[error("`{command}` {how}{}", if output.is_empty() { String::new() } else { format!(": {output}") })]
    Tool {
        /// The command as it could be typed.
        command: String,
        /// The failure: `ended with status 2`, `cannot be run: ...`, ...
        how: String,
        /// The tool's output, shortened.
        output: String,
    },
    /// Any other failure of a system call.
    #[error("{}: {doing}: {errno}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The operation.
        doing: String,
        /// The kernel's error.
        errno: Errno,
    },
}

impl DriverError {
    /// An error for a layout that the file system does not support.
    pub fn unsupported(system: FileSystem, layout: &NativeLayout, problem: impl Into<String>) -> Self {
        Self::Unsupported { system: system.title(), layout: layout.clone(), problem: problem.into() }
    }

    /// An error for a path that is not on the file system.
    pub(crate) fn elsewhere(path: &Path, system: FileSystem) -> Self {
        Self::Elsewhere { path: path.to_owned(), system: system.title() }
    }

    /// An error for a value that the file system refused.
    pub(crate) fn refused(path: &Path, value: &str, problem: impl Into<String>) -> Self {
        Self::Refused { path: path.to_owned(), value: value.to_owned(), problem: problem.into() }
    }

    /// An error for an operation that takes a permission.
    pub(crate) fn denied(path: &Path, doing: &str, remedy: &str) -> Self {
        Self::Denied { path: path.to_owned(), doing: doing.to_owned(), remedy: remedy.to_owned() }
    }

    /// This error of a change, or [`DriverError::NotPutBack`] if putting the former layout back
    /// failed too. `calls` put it back by hand.
    pub(crate) fn after(
        self,
        path: &Path,
        put_back: Result<()>,
        calls: impl FnOnce() -> Result<Vec<Call>>,
    ) -> Self {
        match put_back {
            Ok(()) => self,
            Err(why) => Self::NotPutBack {
                path: path.to_owned(),
                why: Box::new(why),
                after: Box::new(self),
                by_hand: calls().unwrap_or_default(),
            },
        }
    }

    /// Converts a system call's failure to the error that explains it to people.
    pub fn io(path: &Path, doing: impl Into<String>, errno: Errno) -> Self {
        let doing = doing.into();
        match errno {
            Errno::ACCESS | Errno::PERM => {
                let remedy = "be the owner, or ask the owner or an administrator for write permission";
                Self::denied(path, &doing, remedy)
            }
            Errno::ROFS => Self::denied(path, &doing, "it is mounted read-only, mount it for writing"),
            Errno::NOSPC | Errno::DQUOT => {
                let remedy = format!("remove files, have the quota raised, or use another pool ({errno})");
                Self::Full { path: path.to_owned(), doing, remedy }
            }
            _ => Self::Io { path: path.to_owned(), doing, errno },
        }
    }

    /// Compares the requested layout with the actual one.
    ///
    /// # Errors
    /// [`DriverError::Differs`] unless `got` meets `asked`.
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

/// The remedy that consists of these calls, to be typed.
fn typed(calls: &[Call]) -> String {
    let command = |call: &Call| call.iter().map(|word| shell(word)).collect::<Vec<_>>().join(" ");
    let commands: Vec<String> = calls.iter().map(|call| format!("`{}`", command(call))).collect();
    if commands.is_empty() {
        String::new()
    } else {
        format!("; run {} to put it back", commands.join(", then "))
    }
}
