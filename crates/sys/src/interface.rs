//! The interface of the runtime to the operating system.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::path::{Component, Path};
use std::sync::Arc;

use rustix::fs::{FileType, Mode, OFlags, SeekFrom, Stat, StatVfs, Timestamps};

use crate::{Errno, Fd, Identity, Result, SharedMap};

/// The directory that a relative path starts from; `None` for the process's working directory.
pub type Dir<'a> = Option<BorrowedFd<'a>>;

/// A shared reference to the interface.
pub type SysRef = Arc<dyn Sys>;

/// A buffer in the kernel's form (`struct iovec`). Only the kernel dereferences the pointer.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct IoVec {
    /// Address of the first byte.
    pub base: *mut u8,
    /// Length, bytes.
    pub len: usize,
}

// SAFETY: safe code cannot dereference the pointer.
unsafe impl Send for IoVec {}
// SAFETY: as above.
unsafe impl Sync for IoVec {}

/// Kind of an OFD lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    /// Can be held together with other shared locks. The descriptor must be open for reading.
    Shared,
    /// Excludes all other locks. The descriptor must be open for writing.
    Exclusive,
}

/// The file of a call that concerns times, mode, owner or extended attributes.
#[derive(Clone, Copy, Debug)]
pub enum Kind<'a> {
    /// An open file.
    Open(BorrowedFd<'a>),
    /// A name; symbolic links are followed.
    Named(Dir<'a>, &'a Path),
}

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The name in the directory.
    pub name: OsString,
    /// The file's type; `Unknown` if the file system does not report it.
    pub kind: FileType,
}

/// An alignment in bytes that is sufficient for direct I/O on all devices in use.
pub const DIRECT_ALIGNMENT_MOST: u64 = 4096;

/// The operating system. Object safe. Every method may be called from several threads at the same
/// time, and after fork.
///
/// A path is relative to `dir` unless it is absolute. Except for the blocking [`Sys::lock`], every
/// call completes or fails; EINTR is retried inside. `open` adds O_CLOEXEC.
pub trait Sys: Send + Sync {
    /// Whether descriptors are plain kernel descriptors that may also be used without this
    /// interface (io_uring, mmap). False for a model that observes all operations.
    fn is_real(&self) -> bool;

    /// openat(2); the descriptor is private.
    fn open(&self, dir: Dir<'_>, path: &Path, flags: OFlags, mode: Mode) -> Result<Fd>;

    /// openat2(2) with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS: opens a file below `dir`, and
    /// follows no link. For names that other users may have made. Fails with ELOOP or ENOTDIR for a
    /// link anywhere in `path`, and with EXDEV for a path that leaves `dir`. Does not wait when it
    /// opens a FIFO. On kernels before 5.6 it walks `path` component by component.
    fn open_beneath(&self, dir: BorrowedFd<'_>, path: &Path, flags: OFlags, mode: Mode) -> Result<Fd> {
        beneath(self, dir, path, flags, mode)
    }

    /// fstatat(2) of the file that [`Sys::open_beneath`] would open.
    fn stat_beneath(&self, dir: BorrowedFd<'_>, path: &Path) -> Result<Stat> {
        self.stat(self.open_beneath(dir, path, OFlags::PATH, Mode::empty())?.as_fd())
    }

    /// The identity of the open file, which distinguishes it from every other file, and from its
    /// copies. Fields that the file system does not provide are missing.
    fn identity(&self, _fd: BorrowedFd<'_>) -> Result<Identity> {
        Ok(Identity::default())
    }

    /// Whether the file with this identity still exists in the file system of the open directory
    /// `dir`. `None` if that cannot be determined: it is another file system, the file system has
    /// no handles, or the process lacks CAP_DAC_READ_SEARCH.
    fn exists(&self, _dir: BorrowedFd<'_>, _identity: &Identity) -> Result<Option<bool>> {
        Ok(None)
    }

    /// openat(2) for the application. The descriptor has the lowest free number, is not private,
    /// and is close-on-exec only if `flags` contain that.
    fn open_public(&self, dir: Dir<'_>, path: &Path, flags: OFlags, mode: Mode) -> Result<RawFd> {
        let fd = self.open(dir, path, flags, mode)?;
        crate::fd::duplicate_public(fd.as_fd(), flags.contains(OFlags::CLOEXEC))
    }

    /// pread(2); EFAULT for an invalid buffer.
    ///
    /// # Safety
    /// No Rust reference to the `len` bytes at `buffer` is alive. They need not be valid memory.
    unsafe fn pread(&self, fd: BorrowedFd<'_>, buffer: *mut u8, len: usize, offset: u64) -> Result<usize>;

    /// pwrite(2); EFAULT for an invalid buffer.
    ///
    /// # Safety
    /// No mutable Rust reference to the `len` bytes at `buffer` is in use. They need not be valid
    /// memory.
    unsafe fn pwrite(&self, fd: BorrowedFd<'_>, buffer: *const u8, len: usize, offset: u64) -> Result<usize>;

    /// preadv(2) with at most [`crate::raw::IOV_MAX`] vectors.
    ///
    /// # Safety
    /// As [`Sys::pread`] for every vector.
    unsafe fn preadv(&self, fd: BorrowedFd<'_>, vectors: &[IoVec], offset: u64) -> Result<usize>;

    /// preadv2(2) with RWF_NOWAIT: reads bytes that are in the page cache. EAGAIN if the first byte
    /// is not in there; EOPNOTSUPP if the file system does not support this.
    ///
    /// # Safety
    /// As [`Sys::preadv`].
    unsafe fn preadv_cached(&self, _fd: BorrowedFd<'_>, _vectors: &[IoVec], _offset: u64) -> Result<usize> {
        Err(crate::Errno::OPNOTSUPP)
    }

    /// pwritev(2) with at most [`crate::raw::IOV_MAX`] vectors.
    ///
    /// # Safety
    /// As [`Sys::pwrite`] for every vector.
    unsafe fn pwritev(&self, fd: BorrowedFd<'_>, vectors: &[IoVec], offset: u64) -> Result<usize>;

    /// lseek(2).
    fn seek(&self, fd: BorrowedFd<'_>, to: SeekFrom) -> Result<u64>;

    /// posix_fadvise(2) with POSIX_FADV_DONTNEED: removes clean pages of the file from the page
    /// cache.
    fn drop_cached(&self, _fd: BorrowedFd<'_>) -> Result<()> {
        Ok(())
    }

    /// Whether the file is open or mapped on this node through another open file description, of
    /// any process. The kernel reveals this because it grants a write lease only if there is no
    /// other (fcntl(2), F_SETLEASE). The lease is released at once.
    ///
    /// # Errors
    /// The state cannot be determined: EINVAL or EOPNOTSUPP if the file system has no leases,
    /// EACCES if the file is another user's.
    fn is_open_elsewhere(&self, _fd: BorrowedFd<'_>) -> Result<bool> {
        Err(crate::Errno::OPNOTSUPP)
    }

    /// The alignment in bytes that memory, offsets and lengths of direct I/O on this descriptor
    /// must have: statx(2) with STATX_DIOALIGN. If the file system does not report it, the largest
    /// block size of devices in use.
    fn direct_alignment(&self, _fd: BorrowedFd<'_>) -> u64 {
        DIRECT_ALIGNMENT_MOST
    }

    /// ftruncate(2).
    fn truncate(&self, fd: BorrowedFd<'_>, size: u64) -> Result<()>;

    /// Makes the file at least `size` bytes long by fallocate(2) of the last byte. In any race with
    /// writers and other calls that extend the file, this never shortens the file or changes a
    /// byte. EOPNOTSUPP if the file system does not support it.
    fn grow(&self, fd: BorrowedFd<'_>, size: u64) -> Result<()>;

    /// fallocate(2): allocates space for `len` bytes at `offset`, and extends the file to their end
    /// unless `keep_size` is set.
    fn allocate(&self, fd: BorrowedFd<'_>, offset: u64, len: u64, keep_size: bool) -> Result<()> {
        let _ = len;
        if keep_size { Ok(()) } else { self.grow(fd, offset.saturating_add(len)) }
    }

    /// fallocate(2) with PUNCH_HOLE: makes the bytes read as zeros and frees whole blocks of them;
    /// the size of the file stays. EOPNOTSUPP if the file system does not support it.
    fn punch_hole(&self, _fd: BorrowedFd<'_>, _offset: u64, _len: u64) -> Result<()> {
        Err(crate::Errno::OPNOTSUPP)
    }

    /// fsync(2). For a directory, syncs its entries.
    fn sync(&self, fd: BorrowedFd<'_>) -> Result<()>;

    /// syncfs(2): syncs the whole file system of the open file.
    fn sync_file_system(&self, fd: BorrowedFd<'_>) -> Result<()> {
        self.sync(fd)
    }

    /// fdatasync(2).
    fn sync_data(&self, fd: BorrowedFd<'_>) -> Result<()>;

    /// fstat(2).
    fn stat(&self, fd: BorrowedFd<'_>) -> Result<Stat>;

    /// stat(2), or lstat(2) if `follow` is false.
    fn stat_at(&self, dir: Dir<'_>, path: &Path, follow: bool) -> Result<Stat>;

    /// Whether this process may open the file for writing, as its effective user (faccessat2(2)
    /// with AT_EACCESS) or as its real user. Opens nothing, so that no record lock is dropped.
    fn may_write(&self, _fd: BorrowedFd<'_>, _effective: bool) -> Result<()> {
        Ok(())
    }

    /// fstatvfs(2).
    fn stat_fs(&self, fd: BorrowedFd<'_>) -> Result<StatVfs>;

    /// The file system's magic number (fstatfs(2)); ENOSYS in implementations without one.
    fn file_system(&self, _fd: BorrowedFd<'_>) -> Result<u64> {
        Err(crate::Errno::NOSYS)
    }

    /// linkat(2); EEXIST if `new` exists.
    fn link(&self, old_dir: Dir<'_>, old: &Path, new_dir: Dir<'_>, new: &Path) -> Result<()>;

    /// renameat(2): replaces `new`.
    fn rename(&self, old_dir: Dir<'_>, old: &Path, new_dir: Dir<'_>, new: &Path) -> Result<()>;

    /// renameat2(2) with RENAME_NOREPLACE. EEXIST if `new` exists; EINVAL if the file system does
    /// not support it.
    fn rename_noreplace(&self, old_dir: Dir<'_>, old: &Path, new_dir: Dir<'_>, new: &Path) -> Result<()>;

    /// unlinkat(2) of a file.
    fn unlink(&self, dir: Dir<'_>, path: &Path) -> Result<()>;

    /// mkdirat(2).
    fn mkdir(&self, dir: Dir<'_>, path: &Path, mode: Mode) -> Result<()>;

    /// unlinkat(2) of an empty directory.
    fn rmdir(&self, dir: Dir<'_>, path: &Path) -> Result<()>;

    /// readlinkat(2).
    fn read_link(&self, dir: Dir<'_>, path: &Path) -> Result<OsString>;

    /// The entries of an open directory except `.` and `..`, in no particular order. Uses the
    /// descriptor's offset.
    fn list(&self, dir: BorrowedFd<'_>) -> Result<Vec<Listed>>;

    /// Waits for an OFD lock of `len` bytes at `start` (`len` 0: to the end of the file). The lock
    /// belongs to the open file description, and so to all duplicates of the descriptor; it ends
    /// when the last of them is closed. The process's [`Patience`](crate::asking::Patience)
    /// determines whether the wait ends with EINTR or ETIMEDOUT.
    fn lock(&self, fd: BorrowedFd<'_>, start: u64, len: u64, kind: LockKind) -> Result<()>;

    /// As [`Sys::lock`], without waiting: false if there is a conflicting lock.
    fn try_lock(&self, fd: BorrowedFd<'_>, start: u64, len: u64, kind: LockKind) -> Result<bool>;

    /// Releases the lock.
    fn unlock(&self, fd: BorrowedFd<'_>, start: u64, len: u64) -> Result<()>;

    /// utimensat(2).
    fn set_times(&self, of: Kind<'_>, times: &Timestamps) -> Result<()>;

    /// chmod(2).
    fn set_mode(&self, of: Kind<'_>, mode: Mode) -> Result<()>;

    /// chown(2); `None` leaves that id unchanged.
    fn set_owner(&self, of: Kind<'_>, user: Option<u32>, group: Option<u32>) -> Result<()>;

    /// getxattr(2): the value of an extended attribute. ENODATA if there is none of that name;
    /// EOPNOTSUPP if the file system does not support it.
    fn xattr(&self, _of: Kind<'_>, _name: &OsStr) -> Result<Vec<u8>> {
        Err(crate::Errno::OPNOTSUPP)
    }

    /// listxattr(2): the names of the extended attributes, in no particular order. File systems
    /// need not list virtual ones (`ceph.*`, `lustre.*`).
    fn list_xattr(&self, _of: Kind<'_>) -> Result<Vec<OsString>> {
        Err(crate::Errno::OPNOTSUPP)
    }

    /// setxattr(2): creates or replaces an extended attribute.
    fn set_xattr(&self, _of: Kind<'_>, _name: &OsStr, _value: &[u8]) -> Result<()> {
        Err(crate::Errno::OPNOTSUPP)
    }

    /// removexattr(2); ENODATA if there is no attribute of that name.
    fn remove_xattr(&self, _of: Kind<'_>, _name: &OsStr) -> Result<()> {
        Err(crate::Errno::OPNOTSUPP)
    }

    /// CLOCK_MONOTONIC, ns.
    fn now_ns(&self) -> u64;

    /// CLOCK_REALTIME, ns since 1970.
    fn wall_ns(&self) -> u64;

    /// Sleeps until CLOCK_MONOTONIC is `until_ns`, as exactly as the kernel can (meanwhile the
    /// thread's timer slack is 1 ns). Returns at once if that time has passed.
    fn sleep_until_ns(&self, until_ns: u64);

    /// The effective user, who owns files that `open` creates.
    fn user(&self) -> u32;

    /// Writes a line to descriptor 2, and ignores failure.
    fn say(&self, line: &[u8]);

    /// Fills the buffer with random bytes that are suitable for identifiers.
    fn random(&self, buffer: &mut [u8]) -> Result<()>;

    /// Maps the first `words` 64-bit words of a file, shared between processes. The file must be
    /// that long.
    fn map_shared(&self, fd: BorrowedFd<'_>, words: usize) -> Result<SharedMap>;
}

/// [`Sys::open_beneath`] without openat2(2).
pub(crate) fn beneath<S: Sys + ?Sized>(
    sys: &S,
    dir: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    mode: Mode,
) -> Result<Fd> {
    let mut names = path.components().peekable();
    let mut at: Option<Fd> = None;
    while let Some(name) = names.next() {
        let Component::Normal(name) = name else { return Err(Errno::XDEV) };
        let from = at.as_ref().map_or(dir, Fd::as_fd);
        if names.peek().is_none() {
            return sys.open(Some(from), Path::new(name), flags | OFlags::NOFOLLOW, mode);
        }
        let step = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        at = Some(sys.open(Some(from), Path::new(name), step, Mode::empty())?);
    }
    Err(Errno::NOENT)
}

impl dyn Sys + '_ {
    /// [`Sys::pread`] into valid memory.
    ///
    /// # Errors
    /// As pread(2).
    pub fn read_at(&self, fd: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> Result<usize> {
        // SAFETY: an exclusive reference to valid memory.
        unsafe { self.pread(fd, buffer.as_mut_ptr(), buffer.len(), offset) }
    }

    /// [`Sys::pwrite`] from valid memory.
    ///
    /// # Errors
    /// As pwrite(2).
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
                return Err(crate::Errno::NOSPC);
            }
            buffer = &buffer[done..];
            offset += done as u64;
        }
        Ok(())
    }

    /// Reads the first bytes of a file, at most `max`.
    ///
    /// # Errors
    /// As pread(2).
    pub fn read_start(&self, fd: BorrowedFd<'_>, max: usize) -> Result<Vec<u8>> {
        let mut text = Vec::new();
        let mut chunk = [0; 4096];
        while text.len() < max {
            let want = chunk.len().min(max - text.len());
            let done = self.read_at(fd, &mut chunk[..want], text.len() as u64)?;
            if done == 0 {
                break;
            }
            text.extend_from_slice(&chunk[..done]);
        }
        Ok(text)
    }
}
