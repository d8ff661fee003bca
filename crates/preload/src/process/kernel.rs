//! System calls on application memory that may not exist, where `sys` has no wrapper for them. They
//! leave `errno` as it was.

use std::ffi::{CStr, c_char, c_int, c_long, c_void};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::ptr;

use rustix::io::retry_on_intr;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use stripewise_sys::{Errno, Result, Stat};

pub use stripewise_sys::call;

/// The calling thread's errno.
pub fn errno() -> c_int {
    // SAFETY: always valid for the calling thread.
    unsafe { *libc::__errno_location() }
}

pub fn set_errno(value: c_int) {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = value }
}

/// The directory and the path of an application's call. The kernel checks them: either may be
/// invalid.
#[derive(Clone, Copy)]
pub struct At {
    pub dir: c_int,
    pub path: *const c_char,
}

impl At {
    /// A path from the working directory.
    pub fn cwd(path: *const c_char) -> Self {
        Self { dir: libc::AT_FDCWD, path }
    }

    /// fstatat(2). EFAULT if the path cannot be read.
    pub fn stat(self, follow: bool) -> Result<Stat> {
        let mut stat = MaybeUninit::<Stat>::uninit();
        let flags = if follow { 0 } else { libc::AT_SYMLINK_NOFOLLOW };
        let arguments = [self.dir as usize, self.path as usize, stat.as_mut_ptr() as usize, flags as usize];
        // SAFETY: only the kernel reads the path; on success it has filled the structure.
        unsafe {
            call(libc::SYS_newfstatat, arguments)?;
            Ok(stat.assume_init())
        }
    }

    /// openat(2), bypassing the library's own. EFAULT if the path cannot be read.
    pub fn open(self, flags: c_int, mode: libc::mode_t) -> Result<c_int> {
        let arguments = [self.dir as usize, self.path as usize, flags as usize, mode as usize];
        // SAFETY: only the kernel follows the path.
        unsafe { call(libc::SYS_openat, arguments) }.map(|fd| fd as c_int)
    }

    /// Safety: the kernel could read the path. The name is not used after the application's call.
    pub unsafe fn name(self) -> &'static CStr {
        // SAFETY: as the caller promises.
        unsafe { CStr::from_ptr(self.path) }
    }
}

/// Whether the application's memory can be read. Makes one rt_sigprocmask(2) per page, which copies
/// 8 bytes from there and then fails because its first argument is invalid.
pub fn is_readable(memory: *const c_void, len: usize) -> bool {
    const WORD: usize = size_of::<u64>();
    const NO_SUCH_WAY: usize = c_int::MAX as usize;
    let (start, page) = (memory as usize, rustix::param::page_size());
    let Some(last) = len.checked_sub(WORD).and_then(|rest| start.checked_add(rest)) else { return len == 0 };
    let mut at = last;
    loop {
        // SAFETY: changes nothing, as the first argument is no valid operation.
        let answer = unsafe { call(libc::SYS_rt_sigprocmask, [NO_SUCH_WAY, at, 0, WORD]) };
        // A null address means "no mask", so the kernel would copy nothing. It is never valid
        // memory.
        if at == 0 || answer == Err(Errno::FAULT) {
            return false;
        }
        // Either all of a page is mapped or none of it.
        let page_start = at / page * page;
        if page_start <= start {
            return true;
        }
        at = (page_start - WORD).max(start);
    }
}

/// Reads a value at an address of the application; EFAULT if it cannot be read.
pub fn copy_from<T>(address: usize, value: &mut MaybeUninit<T>) -> Result<()> {
    copy(libc::SYS_process_vm_readv, value.as_mut_ptr() as usize, address, size_of::<T>())
}

/// Reads bytes at an address that may not be mapped; then fails with EFAULT.
pub fn copy_bytes_from(address: usize, bytes: &mut [u8]) -> Result<()> {
    if !is_readable(address as *const c_void, bytes.len()) {
        return Err(Errno::FAULT);
    }
    copy(libc::SYS_process_vm_readv, bytes.as_mut_ptr() as usize, address, bytes.len())
}

/// Writes a value to an address of the application; EFAULT if it cannot be written to.
pub fn copy_to<T>(address: usize, value: &T) -> Result<()> {
    copy(libc::SYS_process_vm_writev, std::ptr::from_ref(value) as usize, address, size_of::<T>())
}

fn copy(number: c_long, own: usize, other: usize, len: usize) -> Result<()> {
    let (own, other) = ([own, len], [other, len]);
    let process = std::process::id() as usize;
    // SAFETY: the callers own `own`; only the kernel accesses `other`.
    let copied = unsafe { call(number, [process, own.as_ptr() as usize, 1, other.as_ptr() as usize, 1]) };
    match copied {
        Ok(copied) if copied == len => Ok(()),
        // Some containers forbid these calls to their programs: the address is trusted.
        Err(Errno::PERM | Errno::NOSYS) => {
            let reads = number == libc::SYS_process_vm_readv;
            let (from, to) = if reads { (other[0], own[0]) } else { (own[0], other[0]) };
            // SAFETY: as the application and the callers promise.
            unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, len) };
            Ok(())
        }
        _ => Err(Errno::FAULT),
    }
}

/// fstat(2) into the caller's memory, without copies on the stack. Retries EINTR.
pub fn stat_of(fd: c_int, stat: &mut MaybeUninit<Stat>) -> Result<&Stat> {
    let arguments = [fd as usize, stat.as_mut_ptr() as usize];
    // SAFETY: on success the kernel has filled the structure.
    unsafe {
        retry_on_intr(|| call(libc::SYS_fstat, arguments))?;
        Ok(stat.assume_init_ref())
    }
}

/// ftruncate(2) to size 0, bypassing the library's own. Retries EINTR.
pub fn empty(fd: c_int) -> Result<()> {
    // SAFETY: no memory is involved.
    retry_on_intr(|| unsafe { call(libc::SYS_ftruncate, [fd as usize]) }).map(drop)
}

/// fcntl(2). EFAULT if `argument` is the address of memory that cannot be read or filled.
pub fn fcntl(fd: c_int, command: c_int, argument: usize) -> Result<usize> {
    // SAFETY: pointers come from the callers, for commands that fill the memory they point to.
    unsafe { call(libc::SYS_fcntl, [fd as usize, command as usize, argument]) }
}

pub fn close(fd: c_int) {
    // SAFETY: the caller owns the descriptor.
    let _ = unsafe { call(libc::SYS_close, [fd as usize]) };
}

pub fn close_range(first: u32, last: u32, flags: c_int) -> Result<()> {
    // SAFETY: the descriptors are the application's.
    unsafe { call(libc::SYS_close_range, [first as usize, last as usize, flags as usize]) }.map(|_| ())
}

/// A descriptor of the application, for the duration of a call. If it is not open, the kernel
/// answers EBADF.
pub fn borrow(fd: c_int) -> BorrowedFd<'static> {
    // A BorrowedFd must not be negative.
    const NEVER_OPEN: c_int = c_int::MAX;
    // SAFETY: only passed to the kernel.
    unsafe { BorrowedFd::borrow_raw(if fd < 0 { NEVER_OPEN } else { fd }) }
}

/// A short-lived descriptor of the library, closed on drop by the system call.
pub struct Closing(c_int);

impl Closing {
    pub fn new(fd: OwnedFd) -> Self {
        Self(fd.into_raw_fd())
    }
}

impl AsFd for Closing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        borrow(self.0)
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        close(self.0);
    }
}

/// New memory, filled with zeros. It does not come from `malloc`, which a signal may have
/// interrupted.
pub fn memory(bytes: usize) -> Result<*mut c_void> {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping.
    unsafe { mmap_anonymous(ptr::null_mut(), bytes, protection, MapFlags::PRIVATE) }
}

#[cfg(test)]
mod tests {
    use rustix::mm::munmap;

    use super::*;

    #[test]
    fn memory_is_readable_up_to_a_hole() {
        let page = rustix::param::page_size();
        let pages = memory(3 * page).unwrap();
        // SAFETY: the last page of this mapping.
        unsafe { munmap(pages.byte_add(2 * page), page).unwrap() };
        set_errno(77);
        for (from, len, readable) in [
            (0, 2 * page, true),
            (0, 2 * page + 1, false),
            (8, 2 * page - 8, true),
            (2 * page - 16, 16, true),
            (2 * page - 16, 17, false),
            (2 * page - 4, 16, false),
            (page - 4, 16, true),
            (page + 8, 2 * page, false),
            (2 * page, 8, false),
            (2 * page, 0, true),
        ] {
            assert_eq!(is_readable(pages.wrapping_byte_add(from), len), readable, "{len} from {from}");
        }
        assert!(
            !is_readable(std::ptr::null(), 8)
                && !is_readable(16 as *const c_void, 16)
                && !is_readable(usize::MAX as *const c_void, 16)
        );
        assert_eq!(errno(), 77);
    }
}
