//! The three layouts that CIL and SLA compare, as a request sees them.

use std::fmt;

use crate::error::ModelError;

/// How one request is spread over a file system's equal servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Striping {
    /// 1-DH: over all servers.
    OneDh,
    /// 1-DV: on one server.
    OneDv,
    /// 2-D: over the servers of one of `groups` groups.
    TwoD {
        /// g, the number of groups.
        groups: u32,
    },
}

impl Striping {
    /// Checks that the number of groups is possible with `servers` servers.
    ///
    /// # Errors
    /// 2-D with no groups, or with more groups than servers.
    pub(crate) fn check(self, servers: u32) -> Result<(), ModelError> {
        match self {
            Self::TwoD { groups } if groups == 0 || groups > servers => Err(ModelError(format!(
                "{groups} groups of {servers} servers; 2-D needs 1 to {servers} groups"
            ))),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Striping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OneDh => f.write_str("1-DH"),
            Self::OneDv => f.write_str("1-DV"),
            Self::TwoD { groups } => write!(f, "2-D({groups})"),
        }
    }
}
