//! What can go wrong with traces, in one line for people.

use std::path::{Path, PathBuf};

/// A trace or spool that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The operating system said no.
    #[error("{path}: {reason}", path = .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why. Part of the message, and so no `source`, which would be printed once more.
        reason: std::io::Error,
    },
    /// The content is not what it should be.
    #[error("{path}: {what}", path = .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what helps.
        what: String,
    },
    /// A caller of [`crate::TraceWriter`] broke its rules.
    #[error("{path}: cannot write the trace: {what}", path = .path.display())]
    Misuse {
        /// The file.
        path: PathBuf,
        /// Which rule.
        what: String,
    },
}

impl TraceError {
    pub(crate) fn io(path: &Path, reason: std::io::Error) -> TraceError {
        TraceError::Io { path: path.to_path_buf(), reason }
    }

    pub(crate) fn damaged(path: &Path, what: impl Into<String>) -> TraceError {
        TraceError::Damaged { path: path.to_path_buf(), what: what.into() }
    }

    pub(crate) fn misuse(path: &Path, what: impl Into<String>) -> TraceError {
        TraceError::Misuse { path: path.to_path_buf(), what: what.into() }
    }
}
