//! Opening paths that other users may have made: below a directory, without following a link.

use std::os::fd::{AsFd, BorrowedFd, IntoRawFd};
use std::path::{Component, Path};

use rustix::fs::{self, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::retry_on_intr;

use crate::fd::{borrow, close_raw};
use crate::{Errno, Fd, Result};

const BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS);

/// openat(2), as the caller makes it: the directory, the name in it, flags and mode.
type Opener<'a> = &'a dyn Fn(BorrowedFd<'_>, &Path, OFlags, Mode) -> Result<Fd>;

pub(crate) fn open(
    each: Opener<'_>,
    dir: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    mode: Mode,
) -> Result<Fd> {
    let waits = !flags.intersects(OFlags::PATH | OFlags::DIRECTORY | OFlags::NONBLOCK);
    let mut opening = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    opening.set(OFlags::NONBLOCK, waits || flags.contains(OFlags::NONBLOCK));
    let opened = match retry_on_intr(|| fs::openat2(dir, path, opening, mode, BENEATH)) {
        Ok(fd) => Fd::adopt(fd)?,
        // Some kernels and sandboxes do not know the call.
        Err(Errno::NOSYS | Errno::PERM) => stepwise(each, dir, path, opening, mode)?,
        Err(error) => return Err(error),
    };
    if waits {
        // With O_NONBLOCK, io_uring requests on the descriptor would fail instead of waiting for
        // the disk.
        fs::fcntl_setfl(&opened, opening - OFlags::NONBLOCK)?;
    }
    Ok(opened)
}

pub(crate) fn stat(each: Opener<'_>, dir: BorrowedFd<'_>, path: &Path) -> Result<Stat> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    match retry_on_intr(|| fs::openat2(dir, path, flags, Mode::empty(), BENEATH)) {
        Ok(fd) => {
            // Not moved to a high number, because it is closed at once.
            let fd = fd.into_raw_fd();
            // SAFETY: just opened.
            let stat = retry_on_intr(|| fs::fstat(unsafe { borrow(fd) }));
            close_raw(fd);
            stat
        }
        Err(Errno::NOSYS | Errno::PERM) => {
            let fd = stepwise(each, dir, path, flags, Mode::empty())?;
            retry_on_intr(|| fs::fstat(&fd))
        }
        Err(error) => Err(error),
    }
}

/// [`open_beneath`](crate::Sys::open_beneath) without openat2(2): calls `each` for every component
/// of `path`.
pub fn stepwise(each: Opener<'_>, dir: BorrowedFd<'_>, path: &Path, flags: OFlags, mode: Mode) -> Result<Fd> {
    let mut names = path.components().peekable();
    let mut at: Option<Fd> = None;
    while let Some(name) = names.next() {
        let Component::Normal(name) = name else { return Err(Errno::XDEV) };
        let from = at.as_ref().map_or(dir, Fd::as_fd);
        if names.peek().is_none() {
            return each(from, Path::new(name), flags | OFlags::NOFOLLOW, mode);
        }
        let step = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        at = Some(each(from, Path::new(name), step, Mode::empty())?);
    }
    Err(Errno::NOENT)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::fs::CWD;

    use super::*;
    use crate::{Real, Sys};

    /// Both ways to walk a path give the same results.
    #[test]
    fn no_link_is_followed_below_a_directory_and_no_fifo_waited_for() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        std::fs::create_dir_all(at("a/b")).unwrap();
        std::fs::write(at("a/b/file"), "text").unwrap();
        symlink(at("a"), at("link")).unwrap();
        symlink("file", at("a/b/alias")).unwrap();
        fs::mknodat(CWD, at("fifo"), fs::FileType::Fifo, Mode::RWXU, 0).unwrap();
        let dir = std::fs::File::open(root.path()).unwrap();
        let openat2 = |path: &str| {
            Real.open_beneath(dir.as_fd(), Path::new(path), OFlags::RDONLY, Mode::empty()).map(drop)
        };
        let stepwise = |path: &str| {
            let flags = OFlags::RDONLY | OFlags::NONBLOCK;
            let each = |dir: BorrowedFd<'_>, path: &Path, flags, mode| Real.open(Some(dir), path, flags, mode);
            stepwise(&each, dir.as_fd(), Path::new(path), flags, Mode::empty()).map(drop)
        };
        type Open<'a> = &'a dyn Fn(&str) -> Result<()>;
        for open in [&openat2 as Open<'_>, &stepwise] {
            assert_eq!(open("a/b/file"), Ok(()));
            assert_eq!(open("fifo"), Ok(()));
            assert_eq!(open("a/b/none"), Err(Errno::NOENT));
            assert!(matches!(open("link/b/file"), Err(Errno::LOOP | Errno::NOTDIR)));
            assert_eq!(open("a/b/alias"), Err(Errno::LOOP));
            assert_eq!(open("../x"), Err(Errno::XDEV));
            assert_eq!(open("/etc/passwd"), Err(Errno::XDEV));
        }
    }

    #[test]
    fn a_descriptor_opened_below_a_directory_waits_for_its_disk() {
        let dir = tempfile::tempdir().unwrap();
        let opened = std::fs::File::open(dir.path()).unwrap();
        let flags = OFlags::RDWR | OFlags::CREATE;
        let fd = Real.open_beneath(opened.as_fd(), Path::new("f"), flags, Mode::RWXU).unwrap();
        assert!(!fs::fcntl_getfl(&fd).unwrap().contains(OFlags::NONBLOCK));
    }
}
