//! Record locks. Each owner of the kernel's has a descriptor of its own for each file that it
//! locks, with the locks of that open file description. So programs of the mount and others exclude
//! each other.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::errno::Errno;

use crate::disk::{of_io, path_of};
use crate::opened::Opened;

/// How long a wait for a lock sleeps at first, and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(50));

/// A node and an owner of the kernel's.
type Key = (u64, u64);

/// The descriptors of all owners of locks.
#[derive(Default)]
pub struct Locks(Mutex<HashMap<Key, Arc<File>>>);

/// A range of a file and what is asked for it.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    /// F_RDLCK, F_WRLCK or F_UNLCK.
    pub kind: i32,
    /// The first byte.
    pub start: u64,
    /// The last byte.
    pub end: u64,
}

impl Range {
    fn to_flock(self) -> libc::flock {
        // SAFETY: consists of numbers, for which zero is a valid value.
        let mut lock: libc::flock = unsafe { std::mem::zeroed() };
        lock.l_type = self.kind as i16;
        lock.l_whence = libc::SEEK_SET as i16;
        lock.l_start = self.start as i64;
        // To the end of the file, however long it becomes: 0.
        let is_endless = self.end >= i64::MAX as u64;
        lock.l_len = if is_endless { 0 } else { (self.end - self.start + 1) as i64 };
        lock
    }

    fn from_flock(lock: &libc::flock) -> Self {
        let start = lock.l_start as u64;
        let end = if lock.l_len == 0 { i64::MAX as u64 } else { start + lock.l_len as u64 - 1 };
        Self { kind: lock.l_type.into(), start, end }
    }
}

impl Locks {
    /// The lock that another owner has and that excludes this one, or F_UNLCK.
    ///
    /// # Errors
    /// Those of fcntl(2).
    pub fn conflicting(&self, opened: &Opened, owner: u64, range: Range) -> Result<Range, Errno> {
        let file = self.file_of(opened, owner)?;
        let mut lock = range.to_flock();
        control(&file, libc::F_OFD_GETLK, &mut lock)?;
        Ok(Range::from_flock(&lock))
    }

    /// Takes, changes or releases a lock.
    ///
    /// # Errors
    /// EAGAIN: another owner has one. Those of fcntl(2).
    pub fn set(&self, opened: &Opened, owner: u64, range: Range) -> Result<(), Errno> {
        if range.kind == libc::F_UNLCK && !self.has(opened.node, owner) {
            return Ok(());
        }
        let file = self.file_of(opened, owner)?;
        control(&file, libc::F_OFD_SETLK, &mut range.to_flock())
    }

    /// As [`set`](Self::set), and waits for other owners, as long as no signal is for the thread
    /// with this number that waits.
    ///
    /// # Errors
    /// EINTR: there is a signal. Those of fcntl(2).
    pub fn wait(&self, opened: &Opened, owner: u64, range: Range, thread: u32) -> Result<(), Errno> {
        let mut pause = PAUSE.0;
        loop {
            match self.set(opened, owner, range) {
                Err(Errno::EAGAIN | Errno::EACCES) => {}
                done => return done,
            }
            if has_signal(thread) {
                return Err(Errno::EINTR);
            }
            std::thread::sleep(pause);
            pause = (2 * pause).min(PAUSE.1);
        }
    }

    /// Releases all locks of an owner on a file.
    pub fn release(&self, node: u64, owner: u64) {
        let file = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&(node, owner));
        // The last descriptor of the description: with it the locks go.
        drop(file);
    }

    fn has(&self, node: u64, owner: u64) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&(node, owner))
    }

    fn file_of(&self, opened: &Opened, owner: u64) -> Result<Arc<File>, Errno> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = all.get(&(opened.node, owner)) {
            return Ok(file.clone());
        }
        let file = Arc::new(reopen(opened)?);
        all.insert((opened.node, owner), file.clone());
        Ok(file)
    }
}

/// Another description of an open file, for reading and writing if that is allowed.
fn reopen(opened: &Opened) -> Result<File, Errno> {
    let path = path_of(opened);
    let path = Path::new(std::ffi::OsStr::from_bytes(path.to_bytes()));
    let open = |read, write| OpenOptions::new().read(read).write(write).open(path);
    let file = open(true, true).or_else(|_| open(true, false)).or_else(|_| open(false, true));
    file.map_err(of_io)
}

fn control(file: &File, command: i32, lock: &mut libc::flock) -> Result<(), Errno> {
    // SAFETY: the command takes the address of such a structure.
    let result = unsafe { libc::fcntl(file.as_fd().as_raw_fd(), command, std::ptr::from_mut(lock)) };
    Errno::result(result).map(drop)
}

/// Whether a thread has a signal that it neither blocks nor ignores. (The kernel tells a file
/// system of signals, but `fuser` does not pass that on.)
fn has_signal(thread: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{thread}/status")).is_ok_and(|status| is_signalled(&status))
}

/// The same, from the thread's status in /proc.
fn is_signalled(status: &str) -> bool {
    let set = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|text| u64::from_str_radix(text.trim_start_matches(':').trim(), 16).ok()).unwrap_or(0)
    };
    (set("SigPnd") | set("ShdPnd")) & !set("SigBlk") & !set("SigIgn") != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(file: File) -> Arc<Opened> {
        Opened::new(file, 1)
    }

    fn range(kind: i32, start: u64, end: u64) -> Range {
        Range { kind, start, end }
    }

    #[test]
    fn owners_exclude_each_other_until_one_releases() {
        let file = opened(tempfile::tempfile().unwrap());
        let locks = Locks::default();
        locks.set(&file, 1, range(libc::F_WRLCK, 0, 9)).unwrap();
        locks.set(&file, 1, range(libc::F_WRLCK, 5, 19)).unwrap();
        assert_eq!(locks.set(&file, 2, range(libc::F_RDLCK, 19, 30)), Err(Errno::EAGAIN));
        let found = locks.conflicting(&file, 2, range(libc::F_RDLCK, 19, 30)).unwrap();
        assert_eq!((found.kind, found.start, found.end), (libc::F_WRLCK, 0, 19));
        locks.set(&file, 2, range(libc::F_RDLCK, 20, i64::MAX as u64)).unwrap();
        locks.set(&file, 3, range(libc::F_UNLCK, 0, 100)).unwrap();
        locks.release(1, 1);
        assert_eq!(locks.conflicting(&file, 2, range(libc::F_WRLCK, 0, 19)).unwrap().kind, libc::F_UNLCK);
        locks.set(&file, 2, range(libc::F_WRLCK, 0, 19)).unwrap();
    }

    #[test]
    fn a_wait_ends_with_the_other_lock() {
        let file = opened(tempfile::tempfile().unwrap());
        let locks = Locks::default();
        let all = range(libc::F_WRLCK, 0, i64::MAX as u64);
        locks.set(&file, 1, all).unwrap();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| locks.wait(&file, 2, all, std::process::id()));
            locks.release(1, 1);
            waits.join().unwrap().unwrap();
        });
    }

    #[test]
    fn only_signals_that_reach_the_thread_end_its_wait() {
        let status = |pending: &str, blocked: &str, ignored: &str| {
            format!(
                "Name:\tx\nSigPnd:\t{pending}\nShdPnd:\t0000000000000000\nSigBlk:\t{blocked}\nSigIgn:\t{ignored}\n"
            )
        };
        let (none, two) = ("0000000000000000", "0000000000000002");
        assert!(is_signalled(&status(two, none, none)));
        assert!(!is_signalled(&status(two, two, none)) && !is_signalled(&status(two, none, two)));
        assert!(!is_signalled(&status(none, none, none)) && !has_signal(std::process::id()));
    }
}
