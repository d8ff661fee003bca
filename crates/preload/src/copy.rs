//! Calls that share or copy data inside a file system. Through a managed file they cannot: callers get the error on which they fall
//! back to `read` and `write`.

use std::ffi::{c_int, c_uint, c_ulong};

use libc::{off_t, size_t, ssize_t};
use stripewise_sys::{Errno, Result};

use crate::errno::{fail, serve};
use crate::real::interpose;
use crate::subject::{Managed, Subject};

interpose! {
    copy_file_range => copy_file_range,
        (from: c_int, from_at: *mut off_t, to: c_int, to_at: *mut off_t, len: size_t, flags: c_uint) -> ssize_t;
    ioctl => ioctl, (fd: c_int, request: c_ulong, argument: usize) -> c_int;
}

type CopyFn = unsafe extern "C" fn(c_int, *mut off_t, c_int, *mut off_t, size_t, c_uint) -> ssize_t;
type IoctlFn = unsafe extern "C" fn(c_int, c_ulong, usize) -> c_int;

#[inline(never)]
fn refusal(fd: c_int, error: Errno) -> Option<Errno> {
    Subject::managed(fd).map(|managed| managed.file().err().unwrap_or(error))
}

unsafe fn copy_file_range(
    real: CopyFn,
    from: c_int,
    from_at: *mut off_t,
    to: c_int,
    to_at: *mut off_t,
    len: size_t,
    flags: c_uint,
) -> ssize_t {
    match refusal(from, Errno::XDEV).or_else(|| refusal(to, Errno::XDEV)) {
        Some(error) => fail(error),
        None => unsafe { real(from, from_at, to, to_at, len, flags) },
    }
}

// <linux/fs.h>
const FICLONE: c_ulong = 0x4004_9409;
const FICLONERANGE: c_ulong = 0x4020_940d;
const FIDEDUPERANGE: c_ulong = 0xc018_9436;
const FS_IOC_FIEMAP: c_ulong = 0xc020_660b;
const FIBMAP: c_ulong = 1;

unsafe fn ioctl(real: IoctlFn, fd: c_int, request: c_ulong, argument: usize) -> c_int {
    let call = || unsafe { real(fd, request, argument) };
    // C passes the request as an int in places: the upper half is not defined.
    match request & 0xffff_ffff {
        FICLONE if Subject::managed(argument as c_int).is_some() => serve(|| Err(Errno::OPNOTSUPP)),
        FICLONE | FICLONERANGE | FIDEDUPERANGE | FS_IOC_FIEMAP | FIBMAP => match Subject::managed(fd) {
            None => call(),
            Some(_) => serve(|| Err(Errno::OPNOTSUPP)),
        },
        libc::FIONREAD => match Subject::managed(fd) {
            None => call(),
            // SAFETY: the request's argument is an int to fill.
            Some(managed) => serve(|| unsafe { unread(&managed, argument as *mut c_int) }),
        },
        _ => call(),
    }
}

/// Bytes from the descriptor's offset to the end.
unsafe fn unread(managed: &Managed, out: *mut c_int) -> Result<c_int> {
    managed.flags()?;
    let left = managed.file()?.size()? as i64 - managed.offset()? as i64;
    if out.is_null() {
        return Err(Errno::FAULT);
    }
    // The kernel cuts it to an int, too.
    unsafe { out.write(left as c_int) };
    Ok(0)
}
