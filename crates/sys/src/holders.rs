//! Finds the processes that hold a lock on a file, as far as /proc shows them. It reads the
//! information on every descriptor of every process, so it is used for messages only.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{self, Mode, OFlags};

use crate::{Real, Sys};

/// Largest number of processes in the result.
const NAMED_MAX: usize = 3;

/// The processes that hold a lock on this byte of the file, with their names, and whether they are
/// stopped.
pub(crate) fn of(fd: BorrowedFd<'_>, byte: u64) -> Vec<String> {
    let Ok(stat) = fs::fstat(fd) else { return Vec::new() };
    let mut found = Vec::new();
    for pid in numbers(Path::new("/proc")) {
        let fds = directory(pid, "fdinfo");
        let holds = |number: u32| {
            text(&fds.join(number.to_string())).lines().any(|line| is_of(line, stat.st_ino, byte))
        };
        if numbers(&fds).into_iter().any(holds) && found.len() < NAMED_MAX {
            found.push(describe(pid));
        }
    }
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

fn directory(pid: u32, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/{name}"))
}

/// The entries of a directory whose names are numbers; none if it cannot be read.
fn numbers(path: &Path) -> Vec<u32> {
    let dir = Real.open(None, path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty());
    let listed = dir.and_then(|dir| Real.list(dir.as_fd())).unwrap_or_default();
    listed.iter().filter_map(|entry| entry.name.to_str()?.parse().ok()).collect()
}

/// The first bytes of a file; empty if it cannot be read.
fn text(path: &Path) -> String {
    let sys: &dyn Sys = &Real;
    let file = sys.open(None, path, OFlags::RDONLY, Mode::empty());
    let bytes = file.and_then(|file| sys.read_start(file.as_fd(), 1024)).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LockKind, Real, Sys};

    #[test]
    fn who_holds_a_byte_is_found() {
        let file = tempfile::tempfile().unwrap();
        Real.lock(file.as_fd(), 5, 1, LockKind::Exclusive).unwrap();
        let own = of(file.as_fd(), 5);
        assert!(own.len() == 1 && own[0].starts_with(&format!("process {} (", std::process::id())), "{own:?}");
        assert_eq!(of(file.as_fd(), 6), [""; 0]);
    }
}
