//! Waits for locks of other processes by polling, because a wait in the kernel has two
//! disadvantages.
//!
//! A process that waits in the kernel while it blocks signals cannot be interrupted. And a process
//! that is killed there may leave the lock behind for ever on FUSE (`ceph-fuse` 16.2 gave it to the
//! dead process in one of 60 kills of three processes that waited for each other).

use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::thread::{nanosleep, sched_yield};
use rustix::time::Timespec;

use crate::{Errno, LockKind, Result, holders, raw};

/// Number of yields before the first pause: a lock is usually held for some microseconds.
const YIELDS: u32 = 20;
const FIRST_NS: i64 = 50_000;
const LONGEST_NS: i64 = 5_000_000;
/// Number of pauses of one length before the next longer one.
const SAME: u32 = 16;
/// An attempt that takes longer asks a server. The pause then is this multiple of its time: the
/// server has to serve the process that has the lock.
const REMOTE: Duration = Duration::from_micros(100);
const REMOTE_FACTOR: u32 = 2;
/// Time after which the wait and the holders of the lock are logged. If the process has a limit,
/// they are logged at the limit instead.
const PATIENCE: Duration = Duration::from_secs(30);

/// The way in which the process waits.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Whether the call that waits has to end with EINTR.
    pub interrupted: fn() -> bool,
    /// Time after which the call ends with ETIMEDOUT; `None` for no limit.
    pub limit: Option<Duration>,
}

static OF_PROCESS: OnceLock<Patience> = OnceLock::new();

/// Sets the way in which the process waits for locks. Only the first call has an effect; without
/// one, waits have no limit.
pub fn wait_so(patience: Patience) {
    let _ = OF_PROCESS.set(patience);
}

/// Whether the calling thread's wait for another process has to end with EINTR.
pub fn is_interrupted() -> bool {
    OF_PROCESS.get().is_some_and(|patience| (patience.interrupted)())
}

/// Waits for an OFD lock: [`crate::Sys::lock`].
pub(crate) fn lock(fd: BorrowedFd<'_>, start: u64, len: u64, kind: LockKind) -> Result<()> {
    let mut waiting = Waiting { fd, byte: start, asked: 0, since: None, said: false };
    loop {
        let begun = Instant::now();
        if raw::try_lock(fd, start, len, kind)? {
            return Ok(());
        }
        waiting.pause(begun.elapsed())?;
    }
}

/// The state of one wait.
struct Waiting<'a> {
    fd: BorrowedFd<'a>,
    byte: u64,
    asked: u32,
    since: Option<Instant>,
    said: bool,
}

impl Waiting<'_> {
    /// Pauses before the next attempt, after one that took `asking`. The pauses get longer.
    ///
    /// # Errors
    /// EINTR and ETIMEDOUT, as the process's [`Patience`] determines.
    fn pause(&mut self, asking: Duration) -> Result<()> {
        self.asked += 1;
        let is_remote = asking > REMOTE;
        if self.asked <= YIELDS && !is_remote {
            sched_yield();
            return Ok(());
        }
        if is_interrupted() {
            return Err(Errno::INTR);
        }
        let limit = OF_PROCESS.get().and_then(|patience| patience.limit);
        let waited = self.since.get_or_insert_with(Instant::now).elapsed();
        if waited > limit.unwrap_or(PATIENCE) && !self.said {
            self.said = true;
            self.say(waited, limit.is_some());
        }
        if limit.is_some_and(|limit| waited > limit) {
            return Err(Errno::TIMEDOUT);
        }
        let longer = self.asked.saturating_sub(YIELDS) / SAME;
        let mut pause_ns = FIRST_NS.checked_shl(longer.min(16)).unwrap_or(LONGEST_NS);
        if is_remote {
            pause_ns = pause_ns.max((asking * REMOTE_FACTOR).as_nanos() as i64);
        }
        // A signal ends the pause early; the next attempt then follows at once.
        let _ = nanosleep(&Timespec { tv_sec: 0, tv_nsec: pause_ns.min(LONGEST_NS) });
        Ok(())
    }

    fn say(&self, waited: Duration, gives_up: bool) {
        let path = crate::path_of(self.fd.as_raw_fd());
        let holders = holders::of(self.fd, self.byte);
        let who = if holders.is_empty() {
            "another process, which cannot be found".to_owned()
        } else {
            holders.join(", ")
        };
        let next = if gives_up { "giving up" } else { "still waiting" };
        let line = format!("stripewise: {path}: locked for {} s by {who}; {next}\n", waited.as_secs());
        raw::say(line.as_bytes());
    }
}
