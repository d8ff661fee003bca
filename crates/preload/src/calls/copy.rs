//! Calls that copy or share data without a buffer, which the kernel cannot do for managed files.
//! `copy_file_range`, `sendfile` and `splice` read and write here. Calls that share data fail with
//! the error on which callers fall back to `read` and `write`.
//!
//! Signals wait while managed files are read and written. They do not wait during calls on pipes
//! and sockets, which may block for an unlimited time.

use std::ffi::{c_int, c_uint, c_ulong};
use std::os::fd::{AsFd, BorrowedFd};

use libc::{off_t, size_t, ssize_t};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat};
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, tee};
use rustix::time::Timespec;
use stripewise_recorder::Op;
use stripewise_sys::{Errno, Fd, Result};

use crate::calls::ends::{Cursor, End, finish, pump};
use crate::calls::request::{MOST, Place};
use crate::descriptors::{Managed, Subject, on_managed};
use crate::process::{answer, serve};

/// Bytes per read and write. cp(1) uses the same size without this call. A cache decides by the
/// size of requests: a request of 1 MiB does not fit into a small cache and would bypass it.
const PIECE: usize = 256 << 10;
/// Bytes per read for a pipe or a socket: the default capacity of a pipe.
const SENT_PIECE: usize = 64 << 10;
/// Bytes that a writable pipe accepts without blocking (PIPE_BUF).
const PIPE_PIECE: usize = 4096;

/// The address of an offset of the application; null for that of the descriptor.
type Offset = *mut off_t;

interpose!(
    copy_file_range =
        |real, from: c_int, from_at: Offset, to: c_int, to_at: Offset, len: size_t, flags: c_uint| -> ssize_t {
            match End::both(from, to) {
                None => real(),
                Some((from, to)) => {
                    answer(|| unsafe { copy_range((&from, from_at), (&to, to_at), len, flags) })
                }
            }
        },
    sendfile | sendfile64 = |real, to: c_int, from: c_int, offset: *mut off_t, len: size_t| -> ssize_t {
        match End::both(from, to) {
            None => real(),
            Some((from, to)) => answer(|| unsafe { send(&from, offset, &to, len) }),
        }
    },
    splice =
        |real, from: c_int, from_at: Offset, to: c_int, to_at: Offset, len: size_t, flags: c_uint| -> ssize_t {
            let Some((from, to)) = End::both(from, to) else { return real() };
            let waits = flags & libc::SPLICE_F_NONBLOCK == 0;
            answer(|| match (&from.managed, &to.managed) {
                (_, None) => unsafe { fill_pipe(&from, from_at, pipe_end(&to, to_at)?, len, waits) },
                (None, _) => unsafe { drain_pipe(pipe_end(&from, from_at)?, &to, to_at, len, waits) },
                (Some(_), Some(_)) => Err(Errno::INVAL),
            })
        },
    ioctl = |real, fd: c_int, request: c_ulong, argument: usize| -> c_int {
        // Some C callers pass the request as an int, whose upper half is undefined.
        match request & 0xffff_ffff {
            libc::FICLONE if Subject::managed(argument as c_int).is_some() => serve(|| Err(Errno::OPNOTSUPP)),
            libc::FICLONE | libc::FICLONERANGE | FIDEDUPERANGE | FS_IOC_FIEMAP | FIBMAP => {
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

unsafe fn send(from: &End, offset: *mut off_t, to: &End, len: usize) -> Result<ssize_t> {
    from.check(Op::Read)?;
    to.check(Op::Write)?;
    let cursor = unsafe { Cursor::new(from, offset)? };
    let (done, error) = pump((from, cursor.begin), (to, |_| Place::Offset), len.min(MOST), SENT_PIECE);
    unsafe { finish([cursor], done, error) }
}

/// The other end of a splice with a managed file: it must be a pipe without an offset.
fn pipe_end(end: &End, offset: *const off_t) -> Result<BorrowedFd<'_>> {
    let pipe = end.borrow();
    let is_pipe = FileType::from_raw_mode(fstat(pipe)?.st_mode) == FileType::Fifo;
    match (is_pipe, offset.is_null()) {
        (false, _) => Err(Errno::INVAL),
        (true, false) => Err(Errno::SPIPE),
        (true, true) => Ok(pipe),
    }
}

/// Writes as many bytes as the pipe has space for; waits while it is full.
unsafe fn fill_pipe(
    from: &End,
    from_at: *mut off_t,
    pipe: BorrowedFd<'_>,
    len: usize,
    waits: bool,
) -> Result<ssize_t> {
    from.check(Op::Read)?;
    let cursor = unsafe { Cursor::new(from, from_at)? };
    let mut buffer = vec![0; len.min(SENT_PIECE)];
    let got = from.read(&mut buffer, cursor.begin)?;
    let (mut done, mut error) = (0, None);
    while done < got {
        let piece = &buffer[done..got.min(done + PIPE_PIECE)];
        match has_room(pipe, waits && done == 0).and_then(|()| rustix::io::write(pipe, piece)) {
            Ok(written) => done += written,
            Err(failed) => {
                error = Some(failed);
                break;
            }
        }
    }
    unsafe { finish([cursor], done, error) }
}

fn has_room(pipe: BorrowedFd<'_>, waits: bool) -> Result<()> {
    let waits = waits && !fcntl_getfl(pipe)?.contains(OFlags::NONBLOCK);
    let mut asked = [PollFd::new(&pipe, PollFlags::OUT)];
    let timeout = if waits { None } else { Some(&Timespec { tv_sec: 0, tv_nsec: 0 }) };
    // A pipe without readers is writable; the write fails with EPIPE.
    if poll(&mut asked, timeout)? == 0 { Err(Errno::AGAIN) } else { Ok(()) }
}

/// Writes a copy of the pipe's content, made with tee(2), and then takes the written bytes out of
/// the pipe. Bytes that cannot be written stay in the pipe.
unsafe fn drain_pipe(
    pipe: BorrowedFd<'_>,
    to: &End,
    to_at: *mut off_t,
    len: usize,
    waits: bool,
) -> Result<ssize_t> {
    to.check(Op::Write)?;
    let cursor = unsafe { Cursor::new(to, to_at)? };
    let len = len.min(SENT_PIECE);
    if len == 0 {
        return Ok(0);
    }
    let (copy_end, write_end) = pipe_with(PipeFlags::CLOEXEC)?;
    let (copy_end, write_end) = (Fd::adopt(copy_end)?, Fd::adopt(write_end)?);
    let how = if waits { SpliceFlags::empty() } else { SpliceFlags::NONBLOCK };
    let copied = tee(pipe, write_end.as_fd(), len, how)?;
    if copied == 0 {
        return Ok(0);
    }
    let mut buffer = vec![0; copied];
    let got = rustix::io::read(copy_end.as_fd(), &mut buffer)?;
    let done = to.write(&buffer[..got], Place::At(cursor.begin))?;
    let mut left = done;
    while left > 0 {
        match rustix::io::read(pipe, &mut buffer[..left]) {
            Ok(0) => break,
            Ok(more) => left -= more,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    unsafe { cursor.advance(done)? };
    Ok(done as ssize_t)
}

// These ioctls are from <linux/fs.h>; the libc crate lacks them.
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
