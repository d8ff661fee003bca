//! The three layouts that CIL and SLA compare, as a request sees them.

use std::fmt;

use crate::error::ModelError;

/// How many of a file system's equal servers one request is spread over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Striping {
    /// 1-DH: all servers.
    OneDh,
    /// 1-DV: one server.
    OneDv,
    /// 2-D: the servers of one of `groups` groups.
    TwoD {
        /// g.
        groups: u32,
    },
}

impl Striping {
    /// Whether there are as many groups as `servers` allow.
    ///
    /// # Errors
    /// 2-D with no groups, or more than servers.
    pub(crate) fn check(self, servers: u32) -> Result<(), ModelError> {
        match self {
            Self::TwoD { groups } if groups == 0 || groups > servers => {
                Err(ModelError::Groups { groups, servers })
            }
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
