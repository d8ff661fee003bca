//! The error type. Messages are one line, without the name of the log, which the caller knows.

use std::io;

/// A Darshan log, or a part of it, cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused a read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The header is not that of a Darshan log.
    #[error("is not a Darshan log ({0}): name a log that Darshan 3.0 or newer wrote")]
    NotDarshan(String),
    /// A format version of logs that this reader does not know.
    #[error("has Darshan's log format {version:?} (known: {known}): use a newer stripewise")]
    Format {
        /// The version in the header.
        version: String,
        /// The versions that are known.
        known: String,
    },
    /// A version of a module's records that this reader does not know.
    #[error("module {module} has records of version {version} (known: 1 to {known}): use a newer stripewise")]
    ModuleVersion {
        /// The module.
        module: &'static str,
        /// The version in the header.
        version: u32,
        /// The newest version that is known.
        known: u32,
    },
    /// The log ends within a region. What was read before is valid.
    #[error(
        "{region} is cut off after {bytes} bytes of data: the log was not written to its end or not copied whole"
    )]
    Truncated {
        /// The region: `the job record`, `module POSIX`, ...
        region: &'static str,
        /// Decompressed bytes before the end.
        bytes: u64,
    },
    /// A region holds what no Darshan writes. What was read before is valid.
    #[error("{region} is damaged after {bytes} bytes of data ({what}): copy the log again")]
    Damaged {
        /// The region: `the job record`, `module POSIX`, ...
        region: &'static str,
        /// Decompressed bytes before the damage.
        bytes: u64,
        /// What is wrong.
        what: String,
    },
}

impl Error {
    /// Whether the log has valid data besides: only a region ends early or is not readable.
    pub fn is_of_region(&self) -> bool {
        matches!(self, Error::Truncated { .. } | Error::Damaged { .. } | Error::ModuleVersion { .. })
    }
}
