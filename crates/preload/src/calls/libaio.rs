//! libaio: `io_submit` and its family. Threads of this library run the requests on managed files,
//! and their completions are returned together with the kernel's.
//!
//! As in libaio, all calls return the negated errno, and use system calls.

use std::collections::{HashMap, VecDeque};
use std::ffi::{c_int, c_long, c_void};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use libc::timespec;
use stripewise_recorder::{Event as Record, Flags, Op};
use stripewise_sys::{Errno, OFlags, Result};

use crate::calls::aio::{self, pool};
use crate::calls::request::{Place, Transfer, check_mode};
use crate::calls::transfer::move_with_flags;
use crate::descriptors::{Entry, Managed, Subject, record};
use crate::process::{borrow, errno, kernel, state};

/// `struct iocb` of a little-endian machine.
#[repr(C)]
#[derive(Clone, Copy)]
struct Iocb {
    data: u64,
    key: u32,
    rwf: u32,
    opcode: u16,
    priority: i16,
    fd: u32,
    buffer: u64,
    len: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    event_fd: u32,
}

/// `struct io_event`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Event {
    data: u64,
    iocb: u64,
    result: i64,
    result2: i64,
}

const IOCB_CMD_PREAD: u16 = 0;
const IOCB_CMD_PWRITE: u16 = 1;
const IOCB_CMD_FSYNC: u16 = 2;
const IOCB_CMD_FDSYNC: u16 = 3;
const IOCB_CMD_PREADV: u16 = 7;
const IOCB_CMD_PWRITEV: u16 = 8;
const IOCB_FLAG_RESFD: u32 = 1;
/// The libc crate lacks it.
const SYS_IO_PGETEVENTS: c_long = if cfg!(target_arch = "x86_64") { 333 } else { 292 };

#[unsafe(no_mangle)]
unsafe extern "C" fn io_submit(context: *mut c_void, count: c_long, iocbs: *mut *mut Iocb) -> c_int {
    negative(|| unsafe { submit(context as usize, count, iocbs) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn io_getevents(
    context: *mut c_void,
    least: c_long,
    most: c_long,
    events: *mut Event,
    timeout: *mut timespec,
) -> c_int {
    unsafe { io_pgetevents(context, least, most, events, timeout, std::ptr::null_mut()) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn io_pgetevents(
    context: *mut c_void,
    least: c_long,
    most: c_long,
    events: *mut Event,
    timeout: *mut timespec,
    signals: *mut libc::sigset_t,
) -> c_int {
    negative(|| {
        let signals = unsafe { signals.as_ref() };
        let count = unsafe { get_events(context as usize, least, most, events, timeout, signals) }?;
        if count > 0 {
            // SAFETY: that many were just stored there.
            record_completions(unsafe { std::slice::from_raw_parts(events, count as usize) });
        }
        Ok(count)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn io_cancel(context: *mut c_void, iocb: *mut Iocb, event: *mut Event) -> c_int {
    negative(|| {
        if pool::is_under_way(iocb as usize) {
            // The kernel can hardly cancel requests on files either.
            return Err(Errno::AGAIN);
        }
        let arguments = [context as usize, iocb as usize, event as usize];
        unsafe { kernel::call(libc::SYS_io_cancel, arguments) }.map(|result| result as c_int)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn io_destroy(context: *mut c_void) -> c_int {
    negative(|| {
        if let Some(ours) = Context::find(context as usize) {
            while pool::wait(None, None, || ours.under_way.load(Ordering::Acquire) == 0).is_err() {}
            lock(&CONTEXTS).as_mut().and_then(|contexts| contexts.remove(&(context as usize)));
        }
        unsafe { kernel::call(libc::SYS_io_destroy, [context as usize]) }.map(|result| result as c_int)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn io_queue_release(context: *mut c_void) -> c_int {
    unsafe { io_destroy(context) }
}

fn negative(body: impl FnOnce() -> Result<c_int>) -> c_int {
    errno::caught(body).unwrap_or_else(|error| -error.raw_os_error())
}

unsafe fn kernel_submit(context: usize, count: usize, iocbs: *mut *mut Iocb) -> Result<usize> {
    unsafe { kernel::call(libc::SYS_io_submit, [context, count, iocbs as usize]) }
}

/// The file of a request; a null request is left to the kernel.
unsafe fn subject(iocb: *mut Iocb) -> Subject {
    if iocb.is_null() { Subject::Plain } else { Subject::of(unsafe { (*iocb).fd }.cast_signed()) }
}

/// Submits requests in order until one fails. Consecutive requests for the kernel are submitted
/// together.
unsafe fn submit(context: usize, count: c_long, iocbs: *mut *mut Iocb) -> Result<c_int> {
    let Ok(count) = usize::try_from(count) else { return Err(Errno::INVAL) };
    let managed_at = |at: usize| match unsafe { subject(*iocbs.add(at)) } {
        Subject::Managed(managed) => Some(managed),
        _ => None,
    };
    let mut done = 0;
    while done < count {
        let submitted = match managed_at(done) {
            Some(managed) => unsafe { submit_managed(context, *iocbs.add(done), managed) }.map(|()| 1),
            None => {
                let run = (done + 1..count).find(|&at| managed_at(at).is_some()).unwrap_or(count) - done;
                let submitted = unsafe {
                    (done..done + run).for_each(|at| note(*iocbs.add(at)));
                    kernel_submit(context, run, iocbs.add(done))
                };
                if let Ok(submitted) = submitted {
                    if let Some(ours) = Context::find(context) {
                        ours.in_kernel.fetch_add(submitted as i64, Ordering::Relaxed);
                    }
                    // If the kernel took fewer than that, the next request is invalid.
                    if submitted < run {
                        return Ok((done + submitted) as c_int);
                    }
                }
                submitted
            }
        };
        match submitted {
            Ok(submitted) => done += submitted,
            Err(error) if done == 0 => return Err(error),
            Err(_) => break,
        }
    }
    if count == 0 { unsafe { kernel_submit(context, 0, iocbs) }.map(|_| 0) } else { Ok(done as c_int) }
}

/// Notes a request on a recorded plain file.
unsafe fn note(iocb: *mut Iocb) {
    if let Subject::Recorded(entry) = unsafe { subject(iocb) } {
        note_submission(&entry, iocb as u64, unsafe { &*iocb });
    }
}

unsafe fn submit_managed(context: usize, address: *mut Iocb, managed: Managed) -> Result<()> {
    // SAFETY: the kernel would copy it here, too.
    let iocb = unsafe { *address };
    // Only the kernel knows whether the context exists.
    unsafe { kernel_submit(context, 0, std::ptr::null_mut()) }?;
    let flags = managed.flags()?;
    let transfer = transfer_of(&iocb, flags)?;
    let ours = Context::find_or_make(context);
    ours.under_way.fetch_add(1, Ordering::AcqRel);
    let (after_all, id) = (transfer.is_none(), address as usize);
    let (key, fd) = (managed.file()?.key(), iocb.fd.cast_signed());
    let finish = move |ours: &Context, result: i64| {
        ours.complete(Event { data: iocb.data, iocb: id as u64, result, result2: 0 });
        if iocb.flags & IOCB_FLAG_RESFD != 0 {
            let one = 1u64.to_ne_bytes();
            let _ = rustix::io::write(borrow(iocb.event_fd.cast_signed()), &one);
        }
    };
    note_submission(managed.entry(), address as u64, &iocb);
    let (finished, cancelled) = (ours.clone(), ours.clone());
    let run = Box::new(move || {
        let result = errno::guarded(|| match &transfer {
            Some(request) => move_with_flags(&managed, request, flags).map(|(_, moved)| moved as i64),
            None => managed.file()?.sync(iocb.opcode == IOCB_CMD_FDSYNC).map(|()| 0),
        });
        finish(&finished, result.unwrap_or_else(|error| -i64::from(error.raw_os_error())));
    });
    let cancel = Box::new(move || finish(&cancelled, -i64::from(libc::ECANCELED)));
    pool::submit(pool::Task { id, fd, key, after_all, run, cancel }).inspect_err(|_| {
        ours.under_way.fetch_sub(1, Ordering::AcqRel);
    })
}

/// The bytes that a request moves; `None` for a sync.
fn transfer_of(iocb: &Iocb, flags: OFlags) -> Result<Option<Transfer>> {
    let place = Place::At(iocb.offset);
    let (buffer, rwf) = (iocb.buffer as usize as *mut c_void, iocb.rwf.cast_signed());
    let one = |op| Transfer::one(op, buffer, iocb.len as usize, place).detached(rwf);
    let many = |op| {
        let count = c_int::try_from(iocb.len).map_err(|_| Errno::INVAL)?;
        Transfer::many(op, buffer.cast_const().cast(), count, place, rwf).detached(rwf)
    };
    let permitted = |op| check_mode(flags, op).map(|()| op);
    match iocb.opcode {
        IOCB_CMD_PREAD => one(permitted(Op::Read)?).map(Some),
        IOCB_CMD_PWRITE => one(permitted(Op::Write)?).map(Some),
        IOCB_CMD_PREADV => many(permitted(Op::Read)?).map(Some),
        IOCB_CMD_PWRITEV => many(permitted(Op::Write)?).map(Some),
        IOCB_CMD_FSYNC | IOCB_CMD_FDSYNC => Ok(None),
        _ => Err(Errno::INVAL),
    }
}

unsafe fn get_events(
    context: usize,
    least: c_long,
    most: c_long,
    events: *mut Event,
    timeout: *mut timespec,
    signals: Option<&libc::sigset_t>,
) -> Result<c_int> {
    let kernel = |least: c_long, most: c_long, events: *mut Event, timeout: *const timespec| {
        // `struct __aio_sigset`: the set and its size in the kernel.
        let set = signals.map(|signals| [std::ptr::from_ref(signals) as usize, 8]);
        let (number, last) = match &set {
            None => (libc::SYS_io_getevents, 0),
            Some(set) => (SYS_IO_PGETEVENTS, set.as_ptr() as usize),
        };
        let (events, timeout) = (events as usize, timeout as usize);
        let arguments = [context, least as usize, most as usize, events, timeout, last];
        unsafe { kernel::call(number, arguments) }.map(|count| count as c_int)
    };
    let Some(ours) = Context::find(context) else { return kernel(least, most, events, timeout) };
    if least < 0 || most < least {
        return Err(Errno::INVAL);
    }
    let deadline = unsafe { timeout.as_ref() }.map(|timeout| Instant::now() + aio::duration(timeout));
    let now = timespec { tv_sec: 0, tv_nsec: 0 };
    let mut got = 0;
    loop {
        got += unsafe { ours.take(events.add(got as usize), most - got) };
        if got < most {
            let more = kernel(0, most - got, unsafe { events.add(got as usize) }, &now);
            match more {
                Ok(more) => {
                    ours.in_kernel.fetch_sub(more.into(), Ordering::Relaxed);
                    got += c_long::from(more);
                }
                Err(error) if got == 0 => return Err(error),
                Err(_) => return Ok(got as c_int),
            }
        }
        if got >= least {
            return Ok(got as c_int);
        }
        // There is no wait for both sources at once, so the kernel is polled.
        let polls = ours.in_kernel.load(Ordering::Relaxed) > 0 || ours.under_way.load(Ordering::Acquire) == 0;
        let pause = polls.then_some(Duration::from_millis(1));
        let mut asked = false;
        let woken =
            pool::wait(deadline, pause, || std::mem::replace(&mut asked, true) || !lock(&ours.done).is_empty());
        match woken {
            Ok(()) => {}
            Err(Errno::INTR) if got == 0 => return Err(Errno::INTR),
            Err(_) => return Ok(got as c_int),
        }
    }
}

/// A context (`io_context_t`): this library's unfinished requests, and completions to return.
/// Contexts are not inherited by fork.
#[derive(Default)]
struct Context {
    done: Mutex<VecDeque<Event>>,
    /// Number of this library's requests that have not ended.
    under_way: AtomicI64,
    /// Estimated number of requests in the kernel: those since this context is known.
    in_kernel: AtomicI64,
}

/// Whether any context is known. Most programs that use libaio have none with managed files.
static ANY: AtomicBool = AtomicBool::new(false);
static CONTEXTS: Mutex<Option<HashMap<usize, Arc<Context>>>> = Mutex::new(None);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Context {
    /// The context, if it ever had a request on a managed file.
    fn find(context: usize) -> Option<Arc<Self>> {
        if !ANY.load(Ordering::Acquire) {
            return None;
        }
        lock(&CONTEXTS).as_ref()?.get(&context).cloned()
    }

    /// The context; it is known from now on.
    fn find_or_make(context: usize) -> Arc<Self> {
        ANY.store(true, Ordering::Release);
        lock(&CONTEXTS).get_or_insert_default().entry(context).or_default().clone()
    }

    fn complete(&self, event: Event) {
        lock(&self.done).push_back(event);
        self.under_way.fetch_sub(1, Ordering::AcqRel);
    }

    /// Moves up to `most` completions to `events`, and returns their number.
    /// Safety: `events` has space for `most` completions.
    unsafe fn take(&self, events: *mut Event, most: c_long) -> c_long {
        let mut done = lock(&self.done);
        let count = done.len().min(most.max(0) as usize);
        for (at, event) in done.drain(..count).enumerate() {
            unsafe { events.add(at).write(event) };
        }
        count as c_long
    }
}

/// The records of requests, without end and result until the application fetches the result. By the
/// address of the request, which stays in use until the request has ended.
static PENDING: Mutex<Option<HashMap<u64, Record>>> = Mutex::new(None);

fn note_submission(entry: &Entry, address: u64, iocb: &Iocb) {
    let Some((recorder, file)) = record::wanted(entry) else { return };
    let op = match iocb.opcode {
        IOCB_CMD_PREAD | IOCB_CMD_PREADV => Op::Read,
        IOCB_CMD_PWRITE | IOCB_CMD_PWRITEV => Op::Write,
        _ => Op::Sync,
    };
    let vectors = matches!(iocb.opcode, IOCB_CMD_PREADV | IOCB_CMD_PWRITEV);
    let size = if vectors { unsafe { total(iocb) } } else { iocb.len };
    let (offset, start) = (iocb.offset.max(0) as u64, recorder.now());
    let flags = Flags::POSITIONAL.with(Flags::ASYNC);
    let pending = Record { file, op, flags, offset, size, start, end: start, result: 0 };
    lock(&PENDING).get_or_insert_default().insert(address, pending);
}

unsafe fn total(iocb: &Iocb) -> u64 {
    let vectors = iocb.buffer as usize as *const libc::iovec;
    let count = iocb.len.min(1024) as usize;
    // SAFETY: the application's array, which the kernel reads at submission.
    (0..count).map(|at| unsafe { (*vectors.add(at)).iov_len as u64 }).sum()
}

fn record_completions(events: &[Event]) {
    let Some(recorder) = state::recorder() else { return };
    let end = recorder.now();
    let mut all = lock(&PENDING);
    let Some(all) = all.as_mut() else { return };
    for event in events {
        if let Some(pending) = all.remove(&event.iocb) {
            recorder.record(&Record { end, result: event.result, ..pending });
        }
    }
}
