//! A process that kills itself beside one of the map's system calls: moments that are too short to be met by chance.

use std::ffi::OsString;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use stripewise_sys::{
    Dir, Fd, IoVec, Kind, Listed, LockKind, Mode, OFlags, Real, Result, SeekFrom, SharedMap, Stat, StatVfs,
    Sys, SysRef, Timestamps,
};

use crate::delegate::delegate;

/// The kernel, for a process that has so many calls to live.
pub struct Dying {
    sys: SysRef,
    left: AtomicI64,
}

impl Dying {
    /// Negative: it lives on.
    pub fn after(calls: i64) -> SysRef {
        let left = if calls < 0 { i64::MAX } else { calls };
        Arc::new(Self { sys: Arc::new(Real), left: AtomicI64::new(left) })
    }

    fn before(&self, _call: &'static str) -> Result<()> {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 0 {
            // SAFETY: ends this process.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        }
        Ok(())
    }
}

impl Sys for Dying {
    delegate!(before);
}
