//! Passes calls on to the recorder.

use std::ffi::{CStr, c_int};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::Ordering;

use rustix::fs::{CWD, SeekFrom, openat, seek};
use stripewise_recorder::{Event, FileId, Flags, Op, Recorder};
use stripewise_sys::{Errno, Mode, OFlags, Result};

use crate::descriptors::entry::UNKNOWN_OFFSET;
use crate::descriptors::{Absolute, Entry, borrow_dir, sniff};
use crate::process::{At, Closing, Scratch, borrow, errno, identity, state};

/// The parameters of a call, as in [`Event`].
#[derive(Clone, Copy)]
pub struct Call {
    pub op: Op,
    pub flags: Flags,
    pub offset: u64,
    pub size: u64,
}

impl Call {
    /// A call without offset and size.
    pub fn plain(op: Op) -> Self {
        Self { op, flags: Flags::NONE, offset: 0, size: 0 }
    }

    /// A call on a range of the file. Negative numbers, which the call refuses, count as 0.
    pub fn on_range(op: Op, offset: i64, size: i64) -> Self {
        Self { offset: offset.max(0) as u64, size: size.max(0) as u64, ..Self::plain(op) }
    }
}

/// The recorder, if calls on this entry are recorded.
#[inline]
pub fn wanted(entry: &Entry) -> Option<(Recorder, FileId)> {
    if entry.record_as == FileId::NOT_RECORDED { None } else { Some((state::recorder()?, entry.record_as)) }
}

/// Makes a call and records it. A negative result is recorded as minus errno.
#[inline]
pub fn timed<T: Copy + TryInto<i64>>(entry: &Entry, call: Call, run: impl FnOnce() -> T) -> T {
    timed_as(entry, run, |_| call)
}

/// As [`timed`], with the parameters that `call` determines from the result.
#[inline]
pub fn timed_as<T: Copy + TryInto<i64>>(
    entry: &Entry,
    run: impl FnOnce() -> T,
    call: impl FnOnce(T) -> Call,
) -> T {
    let Some((recorder, file)) = wanted(entry) else { return run() };
    let start = recorder.now();
    let value = run();
    let end = recorder.now();
    let result = value.try_into().ok().filter(|&value| value >= 0);
    let result = result.unwrap_or_else(|| -i64::from(errno::get()));
    let Call { op, flags, offset, size } = call(value);
    recorder.record(&Event { file, op, flags, offset, size, start, end, result });
    value
}

/// Makes a call that removes a name, and records it if the name was that of a regular file.
pub fn timed_removal(at: At, run: impl FnOnce() -> c_int) -> c_int {
    let regular = || at.stat(false).is_ok_and(|stat| sniff::is_regular(&stat));
    let recorder = if identity::is_vfork_child() { None } else { state::recorder() };
    let Some(recorder) = recorder.filter(|_| regular()) else { return run() };
    let start = recorder.now();
    let result = run();
    let end = recorder.now();
    if result == 0 {
        // SAFETY: the kernel could read the path.
        let path = errno::quietly(|| path_of_name(at.dir, unsafe { at.name() }.to_bytes()).ok());
        let file = path.map_or(FileId::NOT_RECORDED, |path| recorder.file_id(path.as_bytes()));
        if file != FileId::NOT_RECORDED {
            let Call { op, flags, offset, size } = Call::plain(Op::Unlink);
            recorder.record(&Event { file, op, flags, offset, size, start, end, result: 0 });
        }
    }
    result
}

/// The absolute path of a name that need not exist, in a directory that does. Only the directory's
/// symbolic links are followed.
#[inline(never)]
fn path_of_name(dir: c_int, path: &[u8]) -> Result<Absolute> {
    let begins = path.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    let (parent, name) = path.split_at(begins);
    let directory = match dir {
        _ if !parent.is_empty() => {
            // The path is copied, since it is not terminated and the process may not use `malloc`.
            let mut page = Scratch::new()?;
            let place = page.get_mut(..=parent.len()).ok_or(Errno::NAMETOOLONG)?;
            place[..parent.len()].copy_from_slice(parent);
            place[parent.len()] = 0;
            let parent = CStr::from_bytes_until_nul(&page[..]).map_err(|_| Errno::NAMETOOLONG)?;
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let opened = openat(borrow_dir(dir).unwrap_or(CWD), parent, flags, Mode::empty())?;
            Absolute::of(Closing::new(opened).as_fd().as_raw_fd())?
        }
        libc::AT_FDCWD => Absolute::of_working_directory()?,
        dir => Absolute::of(dir)?,
    };
    directory.join(name)
}

/// Makes a `read` or `write` of a plain file at the descriptor's offset, and records it with that
/// offset.
#[inline]
pub fn timed_at_offset(fd: c_int, entry: &Entry, call: Call, run: impl FnOnce() -> isize) -> isize {
    let appends = call.op == Op::Write && entry.status().contains(OFlags::APPEND);
    let before = if appends { 0 } else { known_offset(fd, entry) };
    timed_as(entry, run, |result| {
        let moved = result.max(0) as u64;
        let offset = if appends { kernel_offset(fd).saturating_sub(moved) } else { before };
        entry.offset.store(offset + moved, Ordering::Relaxed);
        let flags = if appends { call.flags.with(Flags::APPEND) } else { call.flags };
        Call { offset, flags, ..call }
    })
}

/// The offset of the next read or write: the remembered one, unless another process may have moved
/// it.
fn known_offset(fd: c_int, entry: &Entry) -> u64 {
    match entry.offset.load(Ordering::Relaxed) {
        UNKNOWN_OFFSET => kernel_offset(fd),
        _ if entry.forks != identity::forks() => kernel_offset(fd),
        offset => offset,
    }
}

fn kernel_offset(fd: c_int) -> u64 {
    seek(borrow(fd), SeekFrom::Current(0)).unwrap_or(0)
}
