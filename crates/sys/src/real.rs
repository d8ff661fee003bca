//! The Linux kernel.

use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use rustix::fs::{
    self, AtFlags, CWD, FallocateFlags, Mode, OFlags, RawDir, RenameFlags, ResolveFlags, SeekFrom, Stat,
    StatVfs, StatxFlags, Timestamps,
};
use rustix::io::{Errno, retry_on_intr};
use rustix::rand::{GetRandomFlags, getrandom};
use rustix::thread::{clock_nanosleep_absolute, current_timer_slack, set_current_timer_slack};
use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::fd::{borrow, close_raw};
use crate::{
    DIRECT_ALIGNMENT_MOST, Dir, Fd, Identity, IoVec, Kind, Listed, LockKind, Result, SharedMap, Sys,
    asking::Waiting, interface, raw, xattr,
};

/// The kernel, through raw system calls. Has no state.
#[derive(Clone, Copy, Debug, Default)]
pub struct Real;

fn at<'a>(dir: Dir<'a>) -> BorrowedFd<'a> {
    dir.unwrap_or(CWD)
}

/// Resolution flags for paths that other users may have made.
const BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS);

impl Sys for Real {
    fn is_real(&self) -> bool {
        true
    }

    fn open(&self, dir: Dir<'_>, path: &Path, flags: OFlags, mode: Mode) -> Result<Fd> {
        let flags = flags | OFlags::CLOEXEC;
        Fd::adopt(retry_on_intr(|| fs::openat(at(dir), path, flags, mode))?)
    }

    fn open_beneath(&self, dir: BorrowedFd<'_>, path: &Path, flags: OFlags, mode: Mode) -> Result<Fd> {
        let waits = !flags.intersects(OFlags::PATH | OFlags::DIRECTORY | OFlags::NONBLOCK);
        let mut opening = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        opening.set(OFlags::NONBLOCK, waits || flags.contains(OFlags::NONBLOCK));
        let opened = match retry_on_intr(|| fs::openat2(dir, path, opening, mode, BENEATH)) {
            Ok(fd) => Fd::adopt(fd)?,
            // Some kernels and sandboxes do not know the call.
            Err(Errno::NOSYS | Errno::PERM) => interface::beneath(self, dir, path, opening, mode)?,
            Err(error) => return Err(error),
        };
        if waits {
            // With O_NONBLOCK, io_uring requests on the descriptor would fail instead of waiting
            // for the disk.
            fs::fcntl_setfl(&opened, opening - OFlags::NONBLOCK)?;
        }
        Ok(opened)
    }

    fn stat_beneath(&self, dir: BorrowedFd<'_>, path: &Path) -> Result<Stat> {
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
                self.stat(interface::beneath(self, dir, path, flags, Mode::empty())?.as_fd())
            }
            Err(error) => Err(error),
        }
    }

    fn identity(&self, fd: BorrowedFd<'_>) -> Result<Identity> {
        Identity::of(fd)
    }

    fn exists(&self, dir: BorrowedFd<'_>, identity: &Identity) -> Result<Option<bool>> {
        identity.exists(dir)
    }

    fn open_public(&self, dir: Dir<'_>, path: &Path, flags: OFlags, mode: Mode) -> Result<RawFd> {
        fs::openat(at(dir), path, flags, mode).map(IntoRawFd::into_raw_fd)
    }

    unsafe fn pread(&self, fd: BorrowedFd<'_>, buffer: *mut u8, len: usize, offset: u64) -> Result<usize> {
        // SAFETY: as the caller promises.
        retry_on_intr(|| unsafe { raw::pread(fd, buffer, len, offset) })
    }

    unsafe fn pwrite(&self, fd: BorrowedFd<'_>, buffer: *const u8, len: usize, offset: u64) -> Result<usize> {
        // SAFETY: as the caller promises.
        retry_on_intr(|| unsafe { raw::pwrite(fd, buffer, len, offset) })
    }

    unsafe fn preadv(&self, fd: BorrowedFd<'_>, vectors: &[IoVec], offset: u64) -> Result<usize> {
        // SAFETY: as the caller promises.
        retry_on_intr(|| unsafe { raw::preadv(fd, vectors, offset, 0) })
    }

    unsafe fn preadv_cached(&self, fd: BorrowedFd<'_>, vectors: &[IoVec], offset: u64) -> Result<usize> {
        // SAFETY: as the caller promises.
        unsafe { raw::preadv(fd, vectors, offset, libc::RWF_NOWAIT as u32) }
    }

    unsafe fn pwritev(&self, fd: BorrowedFd<'_>, vectors: &[IoVec], offset: u64) -> Result<usize> {
        // SAFETY: as the caller promises.
        retry_on_intr(|| unsafe { raw::pwritev(fd, vectors, offset, 0) })
    }

    fn seek(&self, fd: BorrowedFd<'_>, to: SeekFrom) -> Result<u64> {
        fs::seek(fd, to)
    }

    fn drop_cached(&self, fd: BorrowedFd<'_>) -> Result<()> {
        fs::fadvise(fd, 0, None, fs::Advice::DontNeed)
    }

    fn is_open_elsewhere(&self, fd: BorrowedFd<'_>) -> Result<bool> {
        raw::is_open_elsewhere(fd)
    }

    fn direct_alignment(&self, fd: BorrowedFd<'_>) -> u64 {
        let wanted = StatxFlags::DIOALIGN;
        let told = fs::statx(fd, c"", AtFlags::EMPTY_PATH, wanted).ok();
        let told = told.filter(|stat| stat.stx_mask & wanted.bits() != 0);
        let alignment = told.map_or(0, |stat| stat.stx_dio_mem_align.max(stat.stx_dio_offset_align));
        // 0 means that there is no direct I/O, or that the kernel does not report the alignment.
        if alignment.is_power_of_two() { u64::from(alignment) } else { DIRECT_ALIGNMENT_MOST }
    }

    fn truncate(&self, fd: BorrowedFd<'_>, size: u64) -> Result<()> {
        retry_on_intr(|| fs::ftruncate(fd, size))
    }

    fn grow(&self, fd: BorrowedFd<'_>, size: u64) -> Result<()> {
        match size.checked_sub(1) {
            Some(last) => retry_on_intr(|| fs::fallocate(fd, FallocateFlags::empty(), last, 1)),
            None => Ok(()),
        }
    }

    fn allocate(&self, fd: BorrowedFd<'_>, offset: u64, len: u64, keep_size: bool) -> Result<()> {
        let flags = if keep_size { FallocateFlags::KEEP_SIZE } else { FallocateFlags::empty() };
        retry_on_intr(|| fs::fallocate(fd, flags, offset, len))
    }

    fn punch_hole(&self, fd: BorrowedFd<'_>, offset: u64, len: u64) -> Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        retry_on_intr(|| fs::fallocate(fd, flags, offset, len))
    }

    fn sync(&self, fd: BorrowedFd<'_>) -> Result<()> {
        retry_on_intr(|| fs::fsync(fd))
    }

    fn sync_file_system(&self, fd: BorrowedFd<'_>) -> Result<()> {
        retry_on_intr(|| fs::syncfs(fd))
    }

    fn sync_data(&self, fd: BorrowedFd<'_>) -> Result<()> {
        retry_on_intr(|| fs::fdatasync(fd))
    }

    fn stat(&self, fd: BorrowedFd<'_>) -> Result<Stat> {
        fs::fstat(fd)
    }

    fn stat_at(&self, dir: Dir<'_>, path: &Path, follow: bool) -> Result<Stat> {
        let flags = if follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
        fs::statat(at(dir), path, flags)
    }

    fn may_write(&self, fd: BorrowedFd<'_>, effective: bool) -> Result<()> {
        let link = format!("/proc/self/fd/{}", fd.as_raw_fd());
        let flags = if effective { AtFlags::EACCESS } else { AtFlags::empty() };
        fs::accessat(CWD, Path::new(&link), fs::Access::WRITE_OK, flags)
    }

    fn stat_fs(&self, fd: BorrowedFd<'_>) -> Result<StatVfs> {
        retry_on_intr(|| fs::fstatvfs(fd))
    }

    fn file_system(&self, fd: BorrowedFd<'_>) -> Result<u64> {
        retry_on_intr(|| fs::fstatfs(fd)).map(|stat| stat.f_type as u64)
    }

    fn link(&self, old_dir: Dir<'_>, old: &Path, new_dir: Dir<'_>, new: &Path) -> Result<()> {
        fs::linkat(at(old_dir), old, at(new_dir), new, AtFlags::empty())
    }

    fn rename(&self, old_dir: Dir<'_>, old: &Path, new_dir: Dir<'_>, new: &Path) -> Result<()> {
        fs::renameat(at(old_dir), old, at(new_dir), new)
    }

    fn rename_noreplace(&self, old_dir: Dir<'_>, old: &Path, new_dir: Dir<'_>, new: &Path) -> Result<()> {
        fs::renameat_with(at(old_dir), old, at(new_dir), new, RenameFlags::NOREPLACE)
    }

    fn unlink(&self, dir: Dir<'_>, path: &Path) -> Result<()> {
        fs::unlinkat(at(dir), path, AtFlags::empty())
    }

    fn mkdir(&self, dir: Dir<'_>, path: &Path, mode: Mode) -> Result<()> {
        fs::mkdirat(at(dir), path, mode)
    }

    fn rmdir(&self, dir: Dir<'_>, path: &Path) -> Result<()> {
        fs::unlinkat(at(dir), path, AtFlags::REMOVEDIR)
    }

    fn read_link(&self, dir: Dir<'_>, path: &Path) -> Result<OsString> {
        fs::readlinkat(at(dir), path, Vec::new()).map(|link| OsString::from_vec(link.into_bytes()))
    }

    fn list(&self, dir: BorrowedFd<'_>) -> Result<Vec<Listed>> {
        fs::seek(dir, SeekFrom::Start(0))?;
        let mut buffer = [MaybeUninit::uninit(); 8192];
        let mut entries = RawDir::new(dir, &mut buffer);
        let mut listed = Vec::new();
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                let name = OsStr::from_bytes(name).to_owned();
                listed.push(Listed { name, kind: entry.file_type() });
            }
        }
        Ok(listed)
    }

    fn lock(&self, fd: BorrowedFd<'_>, start: u64, len: u64, kind: LockKind) -> Result<()> {
        let mut waiting = Waiting::new(fd, start);
        while !self.try_lock(fd, start, len, kind)? {
            waiting.pause()?;
        }
        Ok(())
    }

    fn try_lock(&self, fd: BorrowedFd<'_>, start: u64, len: u64, kind: LockKind) -> Result<bool> {
        match raw::fcntl_lock(fd, libc::F_OFD_SETLK, &flock(lock_type(kind), start, len)) {
            Ok(()) => Ok(true),
            Err(Errno::AGAIN | Errno::ACCESS) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn unlock(&self, fd: BorrowedFd<'_>, start: u64, len: u64) -> Result<()> {
        raw::fcntl_lock(fd, libc::F_OFD_SETLK, &flock(libc::F_UNLCK, start, len))
    }

    fn set_times(&self, of: Kind<'_>, times: &Timestamps) -> Result<()> {
        match of {
            Kind::Open(fd) => fs::futimens(fd, times),
            Kind::Named(dir, path) => fs::utimensat(at(dir), path, times, AtFlags::empty()),
        }
    }

    fn set_mode(&self, of: Kind<'_>, mode: Mode) -> Result<()> {
        match of {
            Kind::Open(fd) => fs::fchmod(fd, mode),
            Kind::Named(dir, path) => fs::chmodat(at(dir), path, mode, AtFlags::empty()),
        }
    }

    fn set_owner(&self, of: Kind<'_>, user: Option<u32>, group: Option<u32>) -> Result<()> {
        let user = user.map(fs::Uid::from_raw);
        let group = group.map(fs::Gid::from_raw);
        match of {
            Kind::Open(fd) => fs::fchown(fd, user, group),
            Kind::Named(dir, path) => fs::chownat(at(dir), path, user, group, AtFlags::empty()),
        }
    }

    fn xattr(&self, of: Kind<'_>, name: &OsStr) -> Result<Vec<u8>> {
        xattr::get(of, name)
    }

    fn list_xattr(&self, of: Kind<'_>) -> Result<Vec<OsString>> {
        xattr::list(of)
    }

    fn set_xattr(&self, of: Kind<'_>, name: &OsStr, value: &[u8]) -> Result<()> {
        xattr::set(of, name, value)
    }

    fn remove_xattr(&self, of: Kind<'_>, name: &OsStr) -> Result<()> {
        xattr::remove(of, name)
    }

    fn now_ns(&self) -> u64 {
        clock_ns(ClockId::Monotonic)
    }

    fn wall_ns(&self) -> u64 {
        clock_ns(ClockId::Realtime)
    }

    fn sleep_until_ns(&self, until_ns: u64) {
        if self.now_ns() >= until_ns {
            return;
        }
        let until =
            Timespec { tv_sec: (until_ns / 1_000_000_000) as i64, tv_nsec: (until_ns % 1_000_000_000) as i64 };
        // The default slack of 50 us would be as long as an I/O of a fast device.
        let slack = current_timer_slack().ok().and_then(NonZeroU64::new);
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        while clock_nanosleep_absolute(ClockId::Monotonic, &until) == Err(Errno::INTR) {}
        let _ = set_current_timer_slack(slack);
    }

    fn user(&self) -> u32 {
        rustix::process::geteuid().as_raw()
    }

    fn say(&self, line: &[u8]) {
        // SAFETY: if descriptor 2 is closed, the call fails.
        let _ = rustix::io::write(unsafe { crate::fd::borrow(2) }, line);
    }

    fn random(&self, buffer: &mut [u8]) -> Result<()> {
        let mut filled = 0;
        while filled < buffer.len() {
            filled += retry_on_intr(|| getrandom(&mut buffer[filled..], GetRandomFlags::empty()))?;
        }
        Ok(())
    }

    fn map_shared(&self, fd: BorrowedFd<'_>, words: usize) -> Result<SharedMap> {
        SharedMap::new(fd, words)
    }
}

fn clock_ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn lock_type(kind: LockKind) -> i32 {
    match kind {
        LockKind::Shared => libc::F_RDLCK,
        LockKind::Exclusive => libc::F_WRLCK,
    }
}

fn flock(kind: i32, start: u64, len: u64) -> libc::flock {
    // SAFETY: integers only; l_pid must be 0 for OFD locks.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = start as libc::off_t;
    lock.l_len = len as libc::off_t;
    lock
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::fs::symlink;

    use super::*;

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
            interface::beneath(&Real, dir.as_fd(), Path::new(path), flags, Mode::empty()).map(drop)
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
