//! The kernel as seen after simulated power cuts. A cut rewrites what is left into new inodes, so
//! file identities must not distinguish a file from a copy of it.

use std::ffi::OsString;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;

use stripewise_sys::{
    Dir, Fd, IoVec, Kind, Listed, LockKind, Mode, OFlags, Real, Result, SeekFrom, SharedMap, Stat, StatVfs,
    Sys, SysRef, Timestamps,
};

use super::delegate::delegate;

struct Rebuilt {
    sys: SysRef,
}

/// A system interface without file identities.
pub fn rebuilt() -> SysRef {
    Arc::new(Rebuilt { sys: Arc::new(Real) })
}

impl Rebuilt {
    fn before(&self, _call: &str) -> Result<()> {
        Ok(())
    }
}

impl Sys for Rebuilt {
    delegate!(before);
}
