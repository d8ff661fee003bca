//! `lseek`.

use std::ffi::c_int;

use libc::off_t;
use stripewise_datapath::Whence;
use stripewise_recorder::Op;
use stripewise_sys::{Errno, Result};

use crate::descriptors::adopt;
use crate::descriptors::record::{self, Call};
use crate::descriptors::subject::{Managed, Subject};
use crate::process::errno::serve;

interpose!(
    lseek | lseek64 = |real, fd: c_int, offset: off_t, whence: c_int| -> off_t {
        let Some(entry) = adopt::tracked(fd) else { return real() };
        let (entry, result) = match Subject::of_entry(fd, entry) {
            Subject::Plain => return real(),
            Subject::Recorded(entry) => {
                let result = real();
                (entry, result)
            }
            Subject::Managed(managed) => {
                let result = match whence {
                    // The kernel keeps the offset and needs no help for these.
                    libc::SEEK_SET | libc::SEEK_CUR => real(),
                    _ => serve(|| reposition(&managed, offset, whence).map(|at| at as off_t)),
                };
                (managed.entry().clone(), result)
            }
        };
        if result >= 0 {
            entry.offset.store(result as u64, std::sync::atomic::Ordering::Relaxed);
            let call = Call { offset: result as u64, ..Call::plain(Op::Seek) };
            record::timed(&entry, call, || 0);
        }
        result
    }
);

/// Moves the descriptor's offset, which the kernel keeps, to a position that depends on the file's
/// size or holes.
fn reposition(managed: &Managed, offset: off_t, whence: c_int) -> Result<u64> {
    managed.flags()?;
    let file = managed.file()?;
    match whence {
        libc::SEEK_END => {
            let target = (file.size()? as i64).checked_add(offset).ok_or(Errno::INVAL)?;
            managed.set_offset(u64::try_from(target).map_err(|_| Errno::INVAL)?)
        }
        libc::SEEK_DATA | libc::SEEK_HOLE => {
            let whence = if whence == libc::SEEK_DATA { Whence::Data } else { Whence::Hole };
            let offset = u64::try_from(offset).map_err(|_| Errno::NXIO)?;
            managed.set_offset(file.seek(whence, offset)?)
        }
        _ => Err(Errno::INVAL),
    }
}
