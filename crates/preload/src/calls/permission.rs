//! `access` and related calls. No user may write to an anchor; the objects decide whether a program
//! may write to the file.

use std::ffi::{c_char, c_int};

use stripewise_sys::Result;

use crate::descriptors::paths::{borrow_dir, follows, to_path};
use crate::descriptors::seen::Found;
use crate::descriptors::sniff;
use crate::process::errno::{self, fail, serve};
use crate::process::{identity, state};

interpose!(
    access = |&real, path: *const c_char, mode: c_int| -> c_int {
        asked(libc::AT_FDCWD, path, mode, 0, |mode| unsafe { real(path, mode) })
    },
    euidaccess | eaccess = |&real, path: *const c_char, mode: c_int| -> c_int {
        asked(libc::AT_FDCWD, path, mode, libc::AT_EACCESS, |mode| unsafe { real(path, mode) })
    },
    faccessat = |&real, dir: c_int, path: *const c_char, mode: c_int, flags: c_int| -> c_int {
        asked(dir, path, mode, flags, |mode| unsafe { real(dir, path, mode, flags) })
    },
);

/// The kernel's answer. For an anchor that refuses writing, the answer of the data path.
fn asked(dir: c_int, path: *const c_char, mode: c_int, flags: c_int, real: impl Fn(c_int) -> c_int) -> c_int {
    let answer = real(mode);
    if answer == 0 || mode & libc::W_OK == 0 || errno::get() != libc::EACCES || identity::is_vfork_child() {
        return answer;
    }
    match is_anchor(dir, path, flags) {
        Ok(true) => {}
        Ok(false) => {
            errno::set(libc::EACCES);
            return answer;
        }
        Err(error) => return fail(error),
    }
    // The anchor has the permissions of the file, except to write.
    match real(mode & !libc::W_OK) {
        0 => serve(|| {
            // SAFETY: the kernel could read the path.
            let path = to_path(unsafe { std::ffi::CStr::from_ptr(path) }.to_bytes());
            let effective = flags & libc::AT_EACCESS != 0;
            state::runtime()?.may_write_named(borrow_dir(dir), path, follows(flags), effective)?;
            Ok(0)
        }),
        refused => refused,
    }
}

fn is_anchor(dir: c_int, path: *const c_char, flags: c_int) -> Result<bool> {
    Ok(sniff::look_up(dir, path, follows(flags))?.is_some_and(|named| named.found == Found::Anchor))
}
