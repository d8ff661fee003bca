//! `sendfile` and `splice` from and to managed files. The kernel would move such bytes without a
//! buffer; here they are read and written.
//!
//! Signals wait while managed files are read and written. They do not wait during calls on pipes
//! and sockets, which may block for an unlimited time.

use std::ffi::{c_int, c_uint};
use std::os::fd::{AsFd, BorrowedFd};

use libc::{off_t, size_t, ssize_t};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat};
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, tee};
use rustix::time::Timespec;
use stripewise_recorder::Op;
use stripewise_sys::{Errno, Fd, Result};

use crate::calls::ends::{Cursor, End, finish, pump};
use crate::calls::transfer::{MOST, Place};
use crate::process::answer;

/// Bytes per read: the default capacity of a pipe.
const PIECE: usize = 64 << 10;
/// Bytes that a writable pipe accepts without blocking (PIPE_BUF).
const PIPE_PIECE: usize = 4096;

interpose!(
    sendfile | sendfile64 = |real, to: c_int, from: c_int, offset: *mut off_t, len: size_t| -> ssize_t {
        match End::both(from, to) {
            None => real(),
            Some((from, to)) => answer(|| unsafe { send(&from, offset, &to, len) }),
        }
    },
    splice = |real,
              from: c_int,
              from_at: *mut off_t,
              to: c_int,
              to_at: *mut off_t,
              len: size_t,
              flags: c_uint|
     -> ssize_t {
        let Some((from, to)) = End::both(from, to) else { return real() };
        let waits = flags & libc::SPLICE_F_NONBLOCK == 0;
        answer(|| match (&from.managed, &to.managed) {
            (_, None) => unsafe { fill_pipe(&from, from_at, pipe_end(&to, to_at)?, len, waits) },
            (None, _) => unsafe { drain_pipe(pipe_end(&from, from_at)?, &to, to_at, len, waits) },
            (Some(_), Some(_)) => Err(Errno::INVAL),
        })
    },
);

unsafe fn send(from: &End, offset: *mut off_t, to: &End, len: usize) -> Result<ssize_t> {
    from.check(Op::Read)?;
    to.check(Op::Write)?;
    let cursor = unsafe { Cursor::new(from, offset)? };
    let (done, error) = pump((from, cursor.begin), (to, |_| Place::Offset), len.min(MOST), PIECE);
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
    let mut buffer = vec![0; len.min(PIECE)];
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
    let len = len.min(PIECE);
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
