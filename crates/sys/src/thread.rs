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

/// Gives the calling thread the lowest priority of the scheduler, for good.
pub fn lower_priority() {
    // SAFETY: no memory is involved. Linux has a priority for each thread; 0 is the calling one. What is refused changes nothing.
    unsafe {
        libc::setpriority(libc::PRIO_PROCESS, 0, 19);
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

    #[test]
    fn a_thread_blocks_signals_and_is_nice() {
        let (tell, told) = channel();
        let run = move || {
            lower_priority();
            let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
            let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
            tell.send((status, stat)).unwrap();
        };
        start("test", run).unwrap();
        let (status, stat) = told.recv().unwrap();
        let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:\t")).unwrap();
        let blocked = u64::from_str_radix(blocked, 16).unwrap();
        assert_ne!(blocked & 1 << (libc::SIGTERM - 1), 0, "{blocked:x}");
        let nice = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(16).unwrap().to_owned();
        assert_eq!(nice, "19");
    }
}
