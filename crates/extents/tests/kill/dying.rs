//! A process that kills itself at one of the map's system calls, at moments too short to be hit by
//! chance.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use stripewise_sys::{Result, Sys, SysRef};

/// A kernel that kills the process after a number of calls.
pub struct Dying {
    left: AtomicI64,
}

impl Dying {
    /// A negative number means never.
    pub fn after(calls: i64) -> SysRef {
        let left = if calls < 0 { i64::MAX } else { calls };
        Arc::new(Self { left: AtomicI64::new(left) })
    }

    fn before(&self, _call: &'static str) -> Result<()> {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 0 {
            // SAFETY: kills this process only.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        }
        Ok(())
    }
}

impl Sys for Dying {
    stripewise_faulty::delegate!(before);
}
