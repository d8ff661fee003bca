//! `read`, `write` and all their variants.

use std::cell::Cell;
use std::ffi::{c_int, c_void};

use libc::{iovec, off_t, size_t, ssize_t};
use stripewise_recorder::{Flags, Op};

use crate::calls::piece::{Piece, move_piece};
use crate::calls::request::{Place, Transfer};
use crate::calls::transfer::{move_bytes, move_reserved};
use crate::descriptors::{Call, Managed, Subject, adopt, record, table};
use crate::process::errno::{fail, serve_interruptible_after, unless_panicking};
use crate::process::{NoCancellation, guard};

interpose!(
    read = |real, fd: c_int, buffer: *mut c_void, len: size_t| -> ssize_t {
        transfer(fd, || Transfer::one(Op::Read, buffer, len, Place::Offset), real)
    },
    write = |real, fd: c_int, buffer: *const c_void, len: size_t| -> ssize_t {
        transfer(fd, || Transfer::one(Op::Write, buffer.cast_mut(), len, Place::Offset), real)
    },
    pread | pread64 = |real, fd: c_int, buffer: *mut c_void, len: size_t, offset: off_t| -> ssize_t {
        transfer(fd, || Transfer::one(Op::Read, buffer, len, Place::At(offset)), real)
    },
    pwrite | pwrite64 = |real, fd: c_int, buffer: *const c_void, len: size_t, offset: off_t| -> ssize_t {
        transfer(fd, || Transfer::one(Op::Write, buffer.cast_mut(), len, Place::At(offset)), real)
    },
    readv = |real, fd: c_int, vectors: *const iovec, count: c_int| -> ssize_t {
        transfer(fd, || Transfer::many(Op::Read, vectors, count, Place::Offset, 0), real)
    },
    writev = |real, fd: c_int, vectors: *const iovec, count: c_int| -> ssize_t {
        transfer(fd, || Transfer::many(Op::Write, vectors, count, Place::Offset, 0), real)
    },
    preadv | preadv64 = |real, fd: c_int, vectors: *const iovec, count: c_int, offset: off_t| -> ssize_t {
        transfer(fd, || Transfer::many(Op::Read, vectors, count, Place::At(offset), 0), real)
    },
    pwritev | pwritev64 = |real, fd: c_int, vectors: *const iovec, count: c_int, offset: off_t| -> ssize_t {
        transfer(fd, || Transfer::many(Op::Write, vectors, count, Place::At(offset), 0), real)
    },
    preadv2 | preadv64v2 =
        |real, fd: c_int, vectors: *const iovec, count: c_int, offset: off_t, flags: c_int| -> ssize_t {
            transfer(fd, || Transfer::many(Op::Read, vectors, count, Place::of_v2(offset), flags), real)
        },
    pwritev2 | pwritev64v2 =
        |real, fd: c_int, vectors: *const iovec, count: c_int, offset: off_t, flags: c_int| -> ssize_t {
            transfer(fd, || Transfer::many(Op::Write, vectors, count, Place::of_v2(offset), flags), real)
        },
    // glibc's checked functions abort if `len` exceeds `room`. Such calls go to glibc for every
    // file.
    __read_chk = |real, fd: c_int, buffer: *mut c_void, len: size_t, room: size_t| -> ssize_t {
        if len > room {
            return real();
        }
        transfer(fd, || Transfer::one(Op::Read, buffer, len, Place::Offset), real)
    },
    __pread_chk | __pread64_chk =
        |real, fd: c_int, buffer: *mut c_void, len: size_t, offset: off_t, room: size_t| -> ssize_t {
            if len > room {
                return real();
            }
            transfer(fd, || Transfer::one(Op::Read, buffer, len, Place::At(offset)), real)
        },
);

#[inline]
fn transfer(fd: c_int, request: impl FnOnce() -> Transfer, real: impl Fn() -> isize) -> isize {
    if table::is_plain(fd) {
        return real();
    }
    guard::cancellation_point();
    // An untracked descriptor's call is made here. It may wait for ever, and if the thread is
    // cancelled in it, no value may have to be dropped.
    tracked(fd, request, &real).unwrap_or_else(real)
}

/// Serves the call on a managed or recorded file; `None` for other files.
#[inline(never)]
fn tracked(fd: c_int, request: impl FnOnce() -> Transfer, real: &dyn Fn() -> isize) -> Option<isize> {
    let entry = adopt::tracked(fd)?;
    let _held = NoCancellation::new();
    match Subject::of_entry(fd, entry) {
        Subject::Plain => None,
        Subject::Recorded(entry) => {
            let request = request();
            Some(match request.place {
                Place::At(_) => record::timed(&entry, call_of(fd, &request), real),
                Place::Offset => record::timed_at_offset(fd, &entry, call_of(fd, &request), real),
            })
        }
        Subject::Managed(managed) => Some(managed_transfer(fd, &managed, &request())),
    }
}

/// What is recorded of a transfer.
fn call_of(fd: c_int, request: &Transfer) -> Call {
    let call = request.call();
    let is_output = call.op == Op::Write && [libc::STDOUT_FILENO, libc::STDERR_FILENO].contains(&fd);
    Call { flags: call.flags.with(if is_output { Flags::OUTPUT } else { Flags::NONE }), ..call }
}

fn managed_transfer(fd: c_int, managed: &Managed, request: &Transfer) -> isize {
    let offset = Cell::new(0);
    let note = |(at, moved): (u64, usize)| {
        offset.set(at);
        moved as isize
    };
    // A panic there leaves the request to the other functions.
    let run = || {
        let (mut reserved, signals) = match unless_panicking(|| move_piece(managed, request)) {
            Some(Piece::Done(done)) => return done.map_or_else(fail, note),
            Some(Piece::Reserved(offset, signals)) => (Some(offset), signals),
            None => (None, None),
        };
        // When it is repeated after a signal, the range is no longer reserved.
        serve_interruptible_after(signals, || match reserved.take() {
            Some(offset) => move_reserved(managed, request, offset).map(note),
            None => move_bytes(managed, request).map(note),
        })
    };
    record::timed_as(managed.entry(), run, |result| {
        let call = call_of(fd, request);
        if result < 0 { call } else { Call { offset: offset.get(), ..call } }
    })
}
