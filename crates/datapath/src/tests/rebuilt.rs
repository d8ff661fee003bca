//! The kernel as seen after simulated power cuts. A cut rewrites what is left into new inodes, so
//! file identities must not distinguish a file from a copy of it.

use std::sync::Arc;

use stripewise_sys::{Sys, SysRef};

struct Rebuilt;

/// A system interface without file identities.
pub fn rebuilt() -> SysRef {
    Arc::new(Rebuilt)
}

impl Sys for Rebuilt {
    stripewise_faulty::without_features!();
}
