//! glibc's `struct aiocb`: the fields of POSIX, and those in which glibc keeps status and result.

use std::ffi::{c_int, c_void};
use std::ptr::{addr_of, addr_of_mut};
use std::sync::atomic::{AtomicI32, AtomicI64, Ordering};

use stripewise_recorder::{Event, FileId, Flags, Op, Recorder, Ticks};

use super::{PUBLISH, notify};
use crate::process::state;

/// `struct aiocb`, with the fields that this library uses.
#[repr(C)]
pub struct Block {
    fd: c_int,
    pub opcode: c_int,
    priority: c_int,
    buffer: *mut c_void,
    len: usize,
    event: libc::sigevent,
    next: *mut Block,
    absolute_priority: c_int,
    policy: c_int,
    error: AtomicI32,
    result: AtomicI64,
    offset: i64,
    mark: Mark,
}

/// Data for the record that is made when the result is fetched, in bytes that glibc reserves and
/// never reads.
#[repr(C)]
#[derive(Clone, Copy)]
struct Mark {
    /// [`MARKED`] xor the block's address, so that a copy of a block is not marked.
    check: u64,
    start: u64,
    file: u32,
    /// Low byte: the operation. Above: the recorder's flags at submission.
    how: u32,
}

const MARKED: u64 = 0x7374_7269_7065_7769;

const _: () =
    assert!(size_of::<Block>() <= size_of::<libc::aiocb>() && std::mem::offset_of!(Block, error) == 112);
const _: () = assert!(std::mem::offset_of!(Block, offset) == std::mem::offset_of!(libc::aiocb, aio_offset));

/// A control block of the application, which keeps it alive until it has fetched the result.
#[derive(Clone, Copy)]
pub struct BlockRef(*mut Block);

// SAFETY: between submission and completion only this library writes to the block; status and
// result are atomics.
unsafe impl Send for BlockRef {}

/// The blocks of a list, without null pointers.
///
/// # Safety
/// `list` has `count` pointers, each null or to a block.
pub unsafe fn list(list: *const *mut Block, count: c_int) -> Vec<BlockRef> {
    let count = if list.is_null() { 0 } else { usize::try_from(count).unwrap_or(0) };
    (0..count).map(|at| unsafe { *list.add(at) }).filter(|block| !block.is_null()).map(BlockRef).collect()
}

impl BlockRef {
    /// # Safety
    /// `block` lives until its request has ended.
    pub unsafe fn new(block: *mut Block) -> Self {
        Self(block)
    }

    pub fn address(self) -> usize {
        self.0 as usize
    }

    pub fn pointer(self) -> *mut Block {
        self.0
    }

    // Fields are read one by one, because other threads write other fields at the same time.

    pub fn fd(self) -> c_int {
        unsafe { addr_of!((*self.0).fd).read() }
    }

    pub fn opcode(self) -> c_int {
        unsafe { addr_of!((*self.0).opcode).read() }
    }

    pub fn priority(self) -> c_int {
        unsafe { addr_of!((*self.0).priority).read() }
    }

    pub fn buffer(self) -> *mut c_void {
        unsafe { addr_of!((*self.0).buffer).read() }
    }

    pub fn len(self) -> usize {
        unsafe { addr_of!((*self.0).len).read() }
    }

    pub fn offset(self) -> i64 {
        unsafe { addr_of!((*self.0).offset).read() }
    }

    fn error(&self) -> &AtomicI32 {
        unsafe { &*addr_of!((*self.0).error) }
    }

    /// Whether the request is in progress.
    pub fn is_running(self) -> bool {
        self.error().load(Ordering::Acquire) == libc::EINPROGRESS
    }

    /// Whether the request ended with an error.
    pub fn has_failed(self) -> bool {
        !matches!(self.error().load(Ordering::Acquire), 0 | libc::EINPROGRESS)
    }

    /// Sets the status to "in progress".
    pub fn begin(self) {
        self.finish(0, libc::EINPROGRESS);
    }

    /// Stores result and status as glibc does for a finished request.
    pub fn finish(self, result: isize, error: c_int) {
        unsafe { &*addr_of!((*self.0).result) }.store(result as i64, Ordering::Relaxed);
        self.error().store(error, PUBLISH);
    }

    /// Notifies the application as its `sigevent` asks.
    pub fn notify(self) {
        notify::notify(&unsafe { addr_of!((*self.0).event).read() });
    }

    /// Notes the time of submission for the record.
    pub fn mark(self, op: Op, wanted: Option<(Recorder, FileId)>) {
        let Some((recorder, file)) = wanted else { return };
        let how = u32::from(recorder.collective().0) << 8 | op as u32;
        let mark = Mark { check: self.check(), start: recorder.now().0, file: file.0, how };
        unsafe { addr_of_mut!((*self.0).mark).write(mark) };
    }

    /// Undoes [`BlockRef::mark`].
    pub fn unmark(self) {
        if state::recorder().is_some() {
            unsafe { addr_of_mut!((*self.0).mark.check).write(0) };
        }
    }

    fn check(self) -> u64 {
        MARKED ^ self.0 as u64
    }

    /// Records the request after its result was fetched, if it was marked.
    pub fn record(self, result: isize) {
        let Some(recorder) = state::recorder() else { return };
        let mark = unsafe { addr_of!((*self.0).mark).read() };
        if mark.check != self.check() {
            return;
        }
        self.unmark();
        let error = self.error().load(Ordering::Acquire);
        let op = if mark.how as u8 == Op::Write as u8 { Op::Write } else { Op::Read };
        let collective = Flags((mark.how >> 8) as u8);
        recorder.record(&Event {
            file: FileId(mark.file),
            op,
            flags: Flags::POSITIONAL.with(Flags::ASYNC).with(collective),
            offset: self.offset().max(0) as u64,
            size: self.len() as u64,
            start: Ticks(mark.start),
            end: recorder.now(),
            result: if result < 0 { -i64::from(error) } else { result as i64 },
        });
    }
}
