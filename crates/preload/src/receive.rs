//! `recvmsg`: descriptors that come through a socket are seen for the first time.

use std::ffi::c_int;

use libc::{cmsghdr, msghdr};

use crate::process;
use crate::real::interpose;
use crate::table::{self, Known};

interpose! {
    recvmsg => recvmsg, (socket: c_int, message: *mut msghdr, flags: c_int) -> isize;
}

type RecvmsgFn = unsafe extern "C" fn(c_int, *mut msghdr, c_int) -> isize;

unsafe fn recvmsg(real: RecvmsgFn, socket: c_int, message: *mut msghdr, flags: c_int) -> isize {
    let result = unsafe { real(socket, message, flags) };
    if result >= 0 && unsafe { (*message).msg_controllen } > 0 && !process::is_vfork_child() {
        // SAFETY: filled in by the call.
        unsafe { forget_received(&*message) };
    }
    result
}

/// What was known of the numbers is about descriptors that are gone.
unsafe fn forget_received(message: &msghdr) {
    // SAFETY: the kernel made the chain of headers.
    unsafe {
        let mut header: *const cmsghdr = libc::CMSG_FIRSTHDR(message);
        while let Some(control) = header.as_ref() {
            if control.cmsg_level == libc::SOL_SOCKET && control.cmsg_type == libc::SCM_RIGHTS {
                let bytes = control.cmsg_len - libc::CMSG_LEN(0) as usize;
                let fds = libc::CMSG_DATA(control).cast::<c_int>();
                (0..bytes / size_of::<c_int>())
                    .for_each(|at| drop(table::set(fds.add(at).read_unaligned(), Known::Unknown)));
            }
            header = libc::CMSG_NXTHDR(message, control);
        }
    }
}
