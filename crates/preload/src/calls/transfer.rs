//! Reads and writes of managed files.

use std::ffi::{c_int, c_void};
use std::slice;

use libc::{iovec, off_t};
use rustix::fs::{OFlags, SeekFrom, seek};
use rustix::process::{Resource, getrlimit};
use stripewise_datapath::IoOptions;
use stripewise_recorder::{Flags, Op};
use stripewise_sys::{Errno, IoVec, Result, raw};

use crate::calls::lifetime;
use crate::descriptors::{Call, Managed};
use crate::process::kernel;

/// The offset of a transfer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// At the descriptor's offset, which the transfer moves.
    Offset,
    /// At this offset, bytes.
    At(off_t),
}

impl Place {
    /// The place for calls in which an offset of -1 means the descriptor's offset (preadv2).
    pub fn of_v2(offset: off_t) -> Self {
        if offset == -1 { Self::Offset } else { Self::At(offset) }
    }
}

pub struct Transfer {
    op: Op,
    buffers: Buffers,
    pub place: Place,
    rwf: c_int,
}

enum Buffers {
    One(IoVec),
    /// The application's array.
    Many(&'static [IoVec]),
    /// A copy of the array, for a call that returns before the transfer.
    Copied(Vec<IoVec>),
    /// The array is too long, or cannot be read.
    Invalid(Errno),
}

// SAFETY: the application promises that the pointers stay valid. Only the kernel accesses the data,
// and an array that another thread uses is a copy.
unsafe impl Send for Transfer {}

/// Largest number of bytes that the kernel moves in one call (MAX_RW_COUNT).
pub const MOST: usize = 0x7fff_f000;
impl Transfer {
    pub fn one(op: Op, buffer: *mut c_void, len: usize, place: Place) -> Self {
        Self { op, buffers: Buffers::One(IoVec { base: buffer.cast(), len }), place, rwf: 0 }
    }

    /// `rwf` are the `RWF_` flags.
    pub fn many(op: Op, vectors: *const iovec, count: c_int, place: Place, rwf: c_int) -> Self {
        let buffers = match count as usize {
            0 => Buffers::Many(&[]),
            count @ 1..=raw::IOV_MAX if kernel::is_readable(vectors.cast(), count * size_of::<iovec>()) => {
                // SAFETY: the application passes this many; both types are C's `struct iovec`.
                Buffers::Many(unsafe { slice::from_raw_parts(vectors.cast(), count) })
            }
            1..=raw::IOV_MAX => Buffers::Invalid(Errno::FAULT),
            // The kernel does not read an array that is too long, so neither does this function.
            _ => Buffers::Invalid(Errno::INVAL),
        };
        Self { op, buffers, place, rwf }
    }

    /// The same transfer with these flags and without the application's array.
    pub fn detached(mut self, rwf: c_int) -> Result<Self> {
        if !matches!(self.buffers, Buffers::One(_)) {
            self.buffers = Buffers::Copied(self.vectors()?.to_vec());
        }
        self.rwf = rwf;
        Ok(self)
    }

    fn vectors(&self) -> Result<&[IoVec]> {
        match &self.buffers {
            Buffers::One(one) => Ok(slice::from_ref(one)),
            Buffers::Many(vectors) => Ok(vectors),
            Buffers::Copied(vectors) => Ok(vectors),
            Buffers::Invalid(error) => Err(*error),
        }
    }

    pub fn call(&self) -> Call {
        let (offset, positional) = match self.place {
            Place::At(offset) => (offset.max(0) as u64, Flags::POSITIONAL),
            Place::Offset => (0, Flags::NONE),
        };
        let vector = if matches!(self.buffers, Buffers::One(_)) { Flags::NONE } else { Flags::VECTOR };
        let size = self.vectors().map_or(0, |vectors| vectors.iter().map(|v| v.len as u64).sum());
        Call { op: self.op, flags: positional.with(vector), offset, size }
    }
}

/// Serves a transfer on a managed file. Returns its offset and the number of bytes moved.
pub fn move_bytes(managed: &Managed, request: &Transfer) -> Result<(u64, usize)> {
    // The checks have the kernel's order, so that of several errors the same one is reported.
    if matches!(request.place, Place::At(..0)) {
        return Err(Errno::INVAL);
    }
    move_with_flags(managed, request, managed.flags()?)
}

/// As [`move_bytes`], with the status flags that the descriptor had. A transfer at [`Place::At`]
/// does not touch the descriptor, which may be closed by now.
pub fn move_with_flags(managed: &Managed, request: &Transfer, flags: OFlags) -> Result<(u64, usize)> {
    if matches!(request.place, Place::At(..0)) {
        return Err(Errno::INVAL);
    }
    check_mode(flags, request.op)?;
    // RWF_NOWAIT, RWF_ATOMIC and future flags are refused: ignoring them would break a guarantee.
    let known = libc::RWF_HIPRI | libc::RWF_DSYNC | libc::RWF_SYNC | libc::RWF_APPEND | libc::RWF_NOAPPEND;
    let rwf = request.rwf;
    if rwf & !known != 0 {
        return Err(Errno::OPNOTSUPP);
    }
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
    let appends =
        rwf & libc::RWF_APPEND != 0 || (flags.contains(OFlags::APPEND) && rwf & libc::RWF_NOAPPEND == 0);
    let done = if appends { job.append(request.place)? } else { job.at_place(request.place, Job::write)? };
    if lifetime::is_ending() {
        lifetime::settle(managed.file()?);
    }
    let synchronous = flags.contains(OFlags::SYNC) || rwf & libc::RWF_SYNC != 0;
    if synchronous || flags.contains(OFlags::DSYNC) || rwf & libc::RWF_DSYNC != 0 {
        managed.file()?.sync(!synchronous)?;
    }
    Ok(done)
}

/// Errors: EBADF for status flags that do not permit the operation.
pub fn check_mode(flags: OFlags, op: Op) -> Result<()> {
    let wrong = if op == Op::Read { OFlags::WRONLY } else { OFlags::RDONLY };
    if flags & OFlags::RWMODE == wrong { Err(Errno::BADF) } else { Ok(()) }
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
        // SAFETY: the application's buffers, which only the kernel accesses.
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

    /// Runs a transfer at its offset. At the descriptor's offset it first reserves the range, in
    /// one step for all threads and processes that share the descriptor. After a short transfer it
    /// moves the offset back.
    fn at_place(&self, place: Place, run: impl Fn(&Self, u64) -> Result<usize>) -> Result<(u64, usize)> {
        if let Place::At(offset) = place {
            return Ok((offset as u64, run(self, offset as u64)?));
        }
        let fd = self.managed.fd();
        let Ok(end) = seek(fd, SeekFrom::Current(self.total as i64)) else {
            // The range exceeds the largest offset of the anchor's file system.
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

/// Number of bytes that RLIMIT_FSIZE leaves at the offset. At the limit it sends SIGXFSZ and fails,
/// as the kernel does.
fn room_below_limit(offset: u64) -> Result<u64> {
    let Some(limit) = getrlimit(Resource::Fsize).current else { return Ok(u64::MAX) };
    if offset < limit { Ok(limit - offset) } else { Err(exceeded()) }
}

/// Refuses, as the kernel does, to extend a file of `now()` bytes beyond RLIMIT_FSIZE. `now` is
/// called only if `size` is above the limit.
/// Errors: EFBIG, with SIGXFSZ. The error of `now`.
pub fn check_limit(size: u64, now: impl FnOnce() -> Result<u64>) -> Result<()> {
    let Some(limit) = getrlimit(Resource::Fsize).current else { return Ok(()) };
    if size > limit && size > now()? { Err(exceeded()) } else { Ok(()) }
}

fn exceeded() -> Errno {
    // SAFETY: no memory is involved.
    unsafe { libc::raise(libc::SIGXFSZ) };
    Errno::FBIG
}
