//! `stdin`, `stdout` and `stderr` on managed files: `program > managed`, and a shell's dup2 before
//! that.
//!
//! The three are variables. A program's own copy of such a variable keeps the old stream.

use std::ffi::c_int;
use std::ptr::{addr_of, addr_of_mut};

use libc::FILE;

use super::cookie::{self, Access};
use crate::descriptors::Subject;
use crate::process::errno;

unsafe extern "C" {
    static mut stdin: *mut FILE;
    static mut stdout: *mut FILE;
    static mut stderr: *mut FILE;
}

fn variable(fd: c_int) -> Option<*mut *mut FILE> {
    // Only addresses are taken.
    match fd {
        0 => Some(addr_of_mut!(stdin)),
        1 => Some(addr_of_mut!(stdout)),
        2 => Some(addr_of_mut!(stderr)),
        _ => None,
    }
}

/// The stream in the variable of this descriptor.
pub fn of_descriptor(fd: c_int) -> *mut FILE {
    // SAFETY: libc's variables.
    variable(fd).map_or(std::ptr::null_mut(), |variable| unsafe { *variable })
}

/// Whether the stream is in one of the variables.
pub fn is_standard(stream: *mut FILE) -> bool {
    // SAFETY: as above.
    unsafe { [*addr_of!(stdin), *addr_of!(stdout), *addr_of!(stderr)].contains(&stream) }
}

/// Checks the descriptors that the program was started with.
pub fn at_start() {
    (0..=2).for_each(descriptor_replaced);
}

/// Called when a descriptor has become another file's. If that file is managed, a stream of this
/// library replaces the standard stream.
pub fn descriptor_replaced(fd: c_int) {
    let Some(variable) = variable(fd) else { return };
    if Subject::managed(fd).is_none() {
        return;
    }
    let _ = errno::guarded(|| {
        // SAFETY: libc's variables. A program that uses one in another thread during dup2 gets the
        // old or the new stream.
        unsafe {
            let old = *variable;
            // The program may have stored another stream there.
            if !old.is_null() && cookie::descriptor(old) == fd && !cookie::is_ours(old) {
                *variable = take_over(fd, old)?;
            }
        }
        Ok(())
    });
}

unsafe fn take_over(fd: c_int, old: *mut FILE) -> stripewise_sys::Result<*mut FILE> {
    let access = if fd == 0 { Access::parse(c"r") } else { Access::parse(c"w") };
    let new = cookie::open(fd, access.ok_or(stripewise_sys::Errno::INVAL)?)?;
    // SAFETY: both are open; the caller replaces one by the other.
    unsafe {
        if fd == 2 {
            libc::setvbuf(new, std::ptr::null_mut(), libc::_IONBF, 0);
        }
        // Output that the program has written but not flushed would also go to the new file with
        // libc.
        let old = cookie::layout(old);
        let pending = old.write_ptr.offset_from_unsigned(old.write_base);
        if pending > 0 {
            libc::fwrite(old.write_base.cast(), 1, pending, new);
            old.write_ptr = old.write_base;
        }
    }
    Ok(new)
}
