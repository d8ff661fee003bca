//! glibc's `struct aiocb`: the fields of POSIX, and those in which glibc keeps status and result.
//! Notifies the application of the end of its request.

use std::cell::{Cell, UnsafeCell};
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicI64, Ordering};

use libc::{pthread_attr_t, sigevent, sigval};
use stripewise_recorder::{Event, FileId, Flags, Op, Recorder, Ticks, collective};
use stripewise_sys::Result;

use crate::process::{kernel, state};

#[repr(C)]
pub struct Block {
    pub fd: c_int,
    pub opcode: c_int,
    pub priority: c_int,
    pub buffer: *mut c_void,
    pub len: usize,
    event: sigevent,
    /// glibc's.
    _private: UnsafeCell<[usize; 2]>,
    error: AtomicI32,
    result: AtomicI64,
    pub offset: i64,
    mark: Cell<Mark>,
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

/// A control block of the application, which keeps it alive and unchanged until it has fetched the
/// result.
#[derive(Clone, Copy)]
pub struct BlockRef(&'static Block);

// SAFETY: between submission and completion only this library writes to the block; status and
// result are atomics.
unsafe impl Send for BlockRef {}

impl std::ops::Deref for BlockRef {
    type Target = Block;

    fn deref(&self) -> &Block {
        self.0
    }
}

/// The blocks of a list, without null pointers.
/// Safety: `list` has `count` pointers, each null or to a block.
pub unsafe fn list(list: *const *mut Block, count: c_int) -> Vec<BlockRef> {
    let count = if list.is_null() { 0 } else { usize::try_from(count).unwrap_or(0) };
    (0..count).filter_map(|at| unsafe { (*list.add(at)).as_ref() }).map(BlockRef).collect()
}

impl BlockRef {
    /// Safety: `block` lives until its request has ended.
    pub unsafe fn new(block: *mut Block) -> Self {
        Self(unsafe { &*block })
    }

    pub fn address(self) -> usize {
        ptr::from_ref(self.0) as usize
    }

    pub fn is_running(self) -> bool {
        self.error.load(Ordering::Acquire) == libc::EINPROGRESS
    }

    pub fn has_failed(self) -> bool {
        !matches!(self.error.load(Ordering::Acquire), 0 | libc::EINPROGRESS)
    }

    /// Stores result and status as glibc does for a finished request.
    pub fn finish(self, result: isize, error: c_int) {
        self.result.store(result as i64, Ordering::Relaxed);
        self.error.store(error, Ordering::Release);
    }

    /// Stores the outcome of a request that ran, and notifies the application.
    pub fn end(self, outcome: Result<usize>) {
        match outcome {
            Ok(moved) => self.finish(moved as isize, 0),
            Err(error) => self.finish(-1, error.raw_os_error()),
        }
        notify(&self.event);
    }

    /// Notes the time of submission for the record.
    pub fn mark(self, op: Op, wanted: Option<(Recorder, FileId)>) {
        let Some((recorder, file)) = wanted else { return };
        let how = u32::from(collective().0) << 8 | op as u32;
        let mark = Mark { check: self.check(), start: recorder.now().0, file: file.0, how };
        self.mark.set(mark);
    }

    pub fn unmark(self) {
        if state::recorder().is_some() {
            self.mark.set(Mark { check: 0, ..self.mark.get() });
        }
    }

    fn check(self) -> u64 {
        MARKED ^ self.address() as u64
    }

    /// Records the request after its result was fetched, if it was marked.
    pub fn record(self, result: isize) {
        let Some(recorder) = state::recorder() else { return };
        let mark = self.mark.get();
        if mark.check != self.check() {
            return;
        }
        self.unmark();
        let error = self.error.load(Ordering::Acquire);
        let collective = Flags((mark.how >> 8) as u8);
        recorder.record(&Event {
            file: FileId(mark.file),
            op: if mark.how as u8 == Op::Write as u8 { Op::Write } else { Op::Read },
            flags: Flags::POSITIONAL.with(Flags::ASYNC).with(collective),
            offset: self.offset.max(0) as u64,
            size: self.len as u64,
            start: Ticks(mark.start),
            end: recorder.now(),
            result: if result < 0 { -i64::from(error) } else { result as i64 },
        });
    }
}

/// The members of `struct sigevent` for SIGEV_THREAD, which the libc crate does not expose.
#[repr(C)]
struct ThreadEvent {
    value: sigval,
    signal: c_int,
    notify: c_int,
    function: Option<extern "C" fn(sigval)>,
    attributes: *const pthread_attr_t,
}

struct Call {
    function: extern "C" fn(sigval),
    value: sigval,
}

/// Notifies the application of the end of a request, as its `struct sigevent` asks.
pub fn notify(event: &sigevent) {
    match event.sigev_notify {
        libc::SIGEV_SIGNAL => send(event.sigev_signo, event.sigev_value),
        libc::SIGEV_THREAD => {
            // SAFETY: the same structure, with the members of this kind of notification.
            let event = unsafe { &*ptr::from_ref(event).cast::<ThreadEvent>() };
            if let Some(function) = event.function {
                start(Call { function, value: event.value }, event.attributes);
            }
        }
        _ => {}
    }
}

fn send(signal: c_int, value: sigval) {
    /// `siginfo_t`, for a signal with a value.
    #[repr(C)]
    struct Info {
        signal: c_int,
        error: c_int,
        code: c_int,
        padding: c_int,
        pid: libc::pid_t,
        uid: libc::uid_t,
        value: sigval,
        rest: [u64; 12],
    }
    const _: () = assert!(size_of::<Info>() == 128);
    // SAFETY: contains no pointers except the application's value.
    let _ = unsafe {
        let pid = libc::getpid();
        let code = libc::SI_ASYNCIO;
        let info = Info { signal, error: 0, code, padding: 0, pid, uid: libc::getuid(), value, rest: [0; 12] };
        let arguments = [pid as usize, signal as usize, ptr::from_ref(&info) as usize];
        kernel::call(libc::SYS_rt_sigqueueinfo, arguments)
    };
}

/// Calls the function in a new thread with the attributes of the application.
fn start(call: Call, attributes: *const pthread_attr_t) {
    extern "C" fn main(call: *mut c_void) -> *mut c_void {
        // SAFETY: passed to this thread alone.
        let Call { function, value } = unsafe { *Box::from_raw(call.cast::<Call>()) };
        // The signals that were blocked when the thread was started are unblocked.
        unsafe {
            let mut none = MaybeUninit::uninit();
            libc::sigemptyset(none.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_SETMASK, none.as_ptr(), ptr::null_mut());
        }
        function(value);
        ptr::null_mut()
    }
    let call = Box::into_raw(Box::new(call));
    // SAFETY: the attributes are valid; the thread owns the call.
    unsafe {
        let mut own = MaybeUninit::uninit();
        libc::pthread_attr_init(own.as_mut_ptr());
        libc::pthread_attr_setdetachstate(own.as_mut_ptr(), libc::PTHREAD_CREATE_DETACHED);
        let chosen = if attributes.is_null() { own.as_ptr() } else { attributes };
        let mut thread = MaybeUninit::uninit();
        if libc::pthread_create(thread.as_mut_ptr(), chosen, main, call.cast()) != 0 {
            drop(Box::from_raw(call));
        }
        libc::pthread_attr_destroy(own.as_mut_ptr());
    }
}
