//! The interface of the runtime to the operating system.

use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::num::NonZeroU64;
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{
    self, AtFlags, CWD, FallocateFlags, Mode, OFlags, RawDir, RenameFlags, SeekFrom, Stat, StatVfs, StatxFlags,
    Timestamps,
};
use rustix::io::retry_on_intr;
use rustix::rand::{GetRandomFlags, getrandom};
use rustix::thread::{clock_nanosleep_absolute, current_timer_slack, set_current_timer_slack};
use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::{
    DIRECT_ALIGNMENT_MOST, Dir, Errno, Fd, Identity, IoVec, Kind, Listed, LockKind, Result, SharedMap, asking,
    beneath, map, raw, xattr,
};

/// The magic number of FUSE (statfs(2)).
const FUSE: u64 = 0x6573_5546;

/// `Sys::read_from` reads at most this many bytes at once. Most files that it reads are shorter,
/// and every read may cost a parallel file system an access to a disk.
const CHUNK_BYTES: usize = 64 << 10;

/// A shared reference to the interface.
pub type SysRef = Arc<dyn Sys>;

/// The operating system. Object safe. Every method may be called from several threads at the same
/// time, and after fork. The methods given here are the kernel's calls; a test implements the trait
/// and overrides those that it observes or lets fail (`tests/faulty`).
///
/// A path is relative to `dir` unless it is absolute. Except for the blocking [`Sys::lock`], every
/// call completes or fails; EINTR is retried inside. `open` adds O_CLOEXEC.
pub trait Sys: Send + Sync {
    /// Whether descriptors are plain kernel descriptors that may also be used without this
    /// interface (io_uring, mmap). False for a model that observes all operations.
    fn is_real(&self) -> bool {
        true
    }

    /// openat(2); the descriptor is private.
    fn open(&self, dir: Dir<'_>, path: &Path, flags: OFlags, mode: Mode) -> Result<Fd> {
        let flags = flags | OFlags::CLOEXEC;
        Fd::adopt(retry_on_intr(|| fs::openat(at(dir), path, flags, mode))?)
    }

    /// openat2(2) with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS: opens a file below `dir`, and
    /// follows no link. For names that other users may have made. Fails with ELOOP or ENOTDIR for a
    /// link anywhere in `path`, and with EXDEV for a path that leaves `dir`. Does not wait when it
    /// opens a FIFO. On kernels before 5.6 it walks `path` component by component.
    fn open_beneath(&self, dir: BorrowedFd<'_>, path: &Path, flags: OFlags, mode: Mode) -> Result<Fd> {
        beneath::open(&|dir, path, flags, mode| self.open(Some(dir), path, flags, mode), dir, path, flags, mode)
    }

    /// fstatat(2) of the file that [`Sys::open_beneath`] would open.
    fn stat_beneath(&self, dir: BorrowedFd<'_>, path: &Path) -> Result<Stat> {
        beneath::stat(&|dir, path, flags, mode| self.open(Some(dir), path, flags, mode), dir, path)
    }

    /// The identity of the open file, which distinguishes it from every other file, and from its
    /// copies. Fields that the file system does not provide are missing.
    fn identity(&self, fd: BorrowedFd<'_>) -> Result<Identity> {
        Identity::of(fd)
    }

    /// Whether the file with this identity still exists in the file system of the open directory
    /// `dir`. `None` if that cannot be determined: it is another file system, the file system has
    /// no handles, or the process lacks CAP_DAC_READ_SEARCH.
    fn exists(&self, dir: BorrowedFd<'_>, identity: &Identity) -> Result<Option<bool>> {
        identity.exists(dir)
    }

    /// openat(2) for the application. The descriptor has the lowest free number, is not private,
    /// and is close-on-exec only if `flags` contain that.
    fn open_public(&self, dir: Dir<'_>, path: &Path, flags: OFlags, mode: Mode) -> Result<RawFd> {
        fs::openat(at(dir), path, flags, mode).map(IntoRawFd::into_raw_fd)
    }

    /// pread(2); EFAULT for an invalid buffer.
    ///
    /// # Safety
    /// No Rust reference to the `len` bytes at `buffer` is alive. They need not be valid memory.
    unsafe fn pread(&self, fd: BorrowedFd<'_>, buffer: *mut u8, len: usize, offset: u64) -> Result<usize> {
        // SAFETY: as the caller promises.
        retry_on_intr(|| unsafe { raw::pread(fd, buffer, len, offset) })
    }

    /// pwrite(2); EFAULT for an invalid buffer.
    ///
    /// # Safety
    /// No mutable Rust reference to the `len` bytes at `buffer` is in use. They need not be valid
    /// memory.
    unsafe fn pwrite(&self, fd: BorrowedFd<'_>, buffer: *const u8, len: usize, offset: u64) -> Result<usize> {
        // SAFETY: as the caller promises.
        retry_on_intr(|| unsafe { raw::pwrite(fd, buffer, len, offset) })
    }

    /// preadv(2) with at most [`crate::raw::IOV_MAX`] vectors.
    ///
    /// # Safety
    /// As [`Sys::pread`] for every vector.
    unsafe fn preadv(&self, fd: BorrowedFd<'_>, vectors: &[IoVec], offset: u64) -> Result<usize> {
        // SAFETY: as the caller promises.
        retry_on_intr(|| unsafe { raw::preadv(fd, vectors, offset, 0) })
    }

    /// preadv2(2) with RWF_NOWAIT: reads bytes that are in the page cache. EAGAIN if the first byte
    /// is not in there; EOPNOTSUPP if the file system does not support this.
    ///
    /// # Safety
    /// As [`Sys::preadv`].
    unsafe fn preadv_cached(&self, fd: BorrowedFd<'_>, vectors: &[IoVec], offset: u64) -> Result<usize> {
        // SAFETY: as the caller promises.
        unsafe { raw::preadv(fd, vectors, offset, libc::RWF_NOWAIT as u32) }
    }

    /// pwritev(2) with at most [`crate::raw::IOV_MAX`] vectors.
    ///
    /// # Safety
    /// As [`Sys::pwrite`] for every vector.
    unsafe fn pwritev(&self, fd: BorrowedFd<'_>, vectors: &[IoVec], offset: u64) -> Result<usize> {
        // SAFETY: as the caller promises.
        retry_on_intr(|| unsafe { raw::pwritev(fd, vectors, offset, 0) })
    }

    /// lseek(2).
    fn seek(&self, fd: BorrowedFd<'_>, to: SeekFrom) -> Result<u64> {
        fs::seek(fd, to)
    }

    /// posix_fadvise(2) with POSIX_FADV_DONTNEED: removes clean pages of the file from the page
    /// cache.
    fn drop_cached(&self, fd: BorrowedFd<'_>) -> Result<()> {
        fs::fadvise(fd, 0, None, fs::Advice::DontNeed)
    }

    /// Whether the file is open or mapped on this node through another open file description, of
    /// any process. The kernel reveals this because it grants a write lease only if there is no
    /// other (fcntl(2), F_SETLEASE). The lease is released at once.
    ///
    /// # Errors
    /// The state cannot be determined: EINVAL or EOPNOTSUPP if the file system has no leases,
    /// EACCES if the file is another user's.
    fn is_open_elsewhere(&self, fd: BorrowedFd<'_>) -> Result<bool> {
        raw::is_open_elsewhere(fd)
    }

    /// The alignment in bytes that memory, offsets and lengths of direct I/O on this descriptor
    /// must have: statx(2) with STATX_DIOALIGN. If the file system does not report it, the largest
    /// block size of devices in use.
    fn direct_alignment(&self, fd: BorrowedFd<'_>) -> u64 {
        let wanted = StatxFlags::DIOALIGN;
        let told = fs::statx(fd, c"", AtFlags::EMPTY_PATH, wanted).ok();
        let told = told.filter(|stat| stat.stx_mask & wanted.bits() != 0);
        let alignment = told.map_or(0, |stat| stat.stx_dio_mem_align.max(stat.stx_dio_offset_align));
        // 0 means that there is no direct I/O, or that the kernel does not report the alignment.
        if alignment.is_power_of_two() { u64::from(alignment) } else { DIRECT_ALIGNMENT_MOST }
    }

    /// ftruncate(2).
    fn truncate(&self, fd: BorrowedFd<'_>, size: u64) -> Result<()> {
        retry_on_intr(|| fs::ftruncate(fd, size))
    }

    /// Makes the file at least `size` bytes long by fallocate(2) of the last byte. In any race with
    /// writers and other calls that extend the file, this never shortens the file or changes a
    /// byte. EOPNOTSUPP if the file system does not support it.
    fn grow(&self, fd: BorrowedFd<'_>, size: u64) -> Result<()> {
        match size.checked_sub(1) {
            Some(last) => retry_on_intr(|| fs::fallocate(fd, FallocateFlags::empty(), last, 1)),
            None => Ok(()),
        }
    }

    /// fallocate(2): allocates space for `len` bytes at `offset`, and extends the file to their end
    /// unless `keep_size` is set.
    fn allocate(&self, fd: BorrowedFd<'_>, offset: u64, len: u64, keep_size: bool) -> Result<()> {
        let flags = if keep_size { FallocateFlags::KEEP_SIZE } else { FallocateFlags::empty() };
        retry_on_intr(|| fs::fallocate(fd, flags, offset, len))
    }

    /// fallocate(2) with PUNCH_HOLE: makes the bytes read as zeros and frees whole blocks of them;
    /// the size of the file stays. EOPNOTSUPP if the file system does not support it.
    fn punch_hole(&self, fd: BorrowedFd<'_>, offset: u64, len: u64) -> Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        retry_on_intr(|| fs::fallocate(fd, flags, offset, len))
    }

    /// fsync(2). For a directory, syncs its entries.
    fn sync(&self, fd: BorrowedFd<'_>) -> Result<()> {
        retry_on_intr(|| fs::fsync(fd))
    }

    /// syncfs(2): syncs the whole file system of the open file.
    fn sync_file_system(&self, fd: BorrowedFd<'_>) -> Result<()> {
        retry_on_intr(|| fs::syncfs(fd))
    }

    /// fdatasync(2).
    fn sync_data(&self, fd: BorrowedFd<'_>) -> Result<()> {
        retry_on_intr(|| fs::fdatasync(fd))
    }

    /// fstat(2).
    fn stat(&self, fd: BorrowedFd<'_>) -> Result<Stat> {
        fs::fstat(fd)
    }

    /// stat(2), or lstat(2) if `follow` is false.
    fn stat_at(&self, dir: Dir<'_>, path: &Path, follow: bool) -> Result<Stat> {
        let flags = if follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
        fs::statat(at(dir), path, flags)
    }

    /// Whether this process may open the file for writing, as its effective user (faccessat2(2)
    /// with AT_EACCESS) or as its real user. Opens nothing, so that no record lock is dropped.
    fn may_write(&self, fd: BorrowedFd<'_>, effective: bool) -> Result<()> {
        let link = format!("/proc/self/fd/{}", fd.as_raw_fd());
        let flags = if effective { AtFlags::EACCESS } else { AtFlags::empty() };
        fs::accessat(CWD, Path::new(&link), fs::Access::WRITE_OK, flags)
    }

    /// fstatvfs(2).
    fn stat_fs(&self, fd: BorrowedFd<'_>) -> Result<StatVfs> {
        retry_on_intr(|| fs::fstatvfs(fd))
    }

    /// The file system's magic number (fstatfs(2)); ENOSYS in implementations without one.
    fn file_system(&self, fd: BorrowedFd<'_>) -> Result<u64> {
        retry_on_intr(|| fs::fstatfs(fd)).map(|stat| stat.f_type as u64)
    }

    /// Whether the kernel keeps pages of an open, readable file of a FUSE file system, and so may
    /// not see what other clients of that file system write later. `None` for every other file
    /// system, of which this cannot be told.
    fn keeps_pages(&self, fd: BorrowedFd<'_>) -> Result<Option<bool>> {
        match self.file_system(fd) {
            Ok(FUSE) => map::has_pages(fd).map(Some),
            Ok(_) | Err(Errno::NOSYS) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Whether [`Sys::keeps_pages`] is `Some(true)`. Where the kernel keeps no pages, it knows this
    /// by itself: statfs(2), which tells FUSE from other file systems, asks their servers.
    fn may_be_stale(&self, fd: BorrowedFd<'_>) -> Result<bool> {
        Ok(map::has_pages(fd)? && self.keeps_pages(fd)? == Some(true))
    }

    /// linkat(2); EEXIST if `new` exists.
    fn link(&self, old_dir: Dir<'_>, old: &Path, new_dir: Dir<'_>, new: &Path) -> Result<()> {
        fs::linkat(at(old_dir), old, at(new_dir), new, AtFlags::empty())
    }

    /// renameat(2): replaces `new`.
    fn rename(&self, old_dir: Dir<'_>, old: &Path, new_dir: Dir<'_>, new: &Path) -> Result<()> {
        fs::renameat(at(old_dir), old, at(new_dir), new)
    }

    /// renameat2(2) with RENAME_NOREPLACE. EEXIST if `new` exists; EINVAL if the file system does
    /// not support it.
    fn rename_noreplace(&self, old_dir: Dir<'_>, old: &Path, new_dir: Dir<'_>, new: &Path) -> Result<()> {
        fs::renameat_with(at(old_dir), old, at(new_dir), new, RenameFlags::NOREPLACE)
    }

    /// unlinkat(2) of a file.
    fn unlink(&self, dir: Dir<'_>, path: &Path) -> Result<()> {
        fs::unlinkat(at(dir), path, AtFlags::empty())
    }

    /// mkdirat(2).
    fn mkdir(&self, dir: Dir<'_>, path: &Path, mode: Mode) -> Result<()> {
        fs::mkdirat(at(dir), path, mode)
    }

    /// unlinkat(2) of an empty directory.
    fn rmdir(&self, dir: Dir<'_>, path: &Path) -> Result<()> {
        fs::unlinkat(at(dir), path, AtFlags::REMOVEDIR)
    }

    /// readlinkat(2).
    fn read_link(&self, dir: Dir<'_>, path: &Path) -> Result<OsString> {
        fs::readlinkat(at(dir), path, Vec::new()).map(|link| OsString::from_vec(link.into_bytes()))
    }

    /// The entries of an open directory except `.` and `..`, in no particular order. Uses the
    /// descriptor's offset.
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

    /// Waits for an OFD lock of `len` bytes at `start` (`len` 0: to the end of the file). The lock
    /// belongs to the open file description, and so to all duplicates of the descriptor; it ends
    /// when the last of them is closed. The process's [`Patience`](crate::asking::Patience)
    /// determines whether the wait ends with EINTR or ETIMEDOUT.
    fn lock(&self, fd: BorrowedFd<'_>, start: u64, len: u64, kind: LockKind) -> Result<()> {
        asking::lock(fd, start, len, kind)
    }

    /// As [`Sys::lock`], without waiting: false if there is a conflicting lock.
    fn try_lock(&self, fd: BorrowedFd<'_>, start: u64, len: u64, kind: LockKind) -> Result<bool> {
        raw::try_lock(fd, start, len, kind)
    }

    /// Releases the lock.
    fn unlock(&self, fd: BorrowedFd<'_>, start: u64, len: u64) -> Result<()> {
        raw::unlock(fd, start, len)
    }

    /// utimensat(2).
    fn set_times(&self, of: Kind<'_>, times: &Timestamps) -> Result<()> {
        match of {
            Kind::Open(fd) => fs::futimens(fd, times),
            Kind::Named(dir, path) => fs::utimensat(at(dir), path, times, AtFlags::empty()),
        }
    }

    /// chmod(2).
    fn set_mode(&self, of: Kind<'_>, mode: Mode) -> Result<()> {
        match of {
            Kind::Open(fd) => fs::fchmod(fd, mode),
            Kind::Named(dir, path) => fs::chmodat(at(dir), path, mode, AtFlags::empty()),
        }
    }

    /// chown(2); `None` leaves that id unchanged.
    fn set_owner(&self, of: Kind<'_>, user: Option<u32>, group: Option<u32>) -> Result<()> {
        let user = user.map(fs::Uid::from_raw);
        let group = group.map(fs::Gid::from_raw);
        match of {
            Kind::Open(fd) => fs::fchown(fd, user, group),
            Kind::Named(dir, path) => fs::chownat(at(dir), path, user, group, AtFlags::empty()),
        }
    }

    /// getxattr(2): the value of an extended attribute. ENODATA if there is none of that name;
    /// EOPNOTSUPP if the file system does not support it.
    fn xattr(&self, of: Kind<'_>, name: &OsStr) -> Result<Vec<u8>> {
        xattr::get(of, name)
    }

    /// listxattr(2): the names of the extended attributes, in no particular order. File systems
    /// need not list virtual ones (`ceph.*`, `lustre.*`).
    fn list_xattr(&self, of: Kind<'_>) -> Result<Vec<OsString>> {
        xattr::list(of)
    }

    /// setxattr(2): creates or replaces an extended attribute.
    fn set_xattr(&self, of: Kind<'_>, name: &OsStr, value: &[u8]) -> Result<()> {
        xattr::set(of, name, value)
    }

    /// removexattr(2); ENODATA if there is no attribute of that name.
    fn remove_xattr(&self, of: Kind<'_>, name: &OsStr) -> Result<()> {
        xattr::remove(of, name)
    }

    /// CLOCK_MONOTONIC, ns.
    fn now_ns(&self) -> u64 {
        clock_ns(ClockId::Monotonic)
    }

    /// CLOCK_REALTIME, ns since 1970.
    fn wall_ns(&self) -> u64 {
        clock_ns(ClockId::Realtime)
    }

    /// Sleeps until CLOCK_MONOTONIC is `until_ns`, as exactly as the kernel can (meanwhile the
    /// thread's timer slack is 1 ns). Returns at once if that time has passed.
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

    /// The effective user, who owns files that `open` creates.
    fn user(&self) -> u32 {
        rustix::process::geteuid().as_raw()
    }

    /// The effective group, which owns files that `open` creates outside of setgid directories.
    fn group(&self) -> u32 {
        rustix::process::getegid().as_raw()
    }

    /// Fills the buffer with random bytes that are suitable for identifiers.
    fn random(&self, buffer: &mut [u8]) -> Result<()> {
        let mut filled = 0;
        while filled < buffer.len() {
            filled += retry_on_intr(|| getrandom(&mut buffer[filled..], GetRandomFlags::empty()))?;
        }
        Ok(())
    }

    /// Maps the first `words` 64-bit words of a file, shared between processes. The file must be
    /// that long.
    fn map_shared(&self, fd: BorrowedFd<'_>, words: usize) -> Result<SharedMap> {
        SharedMap::new(fd, words)
    }
}

/// The kernel. Has no state.
#[derive(Clone, Copy, Debug, Default)]
pub struct Real;

impl Sys for Real {}

fn at(dir: Dir<'_>) -> BorrowedFd<'_> {
    dir.unwrap_or(CWD)
}

pub(crate) fn clock_ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

impl dyn Sys + '_ {
    /// [`Sys::pread`] into valid memory.
    pub fn read_at(&self, fd: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> Result<usize> {
        // SAFETY: an exclusive reference to valid memory.
        unsafe { self.pread(fd, buffer.as_mut_ptr(), buffer.len(), offset) }
    }

    /// [`Sys::pwrite`] from valid memory.
    pub fn write_at(&self, fd: BorrowedFd<'_>, buffer: &[u8], offset: u64) -> Result<usize> {
        // SAFETY: valid memory, which the reference keeps unchanged.
        unsafe { self.pwrite(fd, buffer.as_ptr(), buffer.len(), offset) }
    }

    /// Writes all of `buffer`.
    ///
    /// # Errors
    /// As pwrite(2); ENOSPC if a write transfers no bytes. Leading bytes may have been written.
    pub fn write_all_at(&self, fd: BorrowedFd<'_>, mut buffer: &[u8], mut offset: u64) -> Result<()> {
        while !buffer.is_empty() {
            let done = self.write_at(fd, buffer, offset)?;
            if done == 0 {
                return Err(Errno::NOSPC);
            }
            buffer = &buffer[done..];
            offset += done as u64;
        }
        Ok(())
    }

    /// Reads the first bytes of a file, at most `max`.
    pub fn read_start(&self, fd: BorrowedFd<'_>, max: usize) -> Result<Vec<u8>> {
        self.read_from(fd, 0, max)
    }

    /// Reads the bytes of a file from `start` on, at most `max`.
    pub fn read_from(&self, fd: BorrowedFd<'_>, start: u64, max: usize) -> Result<Vec<u8>> {
        let mut text = Vec::new();
        let mut chunk = vec![0; max.min(CHUNK_BYTES)];
        while text.len() < max {
            let want = chunk.len().min(max - text.len());
            let done = self.read_at(fd, &mut chunk[..want], start + text.len() as u64)?;
            if done == 0 {
                break;
            }
            text.extend_from_slice(&chunk[..done]);
        }
        Ok(text)
    }
}
