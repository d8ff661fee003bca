//! Calls other than `open` that create descriptors. The table may still have entries for their
//! numbers, from descriptors that are closed by now.

use std::ffi::{c_int, c_uint, c_void};

use libc::{cmsghdr, mmsghdr, msghdr, timespec};

use crate::descriptors::{Known, table};
use crate::process::identity;

interpose!(
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
    open_by_handle_at = |real, mount: c_int, handle: *mut c_void, flags: c_int| -> c_int {
        let fd = real();
        forget(fd);
        fd
    },
    pidfd_getfd = |real, process: c_int, fd: c_int, flags: c_uint| -> c_int {
        let fd = real();
        forget(fd);
        fd
    },
);

/// Forgets the descriptors in the messages of a call that returned `count`.
/// Safety: `count` is negative, or the call has filled as many messages.
pub unsafe fn forget_all(messages: *const mmsghdr, count: c_int) {
    for at in 0..usize::try_from(count).unwrap_or(0) {
        // SAFETY: as the caller promises.
        unsafe { forget_received(&(*messages.add(at)).msg_hdr) };
    }
}

/// Forgets the table's entry for a new descriptor. Does nothing if the call failed and `fd` is
/// negative.
pub fn forget(fd: c_int) {
    if fd >= 0 && !identity::is_vfork_child() {
        drop(table::set(fd, Known::Unknown));
    }
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
                (0..bytes / size_of::<c_int>()).for_each(|at| forget(fds.add(at).read_unaligned()));
            }
            header = libc::CMSG_NXTHDR(message, control);
        }
    }
}
