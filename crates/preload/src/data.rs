//! Reads and writes, and what they mean for a managed file.

use std::ffi::{c_int, c_void};

use libc::{iovec, off_t, size_t, ssize_t};
use rustix::fs::{OFlags, SeekFrom, seek};
use rustix::process::{Resource, getrlimit};
use stripewise_datapath::IoOptions;
use stripewise_recorder::{Flags, Op};
use stripewise_sys::{Errno, IoVec, Result};

use crate::entry::EntryRef;
use crate::errno::{self, serve};
use crate::real::interpose;
use crate::record::{self, Call};
use crate::subject::{Managed, Subject};
use crate::table;

interpose! {
    read => read, (fd: c_int, buffer: *mut c_void, len: size_t) -> ssize_t;
    write => write, (fd: c_int, buffer: *const c_void, len: size_t) -> ssize_t;
    pread | pread64 => pread, (fd: c_int, buffer: *mut c_void, len: size_t, offset: off_t) -> ssize_t;
    pwrite | pwrite64 => pwrite, (fd: c_int, buffer: *const c_void, len: size_t, offset: off_t) -> ssize_t;
    readv => readv, (fd: c_int, vectors: *const iovec, count: c_int) -> ssize_t;
    writev => writev, (fd: c_int, vectors: *const iovec, count: c_int) -> ssize_t;
    preadv | preadv64 => preadv, (fd: c_int, vectors: *const iovec, count: c_int, offset: off_t) -> ssize_t;
    pwritev | pwritev64 => pwritev, (fd: c_int, vectors: *const iovec, count: c_int, offset: off_t) -> ssize_t;
    preadv2 | preadv64v2 => preadv2,
        (fd: c_int, vectors: *const iovec, count: c_int, offset: off_t, flags: c_int) -> ssize_t;
    pwritev2 | pwritev64v2 => pwritev2,
        (fd: c_int, vectors: *const iovec, count: c_int, offset: off_t, flags: c_int) -> ssize_t;
    __read_chk => read_chk, (fd: c_int, buffer: *mut c_void, len: size_t, room: size_t) -> ssize_t;
    __pread_chk | __pread64_chk => pread_chk,
        (fd: c_int, buffer: *mut c_void, len: size_t, offset: off_t, room: size_t) -> ssize_t;
}

type ReadFn = unsafe extern "C" fn(c_int, *mut c_void, size_t) -> ssize_t;
type WriteFn = unsafe extern "C" fn(c_int, *const c_void, size_t) -> ssize_t;
type PreadFn = unsafe extern "C" fn(c_int, *mut c_void, size_t, off_t) -> ssize_t;
type PwriteFn = unsafe extern "C" fn(c_int, *const c_void, size_t, off_t) -> ssize_t;
type VectorFn = unsafe extern "C" fn(c_int, *const iovec, c_int) -> ssize_t;
type PvectorFn = unsafe extern "C" fn(c_int, *const iovec, c_int, off_t) -> ssize_t;
type Pvector2Fn = unsafe extern "C" fn(c_int, *const iovec, c_int, off_t, c_int) -> ssize_t;
type ReadChkFn = unsafe extern "C" fn(c_int, *mut c_void, size_t, size_t) -> ssize_t;
type PreadChkFn = unsafe extern "C" fn(c_int, *mut c_void, size_t, off_t, size_t) -> ssize_t;

unsafe fn read(real: ReadFn, fd: c_int, buffer: *mut c_void, len: size_t) -> ssize_t {
    transfer(fd, || Transfer::one(Op::Read, buffer, len, Place::Offset), || unsafe { real(fd, buffer, len) })
}

unsafe fn write(real: WriteFn, fd: c_int, buffer: *const c_void, len: size_t) -> ssize_t {
    let request = || Transfer::one(Op::Write, buffer.cast_mut(), len, Place::Offset);
    transfer(fd, request, || unsafe { real(fd, buffer, len) })
}

unsafe fn pread(real: PreadFn, fd: c_int, buffer: *mut c_void, len: size_t, offset: off_t) -> ssize_t {
    let request = || Transfer::one(Op::Read, buffer, len, Place::At(offset));
    transfer(fd, request, || unsafe { real(fd, buffer, len, offset) })
}

unsafe fn pwrite(real: PwriteFn, fd: c_int, buffer: *const c_void, len: size_t, offset: off_t) -> ssize_t {
    let request = || Transfer::one(Op::Write, buffer.cast_mut(), len, Place::At(offset));
    transfer(fd, request, || unsafe { real(fd, buffer, len, offset) })
}

unsafe fn readv(real: VectorFn, fd: c_int, vectors: *const iovec, count: c_int) -> ssize_t {
    let request = || Transfer::many(Op::Read, vectors, count, Place::Offset, 0);
    transfer(fd, request, || unsafe { real(fd, vectors, count) })
}

unsafe fn writev(real: VectorFn, fd: c_int, vectors: *const iovec, count: c_int) -> ssize_t {
    let request = || Transfer::many(Op::Write, vectors, count, Place::Offset, 0);
    transfer(fd, request, || unsafe { real(fd, vectors, count) })
}

unsafe fn preadv(real: PvectorFn, fd: c_int, vectors: *const iovec, count: c_int, offset: off_t) -> ssize_t {
    let request = || Transfer::many(Op::Read, vectors, count, Place::At(offset), 0);
    transfer(fd, request, || unsafe { real(fd, vectors, count, offset) })
}

unsafe fn pwritev(real: PvectorFn, fd: c_int, vectors: *const iovec, count: c_int, offset: off_t) -> ssize_t {
    let request = || Transfer::many(Op::Write, vectors, count, Place::At(offset), 0);
    transfer(fd, request, || unsafe { real(fd, vectors, count, offset) })
}

unsafe fn preadv2(
    real: Pvector2Fn,
    fd: c_int,
    vectors: *const iovec,
    count: c_int,
    offset: off_t,
    flags: c_int,
) -> ssize_t {
    let request = || Transfer::many(Op::Read, vectors, count, Place::of_v2(offset), flags);
    transfer(fd, request, || unsafe { real(fd, vectors, count, offset, flags) })
}

unsafe fn pwritev2(
    real: Pvector2Fn,
    fd: c_int,
    vectors: *const iovec,
    count: c_int,
    offset: off_t,
    flags: c_int,
) -> ssize_t {
    let request = || Transfer::many(Op::Write, vectors, count, Place::of_v2(offset), flags);
    transfer(fd, request, || unsafe { real(fd, vectors, count, offset, flags) })
}

// The checked names abort in glibc when `len` does not fit in `room`: those calls go there whatever the file is.
unsafe fn read_chk(real: ReadChkFn, fd: c_int, buffer: *mut c_void, len: size_t, room: size_t) -> ssize_t {
    let call = || unsafe { real(fd, buffer, len, room) };
    if len > room {
        return call();
    }
    transfer(fd, || Transfer::one(Op::Read, buffer, len, Place::Offset), call)
}

unsafe fn pread_chk(
    real: PreadChkFn,
    fd: c_int,
    buffer: *mut c_void,
    len: size_t,
    offset: off_t,
    room: size_t,
) -> ssize_t {
    let call = || unsafe { real(fd, buffer, len, offset, room) };
    if len > room {
        return call();
    }
    transfer(fd, || Transfer::one(Op::Read, buffer, len, Place::At(offset)), call)
}

/// Where a transfer takes place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// At the descriptor's offset, which it moves.
    Offset,
    /// There.
    At(off_t),
}

impl Place {
    fn of_v2(offset: off_t) -> Self {
        if offset == -1 { Self::Offset } else { Self::At(offset) }
    }
}

/// A read or write as the application asked for it.
pub struct Transfer {
    op: Op,
    one: IoVec,
    /// With `count`, instead of `one`.
    many: Option<*const iovec>,
    count: c_int,
    place: Place,
    rwf: c_int,
}

/// The kernel moves no more than this in one call.
const MOST: usize = 0x7fff_f000;
/// Vectors of one call.
const VECTORS_MAX: c_int = 1024;

impl Transfer {
    /// With one buffer.
    pub fn one(op: Op, buffer: *mut c_void, len: size_t, place: Place) -> Self {
        Self { op, one: IoVec { base: buffer.cast(), len }, many: None, count: 1, place, rwf: 0 }
    }

    /// With several buffers; `rwf` are the `RWF_` flags.
    pub fn many(op: Op, vectors: *const iovec, count: c_int, place: Place, rwf: c_int) -> Self {
        let one = IoVec { base: std::ptr::null_mut(), len: 0 };
        Self { op, one, many: Some(vectors), count, place, rwf }
    }

    fn vectors(&self) -> Result<&[IoVec]> {
        let Some(many) = self.many else { return Ok(std::slice::from_ref(&self.one)) };
        match self.count {
            0 => Ok(&[]),
            // SAFETY: the application promises `count` of them; both types are C's `struct iovec`.
            1..=VECTORS_MAX => Ok(unsafe { std::slice::from_raw_parts(many.cast(), self.count as usize) }),
            _ => Err(Errno::INVAL),
        }
    }

    fn call(&self) -> Call {
        let (offset, positional) = match self.place {
            Place::At(offset) => (offset.max(0) as u64, Flags::POSITIONAL),
            Place::Offset => (0, Flags::NONE),
        };
        let vector = if self.many.is_some() { Flags::VECTOR } else { Flags::NONE };
        let size = self.vectors().map_or(0, |vectors| vectors.iter().map(|v| v.len as u64).sum());
        Call { op: self.op, flags: positional.with(vector), offset, size }
    }
}

#[inline]
fn transfer(fd: c_int, request: impl FnOnce() -> Transfer, real: impl FnOnce() -> isize) -> isize {
    match table::tracked(fd) {
        None => real(),
        Some(entry) => tracked(fd, entry, &request(), real),
    }
}

fn tracked(fd: c_int, entry: EntryRef, request: &Transfer, real: impl FnOnce() -> isize) -> isize {
    match Subject::of_entry(fd, entry) {
        Subject::Plain => real(),
        Subject::Recorded(entry) => match request.place {
            Place::At(_) => record::timed(&entry, request.call(), real),
            Place::Offset => record::timed_at_offset(fd, &entry, request.call(), real),
        },
        Subject::Managed(managed) => managed_transfer(&managed, request),
    }
}

fn managed_transfer(managed: &Managed, request: &Transfer) -> isize {
    let mut offset = 0;
    let mut run = || {
        serve(|| {
            let (at, moved) = move_bytes(managed, request)?;
            offset = at;
            Ok(moved as isize)
        })
    };
    let Some((recorder, file)) = record::wanted(managed.entry()) else { return run() };
    let start = recorder.now();
    let result = run();
    let end = recorder.now();
    let Call { op, flags, offset: asked, size } = request.call();
    let offset = if result < 0 { asked } else { offset };
    let result_for_trace = record::Outcome::for_trace(result);
    recorder.record(&stripewise_recorder::Event {
        file,
        op,
        flags,
        offset,
        size,
        start,
        end,
        result: result_for_trace,
    });
    result
}

/// Serves a transfer on a managed file. Returns where it took place, and how many bytes were moved.
///
/// # Errors
/// As preadv2(2) and pwritev2(2).
pub fn move_bytes(managed: &Managed, request: &Transfer) -> Result<(u64, usize)> {
    // In the kernel's order, so that of several mistakes the same one is reported.
    if matches!(request.place, Place::At(..0)) {
        return Err(Errno::INVAL);
    }
    let flags = managed.flags()?;
    let wrong = if request.op == Op::Read { OFlags::WRONLY } else { OFlags::RDONLY };
    if flags & OFlags::RWMODE == wrong {
        return Err(Errno::BADF);
    }
    let rwf = known_flags(request)?;
    let vectors = request.vectors()?;
    let total =
        vectors.iter().try_fold(0usize, |sum, v| sum.checked_add(v.len)).filter(|&t| t <= isize::MAX as usize);
    let total = total.ok_or(Errno::INVAL)?;
    if let Place::At(offset) = request.place
        && offset.checked_add(total as i64).is_none()
    {
        return Err(Errno::INVAL);
    }
    if total == 0 {
        managed.file()?;
        return Ok((0, 0));
    }
    let shortened = if total > MOST { Some(shorten(vectors, MOST)) } else { None };
    let vectors = shortened.as_deref().unwrap_or(vectors);
    let job = Job {
        managed,
        vectors,
        total: total.min(MOST),
        options: IoOptions { direct: flags.contains(OFlags::DIRECT) },
    };
    if request.op == Op::Read {
        return job.at_place(request.place, |job, offset| unsafe {
            job.managed.file()?.read_at(job.vectors, offset, job.options)
        });
    }
    let appends = rwf & libc::RWF_APPEND != 0 || (flags.contains(OFlags::APPEND) && rwf & RWF_NOAPPEND == 0);
    let done = if appends { job.append(request.place)? } else { job.at_place(request.place, Job::write)? };
    let synchronous = flags.contains(OFlags::SYNC) || rwf & libc::RWF_SYNC != 0;
    if synchronous || flags.contains(OFlags::DSYNC) || rwf & libc::RWF_DSYNC != 0 {
        managed.file()?.sync(!synchronous)?;
    }
    Ok(done)
}

const RWF_NOAPPEND: c_int = 0x20;

fn known_flags(request: &Transfer) -> Result<c_int> {
    let known = libc::RWF_HIPRI | libc::RWF_DSYNC | libc::RWF_SYNC | libc::RWF_APPEND | RWF_NOAPPEND;
    // RWF_NOWAIT, RWF_ATOMIC and what is to come: a caller may not get less than it asked for.
    if request.rwf & !known == 0 { Ok(request.rwf) } else { Err(Errno::OPNOTSUPP) }
}

fn shorten(vectors: &[IoVec], most: usize) -> Vec<IoVec> {
    let mut left = most;
    let cut = |v: &IoVec| {
        let len = v.len.min(left);
        left -= len;
        IoVec { base: v.base, len }
    };
    vectors.iter().map(cut).collect()
}

struct Job<'a> {
    managed: &'a Managed,
    vectors: &'a [IoVec],
    total: usize,
    options: IoOptions,
}

impl Job<'_> {
    fn write(&self, offset: u64) -> Result<usize> {
        let room = room_below_limit(offset)?;
        let shortened = (room < self.total as u64).then(|| shorten(self.vectors, room as usize));
        let vectors = shortened.as_deref().unwrap_or(self.vectors);
        // SAFETY: the application's buffers, which only the kernel follows.
        unsafe { self.managed.file()?.write_at(vectors, offset, self.options) }
    }

    fn append(&self, place: Place) -> Result<(u64, usize)> {
        let file = self.managed.file()?;
        room_below_limit(file.size()?)?;
        // SAFETY: as above.
        let (offset, moved) = unsafe { file.append(self.vectors, self.options)? };
        if place == Place::Offset {
            self.managed.set_offset(offset + moved as u64)?;
        }
        Ok((offset, moved))
    }

    /// At the descriptor's offset the range is reserved first, in one step for all threads and processes that share the
    /// descriptor, and what was not moved is given back.
    fn at_place(&self, place: Place, run: impl Fn(&Self, u64) -> Result<usize>) -> Result<(u64, usize)> {
        if let Place::At(offset) = place {
            return Ok((offset as u64, run(self, offset as u64)?));
        }
        let fd = self.managed.fd();
        let Ok(end) = seek(fd, SeekFrom::Current(self.total as i64)) else {
            // Near the largest offset of the anchor's file system.
            let offset = self.managed.offset()?;
            let moved = run(self, offset)?;
            self.managed.set_offset(offset + moved as u64)?;
            return Ok((offset, moved));
        };
        let offset = end - self.total as u64;
        let result = run(self, offset);
        let missing = self.total - result.as_ref().copied().unwrap_or(0);
        if missing > 0 {
            seek(fd, SeekFrom::Current(-(missing as i64)))?;
        }
        Ok((offset, result?))
    }
}

/// Bytes that RLIMIT_FSIZE leaves at the offset; at the limit the signal is sent, as the kernel does.
fn room_below_limit(offset: u64) -> Result<u64> {
    let Some(limit) = getrlimit(Resource::Fsize).current else { return Ok(u64::MAX) };
    if offset < limit {
        return Ok(limit - offset);
    }
    // SAFETY: no memory is involved.
    unsafe { libc::raise(libc::SIGXFSZ) };
    errno::set(0);
    Err(Errno::FBIG)
}
