//! Threads of our own inside somebody else's process.

use std::io;
use std::thread::Builder;

/// Starts a thread that no signal of the application ever runs in, with a small stack: it only makes system calls.
///
/// # Errors
/// The system has no room for another thread.
pub fn start(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    const STACK_BYTES: usize = 256 << 10;
    let start = || Builder::new().name(name.to_owned()).stack_size(STACK_BYTES).spawn(run);
    with_signals_blocked(start).map(drop)
}

/// Levels of priority below the rest of the process; a thread gets a third of what the others get,
/// where all want to run.
const LEVELS_BELOW: libc::c_int = 5;

/// Gives the calling thread a lower priority than it has, for good.
///
/// Not the lowest: threads of the program wait for what this one has begun and holds locks for, and
/// an ordinary user cannot raise a priority again. At the lowest one, beside twenty busy programs per
/// core, 10 ms of work take half a minute.
pub fn lower_priority() {
    // SAFETY: no memory is involved. Linux has a priority for each thread. What is refused changes nothing.
    unsafe {
        libc::nice(LEVELS_BELOW);
    }
}

/// Runs `start` with all signals blocked in the calling thread; threads inherit that.
fn with_signals_blocked<T>(start: impl FnOnce() -> T) -> T {
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
        // Not so low that it never runs on a busy machine: others wait for it.
        assert_eq!(after, (before + LEVELS_BELOW).min(19));
    }
}
