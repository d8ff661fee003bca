//! POSIX asynchronous I/O: `aio_read` and its family, `lio_listio`.
//!
//! glibc's implementation uses threads whose reads and writes cannot be interposed. Threads of this
//! library run the requests on managed files. They store status and result in the control block
//! where glibc does, so `aio_error` and `aio_return` are glibc's.

mod block;
pub mod pool;

use std::ffi::c_int;
use std::time::{Duration, Instant};

use libc::{sigevent, timespec};
use stripewise_datapath::FileKey;
use stripewise_recorder::Op;
use stripewise_sys::{Errno, OFlags, Result};

use crate::calls::request::{Place, Transfer};
use crate::calls::transfer::move_with_flags;
use crate::descriptors::{Managed, Subject, record};
use crate::process::{answer, guarded, serve};

use block::{Block, BlockRef};

/// The largest `aio_reqprio` of glibc.
const PRIORITY_MAX: c_int = 20;

interpose!(
    aio_read | aio_read64 = |real, block: *mut Block| -> c_int { unsafe { transfer(Op::Read, block, real) } },
    aio_write | aio_write64 =
        |real, block: *mut Block| -> c_int { unsafe { transfer(Op::Write, block, real) } },
    aio_fsync | aio_fsync64 = |real, op: c_int, block: *mut Block| -> c_int {
        // SAFETY: as above.
        let it = unsafe { BlockRef::new(block) };
        let Some(managed) = Subject::managed(it.fd) else { return real() };
        serve(|| {
            if op != libc::O_SYNC && op != libc::O_DSYNC {
                return Err(Errno::INVAL);
            }
            managed.flags()?;
            let key = managed.file()?.key();
            it.finish(0, libc::EINPROGRESS);
            let sync = move || managed.file()?.sync(op == libc::O_DSYNC).map(|()| 0);
            enqueue(it, key, true, move || it.end(guarded(sync))).map(|()| 0)
        })
    },
    aio_return | aio_return64 = |real, block: *mut Block| -> isize {
        let result = real();
        // SAFETY: as above.
        unsafe { BlockRef::new(block) }.record(result);
        result
    },
    aio_cancel | aio_cancel64 = |real, fd: c_int, block: *mut Block| -> c_int {
        if Subject::managed(fd).is_none() {
            return real();
        }
        serve(|| {
            let (count, runs) = if block.is_null() {
                pool::cancel(|_, other| other == fd)
            } else {
                // SAFETY: as above.
                if unsafe { BlockRef::new(block) }.fd != fd {
                    return Err(Errno::INVAL);
                }
                pool::cancel(|id, _| id == block as usize)
            };
            Ok(match (count, runs) {
                (_, true) => libc::AIO_NOTCANCELED,
                (0, false) => libc::AIO_ALLDONE,
                _ => libc::AIO_CANCELED,
            })
        })
    },
    aio_suspend | aio_suspend64 =
        |real, list: *const *mut Block, count: c_int, timeout: *const timespec| -> c_int {
            // SAFETY: the application's array.
            let blocks = unsafe { block::list(list, count) };
            if !blocks.iter().any(|it| it.is_running() && pool::is_under_way(it.address())) {
                return real();
            }
            let deadline = unsafe { timeout.as_ref() }.map(|timeout| Instant::now() + duration(timeout));
            answer(|| {
                wait_for(&blocks, deadline, |blocks| blocks.iter().any(|it| !it.is_running())).map(|()| 0)
            })
        },
    lio_listio | lio_listio64 =
        |real, mode: c_int, blocks: *const *mut Block, count: c_int, event: *mut sigevent| -> c_int {
            // SAFETY: the application's array.
            let requests: Vec<_> = unsafe { block::list(blocks, count) }
                .into_iter()
                .filter(|it| it.opcode != libc::LIO_NOP)
                .collect();
            let of_interest = |it: &BlockRef| !matches!(Subject::of(it.fd), Subject::Plain);
            if !matches!(mode, libc::LIO_WAIT | libc::LIO_NOWAIT) || !requests.iter().any(of_interest) {
                return real();
            }
            let refused = requests.iter().filter(|it| !start(**it)).count();
            answer(|| {
                if mode == libc::LIO_WAIT {
                    finish(&requests)?;
                } else if let Some(event) =
                    unsafe { event.as_ref() }.filter(|event| event.sigev_notify != libc::SIGEV_NONE)
                {
                    notify_after(requests.clone(), *event)?;
                }
                let failed =
                    refused > 0 || (mode == libc::LIO_WAIT && requests.iter().any(|it| it.has_failed()));
                if failed { Err(Errno::IO) } else { Ok(0) }
            })
        },
);

/// Starts one request, with this library's threads or with glibc's.
unsafe fn transfer(op: Op, block: *mut Block, real: impl FnOnce() -> c_int) -> c_int {
    // SAFETY: the application passes a control block.
    let it = unsafe { BlockRef::new(block) };
    match Subject::of(it.fd) {
        Subject::Plain => real(),
        Subject::Recorded(entry) => {
            // Marked before the call, because another thread may fetch the result at once.
            it.mark(op, record::wanted(&entry));
            let result = real();
            if result != 0 {
                it.unmark();
            }
            result
        }
        Subject::Managed(managed) => serve(|| submit(op, it, managed).map(|()| 0)),
    }
}

fn submit(op: Op, it: BlockRef, managed: Managed) -> Result<()> {
    if !(0..=PRIORITY_MAX).contains(&it.priority) {
        it.finish(-1, libc::EINVAL);
        return Err(Errno::INVAL);
    }
    let flags = managed.flags();
    let request = Transfer::one(op, it.buffer, it.len, Place::At(it.offset));
    let key = managed.file().inspect_err(|error| it.finish(-1, error.raw_os_error()))?.key();
    it.mark(op, record::wanted(managed.entry()));
    it.finish(0, libc::EINPROGRESS);
    let appends = op == Op::Write && flags.is_ok_and(|flags| flags.contains(OFlags::APPEND));
    let run = move || it.end(guarded(|| move_with_flags(&managed, &request, flags?)).map(|(_, moved)| moved));
    if appends {
        // Appends are run here, so that they happen in the order of the calls.
        run();
        return Ok(());
    }
    enqueue(it, key, false, run)
}

fn enqueue(it: BlockRef, key: FileKey, after_all: bool, run: impl FnOnce() + Send + 'static) -> Result<()> {
    let (run, cancel) = (Box::new(run), Box::new(move || it.end(Err(Errno::CANCELED))));
    pool::submit(pool::Task { id: it.address(), fd: it.fd, key, after_all, run, cancel }).inspect_err(|error| {
        it.unmark();
        it.finish(-1, error.raw_os_error());
    })
}

/// Waits until `done`. The end of a request of this library wakes the wait; glibc's requests are
/// polled every millisecond.
fn wait_for(blocks: &[BlockRef], deadline: Option<Instant>, done: impl Fn(&[BlockRef]) -> bool) -> Result<()> {
    let foreign = blocks.iter().any(|it| it.is_running() && !pool::is_under_way(it.address()));
    let most = foreign.then_some(Duration::from_millis(1));
    pool::wait(deadline, most, || done(blocks))
}

/// Converts a timeout of C; out-of-range fields are clamped.
pub fn duration(timeout: &timespec) -> Duration {
    Duration::new(timeout.tv_sec.max(0) as u64, timeout.tv_nsec.clamp(0, 999_999_999) as u32)
}

fn start(it: BlockRef) -> bool {
    let block = it.address() as *mut libc::aiocb;
    // SAFETY: a block of the application's list. The functions are this library's.
    match it.opcode {
        libc::LIO_READ => unsafe { libc::aio_read(block) == 0 },
        libc::LIO_WRITE => unsafe { libc::aio_write(block) == 0 },
        _ => {
            it.finish(-1, libc::EINVAL);
            false
        }
    }
}

fn finish(requests: &[BlockRef]) -> Result<()> {
    wait_for(requests, None, |requests| !requests.iter().any(|it| it.is_running()))
}

/// Starts a thread that waits until all requests have ended and then notifies the application.
fn notify_after(requests: Vec<BlockRef>, event: sigevent) -> Result<()> {
    struct Event(sigevent);
    // SAFETY: this library does not dereference the application's pointer in it.
    unsafe impl Send for Event {}
    let event = Event(event);
    let wait = move || {
        let event = event;
        while finish(&requests).is_err() {}
        block::notify(&event.0);
    };
    pool::start_thread("stripewise-lio", wait)
}
