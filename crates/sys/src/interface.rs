//! The interface of everything that the runtime asks of the operating system.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::path::{Component, Path};
use std::sync::Arc;

use rustix::fs::{FileType, Mode, OFlags, SeekFrom, Stat, StatVfs, Timestamps};

use crate::{Errno, Fd, Identity, Result, SharedMap};

/// The directory that a relative path starts from; `None`: the process's working directory.
pub type Dir<'a> = Option<BorrowedFd<'a>>;

/// How everybody holds the interface.
pub type SysRef = Arc<dyn Sys>;

/// A buffer as the kernel takes it (`struct iovec`). Nobody but the kernel follows the pointer.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct IoVec {
    /// First byte.
    pub base: *mut u8,
    /// Bytes.
    pub len: usize,
}

// SAFETY: a pointer without the right to follow it.
unsafe impl Send for IoVec {}
// SAFETY: as above.
unsafe impl Sync for IoVec {}

/// Kind of an OFD lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    /// With others of its kind; the descriptor is open for reading.
    Shared,
    /// Alone; the descriptor is open for writing.
    Exclusive,
}

/// Which file a call about times, mode, owner or extended attributes is for.
#[derive(Clone, Copy, Debug)]
pub enum Kind<'a> {
    /// An open file.
    Open(BorrowedFd<'a>),
    /// A name (links are followed).
    Named(Dir<'a>, &'a Path),
}

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub name: OsString,
    /// What it is; `Unknown` where the file system does not tell.
    pub kind: FileType,
}

/// Direct I/O aligned to this many bytes is aligned enough for all devices in use.
pub const DIRECT_ALIGNMENT_MOST: u64 = 4096;

/// The operating system. Object safe; every method may be called from several threads at once, and after fork.
///
/// Paths are relative to `dir` unless absolute. All calls but the blocking [`Sys::lock`] fail or finish; EINTR is
/// retried inside. `open` adds O_CLOEXEC.
pub trait Sys: Send + Sync {
    /// Whether descriptors are plain kernel descriptors that may also be used past this interface (io_uring, mmap).
    /// False for a model that watches what is done.
    fn is_real(&self) -> bool;

    /// openat(2), as a private descriptor.
    fn open(&self, dir: Dir<'_>, path: &Path, flags: OFlags, mode: Mode) -> Result<Fd>;

    /// openat2(2) with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS: a file below `dir` that no link
    /// leads to. For names that other users may have made: ELOOP or ENOTDIR for a link anywhere in
    /// `path`, EXDEV for a path that leaves `dir`. A FIFO does not make it wait. Kernels before 5.6
    /// walk `path` step by step.
    fn open_beneath(&self, dir: BorrowedFd<'_>, path: &Path, flags: OFlags, mode: Mode) -> Result<Fd> {
        beneath(self, dir, path, flags, mode)
    }

    /// fstatat(2) of what [`Sys::open_beneath`] would open.
    fn stat_beneath(&self, dir: BorrowedFd<'_>, path: &Path) -> Result<Stat> {
        self.stat(self.open_beneath(dir, path, OFlags::PATH, Mode::empty())?.as_fd())
    }

    /// What tells the open file from every other one, and from its copies; parts that the file
    /// system cannot tell are missing.
    fn identity(&self, _fd: BorrowedFd<'_>) -> Result<Identity> {
        Ok(Identity::default())
    }

    /// Whether the file with this identity still exists, in the file system of the open directory
    /// `dir`; `None`: cannot be told (it is another file system, it has no handles, or the process
    /// lacks CAP_DAC_READ_SEARCH).
    fn exists(&self, _dir: BorrowedFd<'_>, _identity: &Identity) -> Result<Option<bool>> {
        Ok(None)
    }

    /// openat(2) for the application: the lowest free number, not private, close-on-exec only if `flags` say so.
    fn open_public(&self, dir: Dir<'_>, path: &Path, flags: OFlags, mode: Mode) -> Result<RawFd> {
        let fd = self.open(dir, path, flags, mode)?;
        crate::fd::duplicate_public(fd.as_fd(), flags.contains(OFlags::CLOEXEC))
    }

    /// pread(2); EFAULT for an invalid buffer.
    ///
    /// # Safety
    /// No Rust reference to the `len` bytes at `buffer` is alive; they need not be valid memory.
    unsafe fn pread(&self, fd: BorrowedFd<'_>, buffer: *mut u8, len: usize, offset: u64) -> Result<usize>;

    /// pwrite(2); EFAULT for an invalid buffer.
    ///
    /// # Safety
    /// No mutable Rust reference to the `len` bytes at `buffer` is in use; they need not be valid memory.
    unsafe fn pwrite(&self, fd: BorrowedFd<'_>, buffer: *const u8, len: usize, offset: u64) -> Result<usize>;

    /// preadv(2), at most [`crate::raw::IOV_MAX`] vectors.
    ///
    /// # Safety
    /// As [`Sys::pread`] for every vector.
    unsafe fn preadv(&self, fd: BorrowedFd<'_>, vectors: &[IoVec], offset: u64) -> Result<usize>;

    /// preadv2(2) with RWF_NOWAIT: reads what is in the page cache. EAGAIN when the first byte is not; EOPNOTSUPP where the
    /// file system cannot tell.
    ///
    /// # Safety
    /// As [`Sys::preadv`].
    unsafe fn preadv_cached(&self, _fd: BorrowedFd<'_>, _vectors: &[IoVec], _offset: u64) -> Result<usize> {
        Err(crate::Errno::OPNOTSUPP)
    }

    /// pwritev(2), at most [`crate::raw::IOV_MAX`] vectors.
    ///
    /// # Safety
    /// As [`Sys::pwrite`] for every vector.
    unsafe fn pwritev(&self, fd: BorrowedFd<'_>, vectors: &[IoVec], offset: u64) -> Result<usize>;

    /// lseek(2).
    fn seek(&self, fd: BorrowedFd<'_>, to: SeekFrom) -> Result<u64>;

    /// posix_fadvise(2) with POSIX_FADV_DONTNEED: clean pages of the file leave the page cache.
    fn drop_cached(&self, _fd: BorrowedFd<'_>) -> Result<()> {
        Ok(())
    }

    /// Whether the file is open or mapped on this node by way of another open file description, of
    /// any process. The kernel knows, as it grants a write lease to none else (fcntl(2),
    /// F_SETLEASE); the lease is given back at once.
    ///
    /// # Errors
    /// It cannot be known: EINVAL, EOPNOTSUPP where the file system has no leases, EACCES where the
    /// file is another user's.
    fn is_open_elsewhere(&self, _fd: BorrowedFd<'_>) -> Result<bool> {
        Err(crate::Errno::OPNOTSUPP)
    }

    /// What memory, offsets and lengths of direct I/O on this descriptor must be multiples of, bytes: statx(2) with
    /// STATX_DIOALIGN; where the file system does not say, the largest block size of devices in use.
    fn direct_alignment(&self, _fd: BorrowedFd<'_>) -> u64 {
        DIRECT_ALIGNMENT_MOST
    }

    /// ftruncate(2).
    fn truncate(&self, fd: BorrowedFd<'_>, size: u64) -> Result<()>;

    /// Makes the file at least `size` bytes long by fallocate(2) of the last byte: under any race with writers and
    /// other growers it never shortens the file and never changes a byte. EOPNOTSUPP where the file system cannot.
    fn grow(&self, fd: BorrowedFd<'_>, size: u64) -> Result<()>;

    /// fallocate(2): `len` bytes at `offset` get their space now, and the file grows to their end unless `keep_size`.
    fn allocate(&self, fd: BorrowedFd<'_>, offset: u64, len: u64, keep_size: bool) -> Result<()> {
        let _ = len;
        if keep_size { Ok(()) } else { self.grow(fd, offset.saturating_add(len)) }
    }

    /// fallocate(2) with PUNCH_HOLE: the bytes read as zeros, and their whole blocks are given back; the size stays. EOPNOTSUPP
    /// where the file system cannot.
    fn punch_hole(&self, _fd: BorrowedFd<'_>, _offset: u64, _len: u64) -> Result<()> {
        Err(crate::Errno::OPNOTSUPP)
    }

    /// fsync(2); of a directory: its entries.
    fn sync(&self, fd: BorrowedFd<'_>) -> Result<()>;

    /// syncfs(2): everything in the file system of the open file.
    fn sync_file_system(&self, fd: BorrowedFd<'_>) -> Result<()> {
        self.sync(fd)
    }

    /// fdatasync(2).
    fn sync_data(&self, fd: BorrowedFd<'_>) -> Result<()>;

    /// fstat(2).
    fn stat(&self, fd: BorrowedFd<'_>) -> Result<Stat>;

    /// stat(2), or with `follow` false lstat(2).
    fn stat_at(&self, dir: Dir<'_>, path: &Path, follow: bool) -> Result<Stat>;

    /// Whether this process may open the file for writing: as its effective user (faccessat2(2)
    /// with AT_EACCESS), or as its real one. Opens nothing, so that no record lock is dropped.
    fn may_write(&self, _fd: BorrowedFd<'_>, _effective: bool) -> Result<()> {
        Ok(())
    }

    /// fstatvfs(2).
    fn stat_fs(&self, fd: BorrowedFd<'_>) -> Result<StatVfs>;

    /// The file system's magic number (fstatfs(2)); ENOSYS where there is none.
    fn file_system(&self, _fd: BorrowedFd<'_>) -> Result<u64> {
        Err(crate::Errno::NOSYS)
    }

    /// linkat(2); EEXIST if `new` exists.
    fn link(&self, old_dir: Dir<'_>, old: &Path, new_dir: Dir<'_>, new: &Path) -> Result<()>;

    /// renameat(2): replaces `new`.
    fn rename(&self, old_dir: Dir<'_>, old: &Path, new_dir: Dir<'_>, new: &Path) -> Result<()>;

    /// renameat2(2) with RENAME_NOREPLACE; EEXIST if `new` exists, EINVAL where the file system cannot.
    fn rename_noreplace(&self, old_dir: Dir<'_>, old: &Path, new_dir: Dir<'_>, new: &Path) -> Result<()>;

    /// unlinkat(2) of a file.
    fn unlink(&self, dir: Dir<'_>, path: &Path) -> Result<()>;

    /// mkdirat(2).
    fn mkdir(&self, dir: Dir<'_>, path: &Path, mode: Mode) -> Result<()>;

    /// unlinkat(2) of an empty directory.
    fn rmdir(&self, dir: Dir<'_>, path: &Path) -> Result<()>;

    /// readlinkat(2).
    fn read_link(&self, dir: Dir<'_>, path: &Path) -> Result<OsString>;

    /// The entries of an open directory but `.` and `..`, in no order. Uses the descriptor's offset.
    fn list(&self, dir: BorrowedFd<'_>) -> Result<Vec<Listed>>;

    /// Waits for an OFD lock of `len` bytes at `start` (`len` 0: to the end). It belongs to the
    /// open file description, so to all its duplicates, and goes with the last of them. EINTR,
    /// ETIMEDOUT: as the process waits ([`crate::asking`]).
    fn lock(&self, fd: BorrowedFd<'_>, start: u64, len: u64, kind: LockKind) -> Result<()>;

    /// As [`Sys::lock`], but does not wait: false when somebody else has it.
    fn try_lock(&self, fd: BorrowedFd<'_>, start: u64, len: u64, kind: LockKind) -> Result<bool>;

    /// Gives the lock back.
    fn unlock(&self, fd: BorrowedFd<'_>, start: u64, len: u64) -> Result<()>;

    /// utimensat(2).
    fn set_times(&self, of: Kind<'_>, times: &Timestamps) -> Result<()>;

    /// chmod(2).
    fn set_mode(&self, of: Kind<'_>, mode: Mode) -> Result<()>;

    /// chown(2); `None` leaves that one.
    fn set_owner(&self, of: Kind<'_>, user: Option<u32>, group: Option<u32>) -> Result<()>;

    /// getxattr(2): the value of an extended attribute. ENODATA: there is none of that name; EOPNOTSUPP: the file system has no such.
    fn xattr(&self, _of: Kind<'_>, _name: &OsStr) -> Result<Vec<u8>> {
        Err(crate::Errno::OPNOTSUPP)
    }

    /// listxattr(2): their names, in no order. File systems need not list those that they make up (`ceph.*`, `lustre.*`).
    fn list_xattr(&self, _of: Kind<'_>) -> Result<Vec<OsString>> {
        Err(crate::Errno::OPNOTSUPP)
    }

    /// setxattr(2): makes or replaces one.
    fn set_xattr(&self, _of: Kind<'_>, _name: &OsStr, _value: &[u8]) -> Result<()> {
        Err(crate::Errno::OPNOTSUPP)
    }

    /// removexattr(2); ENODATA if there is none of that name.
    fn remove_xattr(&self, _of: Kind<'_>, _name: &OsStr) -> Result<()> {
        Err(crate::Errno::OPNOTSUPP)
    }

    /// CLOCK_MONOTONIC, ns.
    fn now_ns(&self) -> u64;

    /// CLOCK_REALTIME, ns since 1970.
    fn wall_ns(&self) -> u64;

    /// Returns at CLOCK_MONOTONIC `until_ns`, as exactly as the kernel can (the thread's timer slack is 1 ns
    /// meanwhile); at once when that is past.
    fn sleep_until_ns(&self, until_ns: u64);

    /// The effective user, who owns what `open` creates.
    fn user(&self) -> u32;

    /// Writes a line to descriptor 2, ignoring failure.
    fn say(&self, line: &[u8]);

    /// Fills the buffer with random bytes fit for identifiers.
    fn random(&self, buffer: &mut [u8]) -> Result<()>;

    /// Maps the first `words` 64-bit words of a file shared between processes. The file must be that long.
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

impl dyn Sys {
    /// [`Sys::pread`] into memory that is there.
    ///
    /// # Errors
    /// As pread(2).
    pub fn read_at(&self, fd: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> Result<usize> {
        // SAFETY: exclusive, valid.
        unsafe { self.pread(fd, buffer.as_mut_ptr(), buffer.len(), offset) }
    }

    /// [`Sys::pwrite`] from memory that is there.
    ///
    /// # Errors
    /// As pwrite(2).
    pub fn write_at(&self, fd: BorrowedFd<'_>, buffer: &[u8], offset: u64) -> Result<usize> {
        // SAFETY: valid, and not changed meanwhile.
        unsafe { self.pwrite(fd, buffer.as_ptr(), buffer.len(), offset) }
    }

    /// Writes all of `buffer`.
    ///
    /// # Errors
    /// As pwrite(2); ENOSPC when the file takes no more. A part may have been written.
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

    /// The first bytes of a file, at most `max`.
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
