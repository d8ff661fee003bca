//! System calls by number, made in place.
//!
//! libc's `syscall` would do, but the library that interposes libc's functions defines a `syscall`
//! itself, so each call from here would pass through two functions, and save and restore `errno`.
//! A call made in place does not touch `errno`, and is no cancellation point, as `syscall` is none.

use std::ffi::c_long;

use crate::{Errno, Result};

/// Makes a system call. Further arguments are 0. Leaves `errno` unchanged.
///
/// # Safety
/// As the system call requires of its arguments. No Rust reference to memory that the kernel writes
/// to is alive.
///
/// # Errors
/// As the system call.
#[inline(always)]
pub unsafe fn call<const N: usize>(number: c_long, arguments: [usize; N]) -> Result<usize> {
    const { assert!(N <= 6) };
    let all = std::array::from_fn(|at| arguments.get(at).copied().unwrap_or(0));
    // SAFETY: the caller's promise.
    let result = unsafe { enter(number, all) };
    // The kernel returns the errors as -1 to -4095.
    if result > -4096isize as usize {
        return Err(Errno::from_raw_os_error((result as i32).wrapping_neg()));
    }
    Ok(result)
}

/// Returns what the kernel returns.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn enter(number: c_long, [a, b, c, d, e, f]: [usize; 6]) -> usize {
    let result;
    // SAFETY: the caller's promise. The kernel keeps all registers but these.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") number as usize => result,
            in("rdi") a,
            in("rsi") b,
            in("rdx") c,
            in("r10") d,
            in("r8") e,
            in("r9") f,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// Returns what the kernel returns.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
unsafe fn enter(number: c_long, [a, b, c, d, e, f]: [usize; 6]) -> usize {
    let result;
    // SAFETY: the caller's promise. The kernel keeps all registers but the first.
    unsafe {
        std::arch::asm!(
            "svc 0",
            in("x8") number as usize,
            inlateout("x0") a => result,
            in("x1") b,
            in("x2") c,
            in("x3") d,
            in("x4") e,
            in("x5") f,
            options(nostack),
        );
    }
    result
}

/// Returns what the kernel would return. Goes through libc.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
unsafe fn enter(number: c_long, [a, b, c, d, e, f]: [usize; 6]) -> usize {
    // SAFETY: the caller's promise; errno is thread-local and always mapped.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        let result = libc::syscall(number, a, b, c, d, e, f);
        let failed = std::mem::replace(&mut *errno, before);
        if result == -1 { (failed as usize).wrapping_neg() } else { result as usize }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn all_six_arguments_arrive() {
        let (from, to) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        std::os::unix::fs::FileExt::write_all_at(&from, b"0123456789", 0).unwrap();
        let (mut at, mut into, len, no_flags) = (2i64, 1i64, 5, 0);
        let fds = (from.as_raw_fd() as usize, to.as_raw_fd() as usize);
        let offsets = (&raw mut at as usize, &raw mut into as usize);
        let arguments = [fds.0, offsets.0, fds.1, offsets.1, len, no_flags];
        // SAFETY: the offsets are this function's.
        assert_eq!(unsafe { call(libc::SYS_copy_file_range, arguments) }, Ok(5));
        assert_eq!((at, into), (7, 6));
        // SAFETY: as above.
        let refused = unsafe { call(libc::SYS_copy_file_range, [fds.0, offsets.0, fds.1, offsets.1, len, 1]) };
        assert_eq!(refused, Err(Errno::INVAL));
    }

    #[test]
    fn an_error_is_returned_and_errno_left_alone() {
        // SAFETY: no memory is involved but errno, which is always mapped.
        unsafe {
            *libc::__errno_location() = 77;
            assert_eq!(call(libc::SYS_close, [usize::MAX]), Err(Errno::BADF));
            assert_eq!(*libc::__errno_location(), 77);
        }
    }

    #[test]
    fn a_large_result_is_no_error() {
        let page = rustix::param::page_size();
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as usize;
        // SAFETY: a new mapping, and its end.
        unsafe {
            let mapped =
                call(libc::SYS_mmap, [0, page, libc::PROT_READ as usize, flags, usize::MAX, 0]).unwrap();
            assert!(mapped > u32::MAX as usize && mapped % page == 0);
            assert_eq!(call(libc::SYS_munmap, [mapped, page]), Ok(0));
        }
    }
}
