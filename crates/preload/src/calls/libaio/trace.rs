//! Records asynchronous requests: their parameters when they are submitted, their results when the
//! application fetches them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use stripewise_recorder::{Event as Record, FileId, Flags, Op, Ticks};

use super::{Event, IOCB_CMD_PREAD, IOCB_CMD_PREADV, IOCB_CMD_PWRITE, IOCB_CMD_PWRITEV, Iocb};
use crate::descriptors::entry::EntryRef;
use crate::process::{record, state};

struct Pending {
    file: FileId,
    op: Op,
    offset: u64,
    size: u64,
    start: Ticks,
}

/// By the address of the request, which stays in use until the request has ended.
static PENDING: Mutex<Option<HashMap<u64, Pending>>> = Mutex::new(None);

pub fn submitted(entry: &EntryRef, address: u64, iocb: &Iocb) {
    let Some((recorder, file)) = record::wanted(entry) else { return };
    let op = match iocb.opcode {
        IOCB_CMD_PREAD | IOCB_CMD_PREADV => Op::Read,
        IOCB_CMD_PWRITE | IOCB_CMD_PWRITEV => Op::Write,
        _ => Op::Sync,
    };
    let vectors = matches!(iocb.opcode, IOCB_CMD_PREADV | IOCB_CMD_PWRITEV);
    let size = if vectors { unsafe { total(iocb) } } else { iocb.len };
    let pending = Pending { file, op, offset: iocb.offset.max(0) as u64, size, start: recorder.now() };
    let mut all = PENDING.lock().unwrap_or_else(PoisonError::into_inner);
    all.get_or_insert_default().insert(address, pending);
}

unsafe fn total(iocb: &Iocb) -> u64 {
    let vectors = iocb.buffer as usize as *const libc::iovec;
    let count = iocb.len.min(1024) as usize;
    // SAFETY: the application's array, which the kernel reads at submission.
    (0..count).map(|at| unsafe { (*vectors.add(at)).iov_len as u64 }).sum()
}

pub fn completed(events: &[Event]) {
    let Some(recorder) = state::recorder() else { return };
    let end = recorder.now();
    let mut all = PENDING.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(all) = all.as_mut() else { return };
    for event in events {
        if let Some(Pending { file, op, offset, size, start }) = all.remove(&event.iocb) {
            let flags = Flags::POSITIONAL.with(Flags::ASYNC);
            recorder.record(&Record { file, op, flags, offset, size, start, end, result: event.result });
        }
    }
}
