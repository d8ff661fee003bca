//! `close` and related calls. The library's private descriptors stay open, and appear closed to the
//! application.

use std::ffi::{c_int, c_uint};

use stripewise_recorder::Op;
use stripewise_sys::fd::{is_private, next_private};
use stripewise_sys::{Errno, Result};

use crate::calls::locks;
use crate::descriptors::{Call, EntryRef, record, sniff, table};
use crate::process::{NoCancellation, SignalForkGuard, answer, errno, guard, identity, kernel, state};

interpose!(
    close | __close = |real, fd: c_int| -> c_int {
        if guard::active() {
            return real();
        }
        if is_private(fd) {
            errno::set(libc::EBADF);
            return -1;
        }
        guard::cancellation_point();
        match table::forget(fd) {
            None => real(),
            Some(entry) => close_entry(entry, real),
        }
    },
    // libc closes the directory's descriptor internally.
    closedir = |real, dir: *mut libc::DIR| -> c_int {
        if !guard::active() && !dir.is_null() {
            // SAFETY: an open directory of the application.
            drop(table::forget(unsafe { libc::dirfd(dir) }));
        }
        real()
    },
    close_range = |_real, first: c_uint, last: c_uint, flags: c_int| -> c_int {
        answer(|| close_between(first, last, flags).map(|()| 0))
    },
);

/// The table has forgotten the descriptor, so it must be closed: from here on the thread cannot be
/// cancelled until that is done.
#[inline(never)]
fn close_entry(entry: EntryRef, close: impl FnOnce() -> c_int) -> c_int {
    let _held = NoCancellation::new();
    leave(&entry, close)
}

/// Closes, by `close`, the descriptor of an entry that the table has forgotten.
pub fn leave(entry: &EntryRef, close: impl FnOnce() -> c_int) -> c_int {
    if let (true, Ok(Some(file))) = (sniff::are_locks_used(), entry.file()) {
        locks::closing(file);
    }
    // Other slots that refer to the entry are duplicates of the descriptor.
    if !entry.is_last() {
        // A running call has a reference, too, and keeps it for ever if a handler leaves it or if
        // another thread forks during it. That must not keep the description open, with its locks.
        if !table::refers_to(entry) {
            entry.twin.close();
        }
        return close();
    }
    let guard = SignalForkGuard::new();
    errno::quietly(|| {
        // Prepares the data path in a forked child before the child uses a file.
        let _ = state::runtime_if_used();
        if let Ok(Some(file)) = entry.file() {
            file.closing();
            if !entry.is_only_of_file() {
                file.stays_open();
            }
        }
    });
    drop(guard);
    record::timed(entry, Call::plain(Op::Close), close)
}

/// Does not use the macro, because it returns nothing.
#[unsafe(no_mangle)]
unsafe extern "C" fn closefrom(low: c_int) {
    let before = errno::get();
    let low = low.max(0).cast_unsigned();
    if close_between(low, c_uint::MAX, 0) == Err(Errno::NOSYS) {
        // Kernels before Linux 5.9 lack close_range(2).
        let _ = sniff::for_each_descriptor(|fd| {
            if fd.cast_unsigned() >= low && !is_private(fd) {
                kernel::close(fd);
            }
        });
    }
    errno::set(before);
}

/// close_range(2) for all but the library's private descriptors.
fn close_between(first: c_uint, last: c_uint, flags: c_int) -> Result<()> {
    if first > last {
        return Err(Errno::INVAL);
    }
    if flags.cast_unsigned() & libc::CLOSE_RANGE_CLOEXEC == 0 && !identity::is_vfork_child() {
        table::forget_range(first, last, |entry| {
            leave(&entry, || 0);
        });
    }
    let mut from = first;
    while let Some(private) = c_int::try_from(from).ok().and_then(next_private).map(c_int::cast_unsigned) {
        if private > last {
            break;
        }
        if private > from {
            kernel::close_range(from, private - 1, flags)?;
        }
        from = private + 1;
    }
    if from <= last { kernel::close_range(from, last, flags) } else { Ok(()) }
}
