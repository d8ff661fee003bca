//! System calls on memory that may not exist, and others that have no safe form in rustix.
//!
//! A buffer of the application may be an invalid pointer. The kernel then answers EFAULT, and the
//! library has to do the same. So buffers are passed as raw pointers, which only the kernel
//! dereferences.
//!
//! The calls are made in place ([`call`]) and leave `errno` unchanged.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::OnceLock;

use rustix::io::Errno;

use crate::{IoVec, LockKind, Result, call};

/// Largest number of vectors in one call.
pub const IOV_MAX: usize = 1024;

/// Makes a system call. The function that makes it states the requirements of that call.
macro_rules! syscall {
    ($number:expr, $($argument:expr),+ $(,)?) => {
        // SAFETY: above.
        unsafe { call($number, [$($argument as usize),+]) }
    };
}

/// pread(2). EFAULT for an invalid buffer.
///
/// # Safety
/// No Rust reference to the buffer is alive.
#[inline]
pub unsafe fn pread(fd: BorrowedFd<'_>, buffer: *mut u8, len: usize, offset: u64) -> Result<usize> {
    syscall!(libc::SYS_pread64, fd.as_raw_fd(), buffer, len, offset)
}

/// pwrite(2). EFAULT for an invalid buffer.
///
/// # Safety
/// No mutable Rust reference to the buffer is in use.
#[inline]
pub unsafe fn pwrite(fd: BorrowedFd<'_>, buffer: *const u8, len: usize, offset: u64) -> Result<usize> {
    syscall!(libc::SYS_pwrite64, fd.as_raw_fd(), buffer, len, offset)
}

/// preadv2(2) with its flags (`RWF_*`); at most [`IOV_MAX`] vectors.
///
/// # Safety
/// As [`pread`], for every vector.
pub unsafe fn preadv(fd: BorrowedFd<'_>, vectors: &[IoVec], offset: u64, flags: u32) -> Result<usize> {
    // The kernel takes the offset in two words. On 64-bit systems the first one holds all of it.
    syscall!(libc::SYS_preadv2, fd.as_raw_fd(), vectors.as_ptr(), vectors.len(), offset, 0u64, flags)
}

/// pwritev2(2) with its flags (`RWF_*`); at most [`IOV_MAX`] vectors.
///
/// # Safety
/// As [`pwrite`], for every vector.
pub unsafe fn pwritev(fd: BorrowedFd<'_>, vectors: &[IoVec], offset: u64, flags: u32) -> Result<usize> {
    syscall!(libc::SYS_pwritev2, fd.as_raw_fd(), vectors.as_ptr(), vectors.len(), offset, 0u64, flags)
}

/// Whether another open file description of this node refers to the file:
/// [`crate::Sys::is_open_elsewhere`].
pub fn is_open_elsewhere(fd: BorrowedFd<'_>) -> Result<bool> {
    const F_SETSIG: libc::c_int = 10;
    let fd = fd.as_raw_fd();
    // If a process opens the file in between, the kernel signals this process. SIGURG is ignored
    // unless a program handles it.
    syscall!(libc::SYS_fcntl, fd, F_SETSIG, libc::SIGURG)?;
    match syscall!(libc::SYS_fcntl, fd, libc::F_SETLEASE, libc::F_WRLCK) {
        Ok(_) => syscall!(libc::SYS_fcntl, fd, libc::F_SETLEASE, libc::F_UNLCK).map(|_| false),
        Err(Errno::AGAIN) => Ok(true),
        Err(errno) => Err(errno),
    }
}

/// The function that may take lines in place of descriptor 2.
static TAKER: OnceLock<fn(&[u8]) -> bool> = OnceLock::new();

/// Makes [`say`] pass lines to `take` first, which returns whether it has taken the line.
pub fn say_through(take: fn(&[u8]) -> bool) {
    let _ = TAKER.set(take);
}

/// Writes a line to descriptor 2 in one call, bypassing stdio. A line that cannot be written is
/// lost.
pub fn say(line: &[u8]) {
    if TAKER.get().is_some_and(|take| take(line)) {
        return;
    }
    let _ = syscall!(libc::SYS_write, 2, line.as_ptr(), line.len());
}

/// Largest size of files that this process may write, bytes (RLIMIT_FSIZE; a longer write raises
/// SIGXFSZ). `None` if there is no limit.
pub fn file_size_limit() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Fsize).current
}

/// Fills memory with zeros like a read(2): the kernel writes, so invalid memory gives EFAULT.
/// Without /dev/zero this function writes to the memory itself.
///
/// # Safety
/// No Rust reference to the buffer is alive.
pub unsafe fn zero(buffer: *mut u8, len: usize) -> Result<()> {
    if len == 0 {
        return Ok(());
    }
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    let Ok(source) = syscall!(libc::SYS_openat, libc::AT_FDCWD, c"/dev/zero".as_ptr(), flags, 0) else {
        // SAFETY: as the caller promises; in this case invalid memory is a fault of the caller.
        unsafe { buffer.write_bytes(0, len) };
        return Ok(());
    };
    let mut done = 0;
    let mut result = Ok(());
    while done < len && result.is_ok() {
        match syscall!(libc::SYS_read, source, buffer.wrapping_add(done), len - done) {
            Ok(more) => done += more,
            Err(Errno::INTR) => {}
            Err(error) => result = Err(error),
        }
    }
    let _ = syscall!(libc::SYS_close, source);
    result
}

/// `struct file_handle` with space for the largest handle.
#[repr(C)]
pub(crate) struct FileHandle {
    pub len: u32,
    pub kind: i32,
    pub bytes: [u8; FileHandle::MAX],
}

impl FileHandle {
    /// MAX_HANDLE_SZ.
    pub const MAX: usize = 128;
}

/// name_to_handle_at(2) of an open file.
pub(crate) fn handle_of(fd: BorrowedFd<'_>) -> Result<FileHandle> {
    let mut handle = FileHandle { len: FileHandle::MAX as u32, kind: 0, bytes: [0; FileHandle::MAX] };
    let mut mount = 0i32;
    let (to, mount) = (&raw mut handle, &raw mut mount);
    let path = c"".as_ptr();
    syscall!(libc::SYS_name_to_handle_at, fd.as_raw_fd(), path, to, mount, libc::AT_EMPTY_PATH)?;
    Ok(handle)
}

/// open_by_handle_at(2) with O_PATH in the file system of `mount`. The descriptor is closed again.
pub(crate) fn find_by_handle(mount: BorrowedFd<'_>, handle: &FileHandle) -> Result<()> {
    let flags = libc::O_PATH | libc::O_CLOEXEC;
    let from = std::ptr::from_ref(handle);
    let found = syscall!(libc::SYS_open_by_handle_at, mount.as_raw_fd(), from, flags)?;
    let _ = syscall!(libc::SYS_close, found);
    Ok(())
}

/// Takes an OFD lock; false if there is a conflicting one.
pub(crate) fn try_lock(fd: BorrowedFd<'_>, start: u64, len: u64, kind: LockKind) -> Result<bool> {
    let kind = match kind {
        LockKind::Shared => libc::F_RDLCK,
        LockKind::Exclusive => libc::F_WRLCK,
    };
    match set_lock(fd, start, len, kind) {
        Ok(()) => Ok(true),
        Err(Errno::AGAIN | Errno::ACCESS) => Ok(false),
        Err(error) => Err(error),
    }
}

pub(crate) fn unlock(fd: BorrowedFd<'_>, start: u64, len: u64) -> Result<()> {
    set_lock(fd, start, len, libc::F_UNLCK)
}

fn set_lock(fd: BorrowedFd<'_>, start: u64, len: u64, kind: i32) -> Result<()> {
    // SAFETY: integers only; l_pid must be 0 for OFD locks.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = start as libc::off_t;
    lock.l_len = len as libc::off_t;
    syscall!(libc::SYS_fcntl, fd.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock).map(|_| ())
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn invalid_buffers_give_efault_and_leave_errno_alone() {
        let file = tempfile::tempfile().unwrap();
        let fd = file.as_fd();
        let bad = 8 as *mut u8;
        // SAFETY: only the kernel dereferences the pointer.
        unsafe {
            *libc::__errno_location() = 77;
            assert_eq!(pwrite(fd, bad, 10, 0), Err(Errno::FAULT));
            assert_eq!(pwritev(fd, &[IoVec { base: bad, len: 10 }], 0, 0), Err(Errno::FAULT));
            assert_eq!(pwrite(fd, b"abcdef".as_ptr(), 6, 1 << 33), Ok(6));
            assert_eq!(pread(fd, bad, 10, 0), Err(Errno::FAULT));
            assert_eq!(*libc::__errno_location(), 77);
        }
    }

    #[test]
    fn zeros_come_from_the_kernel() {
        let mut memory = vec![7u8; 100_000];
        // SAFETY: memory of this frame, and an address that only the kernel dereferences.
        unsafe {
            assert_eq!(zero(memory.as_mut_ptr(), 99_999), Ok(()));
            assert_eq!(zero(8 as *mut u8, 10), Err(Errno::FAULT));
            assert_eq!(zero(8 as *mut u8, 0), Ok(()));
        }
        assert!(memory[..99_999].iter().all(|&byte| byte == 0));
        assert_eq!(memory[99_999], 7);
    }

    #[test]
    fn vectors_at_an_offset_beyond_32_bits() {
        let file = tempfile::tempfile().unwrap();
        let (mut one, mut two) = ([0u8; 2], [0u8; 4]);
        // SAFETY: buffers of this frame.
        unsafe {
            let text = *b"abcdef";
            let parts = [
                IoVec { base: text.as_ptr().cast_mut(), len: 4 },
                IoVec { base: text.as_ptr().cast_mut().add(4), len: 2 },
            ];
            assert_eq!(pwritev(file.as_fd(), &parts, 1 << 33, 0), Ok(6));
            let parts = [IoVec { base: one.as_mut_ptr(), len: 2 }, IoVec { base: two.as_mut_ptr(), len: 4 }];
            assert_eq!(preadv(file.as_fd(), &parts, 1 << 33, 0), Ok(6));
        }
        assert_eq!((&one, &two), (b"ab", b"cdef"));
        assert_eq!(file.metadata().unwrap().len(), (1 << 33) + 6);
    }
}
