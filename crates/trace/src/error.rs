//! The error type of traces. Messages are one line for the user.

use std::path::{Path, PathBuf};

/// A trace or spool cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// An I/O operation failed.
    #[error("{path}: {reason}", path = .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause. It is part of the message; as a `source` it would be printed twice.
        reason: std::io::Error,
    },
    /// The content is damaged or has another format.
    #[error("{path}: {what}", path = .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what helps.
        what: String,
    },
    /// A caller of [`crate::TraceWriter`] violated its contract.
    #[error("{path}: cannot write the trace: {what}", path = .path.display())]
    Misuse {
        /// The file.
        path: PathBuf,
        /// The violated rule.
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
