//! Calls other than `open` that make descriptors, and `fcntl`.
//!
//! The table may still have entries for the numbers of new descriptors, from descriptors that are
//! closed by now.

use std::ffi::{c_int, c_uint, c_void};

use libc::{cmsghdr, mmsghdr, msghdr, timespec};
use stripewise_sys::OFlags;
use stripewise_sys::fd::is_private;

use crate::calls::close::leave;
use crate::calls::{locks, stdio};
use crate::descriptors::{Entry, Known, access, adopt, on_managed, sniff, table};
use crate::process::{errno, guard, identity, kernel};

interpose!(
    dup = |real, old: c_int| -> c_int { duplicated(old, real) },
    dup2 | __dup2 = |real, old: c_int, new: c_int| -> c_int { onto(old, new, real) },
    dup3 = |real, old: c_int, new: c_int, flags: c_int| -> c_int { onto(old, new, real) },
    fcntl | fcntl64 | __fcntl = |real, fd: c_int, command: c_int, argument: usize| -> c_int {
        if guard::active() {
            return real();
        }
        if is_private(fd) {
            return bad_descriptor();
        }
        match command {
            libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => duplicated(fd, real),
            libc::F_SETFL => {
                let result = real();
                if let (0, Known::Entry(entry)) = (result, table::known(fd)) {
                    entry.note_status(OFlags::from_bits_retain(argument as u32));
                }
                result
            }
            // Recorded before the descriptor is examined, because that may open the file.
            _ if locks::is_about(command) => {
                sniff::locks_are_used();
                on_managed(fd, real, |managed| locks::control(managed, command, argument))
            }
            libc::F_GETFD | libc::F_SETFD => real(),
            libc::F_GETFL => match (real(), adopt::tracked(fd)) {
                (flags, Some(entry)) if flags >= 0 && !entry.is_plain() => with_access(flags, &entry),
                (flags, _) => flags,
            },
            _ => on_managed(fd, real, |managed| {
                let answer = access::answer(fd, command, argument, &managed.entry().signal);
                answer.map_or_else(real, |answer| errno::answer(|| answer))
            }),
        }
    },
    recvmsg = |real, socket: c_int, message: *mut msghdr, flags: c_int| -> isize {
        let result = real();
        if result >= 0 {
            // SAFETY: filled by the call.
            unsafe { forget_received(&*message) };
        }
        result
    },
    recvmmsg = |real,
                socket: c_int,
                messages: *mut mmsghdr,
                count: c_uint,
                flags: c_int,
                timeout: *mut timespec|
     -> c_int {
        unsafe {
            let received = real();
            forget_all(messages, received);
            received
        }
    },
    open_by_handle_at = |real, mount: c_int, handle: *mut c_void, flags: c_int| -> c_int { forget(real()) },
    pidfd_getfd = |real, process: c_int, fd: c_int, flags: c_uint| -> c_int { forget(real()) },
    lockf | lockf64 = |real, fd: c_int, command: c_int, len: libc::off_t| -> c_int {
        sniff::locks_are_used();
        on_managed(fd, real, |managed| locks::lockf(managed, command, len))
    },
    flock = |real, fd: c_int, operation: c_int| -> c_int {
        on_managed(fd, real, |managed| locks::whole(managed, operation, real))
    },
);

/// The result of F_GETFL for a managed file's descriptor. The kernel's own flags say that it is
/// open for reading.
fn with_access(flags: c_int, entry: &Entry) -> c_int {
    let unknown = flags & (libc::O_ACCMODE | libc::O_PATH) == 0;
    if unknown { flags | entry.access.bits().cast_signed() } else { flags }
}

/// The kernel chooses the number.
fn duplicated(old: c_int, call: impl FnOnce() -> c_int) -> c_int {
    if is_private(old) {
        return bad_descriptor();
    }
    let new = call();
    if new < 0 || identity::is_vfork_child() {
        return new;
    }
    if new as usize >= table::LIMIT && is_managed(old) {
        kernel::close(new);
        errno::set(libc::EMFILE);
        return -1;
    }
    table::set(new, table::known(old));
    new
}

/// The application chooses the number, which may be in use.
fn onto(old: c_int, new: c_int, call: impl FnOnce() -> c_int) -> c_int {
    if is_private(old) || is_private(new) || (new as usize >= table::LIMIT && is_managed(old)) {
        return bad_descriptor();
    }
    if old == new || identity::is_vfork_child() {
        return call();
    }
    let result = match table::forget(new) {
        None => call(),
        Some(entry) => {
            let result = leave(&entry, call);
            if result < 0 {
                // `new` is still open, unless another thread has changed it meanwhile.
                if let Known::Unknown = table::known(new) {
                    table::set(new, Known::Entry(entry));
                }
            }
            result
        }
    };
    if result >= 0 {
        table::set(new, table::known(old));
        stdio::descriptor_replaced(new);
    }
    result
}

fn is_managed(fd: c_int) -> bool {
    matches!(table::known(fd), Known::Entry(entry) if !entry.is_plain())
}

fn bad_descriptor() -> c_int {
    errno::set(libc::EBADF);
    -1
}

/// Forgets the descriptors in the messages of a call that returned `count`.
/// Safety: `count` is negative, or the call has filled as many messages.
pub unsafe fn forget_all(messages: *const mmsghdr, count: c_int) {
    for at in 0..usize::try_from(count).unwrap_or(0) {
        // SAFETY: as the caller promises.
        unsafe { forget_received(&(*messages.add(at)).msg_hdr) };
    }
}

/// Forgets the table's entry for a new descriptor, which is negative after a failed call. Returns
/// the descriptor.
pub fn forget(fd: c_int) -> c_int {
    if fd >= 0 && !identity::is_vfork_child() {
        drop(table::set(fd, Known::Unknown));
    }
    fd
}

unsafe fn forget_received(message: &msghdr) {
    if message.msg_controllen == 0 {
        return;
    }
    // SAFETY: the kernel made the chain of headers.
    unsafe {
        let mut header: *const cmsghdr = libc::CMSG_FIRSTHDR(message);
        while let Some(control) = header.as_ref() {
            if control.cmsg_level == libc::SOL_SOCKET && control.cmsg_type == libc::SCM_RIGHTS {
                let bytes = control.cmsg_len - libc::CMSG_LEN(0) as usize;
                let fds = libc::CMSG_DATA(control).cast::<c_int>();
                (0..bytes / size_of::<c_int>()).for_each(|at| _ = forget(fds.add(at).read_unaligned()));
            }
            header = libc::CMSG_NXTHDR(message, control);
        }
    }
}
