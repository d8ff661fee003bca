//! Finds the processes that hold a lock on a file, as far as /proc shows them. It reads the
//! information on every descriptor of every process, so it is used for messages only.

use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{self, CWD, Mode, OFlags, RawDir};

use crate::raw;

/// Largest number of processes in the result.
const NAMED_MAX: usize = 3;

/// The processes that hold a lock on this byte of the file, with their names, and whether they are
/// stopped.
pub(crate) fn of(fd: BorrowedFd<'_>, byte: u64) -> Vec<String> {
    let Ok(stat) = fs::fstat(fd) else { return Vec::new() };
    let mut found = Vec::new();
    each(c"/proc", |pid| {
        let mut holds = false;
        let fds = directory(pid, "fdinfo");
        each(&fds, |number| {
            let info = text(&directory(pid, &format!("fdinfo/{number}")));
            holds |= info.lines().any(|line| is_of(line, stat.st_ino, byte));
        });
        if holds && found.len() < NAMED_MAX {
            found.push(describe(pid));
        }
    });
    found
}

/// Whether a line of `fdinfo` is a lock of the byte: `lock: 1: OFDLCK  ADVISORY  WRITE -1
/// 08:01:1234 0 0`, where the last word may be `EOF`.
fn is_of(line: &str, inode: u64, byte: u64) -> bool {
    let Some(lock) = line.strip_prefix("lock:") else { return false };
    let words: Vec<_> = lock.split_whitespace().collect();
    let [_, "OFDLCK", _, _, _, place, first, last] = words[..] else { return false };
    let same = place.rsplit(':').next().and_then(|number| number.parse().ok()) == Some(inode);
    let from = first.parse().unwrap_or(u64::MAX);
    same && (from..=last.parse().unwrap_or(u64::MAX)).contains(&byte)
}

fn describe(pid: u32) -> String {
    let stat = text(&directory(pid, "stat"));
    let Some((start, rest)) = stat.rsplit_once(')') else { return format!("process {pid}") };
    let name = start.split_once('(').map_or("", |(_, name)| name);
    let state = if rest.trim_start().starts_with(['T', 't']) { ", which is stopped" } else { "" };
    format!("process {pid} ({name}){state}")
}

fn directory(pid: u32, name: &str) -> CString {
    CString::new(format!("/proc/{pid}/{name}")).unwrap_or_default()
}

/// Calls `look` for every entry of a directory whose name is a number.
fn each(path: &CStr, mut look: impl FnMut(u32)) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(dir) = fs::openat(CWD, path, flags, Mode::empty()).and_then(crate::Fd::adopt) else { return };
    let mut buffer = [MaybeUninit::uninit(); 2048];
    let mut entries = RawDir::new(dir.as_fd(), &mut buffer);
    while let Some(Ok(entry)) = entries.next() {
        if let Some(number) = entry.file_name().to_str().ok().and_then(|name| name.parse().ok()) {
            look(number);
        }
    }
}

/// The first bytes of a file; empty if it cannot be read.
fn text(path: &CStr) -> String {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let Ok(file) = fs::openat(CWD, path, flags, Mode::empty()).and_then(crate::Fd::adopt) else {
        return String::new();
    };
    let mut bytes = [0; 1024];
    // SAFETY: a buffer of this function.
    let done = unsafe { raw::pread(file.as_fd(), bytes.as_mut_ptr(), bytes.len(), 0) }.unwrap_or(0);
    String::from_utf8_lossy(&bytes[..done]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LockKind, Real, Sys};

    #[test]
    fn who_holds_a_byte_is_found() {
        let file = tempfile::tempfile().unwrap();
        Real.lock(file.as_fd(), 5, 1, LockKind::Exclusive).unwrap();
        let holders = of(file.as_fd(), 5);
        // Processes that other tests start share the descriptor, and so the lock, until they exec.
        let own = format!("process {} (", std::process::id());
        assert!(holders.iter().any(|holder| holder.starts_with(&own)), "{holders:?}");
        assert_eq!(of(file.as_fd(), 6), [""; 0]);
    }
}
