//! The library's threads inside an application's process.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread::Builder;

use rustix::thread::futex;
use rustix::time::ClockId;

use crate::interface::clock_ns;

static REFUSED: OnceLock<fn() -> bool> = OnceLock::new();

/// Sets the function that decides where no thread may be started: where libc's `malloc`, which
/// thread creation calls, must not be called. Only the first call has an effect.
pub fn refuse_where(refused: fn() -> bool) {
    let _ = REFUSED.set(refused);
}

/// Time in ns during which a refusal stays valid. The check takes as long as several requests.
const REFUSED_NS: u64 = 10_000_000;
static REFUSED_UNTIL_NS: AtomicU64 = AtomicU64::new(0);

fn is_refused() -> bool {
    let Some(refused) = REFUSED.get() else { return false };
    let now_ns = clock_ns(ClockId::Monotonic);
    if now_ns < REFUSED_UNTIL_NS.load(Ordering::Relaxed) {
        return true;
    }
    let is_refused = refused();
    if is_refused {
        REFUSED_UNTIL_NS.store(now_ns + REFUSED_NS, Ordering::Relaxed);
    }
    is_refused
}

/// Starts a thread in which no signal of the application is ever delivered. Its stack is small,
/// because it only makes system calls.
///
/// # Errors
/// The system cannot create another thread. The function of [`refuse_where`] forbids it here, or
/// did so less than 10 ms ago.
pub fn start(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    const STACK_BYTES: usize = 256 << 10;
    if is_refused() {
        return Err(io::ErrorKind::WouldBlock.into());
    }
    let start = || Builder::new().name(name.to_owned()).stack_size(STACK_BYTES).spawn(run);
    with_signals_blocked(start).map(drop)
}

/// Counts finished pieces of work, for a thread that waits until all are done. It needs no memory,
/// unlike `park`, which needs `std`'s handle of the calling thread, allocated by the C library.
#[derive(Debug)]
pub struct Countdown(AtomicU32);

impl Countdown {
    /// Starts the count at `left`.
    pub fn new(left: u32) -> Self {
        Self(AtomicU32::new(left))
    }

    /// Decrements the count. The last decrement wakes the waiting thread, which may free the
    /// countdown before this function returns.
    ///
    /// # Safety
    /// `countdown` is alive, and stays so until it was decremented as often as it was
    /// [`new`](Self::new) for.
    pub unsafe fn count(countdown: *const Self) {
        // SAFETY: alive until the decrement below.
        let left = unsafe { &raw const (*countdown).0 };
        // SAFETY: as above. The wake-up only names the address; it does not access the memory.
        unsafe {
            if (*left).fetch_sub(1, Ordering::AcqRel) == 1 {
                let _ = futex::wake(&*left, futex::Flags::PRIVATE, 1);
            }
        }
    }

    /// Waits until the count is 0.
    pub fn wait(&self) {
        loop {
            match self.0.load(Ordering::Acquire) {
                0 => return,
                left => drop(futex::wait(&self.0, futex::Flags::PRIVATE, left, None)),
            }
        }
    }
}

/// Nice levels below the rest of the process. If all threads of a busy core want to run, this
/// thread gets a third of the time of the others.
const LEVELS_BELOW: libc::c_int = 5;

/// Lowers the priority of the calling thread permanently.
///
/// It does not use the lowest priority. Threads of the program wait for work that this thread has
/// begun and for locks that it holds, and an ordinary user cannot raise a priority again. At the
/// lowest priority, next to twenty busy programs per core, 10 ms of work take half a minute.
pub fn lower_priority() {
    // SAFETY: no memory is involved. On Linux the priority is per thread. A refusal changes
    // nothing.
    unsafe {
        libc::nice(LEVELS_BELOW);
    }
}

/// Runs `start` with all signals blocked in the calling thread; new threads inherit that.
pub fn with_signals_blocked<T>(start: impl FnOnce() -> T) -> T {
    // SAFETY: valid signal sets of this frame.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let result = start();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        result
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    fn nice_of_this_thread() -> i32 {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        stat.rsplit_once(')').unwrap().1.split_whitespace().nth(16).unwrap().parse().unwrap()
    }

    #[test]
    fn a_thread_blocks_signals_and_is_nice() {
        let (tell, told) = channel();
        let run = move || {
            let before = nice_of_this_thread();
            lower_priority();
            let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
            tell.send((status, before, nice_of_this_thread())).unwrap();
        };
        start("test", run).unwrap();
        let (status, before, after) = told.recv().unwrap();
        let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:\t")).unwrap();
        let blocked = u64::from_str_radix(blocked, 16).unwrap();
        assert_ne!(blocked & 1 << (libc::SIGTERM - 1), 0, "{blocked:x}");
        // The priority must not be so low that the thread never runs on a busy machine: others wait
        // for it.
        assert_eq!(after, (before + LEVELS_BELOW).min(19));
    }
}
