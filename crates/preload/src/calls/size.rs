//! Calls that set the size, allocate space or move the offset of a file, or sync it.

use std::ffi::{c_char, c_int, c_uint};
use std::sync::atomic::Ordering;

use libc::off_t;
use stripewise_datapath::Whence;
use stripewise_recorder::Op;
use stripewise_sys::{Errno, OFlags, Result};

use crate::calls::limit::check_limit;
use crate::descriptors::{Call, Managed, Subject, adopt, on_managed, on_recorded, record, sniff, to_path};
use crate::process::{At, fail, guard, serve, serve_code, serve_interruptible, state};

interpose!(
    ftruncate | ftruncate64 = |real, fd: c_int, size: off_t| -> c_int {
        let ours = |managed: &Managed| {
            serve_interruptible(|| {
                let size = u64::try_from(size).map_err(|_| Errno::INVAL)?;
                let file = managed.writable(Errno::INVAL)?;
                check_limit(size, || file.size())?;
                file.truncate(size)?;
                Ok(0)
            })
        };
        on_recorded(fd, || Call::on_range(Op::Resize, 0, size), real, ours)
    },
    truncate | truncate64 = |real, path: *const c_char, size: off_t| -> c_int {
        let at = At::cwd(path);
        let path = match sniff::anchor(at, true) {
            Err(error) => return fail(error),
            Ok(Some(path)) => path,
            Ok(None) => return real(),
        };
        serve_interruptible(|| {
            let size = u64::try_from(size).map_err(|_| Errno::INVAL)?;
            // The anchor's size stands in for the file's size here, which may be larger if the file
            // is open. Then a truncate to a size above the limit is refused even if it shortens the
            // file.
            check_limit(size, || at.stat(true).map(|anchor| anchor.st_size as u64))?;
            if state::runtime()?.truncate(to_path(path.to_bytes()), size)? { Ok(0) } else { Err(Errno::STALE) }
        })
    },
    fallocate | fallocate64 = |real, fd: c_int, mode: c_int, offset: off_t, len: off_t| -> c_int {
        let ours = |managed: &Managed| serve(|| allocate(managed, mode, offset, len).map(|()| 0));
        let call = || Call::on_range(Op::Resize, offset, len);
        on_recorded(fd, call, real, ours)
    },
    posix_fallocate | posix_fallocate64 = |real, fd: c_int, offset: off_t, len: off_t| -> c_int {
        let ours = |managed: &Managed| serve_code(|| allocate(managed, 0, offset, len));
        let call = || Call::on_range(Op::Resize, offset, len);
        on_recorded(fd, call, real, ours)
    },
    fsync = |real, fd: c_int| -> c_int {
        guard::cancellation_point();
        on_recorded(fd, || Call::plain(Op::Sync), real, |managed| sync(managed, false))
    },
    fdatasync = |real, fd: c_int| -> c_int {
        guard::cancellation_point();
        on_recorded(fd, || Call::plain(Op::Sync), real, |managed| sync(managed, true))
    },
    syncfs = |real, fd: c_int| -> c_int {
        let ours = |managed: &Managed| if sync(managed, false) == 0 { real() } else { -1 };
        on_recorded(fd, || Call::plain(Op::Sync), real, ours)
    },
    sync_file_range = |real, fd: c_int, offset: off_t, len: off_t, flags: c_uint| -> c_int {
        let ours = |managed: &Managed| {
            if offset < 0 || len < 0 || offset.checked_add(len).is_none() || flags & !7 != 0 {
                return serve(|| Err(Errno::INVAL));
            }
            sync(managed, true)
        };
        let call = || Call::on_range(Op::Sync, offset, len);
        on_recorded(fd, call, real, ours)
    },
    posix_fadvise | posix_fadvise64 = |real, fd: c_int, offset: off_t, len: off_t, advice: c_int| -> c_int {
        // Advice may be ignored; only invalid arguments are refused.
        let check = |managed: &Managed| {
            managed.flags()?;
            if len < 0 || !(0..=5).contains(&advice) { Err(Errno::INVAL) } else { Ok(()) }
        };
        on_managed(fd, real, |managed| serve_code(|| check(managed)))
    },
    readahead = |real, fd: c_int, offset: off_t, len: usize| -> isize {
        let check = |managed: &Managed| match managed.flags()? & OFlags::RWMODE {
            OFlags::WRONLY => Err(Errno::BADF),
            _ => Ok(0),
        };
        on_managed(fd, real, |managed| serve(|| check(managed)))
    },
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
            entry.offset.store(result as u64, Ordering::Relaxed);
            let call = Call { offset: result as u64, ..Call::plain(Op::Seek) };
            record::timed(&entry, call, || 0);
        }
        result
    },
);

fn allocate(managed: &Managed, mode: c_int, offset: off_t, len: off_t) -> Result<()> {
    managed.flags()?;
    let (Ok(from), Ok(bytes)) = (u64::try_from(offset), u64::try_from(len)) else { return Err(Errno::INVAL) };
    if bytes == 0 {
        return Err(Errno::INVAL);
    }
    if offset.checked_add(len).is_none() {
        return Err(Errno::FBIG);
    }
    if mode & !libc::FALLOC_FL_KEEP_SIZE != 0 {
        // A hole cannot be punched in the stripes of several objects in one step. Callers fall back
        // to writing zeros.
        return Err(Errno::OPNOTSUPP);
    }
    let file = managed.writable(Errno::BADF)?;
    if mode == 0 {
        check_limit(from + bytes, || file.size())?;
    }
    file.allocate(from, bytes, mode != 0)
}

fn sync(managed: &Managed, data_only: bool) -> c_int {
    serve_interruptible(|| {
        managed.flags()?;
        managed.file()?.sync(data_only).map(|()| 0)
    })
}

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
