//! `lio_listio`.

use std::ffi::c_int;

use libc::sigevent;
use stripewise_sys::{Errno, Result};

use super::block::{Block, BlockRef, list};
use super::pool::start_thread;
use super::{notify, wait_for};
use crate::descriptors::subject::Subject;
use crate::process::errno::answer;

unsafe extern "C" {
    /// These names resolve to this library.
    fn aio_read(block: *mut Block) -> c_int;
    fn aio_write(block: *mut Block) -> c_int;
}

interpose!(
    lio_listio | lio_listio64 =
        |real, mode: c_int, blocks: *const *mut Block, count: c_int, event: *mut sigevent| -> c_int {
            // SAFETY: the application's array.
            let requests: Vec<_> =
                unsafe { list(blocks, count) }.into_iter().filter(|it| it.opcode != libc::LIO_NOP).collect();
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
        }
);

fn start(it: BlockRef) -> bool {
    // SAFETY: a block of the application's list.
    let block = it.address() as *mut Block;
    let result = unsafe {
        match it.opcode {
            libc::LIO_READ => aio_read(block),
            libc::LIO_WRITE => aio_write(block),
            _ => {
                it.finish(-1, libc::EINVAL);
                -1
            }
        }
    };
    result == 0
}

fn finish(requests: &[BlockRef]) -> Result<()> {
    wait_for(requests, None, |requests| !requests.iter().any(|it| it.is_running()))
}

/// Starts a thread that waits until all requests have ended and then notifies the application.
fn notify_after(requests: Vec<BlockRef>, event: sigevent) -> Result<()> {
    /// The value in it is a pointer of the application, which this library does not dereference.
    struct Event(sigevent);
    // SAFETY: see above.
    unsafe impl Send for Event {}
    let event = Event(event);
    let wait = move || {
        let event = event;
        while finish(&requests).is_err() {}
        notify::notify(&event.0);
    };
    start_thread("stripewise-lio", wait)
}
