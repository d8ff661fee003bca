//! Passes calls on to the recorder.

use std::ffi::c_int;
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering;

use rustix::fs::{OFlags, SeekFrom, fcntl_getfl, seek};
use stripewise_recorder::{Event, FileId, Flags, Op, Recorder};

use crate::descriptors::entry::{Entry, UNKNOWN_OFFSET};
use crate::process::{errno, identity, state};

/// The parameters of a call for its record.
#[derive(Clone, Copy)]
pub struct Call {
    pub op: Op,
    /// Positional, vector, append and so on.
    pub flags: Flags,
    /// Offset in the file, bytes.
    pub offset: u64,
    /// Requested bytes.
    pub size: u64,
}

impl Call {
    /// A call without offset and size.
    pub fn plain(op: Op) -> Self {
        Self { op, flags: Flags::NONE, offset: 0, size: 0 }
    }

    /// A call with a size, but no offset.
    pub fn sized(op: Op, size: u64) -> Self {
        Self { size, ..Self::plain(op) }
    }
}

/// The result of a C function: a number that is negative if the call failed.
pub trait Outcome: Copy {
    /// The value for the trace: the result, or minus errno if the call failed.
    fn for_trace(self) -> i64;
}

fn or_errno(value: i64) -> i64 {
    if value < 0 { -i64::from(errno::get()) } else { value }
}

impl Outcome for c_int {
    fn for_trace(self) -> i64 {
        or_errno(self.into())
    }
}

impl Outcome for isize {
    fn for_trace(self) -> i64 {
        or_errno(self as i64)
    }
}

impl Outcome for i64 {
    fn for_trace(self) -> i64 {
        or_errno(self)
    }
}

/// The recorder, if calls on this entry are recorded.
#[inline]
pub fn wanted(entry: &Entry) -> Option<(Recorder, FileId)> {
    let file = entry.record_as();
    if file == FileId::NOT_RECORDED { None } else { Some((state::recorder()?, file)) }
}

/// Makes a call and records it.
#[inline]
pub fn timed<T: Outcome>(entry: &Entry, call: Call, run: impl FnOnce() -> T) -> T {
    let Some((recorder, file)) = wanted(entry) else { return run() };
    let start = recorder.now();
    let result = run();
    let Call { op, flags, offset, size } = call;
    recorder.record(&Event {
        file,
        op,
        flags,
        offset,
        size,
        start,
        end: recorder.now(),
        result: result.for_trace(),
    });
    result
}

/// Makes a `read` or `write` of a plain file at the descriptor's offset, and records it with that
/// offset.
#[inline]
pub fn timed_at_offset(fd: c_int, entry: &Entry, mut call: Call, run: impl FnOnce() -> isize) -> isize {
    let Some((recorder, file)) = wanted(entry) else { return run() };
    let appends = call.op == Op::Write && entry.appends();
    let before = if appends { 0 } else { known_offset(fd, entry) };
    let start = recorder.now();
    let result = run();
    let end = recorder.now();
    let moved = result.max(0) as u64;
    if appends {
        call.flags = call.flags.with(Flags::APPEND);
        call.offset = kernel_offset(fd).saturating_sub(moved);
        entry.offset.store(call.offset + moved, Ordering::Relaxed);
    } else {
        call.offset = before;
        entry.offset.store(before + moved, Ordering::Relaxed);
    }
    let Call { op, flags, offset, size } = call;
    recorder.record(&Event { file, op, flags, offset, size, start, end, result: result.for_trace() });
    result
}

/// Whether the descriptor is in append mode, for a new [`Entry`].
pub fn appends(fd: c_int) -> bool {
    // SAFETY: borrowed for the call.
    fcntl_getfl(unsafe { BorrowedFd::borrow_raw(fd) }).is_ok_and(|flags| flags.contains(OFlags::APPEND))
}

/// The offset of the next read or write: the remembered one, unless another process may have moved
/// it.
fn known_offset(fd: c_int, entry: &Entry) -> u64 {
    match entry.offset.load(Ordering::Relaxed) {
        UNKNOWN_OFFSET => kernel_offset(fd),
        _ if entry.forks_seen() != identity::forks() => kernel_offset(fd),
        offset => offset,
    }
}

fn kernel_offset(fd: c_int) -> u64 {
    // SAFETY: borrowed for the call.
    seek(unsafe { BorrowedFd::borrow_raw(fd) }, SeekFrom::Current(0)).unwrap_or(0)
}
