//! The error type of traces. Messages are one line for the user.

use std::path::{Path, PathBuf};

/// A trace or spool cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {what}", path = .path.display())]
pub struct TraceError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong, and what helps.
    pub what: String,
}

impl TraceError {
    pub(crate) fn new(path: &Path, what: impl Into<String>) -> TraceError {
        TraceError { path: path.to_path_buf(), what: what.into() }
    }

    pub(crate) fn io(path: &Path, reason: std::io::Error) -> TraceError {
        TraceError::new(path, reason.to_string())
    }
}
