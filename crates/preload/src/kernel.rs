//! System calls on memory of the application that may not exist, where `sys` has no form of them.
//!
//! They go through libc's `syscall`, which is not interposed; `errno` is put back.

use std::ffi::{c_char, c_int, c_long};
use std::mem::MaybeUninit;

use stripewise_sys::{Errno, Result, Stat};

use crate::errno;

/// Makes a system call.
///
/// # Errors
/// What the kernel says.
///
/// # Safety
/// That of the call.
pub unsafe fn call(number: c_long, arguments: [usize; 6]) -> Result<usize> {
    let before = errno::get();
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: the caller's promise.
    let result = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    let failed = errno::get();
    errno::set(before);
    if result == -1 { Err(Errno::from_raw_os_error(failed)) } else { Ok(result as usize) }
}

/// fstatat(2). EFAULT for a path that cannot be read.
///
/// # Errors
/// As fstatat(2).
pub fn stat_at(dir: c_int, path: *const c_char, follow: bool) -> Result<Stat> {
    let mut stat = MaybeUninit::<Stat>::uninit();
    let flags = if follow { 0 } else { libc::AT_SYMLINK_NOFOLLOW };
    let arguments = [dir as usize, path as usize, stat.as_mut_ptr() as usize, flags as usize, 0, 0];
    // SAFETY: only the kernel follows the path; on success it has filled the structure.
    unsafe {
        call(libc::SYS_newfstatat, arguments)?;
        Ok(stat.assume_init())
    }
}

/// fstat(2) into memory of the caller, without copies on its stack; EINTR is retried.
///
/// # Errors
/// As fstat(2).
pub fn stat_of(fd: c_int, stat: &mut MaybeUninit<Stat>) -> Result<&Stat> {
    let arguments = [fd as usize, stat.as_mut_ptr() as usize, 0, 0, 0, 0];
    // SAFETY: on success the kernel has filled the structure.
    unsafe {
        while let Err(error) = call(libc::SYS_fstat, arguments) {
            if error != Errno::INTR {
                return Err(error);
            }
        }
        Ok(stat.assume_init_ref())
    }
}

/// close(2), past our own.
pub fn close(fd: c_int) {
    // SAFETY: the caller owns the descriptor.
    let _ = unsafe { call(libc::SYS_close, [fd as usize, 0, 0, 0, 0, 0]) };
}

/// close_range(2).
///
/// # Errors
/// As close_range(2).
pub fn close_range(first: u32, last: u32, flags: c_int) -> Result<()> {
    // SAFETY: the descriptors are the application's.
    unsafe { call(libc::SYS_close_range, [first as usize, last as usize, flags as usize, 0, 0, 0]) }.map(|_| ())
}

/// open(2), past our own. EFAULT for a path that cannot be read.
///
/// # Errors
/// As open(2).
pub fn open(path: *const c_char, flags: c_int, mode: libc::mode_t) -> Result<c_int> {
    let arguments = [libc::AT_FDCWD as usize, path as usize, flags as usize, mode as usize, 0, 0];
    // SAFETY: only the kernel follows the path.
    unsafe { call(libc::SYS_openat, arguments) }.map(|fd| fd as c_int)
}

/// dup2(2), past our own; the two are different.
///
/// # Errors
/// As dup2(2).
pub fn dup2(old: c_int, new: c_int) -> Result<c_int> {
    // SAFETY: the descriptors are the application's.
    unsafe { call(libc::SYS_dup3, [old as usize, new as usize, 0, 0, 0, 0]) }.map(|fd| fd as c_int)
}
