//! Calls that copy or share data inside a file system, which the kernel cannot do for managed
//! files. `copy_file_range` reads and writes here. Calls that share data fail with the error on
//! which callers fall back to `read` and `write`.

use std::ffi::{c_int, c_uint, c_ulong};

use libc::{off_t, size_t, ssize_t};
use stripewise_recorder::Op;
use stripewise_sys::{Errno, Result};

use crate::calls::ends::{Cursor, End, finish, pump};
use crate::calls::transfer::{MOST, Place};
use crate::descriptors::{Managed, Subject, on_managed};
use crate::process::{answer, serve};

/// Bytes per read and write. cp(1) uses the same size without this call. A cache decides by the
/// size of requests: a request of 1 MiB does not fit into a small cache and would bypass it.
const PIECE: usize = 256 << 10;

interpose!(
    copy_file_range = |real,
                       from: c_int,
                       from_at: *mut off_t,
                       to: c_int,
                       to_at: *mut off_t,
                       len: size_t,
                       flags: c_uint|
     -> ssize_t {
        match End::both(from, to) {
            None => real(),
            Some((from, to)) => answer(|| unsafe { copy_range((&from, from_at), (&to, to_at), len, flags) }),
        }
    },
    ioctl = |real, fd: c_int, request: c_ulong, argument: usize| -> c_int {
        // Some C callers pass the request as an int, whose upper half is undefined.
        match request & 0xffff_ffff {
            FICLONE if Subject::managed(argument as c_int).is_some() => serve(|| Err(Errno::OPNOTSUPP)),
            FICLONE | FICLONERANGE | FIDEDUPERANGE | FS_IOC_FIEMAP | FIBMAP => {
                on_managed(fd, real, |_| serve(|| Err(Errno::OPNOTSUPP)))
            }
            // SAFETY: the request's argument points to an int to fill.
            libc::FIONREAD => {
                on_managed(fd, real, |managed| serve(|| unsafe { unread(managed, argument as *mut c_int) }))
            }
            _ => real(),
        }
    },
);

/// Reads and writes, piece by piece, bytes that the kernel cannot copy.
unsafe fn copy_range(
    (from, from_at): (&End, *mut off_t),
    (to, to_at): (&End, *mut off_t),
    len: usize,
    flags: c_uint,
) -> Result<ssize_t> {
    for end in [from, to] {
        end.check_regular()?;
    }
    let (source, target) = unsafe { (Cursor::new(from, from_at)?, Cursor::new(to, to_at)?) };
    if flags != 0 {
        return Err(Errno::INVAL);
    }
    from.check(Op::Read)?;
    // In this call, a descriptor in append mode is an invalid descriptor.
    to.check(Op::Write).map_err(|error| if error == Errno::INVAL { Errno::BADF } else { error })?;
    let len = bytes_to_copy(&source, &target, len)?;
    let begin = target.begin;
    let (done, error) = pump((from, source.begin), (to, |at| Place::At(begin + at)), len, PIECE);
    unsafe { finish([source, target], done, error) }
}

/// How many of `len` bytes the source has.
/// Errors: EOVERFLOW: the range exceeds the largest offset. EINVAL: the two ranges overlap in one
/// file.
fn bytes_to_copy(source: &Cursor<'_>, target: &Cursor<'_>, len: usize) -> Result<usize> {
    for cursor in [source, target] {
        cursor.begin.cast_unsigned().checked_add(len as u64).ok_or(Errno::OVERFLOW)?;
    }
    let left = source.end.size()?.saturating_sub(source.begin.cast_unsigned());
    let len = len.min(left.min(MOST as u64) as usize);
    let apart = (source.begin - target.begin).unsigned_abs() >= len as u64;
    if !apart && source.end.is_same_file(target.end)? { Err(Errno::INVAL) } else { Ok(len) }
}

// These ioctls are from <linux/fs.h>.
const FICLONE: c_ulong = 0x4004_9409;
const FICLONERANGE: c_ulong = 0x4020_940d;
const FIDEDUPERANGE: c_ulong = 0xc018_9436;
const FS_IOC_FIEMAP: c_ulong = 0xc020_660b;
const FIBMAP: c_ulong = 1;

/// FIONREAD: number of bytes from the descriptor's offset to the end of the file.
unsafe fn unread(managed: &Managed, out: *mut c_int) -> Result<c_int> {
    managed.flags()?;
    let left = managed.file()?.size()? as i64 - managed.offset()? as i64;
    if out.is_null() {
        return Err(Errno::FAULT);
    }
    // The kernel truncates the number to an int, too.
    unsafe { out.write(left as c_int) };
    Ok(0)
}
